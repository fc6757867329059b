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
# # 8.3 The KV cache
#
# The scheduler has chosen who is computed. Each of them needs memory that grows by a token with every step, for as long as the answer lasts, and nobody knows how long that is. Who
# gets which memory, who may share it, and when does it come back? First the allocator, then what it must never do.
# [Back to the contents](8_0_design_problem.ipynb)

# %% [markdown]
# ## 8.3.1 Reserving, wasting, paging
#
# Section 8.1 reserved the longest possible answer for each request. Then generation never runs out of memory, but an answer that ends early leaves the tail of its
# reservation unused, and nobody else can have it. Four requests may have up to 16 tokens each; at the moment they have 9, 13, 5 and 15. Figure 8-11:

# %%
from figures.explorer import explore

explore("reserved-maximum")

# %% [markdown]
# 64 slots are allotted, 42 hold a token, 22 lie idle. Promise *more* and it gets worse although not one answer has changed: what is wasted is what was promised and not said.
#
# The other way is to take memory *as it grows*. If a request's memory has to stay in one piece, this is a trap too: sooner or later the next slot belongs to somebody
# else, and the request must move, or wait.

# %%
from lib.contiguous import Contiguous, Reserve

memory = Contiguous(slots=64, reserve=Reserve.AS_IT_GROWS)
a = memory.admit(tokens=9, max_tokens=16)
b = memory.admit(tokens=13, max_tokens=16)
memory.grow(a)

# %% [markdown]
# One more token for A, and the KV of nine is on the move, in every layer, keys and values. Set the switch of the explorer to "as it grows" and all four grow side by
# side: no slot is idle, but the regions keep moving, and the holes they leave are free slots that fit nobody.
#
# ### Pages
#
# Operating systems met this problem long ago, with the memory of programs. Think of a hotel with a party that grows: nobody empties the corridor to keep the party in a row; the next guest gets *any*
# free room, and the desk keeps a list of who is where. **Paging** does the same with KV:
#
# - a sequence is cut into **logical blocks** of $p$ tokens, numbered by position;
# - a **physical block** is a piece of memory with room for the KV of $p$ tokens;
# - the **block table** of each request says which physical block holds which logical one.
#
# A request that needs a further block gets any free one, and one more entry in its table. Figure 8-10 comes from a live allocator, after the seven events below it. Step through
# them; then choose a token and find it.

# %%
explore("block-table")

# %% [markdown]
# Logical blocks 0, 1, 2 stand in physical blocks 2, 0, 3, and physical block 1 is free. By code, with a small pool of our own:

# %%
from lib.paging import Findable, Pool

pool = Pool(blocks=4, block_tokens=4, findable=Findable.NEVER)
b = pool.admit(tokens=[70, 71, 72, 73, 74, 75, 76])
a = pool.admit(tokens=[10, 11, 12])
pool.release(b)
for token in (13, 14, 15, 16):
    pool.append(a, token)
a.table, pool.free

# %% [markdown]
# Each verb checks everything before it changes anything, and there is a verb that asks first: `can_admit`, `can_grow`. The whole allocator is short; read `lib/blocks.py`, then
# `lib/paging.py`.
#
# Attention must now find its keys and values through the table. It does so block after block, with a running softmax, and never copies a sequence into one piece.
# That is **PagedAttention**, published in 2023 by researchers at Berkeley and elsewhere. (It sounds like *FlashAttention*, which answers another question: how the tiles of *one* attention are computed without writing the scores to memory.
# One is about where state stands, the other about how a kernel reads and computes. Engines use both.) Where blocks lie makes no difference to the result:

# %%
import numpy as np

from lib.paged_attention import KvBlocks, attend, paged_attend

draw = np.random.default_rng(8)
keys, values = draw.normal(size=(2, 7, 2, 8))  # 7 tokens, 2 KV heads
queries = draw.normal(size=(1, 4, 8))  # the last token, 4 heads
kv = KvBlocks(blocks=4, block_tokens=4, kv_heads=2, head_dim=8)
kv.write(pool.slots_to_write(a, 0, 7), keys, values)
paged = paged_attend(queries, kv, a.table, length=7)
bool(np.abs(paged - attend(queries, keys, values)).max() < 1e-12)

