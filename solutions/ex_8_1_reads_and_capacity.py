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
    ### BEGIN SOLUTION
    step_bytes = streamed_weight_bytes + batch * context * kv_bytes_per_token
    return step_bytes / batch / 2**30
    ### END SOLUTION


a = None  # eight numbers, in GiB
### BEGIN SOLUTION
a = [gib_per_output(**case) for case in check.cases("a")]
print([round(gib, 3) for gib in a])
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, gib_per_output)
### BEGIN HIDDEN TESTS
assert check.earned("a", gib_per_output, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_a", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** One step reads $D_w + b\,L\,k$ and gives $b$ outputs, so each output costs $d = D_w/b + L\,k$.
#
# With the book's numbers: $D_w$ = 15,136,811,008 / 1024³ = 14.10 GiB, and a context of 2048 tokens holds 2048 × 144 KiB = 288 MiB = 0.281 GiB. Alone, a
# request reads 14.10 + 0.28 = 14.38 GiB per output; among 64 it reads 14.10/64 + 0.28 = 0.22 + 0.28 = 0.50 GiB. With 8192 tokens the second term is four
# times as large, 1.125 GiB, and stays: 15.22 GiB alone, 1.35 GiB among 64.
#
# Tempting, and wrong: dividing the KV by the batch as well. The weights are shared, the contexts are not; more requests bring more KV to read. Also wrong:
# all 16.38 GB of weights. A step looks up a few rows of the input embeddings and never reads the rest. At a batch of one, the whole batch and one output
# are the same number, so a mistake about sharing hides there; compare at 64.

# %% [markdown]
# ## b. Where KV overtakes the weights
#
# What is the smallest whole batch at which the KV read by a step reaches or exceeds the weights read, for each context?

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def smallest_batch(
    streamed_weight_bytes, resident_weight_bytes, kv_bytes_per_token, context
):
    ### BEGIN SOLUTION
    return -(-streamed_weight_bytes // (context * kv_bytes_per_token))
    ### END SOLUTION


b = None  # two whole numbers
### BEGIN SOLUTION
b = [smallest_batch(**case) for case in check.cases("b")]
print(b)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, smallest_batch)
### BEGIN HIDDEN TESTS
assert check.earned("b", smallest_batch, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_b", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $b\,L\,k \ge D_w$ means $b \ge D_w/(L\,k)$, and a batch is whole: $b_{KV} = \lceil D_w/(L\,k)\rceil$.
#
# With the book's numbers: 14.10/0.281 = 50.1, so 51; 14.10/1.125 = 12.5, so 13. Rounding down gives 50 and 12, and with these the KV read is still the
# smaller one. In the code `-(-x // y)` rounds a quotient of whole numbers up without leaving them. A context four times as long is overtaken at about a
# quarter of the batch.

# %% [markdown]
# ## c. How many requests fit
#
# Each request shall run to its last output without being moved. How many independent requests does the pool hold, for each context as the input?
# Pages have $p$ tokens; the whole pool is for KV.

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def requests_that_fit(
    pool_bytes, kv_bytes_per_token, context, page_tokens, output_tokens
):
    ### BEGIN SOLUTION
    stored = context + output_tokens - 1
    pages = -(-stored // page_tokens)
    return pool_bytes // (pages * page_tokens * kv_bytes_per_token)
    ### END SOLUTION


c = None  # two whole numbers
### BEGIN SOLUTION
c = [requests_that_fit(**case) for case in check.cases("c")]
print(c)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, requests_that_fit)
### BEGIN HIDDEN TESTS
assert check.earned("c", requests_that_fit, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_c", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** The prefill gives the first output; each further one needs the output before it to be fed in, and the last is never fed in. So a request
# stores $L + G - 1$ tokens, in $\lceil (L+G-1)/p \rceil$ pages of $p\,k$ bytes.
#
# With the book's numbers: 2048 + 255 = 2303 tokens take 144 pages = 324 MiB, and 12,288/324 = 37.9, so 37 requests. 8192 + 255 = 8447 tokens take 528 pages =
# 1188 MiB, and 12,288/1188 = 10.3, so 10.
#
# Tempting, and wrong: counting what a request holds after its prefill, 288 MiB, which admits 42. They all fit at first, and run out of memory half-way:
# 42 × 324 = 13,608 MiB. With the long context the book's numbers hide this: 1152 MiB also gives 10. Storing the last output as well hides at both.

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
### BEGIN SOLUTION
cases = [case | {"pool_bytes": inputs.other_pool_bytes} for case in check.cases("c")]
fit_other = [requests_that_fit(**case) for case in cases]
d1, d2 = ["capacity" if fit < cross else "crossing" for fit, cross in zip(c, b)]
d3, d4 = [
    "capacity" if fit < cross else "crossing" for fit, cross in zip(fit_other, b)
]
print(d1, d2, fit_other, d3, d4)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d1", d1)
check("d2", d2)
### BEGIN HIDDEN TESTS
assert check.earned("d1", d1) and check.earned("d2", d2)
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "test_d_other", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d3", d3)
check("d4", d4)
### BEGIN HIDDEN TESTS
assert check.earned("d3", d3) and check.earned("d4", d4)
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_d", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Compare c with b; the crossing does not depend on the pool. With the book's numbers 37 < 51 and 10 < 13: memory ends the batch first, for both
# contexts. Even the largest batch that fits still reads more weights than KV, so each further request would have saved reading, if there had been room for it.
#
# The other pool has 16 GiB = 16,384 MiB. 16,384/324 = 50.6, so 50 short requests fit, one too few: capacity. 16,384/1188 = 13.8, so 13 long ones fit, just the
# batch of part b: crossing. The same pool, and each context has its own answer.
#
# Tempting, and wrong: comparing the pool with the weights, 16 GiB against 14.1 GiB, and saying crossing for both. At the crossing the KV *read* equals the
# weights, but a request *holds* more than it reads half-way, since it still grows. And who rounded down to 50 in part b finds crossing for the short one too.

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
    ### BEGIN SOLUTION
    batch = -(-streamed_weight_bytes // (context * kv_bytes_per_token))
    pages = -(-(context + output_tokens - 1) // page_tokens)
    return batch * pages * page_tokens * kv_bytes_per_token / 2**30
    ### END SOLUTION


e = None  # two numbers, in GiB
### BEGIN SOLUTION
e = [pool_gib(**case) for case in check.cases("e")]
print([round(gib, 3) for gib in e])
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, pool_gib)
### BEGIN HIDDEN TESTS
assert check.earned("e", pool_gib, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_e", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** The batch of part b times what one request holds at its end, as in part c. With the book's numbers: 51 × 324 MiB = 16.1 GiB and
# 13 × 1188 MiB = 15.1 GiB; the 16 GiB of part d lie between them. Both lie a little above $D_w$ = 14.1 GiB, which is no accident: at the crossing the KV *read* equals the weights, and the KV
# *held* is larger by the outputs still to come, about $1 + (G-1)/L$ times, and by rounding up. A pool smaller than the weights meets the crossing at no
# context.
