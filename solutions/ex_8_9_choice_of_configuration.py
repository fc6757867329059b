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
    ### BEGIN SOLUTION
    common = shared_prefix_tokens // block_tokens
    stored = input_tokens + output_tokens - 1
    private = -(-(stored - shared_prefix_tokens) // block_tokens)  # rounded up
    kv = (common + requests * private) * block_tokens * kv_bytes_per_token / 2**20
    return kv, kv + draft_memory_mib, kv
    ### END SOLUTION


a = None  # six numbers, in MiB: B, D, E, then the same for short outputs
### BEGIN SOLUTION
a = [memory_needed(**case) for case in check.cases("a")]
print(a)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, memory_needed)
### BEGIN HIDDEN TESTS
assert check.earned("a", memory_needed, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_a", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $(s + b\,\lceil (L - s\,p + G - 1)/p \rceil)\,p\,k$ with $s = S/p$ common blocks. With the book's numbers 6048 MiB for B and for E, 9236 for D;
# with short outputs 5508 and 8696. Of the 6048 MiB, 864 are the prefix, held once.
#
# Tempting, and wrong: D's 3188 MiB for E as well. They are a network on the card; an index in host memory is not.

# %% [markdown]
# ## b. Rounds
#
# How many rounds follow the prefill, for B, D and E? The prefill gives the first output. What the last round outputs beyond the end is thrown away.

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def rounds_needed(output_tokens, draft_outputs, lookup_outputs, **_):
    ### BEGIN SOLUTION
    from math import ceil

    further = output_tokens - 1
    return further, ceil(further / draft_outputs), ceil(further / lookup_outputs)
    ### END SOLUTION


b = None  # six whole numbers
### BEGIN SOLUTION
b = [rounds_needed(**case) for case in check.cases("b")]
print(b)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, rounds_needed)
### BEGIN HIDDEN TESTS
assert check.earned("b", rounds_needed, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_b", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $\lceil (G - 1)/n \rceil$. With the book's numbers 255, 85 and 128; with short outputs 15, 5 and 8. E's 128 rounds give one output more than is
# wanted.
#
# Tempting, and wrong: $G/n$. For E it gives 128 and 8 as well, so the book's numbers do not show it; for D they do, 86 and 6. And 127, rounded down, leaves
# each request without its last output.

# %% [markdown]
# ## c. Time
#
# How many seconds pass from the arrival to the last output, with B, D and E?

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def total_time(
    output_tokens, prefill_s, draft_prefill_factor, round_ms, draft_outputs, lookup_outputs, query_ms, **_
):
    ### BEGIN SOLUTION
    of_b, of_d, of_e = rounds_needed(output_tokens, draft_outputs, lookup_outputs)
    with_b = prefill_s + of_b * round_ms / 1000
    with_d = prefill_s * draft_prefill_factor + of_d * round_ms / 1000
    with_e = prefill_s + of_e * (round_ms + query_ms) / 1000
    return with_b, with_d, with_e
    ### END SOLUTION


c = None  # six numbers, in s
### BEGIN SOLUTION
c = [total_time(**case) for case in check.cases("c")]
print(c)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, total_time)
### BEGIN HIDDEN TESTS
assert check.earned("c", total_time, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_c", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Prefill and rounds; E's rounds are longer by a query, D's prefill by its factor. With the book's numbers 9.01, 4.56 and 5.55 s; with short outputs
# 2.45, 2.37 and 2.26 s. There E's three rounds more than D's cost less than what D's network adds to the prefill.
#
# Tempting, and wrong: a query for each output, or for each request of a round. It is one for the batch, in front of each round. With the book's 0.1 ms the
# first of these slips is not seen; with a query of some ms it is.

# %% [markdown]
# ## d. Time of the card for each qualified result
#
# How many seconds of the card does a qualified result take, with B, D and E? What does not fit into the memory is not run, and what is later than the deadline
# is of no use: then there is no qualified result. Write 0 for none, or `None`.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def gpu_s_per_result(memory_mib, deadline_s, requests, **given):
    ### BEGIN SOLUTION
    found = []
    for memory, time in zip(memory_needed(requests=requests, **given), total_time(**given)):
        qualifies = memory <= memory_mib and time <= deadline_s
        found.append(time / requests if qualifies else 0)
    return found
    ### END SOLUTION


d = None  # six numbers, in s; 0 where there is none
### BEGIN SOLUTION
d = [gpu_s_per_result(**case) for case in check.cases("d")]
print(d)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("d", d, gpu_s_per_result)
### BEGIN HIDDEN TESTS
assert check.earned("d", gpu_s_per_result, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_d", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $T_{GPU}/N_g$: all time of the card over the results that are right and in time. With the book's numbers none for B, 0.285 s for D and 0.347 s for E;
# with short outputs 0.153, 0.148 and 0.141 s.
#
# Tempting, and wrong: 0.563 s for B, which is late. Its 9.01 s are spent, and nothing comes of them.

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
### BEGIN SOLUTION
def chosen(per_result):
    kept = [(seconds, name) for seconds, name in zip(per_result, "BDE") if seconds]
    return min(kept)[1] if kept else "none"


long_case, short_case = check.cases("d")
with_less = long_case | {"memory_mib": inputs.less_memory_mib}
e, f1, g = (chosen(gpu_s_per_result(**case)) for case in (long_case, with_less, short_case))
f2 = set()
for name, memory, time in zip("BDE", memory_needed(**with_less), total_time(**with_less)):
    if memory > inputs.less_memory_mib:
        f2.add(f"{name} memory")
    elif time > inputs.deadline_s:
        f2.add(f"{name} deadline")
print(e, f1, sorted(f2), g)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_efg", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
check("e", e)
check("f1", f1)
check("f2", f2)
check("g", g)
### BEGIN HIDDEN TESTS
assert check.earned("e", e) and check.earned("f1", f1)
assert check.earned("f2", f2) and check.earned("g", g)
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_efg", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** With the book's numbers D, then E, then E. D outputs three tokens a round and pays for it with memory; as long as that fits, it wins. In 6 GiB its
# network does not fit: B would, but is late, and E is left. With short outputs there are few rounds to save, and what D's network adds to the prefill is no
# longer earned back.
#
# Tempting, and wrong: "none" for f1. Section 8.6.3 finds none, but it asks A to D only.

# %% [markdown]
# ## h. What would turn the verdict on E
#
# With the limits and outputs of the inputs: how long may a round of E be, its query included, for E to be just in time? And how few outputs of a round are
# enough, on average and at least 1, if a round keeps its time? For the second number ask how many *whole* rounds fit.

# %% nbgrader={"grade": false, "grade_id": "h", "locked": false, "schema_version": 3, "solution": true, "task": false}
def limits_of_e(output_tokens, prefill_s, round_ms, query_ms, lookup_outputs, deadline_s):
    ### BEGIN SOLUTION
    left_ms = (deadline_s - prefill_s) * 1000
    _, _, rounds = rounds_needed(output_tokens, 1, lookup_outputs)
    fitting = int(left_ms / (round_ms + query_ms))
    return left_ms / rounds, max(1, (output_tokens - 1) / fitting)
    ### END SOLUTION


h = None  # two numbers: ms, tokens
### BEGIN SOLUTION
h = [limits_of_e(**case) for case in check.cases("h")]
print(h)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_h", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("h", h, limits_of_e)
### BEGIN HIDDEN TESTS
assert check.earned("h", limits_of_e, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_h", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $(T_{SLO} - T_P)/R$ and $(G - 1)/\lfloor (T_{SLO} - T_P)/(T_r + q) \rfloor$. With the book's numbers a round may take 38.75 ms, where it takes
# 27.45: there is room for a query of 11.4 ms. And 180 whole rounds fit, so 1.42 outputs of a round are enough, where 2 are assumed. E's verdict is firm, and an
# assumption that is off by a quarter does not turn it.
#
# It is another question when E would be better than D: not before 2.8 outputs of a round, where D's rounds give 3.

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
### BEGIN SOLUTION
def goodput(trial, deadline_s, since_start=False):
    good = 0
    for row in trial.rows:
        took = row.end_s - (row.started_s if since_start else row.planned_s)
        good += row.is_correct and took <= deadline_s
    return good / trial.window_s


trials = [run_trial(Setting(f"{most} at once", most_running=most), tasks, arrivals_ns) for most in (1, 4)]
for trial in trials:
    print(f"{trial.setting.name}: window {trial.window_s:.2f} s, most state {trial.peak_bytes / 2**20:.0f} MiB")
    print(f"  right {sum(row.is_correct for row in trial.rows)} of {len(trial.rows)}, goodput {goodput(trial, 3):.3f}/s")
    print(f"  by the clock of the engine, which is wrong: {goodput(trial, 3, since_start=True):.3f}/s")
    for row in trial.rows:
        print(f"  {row.task} {row.planned_s:6.2f} {row.first_output_s:6.2f} {row.end_s:6.2f} {row.is_correct}")
### END SOLUTION

# %% [markdown]
# **In some lines**, read by a person: what were the two settings, and what was the same in both runs? From when on does a request's time count, and which
# requests are counted? Give goodput, share of right answers and most state of both. What can a window of so few requests not show?

# %% [markdown] nbgrader={"grade": true, "grade_id": "words_i", "locked": false, "points": 10, "schema_version": 3, "solution": true, "task": false}
# One request at a time, and four at once; the same sixteen tasks in the same order, planned at four a second. A request's time counts from its planned arrival
# to its last output, and it is qualified if that is within 3 s and its answer is right. One at a time: the window is 12.9 s long, 4 requests are qualified, so
# the goodput is 0.31/s. Four at once: 6.8 s, 9 requests and 1.32/s. Right are 14 of 16 in both: the two wrong ones are those of one task, and count in the
# denominator like the late ones. The most state is 1026 MiB and 3344 MiB. By the time in the engine alone all right answers would qualify in both runs, 1.08/s
# and 2.06/s: the wait is left out.
#
# A window of 16 requests ends before a queue gets long: at four a second the last one arrives after less than four seconds. It cannot show whether the queue
# would go on growing, and so not what goodput at that rate would be for long. Its 95th percentile is its largest value. And eight tasks are few: the share
# of right answers says nothing about others.
#
# **Rubric** (10 points). *Same tasks and trace* in both runs, 2. *Clock*: from the planned arrival, not from the sending or the first step, 2. *Quality*: all
# requests in the denominator, late and wrong ones too, 2. *State*: the most that was held at once, of both runs, 1. *Formula*: right and in time, summed, over
# the length of the window, 2. *Window*: something that 16 requests cannot show, 1.

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_i", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Any two settings will do; the lines above are one example. Good ones to look at: a step that holds fewer tokens, which the first outputs of long
# tasks wait for; and a pool that holds two long requests only, which turns four rows into two.
