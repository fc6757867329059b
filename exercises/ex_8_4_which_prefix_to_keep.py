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
# # Exercise 8-4: which prefix to keep
#
# Analyse. It belongs to section 8.3.4.
#
# Room for KV is scarce. One long prefix, or several short ones: which saves more time? And what did a recorded task find again of what it had computed
# before?
#
# **How to answer.** Each part has a place for numbers (`a = None`) and for a function that computes them. Put your own in place of the lines that say *not
# answered yet*, run the cell, then the cell below it: `check` tells what it found. Numbers by hand are the warm-up. The function is also tried with inputs
# that you do not see, and it is the function that earns the marks; where a part is a choice, the choice does. One line in words, at the end, is read by a
# person. Keep the names of functions and of their parameters: `check` calls them by these names.

# %% [markdown]
# The inputs, in bytes, tokens, FLOP and shares of 1. Prefix A fills the room. In its place, $m$ prefixes of kind B can be kept, which have nothing in common:
# each is as likely to be used again as the other B's, whatever happens to A. Whatever is kept moves out to host memory once, over a link, and comes back over
# it when it is used again; both ways take the same time. The last five lines are for parts g to i.

# %% nbgrader={"grade": false, "grade_id": "inputs", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib import exercise_8_4
from lib.exercises import Checker

inputs = exercise_8_4.Inputs(
    room_bytes=905_969_664,  # room to keep KV in
    a_tokens=6_144,  # L of A
    b_tokens=2_048,  # L of one B
    b_count=3,  # m: B's that fit in place of A
    a_probability=0.5,  # p of A: that it is used again
    b_probability=0.5,  # p of each B
    layer_weights=6_945_767_424,  # in the matrices of all layers
    head_weights=622_329_856,  # in the output head
    flop_per_pair=589_824,  # for each pair of a query and a key that it may see
    kv_bytes_per_token=147_456,  # k
    peak_flop_s=503_800_000_000_000,  # P, dense BF16
    efficiency=0.62,  # the share of P that is reached
    link_bytes_s=64_000_000_000,  # in one direction, for parts b to e
    other_link_bytes_s=32_000_000_000,  # the same, for part f
    rounds=12,  # of the recorded task, from its first on
    block_sizes=(16, 64),  # p: tokens that a block holds; the recorded runs had the first
    gap_requests=3,  # other requests between two rounds, for part i
    gap_request_tokens=4_000,  # input of each of them
    pool_tokens=(43_680, 7_280),  # two pools, each in whole blocks of the first size
)
check = Checker(exercise_8_4.EXERCISE, inputs)


# %% [markdown]
# Parts a to f give their functions the inputs as one object, and beside it what they are asked about, such as `tokens` of one prefix. Use
# `inputs.layer_weights` and the like. Times are in ms. Their clock is the FLOP rule: FLOP divided by the rate at which the card computes; the link runs at
# its nominal bandwidth, so the times over it are lower bounds.

# %% [markdown]
# ## a. The time to recompute
#
# How long does it take to compute A anew, and one B, each from its first token and by itself? Count the FLOP of the matrices: a multiplication and an
# addition for each token and weight of the layers; `flop_per_pair` for each pair of a query and a key that it may see; the output head for one position. A's
# time first, in ms.

# %% nbgrader={"grade": false, "grade_id": "a", "locked": false, "schema_version": 3, "solution": true, "task": false}
def recompute_ms(inputs, tokens):
    pass  # not answered yet


a = None  # ms: A, one B
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, recompute_ms)


# %% [markdown]
# ## b. The time to fetch
#
# How long does it take to bring back the KV of A, and of one B, over the first link?

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fetch_ms(inputs, tokens, link_bytes_s):
    pass  # not answered yet


b = None  # ms: A, one B
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("b", b, fetch_ms)


# %% [markdown]
# ## c. The net saving
#
# What does keeping A save on average, and what one B? A hit saves the time to recompute, less the time to fetch. The write-out is paid once for all that is
# kept, and takes as long as the fetch.

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def net_saving_ms(inputs, tokens, probability, link_bytes_s):
    pass  # not answered yet


c = None  # ms: A, one B
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, net_saving_ms)


# %% [markdown]
# ## d. Which to keep
#
# - `d1`: which saves more in the same room: `"A"`, or `"B"` for all $m$ of the B's together?
# - `d2`: by how many ms? A positive number, whichever saves more.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lead_ms(inputs, link_bytes_s):
    pass  # not answered yet


d1 = None  # "A" or "B"
d2 = None  # ms
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("d1", d1)
check("d2", d2, lead_ms)


# %% [markdown]
# ## e. When the B's win
#
# The probabilities of the B's stay as they are. Below which probability of A, a number from 0 to 1, do the B's save more? (To 0.005; give three digits.)

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
def switching_probability(inputs, link_bytes_s):
    pass  # not answered yet


e = None  # a share of 1
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, switching_probability)


# %% [markdown]
# ## f. Another link
#
# Now the other link. `f1`: give again, in this order, the times to fetch A and one B, the net savings of A and of one B, the difference of d2, and the
# probability of e. One function gives all six. `f2`: does the order of A and the B's, by the probabilities of the inputs, change from the first link to the
# other? `"stays"` or `"changes"`.

# %% nbgrader={"grade": false, "grade_id": "f", "locked": false, "schema_version": 3, "solution": true, "task": false}
def repeated(inputs, link_bytes_s):
    pass  # not answered yet


