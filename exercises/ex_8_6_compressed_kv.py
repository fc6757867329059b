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
    pass  # not answered yet


def bits_per_value(code_bits, group_values, scale_bytes):
    pass  # not answered yet


a = None  # MiB: first format, second format
b = None  # MiB: first format, second format
c = None  # bits: first format, second format
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_abc", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("a", a, stored_mib)
check("b", b, stored_mib)
check("c", c, bits_per_value)

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
    pass  # not answered yet


d1 = None  # {"task better", "task worse", ...}
d2 = None
e = None  # answers changed, right before, right after
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_de", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("d1", d1)
check("d2", d2)
check("e", e, changed_answers)

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
    pass  # not answered yet


def last_answers_s(first_s, retry_s):
    pass  # not answered yet


f = None  # s, s
g = None  # s, s, a share of 1
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_fg", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("f", f, all_answers_s)
check("g", g, last_answers_s)

# %% [markdown]
# ## h. What a total hides
#
# - `h1`: what does it hide about d1 to compare only the totals of e? `"errors moved"`: from some tasks to others; `"no answer changed"`; or `"all changes one
#   way"`.
# - `h2`: what in such a grid comes near to independent trials: its `"tasks"`, its `"answers"`, or its `"runs"`, the columns?

# %% nbgrader={"grade": false, "grade_id": "h", "locked": false, "schema_version": 3, "solution": true, "task": false}
h1 = None
h2 = None
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_h", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("h1", h1)
check("h2", h2)
