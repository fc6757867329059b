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
    ### BEGIN SOLUTION
    sets = layers // every
    return (sets - buffers) * set_bytes / 2**20
    ### END SOLUTION


a = None  # two numbers, in MiB
### BEGIN SOLUTION
a = [net_mib(**case) for case in check.cases("a")]
print(a)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, net_mib)
### BEGIN HIDDEN TESTS
assert check.earned("a", net_mib, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_a", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $n = \lfloor \text{layers}/\text{every} \rfloor$ sets of $S$ bytes leave, and each buffer takes the room of one back: $(n - \text{buffers})\,S$.
#
# With the book's numbers: 9 × 288 = 2592 MiB leave the card. With one buffer 2304 MiB are gained, with two 2016 MiB.
#
# Tempting, and wrong: 2592 MiB. A set has to be somewhere while its layer computes, and it computes in a buffer on the card.

# %% [markdown]
# ## b. More inputs
#
# How many more input states fit in what is gained, with each number of buffers?

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def more_inputs(layers, every, set_bytes, buffers, input_state_bytes):
    ### BEGIN SOLUTION
    sets = layers // every
    return (sets - buffers) * set_bytes // input_state_bytes
    ### END SOLUTION


b = None  # two whole numbers
### BEGIN SOLUTION
b = [more_inputs(**case) for case in check.cases("b")]
print(b)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("b", b, more_inputs)
### BEGIN HIDDEN TESTS
assert check.earned("b", more_inputs, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_b", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Whole ones only: divide and round down. With the book's numbers 2304/1152 is 2, exactly; 2016/1152 = 1.75 gives 1. The second buffer costs a
# whole input.
#
# Tempting, and wrong: rounding 1.75 to 2. And with one buffer the book's numbers hide nearly everything: who forgets the buffer has 2592/1152 = 2.25 and says
# 2 as well.

# %% [markdown]
# ## c. More complete requests
#
# And how many more complete requests, with the KV of their outputs?

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def more_requests(layers, every, set_bytes, buffers, request_bytes):
    ### BEGIN SOLUTION
    sets = layers // every
    return (sets - buffers) * set_bytes // request_bytes
    ### END SOLUTION


c = None  # two whole numbers
### BEGIN SOLUTION
c = [more_requests(**case) for case in check.cases("c")]
print(c)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("c", c, more_requests)
### BEGIN HIDDEN TESTS
assert check.earned("c", more_requests, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_c", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** The same with the KV that a request has at its end. With the book's numbers 2304/1188 = 1.94 and 2016/1188 = 1.70: one more request in both
# cases.
#
# Tempting, and wrong: the answers of b again, 2 and 1. That divides by an input, and such a request has no room for its outputs.
#
# So two inputs can be let in behind one buffer, and only one of them can run to its end: 36 MiB more for each decide. A pool is filled by what requests come
# to, not by what they begin with. Here the second buffer, which lets copies overlap with compute, is free.

# %% [markdown]
# ## d. Copies of one step
#
# How long do the copies of one decode step take at least, over each link? In ms, at the link's bandwidth.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def copy_ms(layers, every, set_bytes, link_bytes_s):
    ### BEGIN SOLUTION
    return 1000 * (layers // every) * set_bytes / link_bytes_s
    ### END SOLUTION


d = None  # two numbers, in ms
### BEGIN SOLUTION
d = [copy_ms(**case) for case in check.cases("d")]
print(d)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d", d, copy_ms)
### BEGIN HIDDEN TESTS
assert check.earned("d", copy_ms, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_d", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $n\,S/B$: every step needs every set, so all are copied in each, whatever the buffers. With the book's numbers 2592 MiB are 2.718 GB, and take
# 42.5 ms over PCIe and 6.0 ms over NVLink-C2C. A decode step of one request takes about 26 ms: PCIe is slower than that, and then no overlap can hide it.
#
# Tempting, and wrong: 2592/64 = 40.5 ms, which takes MiB for MB. Leaving out the set that is in the buffer: by the time the next step begins, the sets of
# later layers have gone through it. 900 GB/s for NVLink-C2C are both directions added up, and nothing goes back.

# %% [markdown]
# ## e. Copies of all steps
#
# How long do the copies of all decode steps of a request take at least, over each link? In seconds; its first output comes from prefill, whose copies are not
# counted. (To 0.1 %; give four digits.)

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
def all_copies_s(layers, every, set_bytes, link_bytes_s, output_tokens):
    ### BEGIN SOLUTION
    step_s = (layers // every) * set_bytes / link_bytes_s
    return (output_tokens - 1) * step_s
    ### END SOLUTION


e = None  # two numbers, in seconds
### BEGIN SOLUTION
e = [all_copies_s(**case) for case in check.cases("e")]
print(e)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, all_copies_s)
### BEGIN HIDDEN TESTS
assert check.earned("e", all_copies_s, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_e", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $(G-1)\,n\,S/B$. With the book's numbers 255 steps: 10.83 s over PCIe, 1.54 s over NVLink-C2C. The short request has 7 s for everything, so
# over PCIe it is late whatever else happens.
#
# The copies serve all requests of a step at once. Four requests that decode together copy as much as one: 42.5 ms for four outputs. A larger batch does not
# make a step shorter; it makes more of it.
#
# Tempting, and wrong: 256 steps, one for each output.

# %% [markdown]
# ## f. The link that is needed
#
# All these copies shall take no longer than the limit. What bandwidth in one direction is needed at least, in GB/s? (To 0.1 %; give four digits.)

# %% nbgrader={"grade": false, "grade_id": "f", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lowest_gb_s(layers, every, set_bytes, output_tokens, limit_s):
    ### BEGIN SOLUTION
    step_bytes = (layers // every) * set_bytes
    return (output_tokens - 1) * step_bytes / limit_s / 10**9
    ### END SOLUTION


f = None  # a number, in GB/s
### BEGIN SOLUTION
f = [lowest_gb_s(**case) for case in check.cases("f")]
print(f)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("f", f, lowest_gb_s)
### BEGIN HIDDEN TESTS
assert check.earned("f", lowest_gb_s, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_f", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $(G-1)\,n\,S$ bytes within the limit. With the book's numbers 693 GB in one second: 693 GB/s in one direction, which neither link reaches.
#
# Tempting, and wrong: 2.7 GB/s, for the copies of a single step. They come again in each of them.
#
# What else would help? Fewer layers that give their sets away, or fewer steps: one that confirms several outputs, as in section 8.5, copies once for all of
# them. A longer limit does not change the bytes.
