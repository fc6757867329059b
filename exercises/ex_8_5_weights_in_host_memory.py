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

# %% [markdown]
# # Exercise 8-5: weights that wait in host memory
#
# Calculate. It belongs to section 8.4.3 and uses the request sizes of section 8.1.2.
#
# Some layers give their FFN weights away to host memory. That makes room on the card, and each step has to copy them back before their layers compute. How
# much room is it, and what does the copying take?
#
# **How to answer.** Each part has a place for numbers (`a = None`) and for a function that computes them. Put your own in place of the lines that say *not
# answered yet*, run the cell, then the cell below it: `check` tells what it found. Numbers by hand are the warm-up. The function is also tried with inputs
# that you do not see, and it is the function that earns the marks. Keep the names of functions and of their parameters: `check` calls them by these names.

# %% [markdown]
# The inputs, in bytes, bytes per second and seconds. One layer in every so many gives away one set of weights, and the rest of the model stays. A buffer on
# the card holds one set, while it is copied and while its layer computes. Nothing is written back.

# %% nbgrader={"grade": false, "grade_id": "inputs", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib import exercise_8_5
from lib.exercises import Checker

inputs = exercise_8_5.Inputs(
    layers=36,  # of the model
    every=4,  # one layer in so many gives its set away
    set_bytes=301_989_888,  # S: the FFN weights of one layer
    buffers=(1, 2),  # two ways to do it: so many buffers of one set each
    input_state_bytes=1_207_959_552,  # KV of one request after its prefill
    request_bytes=1_245_708_288,  # KV of the same request at its end
    links_bytes_s=(64_000_000_000, 450_000_000_000),  # B: two links, each in one direction
    output_tokens=256,  # G: outputs of a request
    limit_s=1,  # seconds that all its copies together may take
)
check = Checker(exercise_8_5.EXERCISE, inputs)


# %% [markdown]
# ## a. Memory gained
#
# How many MiB of the card's memory does the offload gain, with each number of buffers? `layers // every` layers give their set away.

# %% nbgrader={"grade": false, "grade_id": "a", "locked": false, "schema_version": 3, "solution": true, "task": false}
def net_mib(layers, every, set_bytes, buffers):
    pass  # not answered yet


a = None  # two numbers, in MiB
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, net_mib)


# %% [markdown]
# ## b. More inputs
#
# How many more input states fit in what is gained, with each number of buffers?

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def more_inputs(layers, every, set_bytes, buffers, input_state_bytes):
    pass  # not answered yet


b = None  # two whole numbers
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("b", b, more_inputs)


# %% [markdown]
# ## c. More complete requests
#
# And how many more complete requests, with the KV of their outputs?

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def more_requests(layers, every, set_bytes, buffers, request_bytes):
    pass  # not answered yet


c = None  # two whole numbers
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("c", c, more_requests)


# %% [markdown]
# ## d. Copies of one step
#
# How long do the copies of one decode step take at least, over each link? In ms, at the link's bandwidth.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def copy_ms(layers, every, set_bytes, link_bytes_s):
    pass  # not answered yet


d = None  # two numbers, in ms
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d", d, copy_ms)


# %% [markdown]
# ## e. Copies of all steps
#
# How long do the copies of all decode steps of a request take at least, over each link? In seconds; its first output comes from prefill, whose copies are not
# counted. (To 0.1 %; give four digits.)

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
def all_copies_s(layers, every, set_bytes, link_bytes_s, output_tokens):
    pass  # not answered yet


e = None  # two numbers, in seconds
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, all_copies_s)


# %% [markdown]
# ## f. The link that is needed
#
# All these copies shall take no longer than the limit. What bandwidth in one direction is needed at least, in GB/s? (To 0.1 %; give four digits.)

# %% nbgrader={"grade": false, "grade_id": "f", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lowest_gb_s(layers, every, set_bytes, output_tokens, limit_s):
    pass  # not answered yet


f = None  # a number, in GB/s
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("f", f, lowest_gb_s)