# %% [markdown]
# ### What is still wasted
#
# A sequence of $L$ tokens takes $\lceil L/p \rceil$ blocks. Only its last block can have room to spare, and the waste is
#
# $$p \left\lceil \frac{L}{p} \right\rceil - L \;\le\; p - 1.$$

# %%
from lib.allotment import wasted_slots

[wasted_slots(length, block_tokens=4) for length in (9, 13, 5, 15)]

# %% [markdown]
# Figure 8-12: with blocks of 4 the four requests get 12, 16, 8 and 16 slots, 52 in all, and 10 of them are unused instead of 22. Stop here and play: smaller blocks waste less. What do they cost?

# %%
explore("paged-allotment")

# %% [markdown]
# A block of one token wastes nothing, and has a table entry for every token, an allocation for every token, and, if the KV is ever moved (to the host, to another card), a piece
# to copy for every token, layer, and keys and values apart. In the kernel, small blocks mean short reads. Engines settle in between; 16 tokens is common, and it is the size in this chapter's records.
#
# Paging places blocks *within one memory*. Moving them between memories, to make room or to bring them back, is a different matter: 8.3.4 and 8.4.3.
#
# ### What several can share
#
# If A and B begin with the same 8 tokens, their first two blocks hold the same KV. Then B's table may simply point at A's blocks. Figure 8-13: 44 slots instead of 52.

# %%
explore("shared-prefix-blocks")

# %% [markdown]
# Paging removed what was reserved and not used; sharing removes what was stored twice. They save different memory, and one makes the other possible: it is the table that lets two
# requests name one block. Only *whole* blocks are shared: with 7 common tokens instead of 8, the three behind the first block are equal and stored twice.

# %% [markdown]
# ## 8.3.2 Sharing, copying on write, giving back
#
# Sharing raises two questions. If A ends first, the blocks must stay for B: *when* may a shared block be given away? And if B writes, A must not notice: *where* may a
# sharer write?
#
# ### When is a block free?
#
# An entry of a block table that points at a block is a **reference**. The block keeps a count: it goes up when a table takes the entry, down when a request ends. At
# zero, nobody has a claim any more. May the next request write into it? Figure 8-14:

# %%
explore("reference-counts")

# %% [markdown]
# Not yet. The device runs behind the scheduler: a step that was submitted may still be reading the block. Free is a block with **no reference and no step in flight**. So there are four states:

# %%
from lib.blocks import State

for state in State:
    print(f"{state.name.lower():8} {state}")

# %% [markdown]
# The four always make up the pool, and only the last two can be taken. *Idle* is worth a look: nobody holds the block, but what stands in it is still known, and a
# later request with the same beginning finds it. The next sections live on that. Whoever takes an idle block makes the pool forget its content *in the same moment*.

# %%
pool = Pool(blocks=8, block_tokens=4)
a = pool.admit([1, 2, 3, 4, 5, 6, 7, 8, 9])
b = pool.admit([1, 2, 3, 4, 5, 6, 7, 8, 40, 41])
step = pool.submit([a, b])
pool.release(a)
pool.release(b)
before = pool.free
pool.complete(step)
print(f"b found {b.cached} tokens; free: {before}, then {pool.free}")

# %% [markdown]
# ### Where may a sharer write?
#
# A full block is never written again: it is only read, and sharing it is safe. The one place where sharers collide is a *partly filled* last block. Say it has room for 4 tokens and
# holds three, a, b, c, and two branches go on from there, one with x and one with y. Both would write into the fourth slot. So the block is copied first, its three tokens with it, and each
# branch writes into its own: **copy on write**. All full blocks before it stay shared. Figure 8-15:

# %%
explore("copy-on-write")

