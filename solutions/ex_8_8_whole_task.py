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
    ### BEGIN SOLUTION
    task_s = prefill_s + decode_s + tools_s
    return task_s - prefill_s / 2, task_s - decode_s / 2, task_s - tools_s / 2
    ### END SOLUTION


a = None  # three numbers, in s: prefill halved, decode halved, tools and waiting halved
### BEGIN SOLUTION
a = [task_with_each_part_halved(**case) for case in check.cases("a")]
print(a)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, task_with_each_part_halved)
### BEGIN HIDDEN TESTS
assert check.earned("a", task_with_each_part_halved, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_a", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $T - T_\text{part}/2$, where $T$ is the sum of the three. With the book's numbers 90, 75 and 85 s: the same factor of two, and the task gets
# 1.11, 1.33 and 1.18 times as fast. The share of a part decides what its speed-up is worth.
#
# Tempting, and wrong: 80, 50 and 70 s. That takes the whole part off, and is what no speed-up reaches: the floor below which the task does not get, however fast
# the part. And 90, 65 and 50 s: there each halving comes on top of those before it.

# %% [markdown]
# ## b. Faster decode, with a draft to prepare
#
# Begin again with the task as it was. Decode now gets `speedup` times as fast, thanks to a draft. To prepare the draft takes `preparation_s` more, in each
# task, and nothing else goes on meanwhile. How long does the task take?

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def new_task_time(prefill_s, decode_s, tools_s, speedup, preparation_s):
    ### BEGIN SOLUTION
    return prefill_s + decode_s / speedup + tools_s + preparation_s
    ### END SOLUTION


b = None  # one number, in s
### BEGIN SOLUTION
b = [new_task_time(**case) for case in check.cases("b")]
print(b)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("b", b, new_task_time)
### BEGIN HIDDEN TESTS
assert check.earned("b", new_task_time, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_b", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $T - T_d\,(1 - 1/s) + T_\text{prep}$. With the book's numbers decode takes 12.5 s in place of 50 s, and the task 20 + 12.5 + 30 + 8 = 70.5 s.
#
# Tempting, and wrong: 62.5 s, without the preparation. And 64.5 s, for which the preparation is divided by 4 as if it were decode.

# %% [markdown]
# ## c. Net speed-up
#
# How many times as fast is the whole task now, preparation included? Give the ratio, not per cent. Below 1 the task takes longer than before.

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def net_speedup(prefill_s, decode_s, tools_s, speedup, preparation_s):
    ### BEGIN SOLUTION
    task_s = prefill_s + decode_s + tools_s
    return task_s / new_task_time(prefill_s, decode_s, tools_s, speedup, preparation_s)
    ### END SOLUTION


c = None  # one number
### BEGIN SOLUTION
c = [net_speedup(**case) for case in check.cases("c")]
print(c)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, net_speedup)
### BEGIN HIDDEN TESTS
assert check.earned("c", net_speedup, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_c", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** The old time over the new one: 100/70.5 = 1.42 with the book's numbers. Without the preparation it would be 1.6, by Amdahl's law.
#
# Tempting, and wrong: 2.44, which compares decode alone, 50 s, with its 12.5 s and the preparation. It is what a measurement of decode alone would
# show; the task has 50 s more, before and after. And 4, the speed-up of decode, with neither the other parts nor the preparation.

# %% [markdown]
# ## d. When nothing is gained
#
# At which preparation time would the task take as long as before? It is not the one of the inputs that is asked for, but the one at which nothing is gained and
# nothing lost.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def break_even_preparation(prefill_s, decode_s, tools_s, speedup, preparation_s):
    ### BEGIN SOLUTION
    return decode_s - decode_s / speedup
    ### END SOLUTION


d = None  # one number, in s
### BEGIN SOLUTION
d = [break_even_preparation(**case) for case in check.cases("d")]
print(d)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("d", d, break_even_preparation)
### BEGIN HIDDEN TESTS
assert check.earned("d", break_even_preparation, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_d", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $T_d\,(1 - 1/s)$: all that decode saves. With the book's numbers 50 − 12.5 = 37.5 s. From there on the draft costs time. Neither the other parts nor
# the preparation of the inputs matter: what stays the same on both sides cancels. However fast decode gets, the limit stays below the 50 s that decode took.
#
# Tempting, and wrong: 12.5 s, what decode still takes. At twice as fast both are the same, so that case would hide the slip. And 29.5 s: so much *more*
# preparation there may be than the 8 s there are.
