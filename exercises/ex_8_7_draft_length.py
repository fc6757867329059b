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
# # Exercise 8-7: how long a draft should be
#
# Derive. It belongs to section 8.5.4 and takes its times from section 8.5.3.
#
# Each further token of a draft costs time for certain, and is output only if all before it are accepted. At which length does an output take the least time on
# average? And does one token more pay, if it costs as much as a whole group?
#
# **How to answer.** Each part has a place for numbers (`a = None`) and for a function that computes them. Put your own in place of the lines that say *not
# answered yet*, run the cell, then the cell below it: `check` tells what it found. Numbers by hand are the warm-up. The function is also tried with inputs
# that you do not see, and it is the function that earns the marks; where a part is a choice, the choice does. Keep the names of functions and of their
# parameters: `check` calls them by these names.

# %% [markdown]
# The inputs: probabilities, tokens, and times in ms. A round drafts, then verifies the whole draft in one step; it outputs the accepted beginning of the draft
# and one token more. $a_j$ is the probability that the token at position $j$ is accepted if all before it were. Draft tokens come one after the other, each
# after a pass of the draft network.

# %% nbgrader={"grade": false, "grade_id": "inputs", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib import exercise_8_7
from lib.exercises import Checker

inputs = exercise_8_7.Inputs(
    acceptance=(0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75, 0.75),  # a_1, a_2, ...
    lengths=(1, 2, 4, 8),  # m: tokens of a draft, to be compared
    verify_ms=26.3,  # to verify a draft of whatever length
    draft_ms=3.6,  # to draft one token
    group=4,  # positions that are drafted together, for parts d to f
)
check = Checker(exercise_8_7.EXERCISE, inputs)


# %% [markdown]
# In the inputs that you do not see, $a_j$ may differ from position to position: `acceptance[0]` is $a_1$, `acceptance[1]` is $a_2$, and so on, up to the longest
# draft that is possible.

# %% [markdown]
# ## a. Outputs of a round
#
# How many tokens does a round output on average, with drafts of each length of the list?

# %% nbgrader={"grade": false, "grade_id": "a", "locked": false, "schema_version": 3, "solution": true, "task": false}
def outputs_of_a_round(acceptance, draft_tokens):
    pass  # not answered yet


a = None  # four numbers, in tokens
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, outputs_of_a_round)


# %% [markdown]
# ## b. Time per output
#
# How long does an output take on average, over many rounds, with each length? In ms.

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ms_per_output(acceptance, draft_tokens, verify_ms, draft_ms):
    pass  # not answered yet


b = None  # four numbers, in ms
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, ms_per_output)


# %% [markdown]
# ## c. The best length
#
# Which length of the list has the least time per output? And which of all lengths, from 1 to as many as there are positions in `acceptance`?

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_lengths(acceptance, lengths, verify_ms, draft_ms):
    pass  # not answered yet


c = None  # two whole numbers: the best of the list, the best of all
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, best_lengths)


# %% [markdown]
# ## d. Drafts in groups
#
# Now the network drafts `group` positions together. A group takes the time of all its positions, even if fewer tokens are wanted of the last one. How long does
# an output take with a draft of `group` tokens, and with one of `group + 1`? In ms. Only the tokens that are wanted are verified.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def grouped_ms_per_output(acceptance, draft_tokens, verify_ms, draft_ms, group):
    pass  # not answered yet


d = None  # two numbers, in ms
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("d", d, grouped_ms_per_output)


# %% [markdown]
# ## e. The price of one token more
#
# Lengthen a draft from `group` tokens to `group + 1`, in groups as in d. Give four numbers: the time $\Delta T$ that is added to a round; the outputs $\Delta N$
# that are added on average; their ratio $\Delta T/\Delta N$; and the time per output that it has to be compared with. Times are in ms.

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
def one_token_more(acceptance, verify_ms, draft_ms, group):
    pass  # not answered yet


e = None  # four numbers: ms, tokens, ms, ms
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, one_token_more)

# %% [markdown]
# ## f. Stop or go on
#
# By the numbers of e: which of the two lengths is better, `group` tokens or `group + 1`? Give the number of tokens.

# %% nbgrader={"grade": false, "grade_id": "f", "locked": false, "schema_version": 3, "solution": true, "task": false}
f = None  # a whole number
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("f", f)