# %% [markdown]
# How many copies? If the parent keeps its claim, two branches need two. If it has let go, one: the last holder writes in place. And none at all if the common tokens fill
# their block exactly. `fork` shares the whole table, the tail too; `append` says when something must be copied:

# %%
pool = Pool(blocks=8, block_tokens=4)
parent = pool.admit([1, 2, 3, 4, ord("a"), ord("b"), ord("c")])
branches = [pool.fork(parent), pool.fork(parent)]
pool.release(parent)
[pool.append(one, ord(new)) for one, new in zip(branches, "xy")]

# %% [markdown]
# ### A fork is not a hit
#
# A recorded run: a prompt of 1536 tokens, four branches with 128 outputs each, blocks of 16. 1536 tokens are 96 whole blocks, so one might expect all 96 to be shared. The record says 95 shared and 9 private in each
# branch. Why? The four were *admitted*, one after the other, and each found the prompt in the cache. A **hit must leave the last prompt token to be computed**, or there would be no output to go on from;
# so of 1536 tokens only 1535 count, and they fill 95 blocks. We can do as they did:

# %%
from lib.records import record

prompt, outputs = list(range(1536)), 128
pool = Pool(blocks=454, block_tokens=16)
first = pool.admit(prompt)
pool.release(first)  # computed once before, it lies idle
branches = [pool.admit(prompt) for _ in range(4)]
computed = sum(1536 + outputs - 1 - branch.cached for branch in branches)
for place, branch in enumerate(branches):
    pool.extend(branch, [10_000 * (place + 1) + n for n in range(outputs - 1)])
entries = sum(len(branch.table) for branch in branches)
print(entries, "references,", pool.held, "blocks,", computed, "tokens computed")

# %%
from figures.tables import Table

columns = {
    "run": "run",
    "references": "table_references",
    "blocks": "distinct_blocks",
    "tokens computed": "scheduled_token_positions",
}
Table.of(record("branch_sharing").rows, columns)

# %% [markdown]
# (Counted by the engine.) The tables have $4\,(95 + 9) = 416$ entries, and 416 blocks is what four separate copies would need; there are only $95 + 4 \times 9 = 131$, 69 % less. In the cold engine the prompt was
# not there before: it is computed once, by the first branch, so 2092 tokens are scheduled instead of 572. The *peak of memory is the same*, only the prefill differs. And the saving is all in the prefix: the 36 private tail blocks grow with every further
# branch.
#
# Had the branches been **forked** after the prompt, all 96 blocks would be shared:

# %%
pool = Pool(blocks=454, block_tokens=16)
parent = pool.admit(prompt)
branches = [parent, *(pool.fork(parent) for _ in range(3))]
for place, branch in enumerate(branches):
    pool.extend(branch, [10_000 * (place + 1) + n for n in range(outputs - 1)])
pool.held

# %% [markdown]
# Two verbs, two numbers. And *when* does a full block become findable? Ours counts from the moment its step is planned, since that step is computed before anybody who found it reads; the other
# rule waits until the step is done. For four equal prompts that enter in one step the first shares nearly everything, the second nothing:

# %%
from lib.fast_forward import simulate
from lib.residency import PoolSetup
from lib.scheduling import Request, continuous

four = [Request(0, prompt=1536, output=128, ids=prompt) for _ in range(4)]
for rule in Findable:
    run = simulate(four, continuous(4), pool=PoolSetup(454, findable=rule))
    name, computed = rule.name.lower(), run.scheduled_tokens
    print(f"{name:12} {computed:>5} tokens computed, {run.peak_blocks} blocks")

# %% [markdown]
# A serving system *knows* which tokens are common and which a branch writes for itself. The table maps, the common prefix says what may be shared, and only a write makes a copy. What used to be reserved by the request
# is now given out by what is really produced.
#
# ### Back to the design problem
#
# 16 long requests of 8192 tokens share their first 6144. The prefix is 384 whole blocks, held once: 864 MiB. Each request's own part is
# $8192 - 6144 + 255 = 2303$ tokens, in blocks of 16 room for 2304: 324 MiB. All together, when all are done:
#
# $$M_\mathrm{KV} = 864 + 16 \times 324 = 6048\ \mathrm{MiB}.$$

