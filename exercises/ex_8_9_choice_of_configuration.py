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
# # Exercise 8-9: the choice of a configuration
#
# Design. It belongs to section 8.6.3; its open part, at the end, takes its way of counting from section 8.6.2.
#
# Configurations B and D of section 8.6.3 get a rival, E. It shares the prefix as B does, and looks its drafts up in the context: the index lies in host memory,
# takes no memory of the card and makes no prefill longer, but each round begins with one query. Which of the three gives a right answer in time for the least
# time of the card, and does that hold when the limits change?
#
# **How to answer.** Each part has a place for numbers (`a = None`) and for a function that computes them. Put your own in place of the lines that say *not
# answered yet*, run the cell, then the cell below it: `check` tells what it found. Numbers by hand are the warm-up. The function is also tried with inputs
# that you do not see, and it is the function that earns the marks; where a part is a choice, the choice does. The open part is read by a person. Keep the names
# of functions and of their parameters: `check` calls them by these names. What a function does not need of its inputs, it takes in `**_`.

# %% [markdown]
# The inputs. All requests arrive together, and every answer is taken to be right. B's prefill and round are measured for the whole batch and stand for all three;
# a round keeps its time, however many tokens of a draft it verifies. Outputs of a round are means, for each request alike, and assumed: all requests end
# together.

# %% nbgrader={"grade": false, "grade_id": "inputs", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib import exercise_8_9
from lib.exercises import Checker

inputs = exercise_8_9.Inputs(
    requests=16,  # that arrive together
    input_tokens=8_192,  # of each request
    shared_prefix_tokens=6_144,  # the first of them, equal in all requests and cached
    output_tokens=256,  # of each request
    block_tokens=16,
    kv_bytes_per_token=147_456,
    prefill_s=2.04,  # B: until each request has its first output
    round_ms=27.35,  # B: one round of the whole batch
    draft_memory_mib=3_188,  # D: its draft network
    draft_prefill_factor=1.094,  # D: its prefill takes so many times B's
    draft_outputs=3,  # D: outputs of a round, for each request
    lookup_outputs=2,  # E: outputs of a round, for each request
    query_ms=0.1,  # E: one query, in front of each round of the batch
    memory_mib=12_288,  # limit for KV and what drafts take
    deadline_s=7.0,  # limit for all requests, from their arrival
    less_memory_mib=6_144,  # another limit of memory, for part f
    short_output_tokens=16,  # other outputs of each request, for part g
)
check = Checker(exercise_8_9.EXERCISE, inputs)


# %% [markdown]
# Parts a to d are asked twice, for `output_tokens` and then for `short_output_tokens`: `check.cases("a")` lists what your function is called with. Each call
# returns three numbers, for B, D and E.

# %% [markdown]
# ## a. Memory
#
# How many MiB do B, D and E hold when each request has its last output? KV is BF16 and held in whole blocks; the prefix fills whole blocks.

# %% nbgrader={"grade": false, "grade_id": "a", "locked": false, "schema_version": 3, "solution": true, "task": false}
def memory_needed(
    output_tokens, requests, input_tokens, shared_prefix_tokens, block_tokens, kv_bytes_per_token, draft_memory_mib, **_
):
    pass  # not answered yet


a = None  # six numbers, in MiB: B, D, E, then the same for short outputs
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, memory_needed)


# %% [markdown]
# ## b. Rounds
#
# How many rounds follow the prefill, for B, D and E? The prefill gives the first output. What the last round outputs beyond the end is thrown away.

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rounds_needed(output_tokens, draft_outputs, lookup_outputs, **_):
    pass  # not answered yet


b = None  # six whole numbers
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, rounds_needed)


# %% [markdown]
# ## c. Time
#
# How many seconds pass from the arrival to the last output, with B, D and E?

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def total_time(
    output_tokens, prefill_s, draft_prefill_factor, round_ms, draft_outputs, lookup_outputs, query_ms, **_
):
    pass  # not answered yet


c = None  # six numbers, in s
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, total_time)


# %% [markdown]
# ## d. Time of the card for each qualified result
#
# How many seconds of the card does a qualified result take, with B, D and E? What does not fit into the memory is not run, and what is later than the deadline
# is of no use: then there is no qualified result. Write 0 for none, or `None`.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gpu_s_per_result(memory_mib, deadline_s, requests, **given):
    pass  # not answered yet


