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
# # Exercise 8-6: compressed KV, its answers, and retries
#
# Analyse data. It belongs to sections 8.4.2 and 8.4.4.
#
# KV in fewer bits leaves room for more requests. Which answers does it change, and what does a wrong answer cost that has to be asked for again?
#
# **How to answer.** Each part has a place for numbers (`a = None`) and for a function that computes them. Put your own in place of the lines that say *not
# answered yet*, run the cell, then the cell below it: `check` tells what it found. Numbers by hand are the warm-up. The function is also tried with inputs
# that you do not see, and it is the function that earns the marks; where a part is a choice, the choice does. Keep the names of functions and of their
# parameters: `check` calls them by these names.

# %% [markdown]
# The inputs. Sizes are in bytes, times in seconds. The grids and the times are measured, not calculated, and belong to different runs: the grids to runs with
# BF16 weights, the times to runs with FP8 weights and FP8 KV. A grid has a word for each task, and in it a letter for each of four runs, `o` right and `x`
# wrong: two of the task alone, then two beside three others. A task with `None` for its retry was right at once. All tasks of the table were right in the
# end.

# %% nbgrader={"grade": false, "grade_id": "inputs", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib import exercise_8_6
from lib.exercises import Checker
from lib.quality import TASKS

inputs = exercise_8_6.Inputs(
    input_kv_bytes=1_207_959_552,  # KV of a long input, in BF16
    request_kv_bytes=1_245_708_288,  # KV of that request at its end, in BF16 and in whole blocks
    group_values=32,  # g: values that share a scale
    code_bits=(8, 4),  # w: bits of a code, in two formats
    scale_bytes=2,  # z: bytes of a scale
    bf16_kv=("oooo", "oooo", "oooo", "oooo", "xxxx", "oooo", "oooo", "oooo"),
    fp8_default=("oooo", "oooo", "oooo", "oooo", "ooxx", "xxxx", "oooo", "oooo"),  # Q in FP8 too
    fp8_kv_bf16_q=("oooo", "oooo", "oooo", "oooo", "oooo", "xxxx", "oooo", "oooo"),
    first_s=(1.0037, 1.0011, 0.998608, 1.003, 0.985, 0.9916, 0.9856, 0.983331),  # first answers
    retry_s=(None, None, 1.024648, None, None, None, None, 1.012137),  # retries of those that failed
    task_s=(1.0054, 1.0027, 2.02656, 1.0052, 0.9865, 0.9933, 0.9869, 1.998537),  # with checks
)
check = Checker(exercise_8_6.EXERCISE, inputs)


# %% [markdown]
# ## a, b, c. What a format takes
#
# A format stores groups of $g$ values: a code of $w$ bits for each, and one scale of $z$ bytes.
#
# - `a`: how many MiB does the KV of the input take, in each of the two formats?
# - `b`: and that of the request at its end?
# - `c`: how many bits does a value take on average, its part of the scale included?

# %% nbgrader={"grade": false, "grade_id": "abc", "locked": false, "schema_version": 3, "solution": true, "task": false}
def stored_mib(bf16_bytes, code_bits, group_values, scale_bytes):
    ### BEGIN SOLUTION
    group_before = 2 * group_values
    group_after = group_values * code_bits / 8 + scale_bytes
    return bf16_bytes * group_after / group_before / 2**20
    ### END SOLUTION


def bits_per_value(code_bits, group_values, scale_bytes):
    ### BEGIN SOLUTION
    return code_bits + 8 * scale_bytes / group_values
    ### END SOLUTION