# %%
from lib.design_problem import INSTANCE, LONG_CONTEXT
from lib.memory import KvPool
from lib.units import shown

kv_pool = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes, page_tokens=16)
kinds = {"independent": LONG_CONTEXT.shape_alone, "sharing": LONG_CONTEXT.shape}
for name, kind in kinds.items():
    held, fit = kv_pool.held_bytes(kind, 16), kv_pool.requests_that_fit(kind)
    print(f"{name:12} {shown(held, 'MiB')} = {shown(held, 'GiB', 2)}, {fit} fit")

# %% [markdown]
# Without sharing they would need $16 \times 1188 = 19{,}008$ MiB; with it 5.91 GiB, which the 12 GiB hold easily. In general $b$ of them take $864 + 324\,b$ MiB, so the pool holds **35 instead of 10**.
#
# ### Cancelled is not free
#
# A user closes the window. The scheduler plans no more steps, but what was submitted runs to its end, and until then the blocks are not free. Figure 8-16, as recorded: the call returned after 1.55 ms, the 104 blocks
# of the request came back after 31.41 ms, and only then were 139 blocks free instead of 35. (Clock: client, with an observer that takes time itself: believe the order and the counts.)

# %%
explore("cancel-and-release")

# %% [markdown]
# "The interface has answered" and "the memory is free" are two events. An engine that takes the first for the second lets a newcomer write into blocks that a running step still reads, and answers somebody with somebody else's context.
# In the simulator, the recorded four requests, the fourth cancelled after 128 outputs:

# %%
from dataclasses import replace

from lib.scheduling import chunked

small = PoolSetup(blocks=454)
policy = chunked(max_running=4, chunk=512, token_budget=512)
four = [Request(0, prompt=1536, output=512) for _ in range(4)]
seen = simulate(four, policy, pool=small).output_times_ns(3)[127]
four[3] = replace(four[3], cancel_ns=seen + 1)
run = simulate(four, policy, pool=small)
blocks = small.blocks_for(run.cancellations[0].lost_tokens)
print(f"{run.scheduled_tokens} tokens, {run.peak_blocks} blocks held, {blocks} back")

# %% [markdown]
# ### When the pool is full
#
# Giving memory out as answers grow lets more of them run, and has a price: the pool can run out while everybody is half done. Then the engine **preempts**: it pauses one request, gives its blocks to
# the others, and later computes its state once more, from what it has kept: the input *and the outputs so far*. No output is lost and none is sampled again; time is.
#
# Recorded: four requests of 1536 tokens with 512 outputs each, 512 tokens a step, in a pool of 1 GiB and in one of 2 GiB.

# %%
columns = {
    "pool, GiB": "kv_pool_gib",
    "preemptions": "preemptions",
    "tokens scheduled": "scheduled_token_positions",
    "most blocks held": "peak_request_blocks",
}
Table.of(record("preemption").rows, columns)

# %% [markdown]
# (Counted by the engine; the third run is the one with the cancelled request.) In the smaller pool one request was preempted after 270 outputs: 1536 + 270 tokens were known, and all but the last one had been computed, so 1805 were scheduled a second time. The larger pool
# needed 512 blocks and preempted nobody. The simulator, with the rules of that engine, gives the same:

# %%
four = [Request(0, prompt=1536, output=512) for _ in range(4)]
for blocks in (454, 909):
    run = simulate(four, policy, pool=PoolSetup(blocks))
    print(f"{blocks} blocks: {run.scheduled_tokens} tokens, {run.peak_blocks} held")
    for lost in run.preemptions:
        print(f"  r{lost.place}: {lost.outputs} outputs kept, {lost.lost_tokens} lost")

# %% [markdown]
# Which rules? The victim is the request admitted *last*: whoever entered first is never thrown out, so somebody always comes to an end. It waits *first* in line. In a step that preempted nobody enters.
# And it comes back only when there are blocks for *all* that it has.
#
# Here is such a run to step through, small enough to see each block: five requests in 28 blocks of four tokens. The bar below a block says that the step in flight touches it.