d = None  # six numbers, in s; 0 where there is none
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("d", d, gpu_s_per_result)

# %% [markdown]
# ## e, f, g. Which one
#
# Choose the least time of the card for each qualified result: `"B"`, `"D"`, `"E"`, or `"none"` if none of them has any.
#
# - `e`: with the limits and outputs of the inputs.
# - `f1`: with `less_memory_mib` in place of `memory_mib`. `f2`: which are rejected then, each with the first limit that it breaks? Memory is asked first. A set
#   of words, each a name and a limit: `{"B memory", "E deadline"}`.
# - `g`: with `short_output_tokens` in place of `output_tokens`, and `memory_mib` again.

# %% nbgrader={"grade": false, "grade_id": "efg", "locked": false, "schema_version": 3, "solution": true, "task": false}
e = None  # "B", "D", "E" or "none"
f1 = None
f2 = None  # {"name limit", ...}
g = None
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_efg", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("e", e)
check("f1", f1)
check("f2", f2)
check("g", g)


# %% [markdown]
# ## h. What would turn the verdict on E
#
# With the limits and outputs of the inputs: how long may a round of E be, its query included, for E to be just in time? And how few outputs of a round are
# enough, on average and at least 1, if a round keeps its time? For the second number ask how many *whole* rounds fit.

# %% nbgrader={"grade": false, "grade_id": "h", "locked": false, "schema_version": 3, "solution": true, "task": false}
def limits_of_e(output_tokens, prefill_s, round_ms, query_ms, lookup_outputs, deadline_s):
    pass  # not answered yet


h = None  # two numbers: ms, tokens
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_h", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("h", h, limits_of_e)

# %% [markdown]
# **What the arithmetic leaves out.** This is not graded. Answer c and h first, then run the cell.

# %% nbgrader={"grade": false, "grade_id": "left_out", "locked": true, "schema_version": 3, "solution": false, "task": false}
if c is None or h is None:
    print("Answer c and h, then run this cell again.")
else:
    print(exercise_8_9.notes())

# %% [markdown]
# ## i. Open part: two runs
#
# Compare two settings of a service by running both: with the *same tasks* and the *same planned arrivals*. Record for each request when it was planned to arrive,
# when its first output came and when it ended, and whether its answer is right; and for each run the most state that was held at once. Then compute the goodput
# of both by the formula of section 8.6.2: an answer counts if it is right and ends within 3 s of the planned arrival.
#
# The simulator does for it. `run_trial` serves the recorded tasks, two runs of each of eight, and gives a row for each request: its steps take what the recorded
# service took, and an answer is right or wrong by its task, as in the record. `Setting` says what can be varied: `most_running`, requests that run at once;
# `token_budget`, tokens of a step; `pool_bytes`, the pool for KV. So `Setting("two at once", most_running=2)` is one setting. Your own engine does as well:
# `lib.benchmark_file` reads what a benchmark client wrote; who knows the answers adds which are right, and the most state comes from the engine's own log.

# %% nbgrader={"grade": false, "grade_id": "trial", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib.arrivals import even
from lib.load_curve import ORDERS
from lib.service_trial import Setting, run_trial

tasks = ORDERS[0]  # names of tasks, in the order of the first recorded window
arrivals_ns = even(4, len(tasks))  # planned, so many a second: choose your own
example = run_trial(Setting("as recorded"), tasks, arrivals_ns)
print(example.rows[0])
print(f"window {example.window_s:.2f} s, at most {example.peak_bytes / 2**20:.0f} MiB of KV at once")

# %% nbgrader={"grade": false, "grade_id": "i", "locked": false, "schema_version": 3, "solution": true, "task": false}
pass  # not answered yet

# %% [markdown]
# **In some lines**, read by a person: what were the two settings, and what was the same in both runs? From when on does a request's time count, and which
# requests are counted? Give goodput, share of right answers and most state of both. What can a window of so few requests not show?

# %% [markdown] nbgrader={"grade": true, "grade_id": "words_i", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false}
# *Not answered yet.*
