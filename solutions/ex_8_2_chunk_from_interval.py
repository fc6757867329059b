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
    ### BEGIN SOLUTION
    r0, r1 = inputs.input_tokens[:2]
    return work(inputs, r0 + r1, triangle(r0) + triangle(r1))


def triangle(tokens):
    return tokens * (tokens + 1) // 2


def work(inputs, tokens, pairs):
    step_ns = inputs.fixed_ns
    step_ns += inputs.per_new_token_ns * tokens + inputs.per_causal_pair_ns * pairs
    return tokens, pairs, step_ns / 1e6
    ### END SOLUTION


a = None  # new tokens, pairs, ms
### BEGIN SOLUTION
a = first_prefill(inputs)
print(a)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, first_prefill)
### BEGIN HIDDEN TESTS
assert check.earned("a", first_prefill, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_a", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Tokens and pairs add up over the requests of a step, the fixed part is paid once: $T = t_0 + t_1 n + t_2 q$. A prompt of $L$ tokens has
# $1 + 2 + \dots + L = L(L+1)/2$ pairs.
#
# With the book's numbers: $n$ = 2 × 2048 = 4096, $q$ = 2 × 2,098,176 = 4,196,352, and $T$ = 26.22 + 124.52 + 12.59 = 163.33 ms.
#
# Tempting, and wrong: two prefills of 94.8 ms each, which pays the fixed part twice; and $L^2$ pairs, in which each token would see those after it. One
# request by itself does take 94.8 ms; the two together take less than twice that, which is what sharing a step buys.

# %% [markdown]
# ## b. The next decode
#
# The step after it: r0 and r1 feed back their first outputs.

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def next_decode(inputs):
    ### BEGIN SOLUTION
    r0, r1 = inputs.input_tokens[:2]
    return work(inputs, 2, (r0 + 1) + (r1 + 1))
    ### END SOLUTION


b = None  # new tokens, pairs, ms
### BEGIN SOLUTION
b = next_decode(inputs)
print(b)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, next_decode)
### BEGIN HIDDEN TESTS
assert check.earned("b", next_decode, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_b", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Two new tokens, each of which sees its prompt and itself. With the book's numbers: $n$ = 2, $q$ = 2 × 2049 = 4098, and $T$ = 26.22 + 0.06 +
# 0.01 = 26.29 ms. The fixed part is nearly all of it.
#
# Tempting, and wrong: 2048 pairs each. A token looks at itself too. In time that is 6 ns, so only the count shows it.

# %% [markdown]
# ## c. The step that admits r2
#
# r1 has given its last output, so r2 takes its row. What is in that step, and how long does it take?

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def admitting_step(inputs):
    ### BEGIN SOLUTION
    r0, _, r2, _ = inputs.input_tokens
    return work(inputs, r2 + 1, triangle(r2) + r0 + inputs.output_tokens[1])
    ### END SOLUTION


c = None  # new tokens, pairs, ms
### BEGIN SOLUTION
c = admitting_step(inputs)
print(c)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, admitting_step)
### BEGIN HIDDEN TESTS
assert check.earned("c", admitting_step, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_c", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** r2's whole prompt, and one token of r0. r0 has given as many outputs as r1, $G_b$, and feeds back the newest: it sees its prompt and all of
# them, $L_a + G_b$ tokens, itself included. With $G_b$ = 2 that is $L_a + 2$.
#
# With the book's numbers: $n$ = 8192 + 1 = 8193, $q$ = 33,558,528 + 2050 = 33,560,578, and $T$ = 26.22 + 249.07 + 100.68 = 375.97 ms.
#
# Tempting, and wrong: adding r0's decode as a step of its own, 26.26 ms more. That would be a scheduler that runs prefill and decode one after the other;
# continuous batching computes both in one step.

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
    ### BEGIN SOLUTION
    (_, _, step_ms), _, _ = longest_pause(inputs)
    return step_ms


def longest_pause(inputs):
    """The step with a newcomer beside a request in decode: its work, that request, its outputs so far."""
    r0, _, r2, r3 = inputs.input_tokens
    g0, g1, g2, _ = inputs.output_tokens
    pauses = [(admitting_step(inputs), "r0", g1)]
    if g0 > g1 + g2:  # r2 ends first, r3 enters beside r0
        seen = r0 + g1 + g2
        pauses.append((work(inputs, r3 + 1, triangle(r3) + seen), "r0", g1 + g2))
    if g0 < g1 + g2:  # r0 ends first, r3 enters beside r2
        seen = r2 + g0 - g1
        pauses.append((work(inputs, r3 + 1, triangle(r3) + seen), "r2", g0 - g1))
    return max(pauses, key=lambda pause: pause[0][2])
    ### END SOLUTION


d1 = None  # ms
d2 = None
d3 = None
d4 = None
### BEGIN SOLUTION
(tokens, pairs, d1), d2, before = longest_pause(inputs)
d3 = f"{before} and {before + 1}"
terms_ns = {
    "fixed part": inputs.fixed_ns,
    "new tokens": inputs.per_new_token_ns * tokens,
    "pairs": inputs.per_causal_pair_ns * pairs,
}
d4 = max(terms_ns, key=terms_ns.get)
print(d1, d2, d3, d4)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_d1", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d1", d1, longest_interval_ms)
### BEGIN HIDDEN TESTS
assert check.earned("d1", longest_interval_ms, draw="marks")
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "test_d2", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d2", d2)
check("d3", d3)
### BEGIN HIDDEN TESTS
assert check.earned("d2", d2) and check.earned("d3", d3)
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "test_d4", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("d4", d4)
### BEGIN HIDDEN TESTS
assert check.earned("d4", d4)
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_d", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** An output comes when its step ends. r0's first output comes with the prefill of part a, the second with the decode of part b, the third with
# the step of part c, because r0 is decoded in the same step as r2's prompt. So the interval from its second to its third output is that whole step.
#
# With the book's numbers it is 376 ms, of which 249 ms are new tokens, 101 ms pairs and 26 ms the fixed part: the prompt makes the pause, not r0's own token.
# r2 waits too, but before its first output: that is time to first token. The pause is the price; what it buys is that the fixed part is shared and r2 need
# not wait for r0's end.
#
# Tempting, and right here only: the step of part c, always. r3 makes a pause too. It enters when r0 or r2 ends, and the other one waits for r3's whole prompt:
# r0, with $L_a + G_b + G_c$ tokens seen, if r2 ended first; r2, if r0 did; nobody, if both ended together. With the book's numbers r3's prompt is short and
# r0 waits 94.8 ms for it; with a longer one that would be the longest interval.

