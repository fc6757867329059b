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
# # Exercise 8-1: what a larger batch saves, and what stops it
#
# Calculate. It belongs to section 8.2.1 and uses the request sizes of section 8.1.2.
#
# A decode step reads the weights once for all its requests, and for each request the KV of its context. So a larger batch spreads the weights over
# more outputs. How far does that go, and does the memory for KV end it before?
#
# **How to answer.** Each part has a place for numbers (`a = None`) and for a function that computes them. Put your own in place of the lines that say
# *not answered yet*, run the cell, then the cell below it: `check` tells what it found. Numbers by hand are the warm-up. The function is also tried
# with inputs that you do not see, and it is the function that earns the marks; where a part is a choice, the choice does.
# Keep the names of functions and of their parameters: `check` calls them by these names.

# %% [markdown]
# The inputs, in bytes and tokens. Context *L* is what stands in KV already; the token that is being decoded is not counted.

# %% nbgrader={"grade": false, "grade_id": "inputs", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib import exercise_8_1
from lib.exercises import Checker

inputs = exercise_8_1.Inputs(
    streamed_weight_bytes=15_136_811_008,  # D_w: weights that one step reads
    resident_weight_bytes=16_381_470_720,  # all weights in memory, input embeddings too
    kv_bytes_per_token=147_456,  # k
    contexts=(2_048, 8_192),  # L
    batches=(1, 4, 16, 64),  # b
    pool_bytes=12_884_901_888,  # M: memory for KV
    other_pool_bytes=17_179_869_184,  # another such memory, for part d
    page_tokens=16,  # p
    output_tokens=256,  # G
)
check = Checker(exercise_8_1.EXERCISE, inputs)


# %% [markdown]
# ## a. Reads per output token
#
# How many GiB are read for one output token, for each context and each batch? Requests share nothing but the weights. To half a per cent; first all
# batches with the first context, then all with the second. `check.cases("a")` shows the cases in this order, one a line.

# %% nbgrader={"grade": false, "grade_id": "a", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gib_per_output(
    streamed_weight_bytes, resident_weight_bytes, kv_bytes_per_token, context, batch
):
    pass  # not answered yet


a = None  # eight numbers, in GiB
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, gib_per_output)


# %% [markdown]
# ## b. Where KV overtakes the weights
#
# What is the smallest whole batch at which the KV read by a step reaches or exceeds the weights read, for each context?

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def smallest_batch(
    streamed_weight_bytes, resident_weight_bytes, kv_bytes_per_token, context
):
    pass  # not answered yet


b = None  # two whole numbers
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, smallest_batch)


# %% [markdown]
# ## c. How many requests fit
#
# Each request shall run to its last output without being moved. How many independent requests does the pool hold, for each context as the input?
# Pages have $p$ tokens; the whole pool is for KV.

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def requests_that_fit(
    pool_bytes, kv_bytes_per_token, context, page_tokens, output_tokens
):
    pass  # not answered yet


c = None  # two whole numbers
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, requests_that_fit)

# %% [markdown]
# ## d. What stops the batch first
#
# For each context: while the batch grows, is it stopped first by `"capacity"` (the pool is full before the KV read reaches the weights read) or is the
# `"crossing"` of part b reached first? It counts as reached if the batch of part b just fits.
#
# - `d1` for the first context, `d2` for the second, with the pool of part c.
# - `d3` and `d4` for the same two contexts, if the pool had `inputs.other_pool_bytes` instead.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
d1 = None  # "capacity" or "crossing"
d2 = None
d3 = None
d4 = None
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d1", d1)
check("d2", d2)

# %% nbgrader={"grade": true, "grade_id": "test_d_other", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d3", d3)
check("d4", d4)


# %% [markdown]
# ## e. The pool at which both meet
#
# How many GiB must the pool have at least, for each context, so that the batch of part b fits to the last outputs of its requests, as in part c?

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
def pool_gib(
    streamed_weight_bytes,
    resident_weight_bytes,
    kv_bytes_per_token,
    context,
    page_tokens,
    output_tokens,
):
    pass  # not answered yet


e = None  # two numbers, in GiB
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, pool_gib)