# %%
explore("run-scrubber")

# %%
from lib import five_requests as five
from lib.replay import replay

run = simulate(five.five_requests(), five.policy(), pool=five.pool_of())
(lost,), (gone,) = run.preemptions, run.cancellations
print("kept:", lost.outputs, "outputs; lost:", lost.lost_tokens, "tokens of KV")
states, three = replay(run, five.pool_of()), (State.HELD, State.IDLE, State.EMPTY)
for step in (lost.step - 1, lost.step, gone.step - 1, gone.step):
    print(step + 1, {one.name.lower(): states[step].count(one) for one in three})

# %% [markdown]
# D had 12 outputs; with its 12 tokens of prompt that makes 24 tokens, of which the last had not been computed yet: 23 are lost. It comes back in step 21, because the user of C goes away in step 20. That
# step was in flight and read C's blocks, so they are crossed out and still held; only when it is done are they free. In the very next step D and E write into three of them: had they been given away at
# once, the step in flight would have read KV of others.
#
# ### More memory, more waste
#
# Back to the recorded load. 454 blocks wasted 1805 tokens, 909 wasted none. And a pool *between* the two?

# %%
explore("pool-size")

# %%
from lib.pool_size import EqualRequests, tokens_again

load, rows = EqualRequests(), []
for blocks in (386, 454, 510, load.blocks_of_all):
    run = load.in_pool(blocks)
    kept = ", ".join(str(one.outputs) for one in run.preemptions) or "–"
    done = shown(run.total_ns / 1e9, "s", 1)
    rows.append((blocks, f"{tokens_again(run):,}", kept, done))
Table(("blocks", "tokens again", "outputs kept", "done (fit)"), rows)

# %% [markdown]
# Four prompts fill 384 blocks. From 386 on, where all four are let in, each further block wastes *more*: the pool is full later, and by then the victim has grown. Just short of 512, the size of all four at their largest, is worst; at 512
# the waste is gone. A small pool can waste nothing, too: where only one prompt fits, nobody can be thrown out. But look at the time. The pool with more waste is done sooner, as its four requests ran side by side for longer. Tokens computed twice
# are a cost, and waiting is another.
#
# Which of the two is paid is decided at the **gate**: for how much of a waiting request must there be free blocks before it may enter?

# %%
from lib.residency import Gate

rows = []
for gate in Gate:
    reserve = 100 if gate == Gate.RESERVE else 0
    run = EqualRequests(gate=gate, reserve_blocks=reserve).in_pool(454)
    done = shown(run.total_ns / 1e9, "s", 1)
    rows.append((gate, len(run.preemptions), f"{tokens_again(run):,}", done))
Table(("free blocks for", "preemptions", "tokens again", "done (fit)"), rows)

# %% [markdown]
# Let in for its *first chunk*, a request finds no room for its second and is thrown out, again and again: 83,754 tokens, ten times the work of the whole run. (It is no deadlock: the first to enter always goes on.) Held back until there is room for its
# *last output*, a request never loses anything, and the run takes longest: three run, the fourth waits until all of them have ended. This is figure 8-11 once more: reserving. A *reserve* of free blocks for those who run does one or the other: a hundred blocks keep the fourth
# out, a third of them would not, and nobody knows the size beforehand. The recorded engine asks for room for the tokens that are there *now*, and takes a preemption into the bargain.
#
# And a request that is larger than the whole pool? Waiting would never help it. It is refused when it comes, before anybody is thrown out for it:

# %%
from lib.checks import InputError

try:
    load.in_pool(load.blocks_of_one - 1)
except InputError as refusal:
    print(refusal)

# %% [markdown]
# BROKEN

# %% [markdown]
# [Exercise 8-3](../exercises/ex_8_3_blocks_and_sharing.ipynb): block sizes, what is wasted, and what a common prefix does to the number of requests that fit.