# %% [markdown]
# ## e. Pairs of a chunk
#
# Now prompts are computed in chunks of $c$ new tokens. How many query-key pairs has a chunk behind each of the contexts $h$ of the inputs?

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
def chunk_pairs(chunk, context):
    ### BEGIN SOLUTION
    return chunk * context + chunk * (chunk + 1) // 2
    ### END SOLUTION


e = None  # two whole numbers
### BEGIN SOLUTION
e = [chunk_pairs(**case) for case in check.cases("e")]
print(e)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, chunk_pairs)
### BEGIN HIDDEN TESTS
assert check.earned("e", chunk_pairs, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_e", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** The new tokens see $h+1, h+2, \dots, h+c$ tokens: a rectangle $c\,h$ and a triangle $c(c+1)/2$.
#
# With the book's numbers: 131,328 pairs for the first chunk of a prompt of 8192 tokens, 3,932,160 + 131,328 = 4,063,488 for the last, about 31 times as
# many with the same number of tokens. So a limit on time allows fewer new tokens the more context stands before them.

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
    ### BEGIN SOLUTION
    def step_ns(new):
        tokens, pairs = new + 1, chunk_pairs(new, context) + decoding_context + 1
        return fixed_ns + per_new_token_ns * tokens + per_causal_pair_ns * pairs

    new = 0
    while step_ns(new + 1) <= limit_ms * 1_000_000:
        new += 1
    return new
    ### END SOLUTION


f = None  # two whole numbers
### BEGIN SOLUTION
f = [tokens_that_fit(**case) for case in check.cases("f")]
print(f)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("f", f, tokens_that_fit)
### BEGIN HIDDEN TESTS
assert check.earned("f", tokens_that_fit, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_f", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** A step with $c$ new tokens behind $h$, and one request in decode with $L_a$ in context, takes
# $t_0 + t_1(c+1) + t_2\,(c\,h + c(c+1)/2 + L_a + 1)$. The limit leaves $R = \tau - t_0 - t_1 - t_2(L_a+1)$ for the prompt, and $c$ is the largest whole number
# with $t_1 c + t_2(c\,h + c(c+1)/2) \le R$. Count up as in the code, or solve the quadratic $\frac{t_2}{2}c^2 + (t_1 + t_2 h + \frac{t_2}{2})\,c = R$ and round down.
#
# With the book's numbers $R$ = 50 − 26.22 − 0.03 − 0.01 = 23.74 ms. Behind no context 753 tokens fit: 22.89 ms for tokens, 0.85 ms for pairs. Behind 7680
# only 438: each token now looks at 7680 more, which costs 23 µs beside its own 30.4 µs.
#
# So a chunk of 512 keeps the limit at the start of the prompt and breaks it at the end, where the step takes 54 ms: a fixed chunk must be chosen for the
# longest context it will have behind it, or shrink on the way.
#
# Tempting, and wrong: leaving out the pairs, 781 tokens behind any context; leaving out the fixed part, 1528 tokens, which take 76 ms; rounding up, which
# ends 32 and 6 µs after the limit. The token in decode costs 37 µs, one new token: forgetting it looks like rounding up.

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
### BEGIN SOLUTION
by_limit = {row["token_budget_per_step"]: row for row in exercise_8_2.REPLAY}
g = {n for n, row in by_limit.items() if row["interval_max_ms"] < inputs.limit_ms}
h = min(by_limit, key=lambda n: by_limit[n]["r4_engine_queue_median_ms"])
i1, i2 = "longest interval", "queue in the engine"
print(g, h)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_g", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("g", g)
check("i1", i1)
### BEGIN HIDDEN TESTS
assert check.earned("g", g) and check.earned("i1", i1)
### END HIDDEN TESTS

# %% nbgrader={"grade": true, "grade_id": "test_h", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("h", h)
check("i2", i2)
### BEGIN HIDDEN TESTS
assert check.earned("h", h) and check.earned("i2", i2)
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_g", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** A limit on the longest interval is decided by the longest interval, not by the median or the 95th percentile, which stay far below 50 ms under
# both limits and hide the one long pause. With the book's 50 ms only 512 tokens a step are left (31.94 ms; with 8192 it is 183 ms).
#
# Early admission is decided by the queue in the engine: 149 ms with 512, almost none with 8192, because larger steps finish the prompts before r4 sooner. The
# time to first token points the same way here, but holds r4's own prefill too, and the two limits differ there by less.
#
# So the two goals choose opposite limits. Nothing was measured between them, so the record cannot tell where a compromise would lie.
#
# How fine may it be read? The card was shared with others, so a difference of a few ms means nothing: the medians, 12.9 and 12.7 ms, are the same, and a queue
# of 0.010 ms only says "no wait". The answers here rest on 32 against 183 and 149 against 0. And the fit of part f would give a step with 512 new tokens at
# least 41.8 ms, more than the longest that was measured: it was fitted to another run. Where fit and record disagree, the record stands.
