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
# reservation unused, and nobody else can have it: memory is the limit for how many run at once, and some of it holds nothing. Four requests may have up to 16 tokens each; at the moment they have 9, 13, 5 and 15. Figure 8-11:

# %%
from figures.explorer import explore

explore("reserved-maximum")

# %% [markdown]
# 64 slots are allotted, 42 hold a token, 22 lie idle. Promise *more* and it gets worse although not one answer has changed: what is wasted is what was promised and not said.
#
# The other way is to take memory *as it grows*. If a request's memory has to stay in one piece, this is a trap too: sooner or later the next slot belongs to somebody
# else, and the request must move, or wait. What is free lies in holes between the others, too short for anyone: **fragmentation**.

# %%
from lib.contiguous import Contiguous, Reserve

memory = Contiguous(slots=64, reserve=Reserve.AS_IT_GROWS)
a = memory.admit(tokens=9, max_tokens=16)
b = memory.admit(tokens=13, max_tokens=16)
memory.grow(a)

# %% [markdown]
# One more token for A, and the KV of nine is on the move, in every layer, keys and values. Set the switch of the explorer to "as it grows" and all four grow side by
# side: no slot is idle, but the regions keep moving, and in the end a fifth request waits beside 22 free slots, because they lie in holes.
#
# ### Pages, or blocks
#
# Operating systems met this problem long ago, with the memory of programs. Think of a hotel with a party that grows: nobody empties the corridor to keep the party in a row; the next guest gets *any*
# free room, and the desk keeps a list of who is where. **Paging** does the same with KV:
#
# - a sequence is cut into **logical blocks** of $p$ tokens, numbered by position (section 8.1 called them pages);
# - a **physical block** is a piece of memory with room for the KV of $p$ tokens;
# - the **block table** of each request says which physical block holds which logical one.
#
# A request that needs a further block gets any free one, and one more entry in its table. Figure 8-10 comes from a live allocator, after the seven events below it. Step through
# them; then choose a token and find it.

# %%
explore("block-table")

# %% [markdown]
# Logical blocks 0, 1, 2 stand in physical blocks 2, 0, 3, and physical block 1 is free. The first four events by code:

# %%
from lib.paging import Pool

pool = Pool(blocks=4, block_tokens=4)
b = pool.admit(tokens=[70, 71, 72, 73, 74, 75, 76])
a = pool.admit(tokens=[10, 11, 12])
pool.release(b)
for token in (13, 14, 15, 16):
    pool.append(a, token)
print(f"table {a.table}, {pool.free} blocks free")

# %% [markdown]
# Each method of the pool checks everything before it changes anything, and there are others that only ask: `can_admit`, `can_grow`. The whole allocator is short; read `lib/blocks.py`, then
# `lib/paging.py`.
#
# Attention must now find its keys and values through the table, without copying a sequence into one piece. That is **PagedAttention**, published in 2023 by researchers at Berkeley and elsewhere together with the
# engine vLLM. (It sounds like *FlashAttention*, which answers another question: how *one* attention is computed in tiles, with a running softmax, so that the scores are never written to memory.
# One is about where state stands, the other about how a kernel reads and computes. Engines use both, and so does the code below.) Where blocks lie makes no difference to the result:

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
# to copy for every token, layer, and keys and values apart. In the kernel, small blocks mean short runs of neighbouring addresses, which memory serves slower. 16 tokens are the default of vLLM and the size in this chapter's records; other
# engines chose more, and some chose 1.
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
# requests name one block. Requests that are matched by their content share *whole* blocks only: with 7 common tokens instead of 8, the three behind the first block are equal and stored twice.

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
# Not yet. The device runs behind the scheduler: a step that was submitted may still be reading the block. Free is a block with **no reference and no step in flight**. A ends and B goes on; only when the last of them has let go *and* the device is through may anybody
# write there.
#
# How an engine makes sure differs. If all work goes through one queue of the device, a newcomer's step comes after the old reads by itself, and engines count on that. It is not so for a write that can overtake: a copy
# on another queue, KV that arrives from the host or from another card. N's KV in the figure comes by such a copy. A pool that does not know how its blocks will be written waits for the step.
#
# With no step in flight, a block without references is free, but what stands in it may still be known. So there are four states:

# %%
from lib.blocks import State

for state in State:
    print(f"{state.name.lower():8} {state}")

# %% [markdown]
# The four always make up the pool, and only the last two can be taken. *Idle* is worth a look: nobody holds the block, and a later request with the same beginning still finds it, a **hit**. The next sections live on
# that. Whoever takes an idle block makes the pool forget its content *in the same moment*.

# %%
pool = Pool(blocks=8, block_tokens=4)
a = pool.admit([1, 2, 3, 4, 5, 6, 7, 8, 9])
b = pool.admit([1, 2, 3, 4, 5, 6, 7, 8, 40, 41])
step = pool.submit([a, b])
pool.release(a)
pool.release(b)
print(f"b found {b.cached} tokens of a; now {pool.waiting} blocks wait")
pool.complete(step)
print(f"{pool.idle} idle, {pool.empty} empty")
again = pool.admit([1, 2, 3, 4, 5, 6, 7, 8, 9])
print(f"the next one finds {again.cached} tokens of two that are gone")

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
# A recorded run (vLLM): a prompt of 1536 tokens, four branches with 128 outputs each, blocks of 16. 1536 tokens are 96 whole blocks, so one might expect all 96 to be shared. The record says 95 shared and 9 private in each
# branch. Why? The four were *admitted*, one after the other, and each found the prompt in the cache. A **hit must leave the last prompt token to be computed**, or there would be no output to go on from;
# so of 1536 tokens only 1535 count, and they fill 95 blocks, 1520 tokens. The rest, $1536 + 127 - 1520 = 143$ tokens, takes 9 blocks. (The last output is never fed back, so 127 of 128 are stored.) We can do as they did:

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
# (Counted by the engine.) Each of the four computes 143 tokens, 572 together; in the cold engine the first computes the 1520 as well, and it is 2092. The tables have $4\,(95 + 9) = 416$ entries, and 416 blocks is what four separate copies would need; there are only $95 + 4 \times 9 = 131$, 69 % less. Warm or cold, the *peak of memory is the same*, only the prefill differs. And the saving is all in the prefix: the 36 private tail blocks grow with every further
# branch.
#
# Had the branches been **forked** after the prompt, all 96 blocks would be shared, and $96 + 4 \times 8 = 128$ be held:

# %%
pool = Pool(blocks=454, block_tokens=16)
parent = pool.admit(prompt)
branches = [parent, *(pool.fork(parent) for _ in range(3))]
for place, branch in enumerate(branches):
    pool.extend(branch, [10_000 * (place + 1) + n for n in range(outputs - 1)])
pool.held

# %% [markdown]
# A fork and a hit are two operations with two numbers. And *when* does a full block become findable? Ours counts from the moment its step is planned. That is early enough even for a request in the *same* step: in each layer a step writes the KV of all its tokens
# before its attention reads any. The other rule waits until the step is done. For four equal prompts that enter in one step the first rule shares nearly everything, the second nothing:

# %%
from lib.fast_forward import simulate
from lib.paging import Findable
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
# $8192 - 6144 + 255 = 2303$ tokens (the last of 256 outputs is never fed back), in blocks of 16 room for 2304: 324 MiB. The sum is that simple only because the prefix ends with a block. All together, when all are done:
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
# Without sharing they would need $16 \times 1188 = 19{,}008$ MiB; with it 5.91 GiB, which the 12 GiB hold easily. In general $b$ of them take $864 + 324\,b$ MiB, so the pool of 12,288 MiB holds
#
# $$\left\lfloor \frac{12{,}288 - 864}{324} \right\rfloor = 35 \quad\text{instead of}\quad \left\lfloor \frac{12{,}288}{1188} \right\rfloor = 10.$$
#
# ### Cancelled is not free
#
# A user closes the window. The scheduler plans no more steps, but what was submitted runs to its end, and until then the blocks are not free. Figure 8-16, as recorded: the call returned after 1.55 ms, the 104 blocks
# of the request came back after 31.41 ms, and only then were 139 blocks free instead of 35. (Clock: client, with an observer that takes time itself: believe the order and the counts.) Below the record stands a model with a step of 30 ms, a length that we chose. When the blocks are
# free depends on *where in its step* the cancel comes.

# %%
explore("cancel-and-release")

# %% [markdown]
# "The interface has answered" and "the memory is free" are two events. An engine that takes the first for the second counts on blocks that it has not got, and where writes can overtake, lets a newcomer write into what a running step still reads. What comes back are the *private* blocks of the request; of blocks
# that it shares only its references go, and the others read on.
#
# The recorded run by our simulator: four requests, of which the fourth is cancelled once it has given 128 outputs.

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
print(f"at most {run.peak_blocks} blocks held, {small.blocks - run.peak_blocks} free")
print(f"{blocks} came back; {run.scheduled_tokens} tokens computed in all")

# %% [markdown]
# As recorded: 454 blocks less 419 are 35, and the step in flight ended with $1536 + 128 = 1664$ tokens in 104 blocks.
#
# ### When the pool is full
#
# Giving memory out as answers grow lets more of them run, and has a price: the pool can run out while everybody is half done. Then the engine **preempts**: it pauses one request, gives its blocks to
# the others, and later computes its state once more, from what it has kept: the input *and the outputs so far*. No output is lost and none is sampled again; time is.
#
# Recorded (vLLM): four requests of 1536 tokens with 512 outputs each, 512 tokens a step, in a pool of 1 GiB and in one of 2 GiB. 1 GiB is 455 blocks of 2.25 MiB, of which the engine keeps one; so 454, and 909 in the larger pool.

# %%
columns = {
    "pool, GiB": "kv_pool_gib",
    "preemptions": "preemptions",
    "tokens scheduled": "scheduled_token_positions",
    "most blocks held": "peak_request_blocks",
}
Table.of(record("preemption").rows, columns)

# %% [markdown]
# (Counted by the engine; the third run is the one with the cancelled request.) In the smaller pool one request was preempted after 270 outputs: 1536 + 270 tokens were known, and all but the last one had been computed, so 1805 were scheduled a second time: $9993 - 8188 = 1805$. The larger pool
# preempted nobody; 512 blocks are all that four can need, $4 \lceil 2047 / 16 \rceil$. Our simulator, with the rules of that engine, gives the same:

# %%
four = [Request(0, prompt=1536, output=512) for _ in range(4)]
for blocks in (454, 909):
    run = simulate(four, policy, pool=PoolSetup(blocks))
    print(f"{blocks} blocks: {run.scheduled_tokens} tokens, {run.peak_blocks} held")
    for lost in run.preemptions:
        print(f"  r{lost.place}: {lost.outputs} outputs kept, {lost.lost_tokens} lost")