f1 = None  # ms, ms, ms, ms, ms, a share of 1
f2 = None  # "stays" or "changes"
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("f1", f1, repeated)
check("f2", f2)

# %% [markdown]
# ## g, h, i. A recorded task
#
# Measured, not calculated. An agent's task had twelve rounds. The input of each begins for the most part like that of the round before. Those inputs were
# sent again through an engine with a prefix cache, one after the other, one output token each, in five runs: two sizes of the pool, with and without a wait
# or other requests between two rounds, and once with the cache off. Input and hits in tokens.

# %% nbgrader={"grade": false, "grade_id": "replay", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib.records import record

for run in record("cache_replay_summary").rows:
    print(
        f"{run['run']:<22}{run['pool_capacity_tokens']:>7,} tokens in the pool,",
        f"cache {'on' if run['prefix_cache_on'] else 'off'}, each gap",
        f"{run['gap_s']} s and {run['interfering_requests_per_gap']} other requests",
    )
print()
print(*exercise_8_4.RUNS, sep=", ")
print(f"{'round':>5}{'input':>7}{'equal':>7}   hits in these runs")
for row in record("agent_rounds").rows:
    replayed = record("cache_replay").where(round=row["round"])
    print(
        f"{row['round']:>5}{row['input_tokens']:>7}",
        f"{row['same_as_previous_round_prefix_tokens']:>6}",
        *(f"{one['hit_tokens']:>6}" for one in replayed),
    )


# %% [markdown]
# ## g. Equal to the round before
#
# Of all input tokens of the first `rounds` rounds, which share is equal to the beginning of the round before? A number from 0 to 1, three digits.
# `record("agent_rounds").rows` has a row for each round, with `row["input_tokens"]` and `row["same_as_previous_round_prefix_tokens"]`.

# %% nbgrader={"grade": false, "grade_id": "g", "locked": false, "schema_version": 3, "solution": true, "task": false}
def common_share(rounds):
    pass  # not answered yet


g = None  # a share of 1
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_g", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("g", g, common_share)


# %% [markdown]
# ## h. Found, and foretold
#
# - `h1`: which share of the same input tokens was found in the cache, in each run? Five numbers in the order above. `record("cache_replay").where(run=run)`
#   has the rows of one run, a round each, with `row["round"]`, `row["input_tokens"]` and `row["hit_tokens"]`.
# - `h2`: how many tokens would be found if nothing were ever evicted? Two numbers for each block size: the hits of the first `rounds` rounds together; and
#   the hits of the last one's input if it were then sent once more, word for word. A block is found as a whole or not at all. At least the last token of an
#   input is computed, or there would be no output.

# %% nbgrader={"grade": false, "grade_id": "h", "locked": false, "schema_version": 3, "solution": true, "task": false}
def hit_share(run, rounds):
    pass  # not answered yet


def predicted_hits(rounds, block_tokens):
    pass  # not answered yet


h1 = None  # shares of 1, one for each run
h2 = None  # two whole numbers for each block size
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_h", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("h1", h1, hit_share)
check("h2", h2, predicted_hits)

# %% [markdown]
# ## i. Why the small pool finds nothing
#
# Take all twelve rounds, blocks of the first size, and the gaps and pools of the inputs: in each gap that many other requests, all different, are served one
# after the other. A request that has ended leaves its full blocks behind, to be found again; when blocks are needed, those go first that were used longest
# ago.
#
# - `i1`, `i2`: how much of what the rounds could find is found, in the first pool and in the second? `"all"`, `"part"` or `"none"`.
# - `i3`: why did the recorded run with the small pool find nothing? `"no room"`: the others needed its blocks; `"too old"`: too much time passed between two
#   rounds; `"nothing equal"`: its input was not that of the round before.

# %% nbgrader={"grade": false, "grade_id": "i", "locked": false, "schema_version": 3, "solution": true, "task": false}
i1 = None  # "all", "part" or "none"
i2 = None
i3 = None
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_i", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("i1", i1)
check("i2", i2)
check("i3", i3)

# %% [markdown]
# **In a line or two**, read by a person: why exactly does the small pool find nothing, whose blocks go first and why those, and which runs show that it is
# not the time between two rounds? Write it into the cell below.

# %% [markdown] nbgrader={"grade": true, "grade_id": "words_i", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# *Not answered yet.*

# %% [markdown]
# **Try a pool of your own.** `found` replays all twelve rounds through the prefix cache of section 8.3.3 with the gaps of the inputs, in a pool of so many
# blocks. Answer i first. Where is the border between nothing and something, and where that between something and all? Call it with other numbers of blocks in
# the cell below.

# %% nbgrader={"grade": false, "grade_id": "found", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib.agent_replay import Setup, replay


def found(blocks):
    gap = inputs.gap_requests, inputs.gap_request_tokens
    return sum(replay(Setup(blocks, inputs.block_sizes[0], *gap)))


if None in (i1, i2):
    print("Answer i1 and i2, then run this cell again.")
else:
    for tokens, mine in zip(inputs.pool_tokens, (i1, i2)):
        blocks = tokens // inputs.block_sizes[0]
        print(f"{blocks:,} blocks: you say {mine}, found {found(blocks):,} tokens")

# %% nbgrader={"grade": false, "grade_id": "try", "locked": false, "schema_version": 3, "solution": true, "task": false}
pass  # not answered yet
