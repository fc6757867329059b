# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %%

# %% [markdown]
# # Exercise 8-8: what a faster part makes of a whole task
#
# Calculate. It belongs to section 8.6.3.
#
# A task of an agent has three parts, one after the other: prefill, decode, and what happens outside of the instance, such as tools and waiting. Which part is worth
# the work? And if a draft has to be prepared before decode gets faster, when does that still pay?
#
# **How to answer.** Each part has a place for numbers (`a = None`) and for a function that computes them. Put your own in place of the lines that say *not
# answered yet*, run the cell, then the cell below it: `check` tells what it found. Numbers by hand are the warm-up. The function is also tried with inputs
# that you do not see, and it is the function that earns the marks. Keep the names of functions and of their parameters: `check` calls them by these names.

# %% [markdown]
# The inputs: times in seconds, and how many times as fast decode gets. Each part begins when the one before it has ended, so the whole task takes their sum.

# %% nbgrader={"grade": false, "grade_id": "inputs", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib import exercise_8_8
from lib.exercises import Checker

inputs = exercise_8_8.Inputs(
    prefill_s=20,  # of the whole task
    decode_s=50,
    tools_s=30,  # tools and waiting
    speedup=4,  # how many times as fast decode gets, for parts b to d
    preparation_s=8,  # to prepare the draft, for parts b and c
)
check = Checker(exercise_8_8.EXERCISE, inputs)


# %% [markdown]
# ## a. Each part halved
#
# Halve the time of one part and leave the other two as they are. How long does the whole task take if that part is prefill? If it is decode? If it is tools and
# waiting? Each case begins with the task as it was.

# %% nbgrader={"grade": false, "grade_id": "a", "locked": false, "schema_version": 3, "solution": true, "task": false}
def task_with_each_part_halved(prefill_s, decode_s, tools_s):
    pass  # not answered yet


a = None  # three numbers, in s: prefill halved, decode halved, tools and waiting halved
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, task_with_each_part_halved)


# %% [markdown]
# ## b. Faster decode, with a draft to prepare
#
# Begin again with the task as it was. Decode now gets `speedup` times as fast, thanks to a draft. To prepare the draft takes `preparation_s` more, in each
# task, and nothing else goes on meanwhile. How long does the task take?

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def new_task_time(prefill_s, decode_s, tools_s, speedup, preparation_s):
    pass  # not answered yet


b = None  # one number, in s
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("b", b, new_task_time)


# %% [markdown]
# ## c. Net speed-up
#
# How many times as fast is the whole task now, preparation included? Give the ratio, not per cent. Below 1 the task takes longer than before.

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def net_speedup(prefill_s, decode_s, tools_s, speedup, preparation_s):
    pass  # not answered yet


c = None  # one number
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, net_speedup)


# %% [markdown]
# ## d. When nothing is gained
#
# At which preparation time would the task take as long as before? It is not the one of the inputs that is asked for, but the one at which nothing is gained and
# nothing lost.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def break_even_preparation(prefill_s, decode_s, tools_s, speedup, preparation_s):
    pass  # not answered yet


d = None  # one number, in s
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("d", d, break_even_preparation)