# %% [markdown]
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
# D had 12 outputs; with its 12 tokens of prompt that makes 24 tokens, of which the last had not been computed yet: 23 are lost. It comes back in step 21, because the user of C goes away in step 20. The scheduler
# hears of that only when the step is done, so until then C still holds its blocks (they are crossed out). In the very next step D and E write into three of them.
#
# The rules are those of the recorded engine; others have others. The victim is the request admitted *last*: whoever entered first is never thrown out, so somebody always comes to an end. It waits *first* in line. In a step that has preempted, no waiting request
# enters. And the victim comes back only when there are blocks for *all* that it has.
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
# Four prompts fill 384 blocks. From 386 to 511, where all four are let in, each further block wastes *more*: the pool is full later, and by then the victim has grown. (At 386 it is thrown out during its prefill.) At 512, the size of all four at their largest, the waste is gone. Further
# left the same sawtooth repeats with three and with two running: it falls to nothing where two or three fit at their largest, at 256 and 384 blocks.
#
# But look at the time. Within that tooth the pool with more waste is done sooner, as its four requests ran side by side for longer. Tokens computed twice are a cost, and waiting is another. (By the fit the two pools lie 6.2 s apart. Recorded were 17.4 and 14.8 s, with an observer that makes the engine wait;
# so believe the order.)
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
# Let in for its *first chunk*, a request finds no room for its second and is thrown out, again and again: 83,754 tokens, ten times the work of the whole run. (It is no deadlock: the first to enter always goes on. And by the fit it costs little time, as those tokens ride in steps that run anyway; a device that is busy would feel it.) Held back until there is room for its
# *last output*, a request never loses anything, and the run takes longest: three run, the fourth waits until all of them have ended. This is figure 8-11 once more: reserving. A *reserve* of free blocks for those who run does one or the other: 100 blocks keep the fourth
# out, 32 would not, and nobody knows the size beforehand. The recorded engine asks for room for the tokens that are there *now*, and takes a preemption into the bargain.
#
# And a request that is larger than the whole pool? Waiting would never help it. It is refused when it comes, before anybody is thrown out for it, and the others are served:

# %%
two = [Request(0, prompt=1536, output=512), Request(0, prompt=100, output=20)]
run = simulate(two, policy, pool=PoolSetup(blocks=50))
print("refused:", [one.prompt for one in run.refused])
print("served: ", [one.prompt for one in run.requests], "completed:", run.completed)

# %% [markdown]
# ### Break it yourself
#
# You have read what an allocator must never do. Here is an engine with two blocks of two tokens in which you can take a rule away. It follows a script, one event a line: `admit A ab`, `append A c`, `fork A B`, `release A`, `submit`,
# `complete`, `step`. A `submit` starts the device on all that waits, `complete` ends its oldest step, and `step` does both. After each step the attention of each sequence is compared with attention over its own tokens in one piece. Queries, keys and values are
# drawn by chance, but they are really written and read, so wrong memory gives wrong numbers. With all rules in place:

# %%
from lib.broken_engine import Fault, run_script
from lib.shortest_script import judge

run_script("admit A ab\nstep\nadmit B ab\nstep").outputs[-1].is_wrong

# %% [markdown]
# Now without *copy on write*: each holder of a partly filled block writes into it. Find the shortest script in which some output is wrong. This one shows nothing yet. What is missing?

# %%
script = """
admit A a
step
append A b
step
"""
print(judge(script, Fault.NO_COPY))

# %% [markdown]
# Three more rules to take away. *Identity kept*: a block that is taken anew is still found under its old content. *Freed at once*: a block without references is free, although a submitted step still reads it (this device has a second queue, for copies, so writes can
# overtake). *Full hit*: the last token of a prompt can be found too, so nothing is left to compute. Change the fault and the script; the judge says how many events are enough, and no more than that.

# %%
script = """
admit A ab
submit
release A
complete
"""
print(judge(script, Fault.FREED_AT_ONCE))

# %% [markdown]
# When you want to see them, here is a shortest script for each, with the blocks and the errors after every event.

# %%
explore("broken-engine")

# %% [markdown]
# A fifth fault you have met: the gate that asks for the first chunk only. It gives no wrong number; it computes the same tokens again and again. That is why wrong *work* is harder to find than wrong *memory*, and why an engine counts its preemptions.

# %% [markdown]
# [Exercise 8-3](../exercises/ex_8_3_blocks_and_sharing.ipynb): block sizes, what is wasted, and what a common prefix does to the number of requests that fit.