a = None  # MiB: first format, second format
b = None  # MiB: first format, second format
c = None  # bits: first format, second format
### BEGIN SOLUTION
a = [stored_mib(**case) for case in check.cases("a")]
b = [stored_mib(**case) for case in check.cases("b")]
c = [bits_per_value(**case) for case in check.cases("c")]
print(a, b, c)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_abc", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("a", a, stored_mib)
check("b", b, stored_mib)
check("c", c, bits_per_value)
### BEGIN HIDDEN TESTS
assert check.earned("a", stored_mib, draw="marks") and check.earned("b", stored_mib, draw="marks")
assert check.earned("c", bits_per_value, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_abc", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $M = M_{16}\,(g\,w/8 + z)/(2\,g)$. With the book's numbers a group of 64 bytes becomes 34 or 18: the input takes 612 or 324 MiB in place of
# 1152, the whole request 631.125 or 334.125 in place of 1188. A value takes $w + 8\,z/g$ bits, 8.5 or 4.5.
#
# Tempting, and wrong: 576 and 288 MiB, which forgets the scales. It is 6 % too little for 8-bit codes and 11 % for 4-bit ones: the fewer bits a code has, the
# more the scale weighs. Larger groups share it among more values, and fit each of them less well.

# %% [markdown]
# ## d, e. Which answers changed
#
# Three configurations answered the same tasks: KV in BF16; KV in FP8 and Q in BF16; and the default of the engine's FP8 option, which makes Q FP8, too.

# %% nbgrader={"grade": false, "grade_id": "grids", "locked": true, "schema_version": 3, "solution": false, "task": false}
print(f"{'task':<9}{'BF16 KV':>13}{'FP8 KV, BF16 Q':>17}{'FP8 default':>14}")
for task, *rows in zip(TASKS, inputs.bf16_kv, inputs.fp8_kv_bf16_q, inputs.fp8_default):
    print(f"{task:<9}{rows[0]:>13}{rows[1]:>17}{rows[2]:>14}")


# %% [markdown]
# - `d1`: which tasks have a changed answer when only KV changes, from `bf16_kv` to `fp8_kv_bf16_q`? A set of words, each a task and a direction:
#   `{"n128-r0 better", "n128-r1 worse"}`. Better means that what was wrong is right.
# - `d2`: and when only Q changes, from `fp8_kv_bf16_q` to `fp8_default`?
# - `e`: from `bf16_kv` to `fp8_kv_bf16_q` again: how many single answers changed, how many were right before, and how many after?

# %% nbgrader={"grade": false, "grade_id": "de", "locked": false, "schema_version": 3, "solution": true, "task": false}
def changed_answers(before, after):
    ### BEGIN SOLUTION
    one, other = "".join(before), "".join(after)
    changed = sum(mark != new for mark, new in zip(one, other))
    return changed, one.count("o"), other.count("o")
    ### END SOLUTION


d1 = None  # {"task better", "task worse", ...}
d2 = None
e = None  # answers changed, right before, right after
### BEGIN SOLUTION
def changed_tasks(before, after):
    found = set()
    for task, row, new in zip(TASKS, before, after):
        if row != new:
            found.add(f"{task} {'better' if new.count('o') > row.count('o') else 'worse'}")
    return found


d1 = changed_tasks(inputs.bf16_kv, inputs.fp8_kv_bf16_q)
d2 = changed_tasks(inputs.fp8_kv_bf16_q, inputs.fp8_default)
e = [changed_answers(**case) for case in check.cases("e")]
print(sorted(d1), sorted(d2), e)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_de", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("d1", d1)
check("d2", d2)
check("e", e, changed_answers)
### BEGIN HIDDEN TESTS
assert check.earned("d1", d1) and check.earned("d2", d2)
assert check.earned("e", changed_answers, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_de", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Compare row by row. In the book's grids n512-r0 is wrong in all runs with BF16 KV and right in all with FP8 KV and BF16 Q; with n512-r1 it is
# the other way round. Eight of 32 answers changed, and both totals are 28.
#
# From there to the default only Q changes: n512-r0 gets worse, in the two runs beside other requests and in neither of the two alone. From BF16 KV straight
# to the default the same two tasks change as in d1, but then two things have changed, and nobody can say which of them did it. In this direction n512-r0 is
# better, against BF16 Q it is worse.
#
# Tempting, and wrong: "nothing changed", as the totals agree; and 4, which counts one direction. With FP8 *weights* the runs are others: there all answers
# were right with FP8 KV and BF16 Q.

# %% [markdown]
# ## f, g. What retries cost
#
# The table of times: what is generated takes `first_s`, and `retry_s` where the first answer was wrong and asked for again. `task_s` has the checks and the
# switch between the two ways of computing in it as well; it is there to look at.

# %% nbgrader={"grade": false, "grade_id": "table", "locked": true, "schema_version": 3, "solution": false, "task": false}
print(f"{'first':>9}{'retry':>10}{'whole task':>13}   (s)")
for first, retry, whole in zip(inputs.first_s, inputs.retry_s, inputs.task_s):
    print(f"{first:>9.4f}{'' if retry is None else format(retry, '.4f'):>10}{whole:>13.4f}")


# %% [markdown]
# - `f`: how many seconds were generated for all tasks together, failed answers included, and how many for each solved task?
# - `g`: how many if only the last answer of each task counts, the one that was right? How many are left out, and which share of the first number of f is that?
#   The share is a number from 0 to 1, three digits.

# %% nbgrader={"grade": false, "grade_id": "fg", "locked": false, "schema_version": 3, "solution": true, "task": false}
def all_answers_s(first_s, retry_s, task_s):
    ### BEGIN SOLUTION
    total = sum(first_s) + sum(retry for retry in retry_s if retry is not None)
    return total, total / len(first_s)
    ### END SOLUTION


def last_answers_s(first_s, retry_s):
    ### BEGIN SOLUTION
    last = sum(first if retry is None else retry for first, retry in zip(first_s, retry_s))
    left_out = sum(first for first, retry in zip(first_s, retry_s) if retry is not None)
    return last, left_out, left_out / (last + left_out)
    ### END SOLUTION


f = None  # s, s
g = None  # s, s, a share of 1
### BEGIN SOLUTION
f = [all_answers_s(**case) for case in check.cases("f")]
g = [last_answers_s(**case) for case in check.cases("g")]
print(f, g)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_fg", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("f", f, all_answers_s)
check("g", g, last_answers_s)
### BEGIN HIDDEN TESTS
assert check.earned("f", all_answers_s, draw="marks")
assert check.earned("g", last_answers_s, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_fg", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** With the book's table 9.989 s were generated for eight solved tasks, 1.249 s each. The last answers alone took 8.007 s, 1.001 s each. The two
# failed ones, 1.982 s, are 19.8 % of all that was generated: whoever leaves them out makes the tasks look a fifth cheaper than they were.
#
# Two numbers that look alike: the failed first answers took 1.98 s, the retries 2.04 s. What a retry *adds* is the second; what is *left out* with the last
# answers is the first. Rounded, both are the 2.0 s of section 8.4.4.
#
# Tempting, and wrong: the mean over the two tasks with a retry, 2.009 s, for a solved task. And 10.005 s, the whole tasks, is more than was generated; it is
# accepted, with a word.
#
# The tasks of the record are known ones, on which errors had been seen before. Of 32 runs over new documents none needed a retry.

# %% [markdown]
# ## h. What a total hides
#
# - `h1`: what does it hide about d1 to compare only the totals of e? `"errors moved"`: from some tasks to others; `"no answer changed"`; or `"all changes one
#   way"`.
# - `h2`: what in such a grid comes near to independent trials: its `"tasks"`, its `"answers"`, or its `"runs"`, the columns?

# %% nbgrader={"grade": false, "grade_id": "h", "locked": false, "schema_version": 3, "solution": true, "task": false}
h1 = None
h2 = None
### BEGIN SOLUTION
h1 = "errors moved"
h2 = "tasks"
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_h", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("h1", h1)
check("h2", h2)
### BEGIN HIDDEN TESTS
assert check.earned("h1", h1) and check.earned("h2", h2)
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_h", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Errors moved. Some users lose an answer that others win; a mean over tasks says nothing to either. And a sum of eight tasks is no proof: the
# four runs of a task ask about one document, so they fail together. One task better and one worse is what a coin does half of the time. To compare two formats
# take many documents, count tasks, and list which of them changed.
