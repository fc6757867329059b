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
# # Exercise 8-2: a chunk size from a limit on the interval
#
# Analyse. It belongs to sections 8.2.2 to 8.2.4.
#
# A long prompt that enters beside running requests makes them wait for the whole step. How long, why, and which limit of tokens a step follows?
#
# **How to answer.** Each part has a place for numbers (`a = None`) and for a function that computes them. Put your own in place of the lines that say
# *not answered yet*, run the cell, then the cell below it: `check` tells what it found. Numbers by hand are the warm-up. The function is also tried
# with inputs that you do not see, and it is the function that earns the marks; where a part is a choice, the choice does.
# Keep the names of functions and of their parameters: `check` calls them by these names.

# %% [markdown]
# The inputs: the step time of section 8.2.2 in three terms (clock: fit), and its four requests r0 … r3. At most two requests run at once; a free row is filled at
# the next border of a step; a whole prompt is computed in one step, together with the decodes. The step that ends a prompt gives the first output.

# %% nbgrader={"grade": false, "grade_id": "inputs", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib import exercise_8_2
from lib.exercises import Checker

inputs = exercise_8_2.Inputs(
    fixed_ns=26_220_000,  # paid once per step
    per_new_token_ns=30_400,
    per_causal_pair_ns=3,  # for each pair of a query and a key that it may see
    input_tokens=(2_048, 2_048, 8_192, 2_048),  # of r0, r1, r2, r3
    output_tokens=(8, 2, 2, 4),
    arrivals_ns=(0, 0, 20_000_000, 30_000_000),
    chunk=512,  # c, for part e
    chunk_contexts=(0, 7_680),  # h, for parts e and f
    limit_ms=50,  # on the longest interval, for parts f and g
)
check = Checker(exercise_8_2.EXERCISE, inputs)


# %% [markdown]
# Parts a, b and c ask three numbers each: the new tokens of the step, its query-key pairs, and its time in ms (to 0.01 ms). Their functions take the
# inputs as one object, such as `inputs.input_tokens[0]` for the prompt of r0, and return the three numbers in this order. Whole numbers come first since
# the time hides a slip of a few pairs.
#
# In the inputs that you do not see, prompts and numbers of outputs differ too. There as well r1 ends before r0, and r2 and r3 wait for a free row; but r3's
# prompt may be the longer one, and r2 may end before, with or after r0.

# %% [markdown]
# ## a. The first prefill
#
# r0 and r1 are there from the start, and their prompts are computed in one step. What is in it, and how long does it take? (Another
# reading, the prefill of r0 by itself, is accepted as well, with a word.)

# %% nbgrader={"grade": false, "grade_id": "a", "locked": false, "schema_version": 3, "solution": true, "task": false}
def first_prefill(inputs):
    pass  # not answered yet


a = None  # new tokens, pairs, ms
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, first_prefill)


# %% [markdown]
# ## b. The next decode
#
# The step after it: r0 and r1 feed back their first outputs.

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def next_decode(inputs):
    pass  # not answered yet


b = None  # new tokens, pairs, ms
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, next_decode)


# %% [markdown]
# ## c. The step that admits r2
#
# r1 has given its last output, so r2 takes its row. What is in that step, and how long does it take?

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def admitting_step(inputs):
    pass  # not answered yet


c = None  # new tokens, pairs, ms
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, admitting_step)


# %% [markdown]
# ## d. The longest interval
#
# - `d1`: how long is the longest interval between two outputs of a request, in ms? (The wait for a first output is no interval.) Look at r3's entry too: the
#   function must find the longest, whichever prompt makes it.
# - `d2`: whose is it: `"r0"`, `"r1"`, `"r2"` or `"r3"`?
# - `d3`: between which of its outputs, counted from 1, such as `"1 and 2"`?
# - `d4`: which term of that step's time is the largest: `"fixed part"`, `"new tokens"` or `"pairs"`?

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def longest_interval_ms(inputs):
    pass  # not answered yet


d1 = None  # ms
d2 = None
d3 = None
d4 = None
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_d1", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d1", d1, longest_interval_ms)

# %% nbgrader={"grade": true, "grade_id": "test_d2", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d2", d2)
check("d3", d3)

# %% nbgrader={"grade": true, "grade_id": "test_d4", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d4", d4)


# %% [markdown]
# ## e. Pairs of a chunk
#
# Now prompts are computed in chunks of $c$ new tokens. How many query-key pairs has a chunk behind each of the contexts $h$ of the inputs?

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
def chunk_pairs(chunk, context):
    pass  # not answered yet


e = None  # two whole numbers
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, chunk_pairs)


# %% [markdown]
# ## f. The tokens that fit a limit
#
# An interval shall not exceed `inputs.limit_ms`, so no step may take longer. One request is in decode, with `decoding_context` tokens in context (the prompt
# of r0). How many new tokens of a prompt fit into a step beside it, for each context $h$ behind them? The most, a whole number; the prompt is long enough.
# `check.cases("f")` shows the cases.

# %% nbgrader={"grade": false, "grade_id": "f", "locked": false, "schema_version": 3, "solution": true, "task": false}
def tokens_that_fit(
    fixed_ns,
    per_new_token_ns,
    per_causal_pair_ns,
    limit_ms,
    decoding_context,
    context,
):
    pass  # not answered yet


f = None  # two whole numbers
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("f", f, tokens_that_fit)

# %% [markdown]
# ## g, h, i. Choosing a limit of tokens a step
#
# Measured, not calculated: six other requests, named r0 … r5 in their turn, arrived 80 ms apart, once under each of two limits of tokens a step; everything
# else was the same. The two late ones, r4 and r5, come behind the longest prompt, r3's. In ms: the intervals of all six (client's clock), and of r4 the wait in
# the engine's queue (engine's clock) and the time to first token (client's clock).

# %% nbgrader={"grade": false, "grade_id": "replay", "locked": true, "schema_version": 3, "solution": false, "task": false}
for row in exercise_8_2.REPLAY:
    print(f"at most {row['token_budget_per_step']} tokens a step")
    for name, column in exercise_8_2.COLUMNS.items():
        print(f"    {name:<22}{row[column]:>9.3f}")

# %% [markdown]
# - `g`: under which of the limits does the longest interval stay below `inputs.limit_ms`? A set such as `{512, 8192}`, or `set()` for none.
# - `h`: which limit admits the late request r4 earliest?
# - `i1`, `i2`: which line of the record decides g, which decides h? One of the names above, such as `"median interval"`.

# %% nbgrader={"grade": false, "grade_id": "g", "locked": false, "schema_version": 3, "solution": true, "task": false}
g = None
h = None
i1 = None
i2 = None
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_g", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("g", g)
check("i1", i1)

# %% nbgrader={"grade": true, "grade_id": "test_h", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("h", h)
check("i2", i2)
