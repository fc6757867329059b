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
    ### BEGIN SOLUTION
    pairs = tokens * (tokens + 1) // 2
    weights = tokens * inputs.layer_weights + inputs.head_weights
    flops = 2 * weights + inputs.flop_per_pair * pairs
    return 1000 * flops / (inputs.efficiency * inputs.peak_flop_s)
    ### END SOLUTION


a = None  # ms: A, one B
### BEGIN SOLUTION
a = [recompute_ms(**case) for case in check.cases("a")]
print(a)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, recompute_ms)
### BEGIN HIDDEN TESTS
assert check.earned("a", recompute_ms, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_a", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $T_r = F(L)/(\eta P)$ with $F(L) = 2\,(L\,W + W_h) + c\,L(L+1)/2$: $W$ weights in the layers, $W_h$ in the output head, $c$ FLOP for a pair.
#
# With the book's numbers: A has 96.5 TFLOP and takes 308.9 ms, one B 29.7 TFLOP and 95.0 ms. With the 62.2 % of section 8.3.4 in place of 62 % it is 307.9
# and 94.7 ms, which is accepted as well.
#
# A has three times the tokens and takes 3.25 times as long: its tokens look back further. Without attention the ratio would be 3.
#
# Tempting, and wrong: $L^2$ pairs, which lets tokens see those behind them; the output head for each position, though a prefix is computed for its KV and one
# row gives the next token; the whole peak, which nothing reaches. The fit of section 8.2.2 gives 269.6 ms for A: it is another model of time, made from other
# runs. One comparison uses one of them.

# %% [markdown]
# ## b. The time to fetch
#
# How long does it take to bring back the KV of A, and of one B, over the first link?

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def fetch_ms(inputs, tokens, link_bytes_s):
    ### BEGIN SOLUTION
    return 1000 * tokens * inputs.kv_bytes_per_token / link_bytes_s
    ### END SOLUTION


b = None  # ms: A, one B
### BEGIN SOLUTION
b = [fetch_ms(**case) for case in check.cases("b")]
print(b)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("b", b, fetch_ms)
### BEGIN HIDDEN TESTS
assert check.earned("b", fetch_ms, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_b", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $T_f = L\,k/B$. With the book's numbers: 864 MiB are 0.906 GB, and 14.2 ms at 64 GB/s; one B has a third of that and takes 4.7 ms.
#
# Tempting, and wrong: 864/64 = 13.5 ms, which takes MiB for MB. A link's GB are powers of ten, a pool's GiB powers of two. And 7.1 ms: the link can do as
# much in the other direction at the same time, but the KV goes one way.
#
# Fetching is linear in the tokens, recomputing grows faster. So the longer a prefix, the more a hit saves.

# %% [markdown]
# ## c. The net saving
#
# What does keeping A save on average, and what one B? A hit saves the time to recompute, less the time to fetch. The write-out is paid once for all that is
# kept, and takes as long as the fetch.

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def net_saving_ms(inputs, tokens, probability, link_bytes_s):
    ### BEGIN SOLUTION
    fetch = write = fetch_ms(inputs, tokens, link_bytes_s)
    return probability * (recompute_ms(inputs, tokens) - fetch) - write
    ### END SOLUTION


c = None  # ms: A, one B
### BEGIN SOLUTION
c = [net_saving_ms(**case) for case in check.cases("c")]
print(c)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, net_saving_ms)
### BEGIN HIDDEN TESTS
assert check.earned("c", net_saving_ms, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_c", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** $V = p\,(T_r - T_f) - T_m$ with $T_m = T_f$. With the book's numbers: 0.5 × (308.9 − 14.2) − 14.2 = 133.2 ms for A, 0.5 × (95.0 − 4.7) − 4.7 =
# 40.4 ms for one B. (With 62.2 %: 132.7 and 40.3.)
#
# Tempting, and wrong: three ways to misplace what moving costs. The write-out left out: 147.4 ms. The write-out paid only at a hit: 140.3 ms; but it is paid
# before anybody knows whether a hit comes. The fetch paid without a hit: 126.1 ms. Over this link they differ by little, over a slow one they decide.

# %% [markdown]
# ## d. Which to keep
#
# - `d1`: which saves more in the same room: `"A"`, or `"B"` for all $m$ of the B's together?
# - `d2`: by how many ms? A positive number, whichever saves more.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def lead_ms(inputs, link_bytes_s):
    ### BEGIN SOLUTION
    a_saves, bs_save = both_save(inputs, link_bytes_s)
    return abs(a_saves - bs_save)


def both_save(inputs, link_bytes_s):
    """What A saves, and what all the B's save."""
    a_saves = net_saving_ms(inputs, inputs.a_tokens, inputs.a_probability, link_bytes_s)
    b_saves = net_saving_ms(inputs, inputs.b_tokens, inputs.b_probability, link_bytes_s)
    return a_saves, inputs.b_count * b_saves
    ### END SOLUTION


d1 = None  # "A" or "B"
d2 = None  # ms
### BEGIN SOLUTION
a_saves, bs_save = both_save(inputs, inputs.link_bytes_s)
d1 = "A" if a_saves > bs_save else "B"
d2 = [lead_ms(**case) for case in check.cases("d2")]
print(d1, d2)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("d1", d1)
check("d2", d2, lead_ms)
### BEGIN HIDDEN TESTS
assert check.earned("d1", d1) and check.earned("d2", lead_ms, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_d", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Compare $V_A$ with $m\,V_B$. With the book's numbers 133.2 against 3 × 40.4 = 121.3: A, by 11.9 ms. As the room is the same, that is also the
# order by ms per MiB.
#
# Why A, with equal probabilities? Both move the same bytes, so all that goes over the link falls out of the difference; $p\,(T_{r,A} - m\,T_{r,B})$ is left,
# nearly all of it the attention between the three parts of A. With equal probabilities the long one always wins. With others it need not.
#
# That is why two slips do not show here: the write-out paid only at a hit, and the fetch paid without one, change both sides alike.

# %% [markdown]
# ## e. When the B's win
#
# The probabilities of the B's stay as they are. Below which probability of A, a number from 0 to 1, do the B's save more? (To 0.005; give three digits.)

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
def switching_probability(inputs, link_bytes_s):
    ### BEGIN SOLUTION
    _, bs_save = both_save(inputs, link_bytes_s)
    fetch = write = fetch_ms(inputs, inputs.a_tokens, link_bytes_s)
    return (bs_save + write) / (recompute_ms(inputs, inputs.a_tokens) - fetch)
    ### END SOLUTION


e = None  # a share of 1
### BEGIN SOLUTION
e = [switching_probability(**case) for case in check.cases("e")]
print(e)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("e", e, switching_probability)
### BEGIN HIDDEN TESTS
assert check.earned("e", switching_probability, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_e", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Set $p\,(T_{r,A} - T_{f,A}) - T_{m,A} = m\,V_B$, and solve for $p = (m\,V_B + T_{m,A})/(T_{r,A} - T_{f,A})$. With the book's numbers (121.3 +
# 14.2)/294.7 = 0.460. A must be used again with at least 46 %, not with the B's 50 %.
#
# Tempting, and wrong: 4.8 %, where A is worth keeping at all. Free room would be filled from there on; in scarce room A competes with what it displaces. Also
# 18.5 %: that is A against one B. And 0.5 × 121.3/133.2 = 0.455, by proportion: close here, but the write-out does not shrink with the probability.

# %% [markdown]
# ## f. Another link
#
# Now the other link. `f1`: give again, in this order, the times to fetch A and one B, the net savings of A and of one B, the difference of d2, and the
# probability of e. One function gives all six. `f2`: does the order of A and the B's, by the probabilities of the inputs, change from the first link to the
# other? `"stays"` or `"changes"`.

# %% nbgrader={"grade": false, "grade_id": "f", "locked": false, "schema_version": 3, "solution": true, "task": false}
def repeated(inputs, link_bytes_s):
    ### BEGIN SOLUTION
    prefixes = [
        (inputs.a_tokens, inputs.a_probability),
        (inputs.b_tokens, inputs.b_probability),
    ]
    return (
        *(fetch_ms(inputs, tokens, link_bytes_s) for tokens, _ in prefixes),
        *(net_saving_ms(inputs, *prefix, link_bytes_s) for prefix in prefixes),
        lead_ms(inputs, link_bytes_s),
        switching_probability(inputs, link_bytes_s),
    )
    ### END SOLUTION


f1 = None  # ms, ms, ms, ms, ms, a share of 1
f2 = None  # "stays" or "changes"
### BEGIN SOLUTION
f1 = [repeated(**case) for case in check.cases("f1")]
a_saves_now, bs_save_now = both_save(inputs, inputs.other_link_bytes_s)
has_turned = (a_saves > bs_save) != (a_saves_now > bs_save_now)
f2 = "changes" if has_turned else "stays"
print(f1, f2)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("f1", f1, repeated)
check("f2", f2)
### BEGIN HIDDEN TESTS
assert check.earned("f1", repeated, draw="marks") and check.earned("f2", f2)
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_f", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** The same functions with the other link. With the book's numbers the times to fetch double, to 28.3 and 9.4 ms. A saves 112.0 ms, one B 33.4,
# so A leads by 11.9 ms as before, down to the last digit: what goes over the link is the same for both. The order stays, and the probability of e moves by
# 0.002 only, to 0.458.
#
# Tempting, and wrong: halving all savings. Recomputing does not use the link; of A's saving 21.2 ms are lost, one fetch at 50 % and one write-out.
#
# When does a link change the order? If A is long and less likely than the B's. Then a slow link favours A: of what is kept, less comes back. From one end of
# what links there are to the other the probability of e moves by a few hundredths, so the order changes seldom. What a slow link does change is whether
# keeping pays at all.

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
    ### BEGIN SOLUTION
    rows = record("agent_rounds").rows[:rounds]
    equal = sum(row["same_as_previous_round_prefix_tokens"] for row in rows)
    return equal / sum(row["input_tokens"] for row in rows)
    ### END SOLUTION


g = None  # a share of 1
### BEGIN SOLUTION
g = [common_share(**case) for case in check.cases("g")]
print(g)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_g", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("g", g, common_share)
### BEGIN HIDDEN TESTS
assert check.earned("g", common_share, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_g", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** A sum by a sum: with all twelve rounds 16,376 of 19,556 tokens, 83.7 %. It is a property of the text, and no cache can find more.
#
# Tempting, and wrong: the mean of the rounds' shares, 72.5 %. It gives the first round, of 210 tokens, the weight of the last, of 3136. What is saved is
# tokens, so tokens are added up.

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
    ### BEGIN SOLUTION
    rows = record("cache_replay").where(run=run)[:rounds]
    found = sum(row["hit_tokens"] for row in rows)
    return found / sum(row["input_tokens"] for row in rows)
    ### END SOLUTION


def predicted_hits(rounds, block_tokens):
    ### BEGIN SOLUTION
    def whole_blocks(tokens):
        return tokens // block_tokens * block_tokens

    rows = record("agent_rounds").rows[:rounds]
    equal = [row["same_as_previous_round_prefix_tokens"] for row in rows]
    inputs = [row["input_tokens"] for row in rows]
    hits = sum(whole_blocks(min(some, every - 1)) for some, every in zip(equal, inputs))
    return hits, whole_blocks(inputs[-1] - 1)
    ### END SOLUTION


h1 = None  # shares of 1, one for each run
h2 = None  # two whole numbers for each block size
### BEGIN SOLUTION
h1 = [hit_share(**case) for case in check.cases("h1")]
h2 = [predicted_hits(**case) for case in check.cases("h2")]
print(h1, h2)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_h", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
check("h1", h1, hit_share)
check("h2", h2, predicted_hits)
### BEGIN HIDDEN TESTS
assert check.earned("h1", hit_share, draw="marks")
assert check.earned("h2", predicted_hits, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_h", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Again a sum by a sum: 16,304 of 19,556 tokens, 83.4 %, in each of the three runs with the large pool and the cache on, whether they waited,
# were interfered with, or neither. None in the small pool with the others between, as if the cache were off.
#
# Foretold: $\sum p\,\lfloor \min(\text{equal}, \text{input} - 1)/p \rfloor$. With blocks of 16 that is 16,304, and round by round what the three runs found.
# Of the 16,376 equal tokens 72 are lost to blocks that are equal only in part, less than half a block in each round. With blocks of 64 it would be 312.
#
# The last input is 3136 tokens long, 196 whole blocks of 16. Sent again it finds 3120, not 3136: its last token must be computed, and with it the rest of its
# block, which is found as a whole or not at all.
#
# Tempting, and wrong: rounding the sum down once. Each round loses its own rest.

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
### BEGIN SOLUTION
size = inputs.block_sizes[0]
full = inputs.gap_request_tokens // size
last = -(-inputs.gap_request_tokens // size)
others = (inputs.gap_requests - 1) * full + last
equal = [row["same_as_previous_round_prefix_tokens"] for row in record("agent_rounds").rows]
largest_hit = max(equal) // size


def survives(blocks):
    if blocks <= others:
        return "none"
    return "all" if blocks >= others + largest_hit else "part"


i1, i2 = (survives(tokens // size) for tokens in inputs.pool_tokens)
i3 = "no room"
print(others, largest_hit, [tokens // size for tokens in inputs.pool_tokens], i1, i2)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_i", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("i1", i1)
check("i2", i2)
check("i3", i3)
### BEGIN HIDDEN TESTS
assert check.earned("i1", i1) and check.earned("i2", i2) and check.earned("i3", i3)
### END HIDDEN TESTS

# %% [markdown]
# **In a line or two**, read by a person: why exactly does the small pool find nothing, whose blocks go first and why those, and which runs show that it is
# not the time between two rounds? Write it into the cell below.

# %% [markdown] nbgrader={"grade": true, "grade_id": "words_i", "locked": false, "points": 3, "schema_version": 3, "solution": true, "task": false}
# In each gap the three other requests fill 750 blocks, more than the 455 of the small pool. They were used later than the task's blocks, so those go first,
# all of them, before the task comes back. It is not time: a wait of 0.2 s in each gap changed no hit, and in the large pool the same other requests, which
# took as long, left all of it.
#
# **Rubric** (3 points, one each). *Capacity*: what comes between needs as many blocks as the pool has, or more. *Order of use*: the task's blocks are those
# that were used longest ago, and what has just come is kept. *Not elapsed time*: the run with a wait of 0.2 s hits as much as the one without; or the large
# pool with the same other requests.

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_i", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** With $c$ other requests of $l$ tokens in a gap, and blocks of $p$ tokens: those that have ended keep $\lfloor l/p\rfloor$ blocks each, the
# last one needs $\lceil l/p\rceil$ while it runs. If that is the pool or more, nothing of the task is left; if the longest equal beginning fits beside it,
# all. With the book's numbers: 3 × 250 = 750 blocks come between, and the longest equal beginning has 182. The pool of 6 GiB has 2730 blocks, at least 932:
# all. That of 1 GiB has 455, no more than 750: none.
#
# The task alone would fit the small pool easily, and so would it beside one of the others. It is what comes *between two uses* that counts: all the others of
# one gap, but not those of the other gaps, as each round uses its blocks anew.
#
# So two numbers must be told apart. 83.7 % is what the text would allow. What a cache finds of it is between that and nothing, and it depends on the pool,
# the others, and the order in which blocks go. A cache that knew better would give up the others' blocks, which nobody asks for again.

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
### BEGIN SOLUTION
for blocks in (others, others + 1, others + largest_hit - 1, others + largest_hit):
    print(f"{blocks:,} blocks: found {found(blocks):,} tokens")
### END SOLUTION

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_try", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Two cliffs. With the book's numbers 750 blocks find nothing, 751 find 176 tokens: one block, the first, in each of eleven rounds. With 931 one
# round finds a block less than it could, with 932 all is found. In between a chain loses its end first, so its beginning can still be found.
