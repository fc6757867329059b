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
    ### BEGIN SOLUTION
    at_least = expected = 1
    for probability in acceptance[:draft_tokens]:
        at_least *= probability
        expected += at_least
    return expected
    ### END SOLUTION


a = None  # four numbers, in tokens
### BEGIN SOLUTION
a = [outputs_of_a_round(**case) for case in check.cases("a")]
print(a)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, outputs_of_a_round)
### BEGIN HIDDEN TESTS
assert check.earned("a", outputs_of_a_round, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_a", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** A mean is the sum of the probabilities of at least 1, at least 2, and so on: $E[N_m] = 1 + a_1 + a_1 a_2 + \dots$ with $m$ products. If all
# $a_j$ are $a$, it is $(1 - a^{m+1})/(1 - a)$.
#
# With the book's numbers: 1.75, 2.31, 3.05 and 3.70 tokens. However long the draft, it stays below $1/(1 - 3/4) = 4$.
#
# Tempting, and wrong: $1 + m\,a$, which gives 7 for the longest. It counts a token that is right behind a wrong one. For a draft of one token it is right, so
# that length alone would not show it. And 0.75, 1.31, 2.05, 2.70: a round that rejects everything still outputs one token, the target's own.

# %% [markdown]
# ## b. Time per output
#
# How long does an output take on average, over many rounds, with each length? In ms.

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def ms_per_output(acceptance, draft_tokens, verify_ms, draft_ms):
    ### BEGIN SOLUTION
    round_ms = verify_ms + draft_ms * draft_tokens
    return round_ms / outputs_of_a_round(acceptance, draft_tokens)
    ### END SOLUTION


b = None  # four numbers, in ms
### BEGIN SOLUTION
b = [ms_per_output(**case) for case in check.cases("b")]
print(b)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, ms_per_output)
### BEGIN HIDDEN TESTS
assert check.earned("b", ms_per_output, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_b", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $(T_v + t_d\,m)/E[N_m]$. With the book's numbers: 17.1, 14.5, 13.3 and 14.9 ms. Without drafts an output takes a step, about as long as one
# verification: each of these lengths gains.
#
# Tempting, and wrong: the mean of $T/N$ over the rounds. It gives 18.7, 17.8, 19.5 and 25.6 ms, and so another best length. A round with one output counts in it
# as much as one with five, but it is a smaller part of the answer.
#
# A network that writes its draft in one pass would take $T_v + t_d$ whatever the length. Then the longest draft would be the best of these: 8.1 ms.

# %% [markdown]
# ## c. The best length
#
# Which length of the list has the least time per output? And which of all lengths, from 1 to as many as there are positions in `acceptance`?

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def best_lengths(acceptance, lengths, verify_ms, draft_ms):
    ### BEGIN SOLUTION
    def time(draft_tokens):
        return ms_per_output(acceptance, draft_tokens, verify_ms, draft_ms)

    possible = range(1, len(acceptance) + 1)
    return min(lengths, key=time), min(possible, key=time)
    ### END SOLUTION


c = None  # two whole numbers: the best of the list, the best of all
### BEGIN SOLUTION
c = [best_lengths(**case) for case in check.cases("c")]
print(c)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, best_lengths)
### BEGIN HIDDEN TESTS
assert check.earned("c", best_lengths, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_c", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** With the book's numbers 4 in both cases: 3 tokens take 13.57 ms, 4 take 13.34 and 5 take 13.47. Near the best length little changes: one token
# off costs less than 2 %.
#
# Tempting, and wrong: to look at the list only. Here its best is also the best of all; with other times or probabilities it need not be.

# %% [markdown]
# ## d. Drafts in groups
#
# Now the network drafts `group` positions together. A group takes the time of all its positions, even if fewer tokens are wanted of the last one. How long does
# an output take with a draft of `group` tokens, and with one of `group + 1`? In ms. Only the tokens that are wanted are verified.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def grouped_ms_per_output(acceptance, draft_tokens, verify_ms, draft_ms, group):
    ### BEGIN SOLUTION
    groups = -(-draft_tokens // group)  # rounded up
    round_ms = verify_ms + draft_ms * group * groups
    return round_ms / outputs_of_a_round(acceptance, draft_tokens)
    ### END SOLUTION


d = None  # two numbers, in ms
### BEGIN SOLUTION
d = [grouped_ms_per_output(**case) for case in check.cases("d")]
print(d)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("d", d, grouped_ms_per_output)
### BEGIN HIDDEN TESTS
assert check.earned("d", grouped_ms_per_output, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_d", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $(T_v + t_d\,\gamma\,\lceil m/\gamma \rceil)/E[N_m]$ with groups of $\gamma$. With the book's numbers 13.34 ms with 4 tokens, as in b, and
# 16.76 ms with 5: the fifth makes a round 14.4 ms longer.
#
# Tempting, and wrong: 13.47 ms for 5, with a fifth token at the price of one. A full group does not show that slip.

# %% [markdown]
# ## e. The price of one token more
#
# Lengthen a draft from `group` tokens to `group + 1`, in groups as in d. Give four numbers: the time $\Delta T$ that is added to a round; the outputs $\Delta N$
# that are added on average; their ratio $\Delta T/\Delta N$; and the time per output that it has to be compared with. Times are in ms.

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
def one_token_more(acceptance, verify_ms, draft_ms, group):
    ### BEGIN SOLUTION
    time_added = draft_ms * group
    outputs_before = outputs_of_a_round(acceptance, group)
    outputs_added = outputs_of_a_round(acceptance, group + 1) - outputs_before
    before = (verify_ms + draft_ms * group) / outputs_before
    return time_added, outputs_added, time_added / outputs_added, before
    ### END SOLUTION


e = None  # four numbers: ms, tokens, ms, ms
### BEGIN SOLUTION
e = [one_token_more(**case) for case in check.cases("e")]
print(e)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, one_token_more)
### BEGIN HIDDEN TESTS
assert check.earned("e", one_token_more, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_e", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $\Delta T = t_d\,\gamma$, a whole group. $\Delta N = a_1 a_2 \cdots a_{\gamma+1}$: the added token is output only if it and all before it are
# accepted. With the book's numbers 14.4 ms and 0.237 tokens: 60.7 ms for an output, against 13.3 ms before.
#
# Tempting, and wrong: 0.75 for $\Delta N$, the chance of the last token if its turn comes; and 0.316, the chance that its turn comes. It takes both.

# %% [markdown]
# ## f. Stop or go on
#
# By the numbers of e: which of the two lengths is better, `group` tokens or `group + 1`? Give the number of tokens.

# %% nbgrader={"grade": false, "grade_id": "f", "locked": false, "schema_version": 3, "solution": true, "task": false}
f = None  # a whole number
### BEGIN SOLUTION
_, _, price, before = e[0]
f = inputs.group + 1 if price < before else inputs.group
print(f)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("f", f)
### BEGIN HIDDEN TESTS
assert check.earned("f", f)
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_f", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Go on only if $\Delta T/\Delta N < T/N$: what is added takes less per output than what was there, so the average falls. With the book's numbers
# 60.7 ms is far above 13.3 ms: stop at 4. At the price of one token $\Delta T/\Delta N$ would be 15.2 ms, and the answer the same.
#
# To compare with the average afterwards, 16.8 ms, says the same in every case: a mean of two numbers lies between them. But it is known only when the
# longer draft has been tried.
#
# Is the comparison of 4 with 5 the whole story? In groups no: the fifth token pays for the whole group, and three more come free of charge. So the next length
# worth a look is 8, with 14.9 ms. Here it is worse than 4 as well. In general one step that does not pay may hide a longer one that does.
