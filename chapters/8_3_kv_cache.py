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
# the others, and later computes its state once more, from what it has kept: the input *and the outputs so far*. No output is lost and none is sampled again; time is. (This run had no prefix cache. With one, what nobody has overwritten meanwhile is found again.)
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

# %% [markdown]
# ## 8.3.3 Prefixes that outlive their request
#
# So far requests shared blocks while they ran. But a conversation sends its whole history again with every turn, and an agent with every tool call; by then the request before has ended.
# Its blocks lie idle, and what stands in them is exactly what the next turn needs. In the design problem the long requests begin with the same 6144 tokens. Once these are in the
# cache, each request computes only the $8192 - 6144 = 2048$ behind them. What has to be true for that?
#
# KV can be used again only if everything that decides it is the same:
#
# - the **model**, down to its version;
# - the **position rule**: at another position, or under another scaling of positions, the same token has other keys;
# - the **adapter**: a LoRA changes what leaves each layer, and with it all KV further up;
# - the **state format**: blocks of BF16 are not blocks of FP8;
# - and **every token before**: attention has mixed them all into the KV of this one.
#
# The last point is why it is a *prefix* cache. Two prompts have their first 100 tokens in common and differ in the 101st. From there on nothing can be reused, even if the texts agree again
# later: those tokens have another past. Four verbs are the life of a request in such a cache: *match* looks, *lock* keeps what was found, *insert* makes findable what was computed, and *unlock* leaves it to whoever comes next.

# %%
from lib.block_content import NO_TAG, Tag
from lib.prefix_cache import PrefixCache


def serve(cache, tokens, tag=NO_TAG):
    match = cache.match(tokens, tag)
    lock = cache.lock(match)
    new = cache.take(cache.blocks_for(len(tokens)) - match.blocks)
    cache.insert(lock, tokens, new)
    cache.unlock(lock)
    return match.tokens


cache = PrefixCache(blocks=1000, block_tokens=1)
prompt = list(range(200))
other = [*prompt[:100], 7, *prompt[101:]]
[serve(cache, prompt), serve(cache, other), serve(cache, prompt, Tag(adapter="x"))]

# %% [markdown]
# The second prompt finds 100 tokens although all but one of its tokens are equal; under another adapter the same prompt finds nothing. So the place of a change matters more than its size. Who writes a timestamp
# at the very top of the system prompt pays for the whole tool list below it, with every call. What is stable goes first, system prompt and tools; what changes from call to call goes last.

# %%
at_the_top = [99, *prompt]
at_the_end = [*prompt, 99]
[serve(cache, at_the_top), serve(cache, at_the_end)]

# %% [markdown]
# A cache holds many such beginnings, and together they are a **prefix tree**: what is common stands on the way from the root to a fork, what is private between the fork and a leaf. Figure 8-17 shows the inputs of a recorded code agent, its first four rounds.
# They share 206 tokens, and the three later rounds go on together.

# %%
explore("prefix-tree")

# %% [markdown]
# The tree is the cache's own: each edge is a run of blocks, and the blocks are those of the pool. There is no second memory for "the cache": a block in the tree that nobody has locked is a free block whose content can still be found, *idle* in the words of
# section 8.3.2. (The allocator there looks up single blocks, as vLLM does; this tree holds runs of them, as SGLang does. Served one after the other, requests find the same in both.)
#
# Figure 8-18 goes through all twelve rounds: how much of each input is the same as in the round before? Nearly everything. That is what the *text* would allow. What the cache really *finds* is another matter, for in each gap between two rounds three other
# requests of 4000 tokens come and want blocks, too. Stop here and play: answer the question, then move the pool.

# %%
explore("agent-rounds")

# %% [markdown]
# Below a certain size of the pool the rounds suddenly find nothing: section 8.3.4 comes back to that cliff. First, the other side of the bargain. Appending never breaks a prefix, so an agent that only appends hits nearly everything, and its context only grows: each turn holds more KV, and each decode step
# reads all of it.
#
# ### What if the text changes?
#
# Three ways to go on from a history of 8K tokens with 1K from a tool (K is 1024 here; the numbers are an example). *Append*: the old 8K can be reused, 1K is new. *Rewrite* the instructions at the top, and append: nothing behind the change can be reused. Or *summarise* the history to 2K, and append to
# that. Figure 8-20:

# %%
explore("context-edits")

# %% [markdown]
# The edit's place decides: what lies before it survives. The summary leaves the shortest context, and is the dearest to get: before the new context can be processed, the summary must be *written*, by decode steps that read the old history, one for each of its
# tokens. Even the KV of the summary is of no use: it was made behind the old history, and the new context does not have that in front of it.

# %%
from lib.context_edit import append, rewrite, summarise

edits = {"append": append(), "rewrite the top": rewrite(0), "summarise": summarise()}
rows = [(name, e.reusable, e.to_process, e.prompt) for name, e in edits.items()]
Table(("", "reusable", "to process", "carried on"), rows)

# %%
from lib.four_requests import HOST_NS
from lib.step_time import LaunchBound, device

write_ns = summarise().write_ns(LaunchBound(HOST_NS, device()))
print("writing it:", shown(write_ns / 1e9, "s", 1), "(the longer of host and device)")

# %% [markdown]
# At batch 1 the writing takes nearly a minute. (Beside others it costs the card less, as the weights are read anyway.) What it buys is *room*: every later turn holds and reads a third of the KV. It does not buy time here: a step at batch 1 hardly notices
# how long its context is.
#
# ### Side road: states that cannot be cut anywhere
#
# KV has a nice property: it is stored token by token, so a prefix of any length can be taken up again. Layers with a *recurrent* state (linear attention, state space models) keep one matrix per head and change it with every token. The state after
# 10,752 tokens does not contain the state after 8192. Only to a **snapshot**, a copy that was put aside, can such a layer go back. Figure 8-19: the text matches up to 10,752, snapshots were taken at 4096 and 8192.

# %%
explore("snapshot-resume")

# %% [markdown]
# It resumes at 8192 and computes 2560 tokens again. The full-attention layers of the same model had all their KV, and still run over these tokens again: the recurrent layers above them need what they give out. Denser snapshots shorten the way back and take memory, for each text that is kept. For Kimi K3, whose KDA layers keep one FP32 matrix per head,
# a snapshot is 53.6 MiB on each of eight cards (TP = 8):

# %%
from lib.state_cache import CARDS, KIMI_K3, cached_text, mean_between_snapshots

each = KIMI_K3.on_each_of(CARDS).snapshot_bytes
for spacing in (4096, 1024, 256):
    text = cached_text(8192, spacing)
    mib = shown(text.stored_bytes(each), "MiB")
    mean = mean_between_snapshots(spacing)
    kept = f"{len(text.snapshots):>2} snapshots, {mib} a card"
    print(f"every {spacing:>4}: {kept}, {mean} tokens again on average")

# %% [markdown]
# (Bytes counted from the published shape; no run.) Two snapshots take 107 MiB of each card, 32 take 1714 MiB. On average half a spacing is computed again.
#
# ### Side road: DeepSeek V4.1
#
# You can skip this and go on with section 8.3.4. It shows what "state" can come to mean. The model is a causal encoder with a decoder behind it; both have layers that see only a **window**, the last 128 tokens (sliding window attention, SWA), beside a *global* KV of the whole text. Three kinds of state, with three lifetimes:
#
# - **global KV** is kept for long, from turn to turn;
# - the **encoder's windows** wait for a while in host memory, for the next turn;
# - the **decoder's windows** live for one turn and are not kept.
#
# So two capacities must be planned apart: the windows of 40 layers that are *resident* while a request generates, and the cache that lasts *across turns*. In the paper's workload about half of the bytes that V4 keeps across turns are windows. V4.1 no longer keeps those for long, and shrinks the global KV to
# about a quarter:
#
# $$\tfrac12 \times \tfrac14 = \tfrac18.$$

# %%
from lib.window_state import DEEPSEEK_V41, Condition, long_lived_share, window_reach

print(long_lived_share(), "of what V4 keeps across turns")
print(DEEPSEEK_V41.resident_layers, "layers resident during a turn")
for condition in Condition:
    print("needed:", condition)

# %% [markdown]
# When a tool has answered and the next turn begins, what was found decides where the encoder starts. Figure 8-21 (arrows give the order, the size of a box is no time, and SWA in its labels means the windows of the *encoder*):

# %%
explore("recovery-paths")

# %% [markdown]
# If both are there, the encoder runs the new tokens only. If only the global KV is, it runs the last 128 tokens of the prefix once more to get its windows back. If not even that, it computes what is missing. And in *each* case the decoder runs the last 128
# outputs of the encoder through its 20 layers, to have windows for its first step: a full hit does not spare it that.
#
# The replayed windows are **approximate**. Each layer looks only 128 tokens back, but stacked layers look through each other: the last one has heard of tokens thousands of positions away. A replay that begins 128 tokens back has lost those.

# %%
window_reach(DEEPSEEK_V41.encoder_layers, DEEPSEEK_V41.window)

# %% [markdown]
# What the encoder then computes from such windows, new global KV among it, depends on where the replay began. So the same text can leave slightly different KV, by the way it came: a cache of such a model does not store *the* state of a prefix, but *a* state.

# %% [markdown]
# ## 8.3.4 Admission, eviction, swapping out, recomputing
#
# Whether to keep a prefix is two questions: is it worth keeping at all, and is it worth keeping *first*? Say it will be needed again with probability $p$. Then recomputing it would take $T_r$, fetching it from where it is kept $T_f$; and keeping it costs
# $T_m$ whether it is needed or not. On average keeping it saves
#
# $$V = p\,(T_r - T_f) - T_m.$$
#
# For the 6144 tokens of the design problem: their KV is 864 MiB, or 0.906 GB. To compute it again takes 96.5 TFLOP of matrix work. At batch 1 the card reached 62 % of its peak (8.6.3 has the table; to three digits it is 62.2 %, and that is what we calculate with), so $T_r$ is 307.9 ms by the FLOP rule. Kept in *host memory*, it comes back over PCIe 5.0 x16
# at 64 GB/s in 14.2 ms (nominal; a real copy takes longer), and had to be written out once, which is the same time: $T_m = T_f$.

# %%
from lib.prefix_value import EFFICIENCY, GEN4, GEN5, HIT_PROBABILITY, prefix_of

a, b = prefix_of(6144), prefix_of(2048)
print(f"at {EFFICIENCY:.1%} of the peak, p = {HIT_PROBABILITY:.0%}:")
for name, prefix in {"A": a, "B": b}.items():
    t_r, t_f = (shown(s, "ms", 1) for s in (prefix.recompute_s, prefix.fetch_s))
    value = shown(prefix.value_s(HIT_PROBABILITY), "ms", 1)
    print(f"{name}: T_r {t_r} (FLOP rule), T_f {t_f} (link), V {value}")

# %% [markdown]
# With a chance of 50 % keeping A saves 132.7 ms. How small may the chance be?
#
# $$p > \frac{T_m}{T_r - T_f} = \frac{14.2}{293.7} = 4.8\ \%.$$
#
# Over PCIe 4.0, at 32 GB/s, both ways take 28.3 ms, a hit saves 279.6 ms, and the chance must be above 10.1 %. Is any link good enough? Look at recomputation as if it were a link: it makes so many bytes of KV a second.

# %%
from lib.prefix_value import break_even_link

for name, link in {"PCIe 5.0": GEN5, "PCIe 4.0": GEN4}.items():
    prefix = prefix_of(6144, link.bandwidth_bytes_s)
    print(f"{name}: break-even at {prefix.break_even:.1%}")
print(f"recomputing: {a.recompute_bytes_s / 1e9:.1f} GB/s (FLOP rule)")
slowest = break_even_link(a, HIT_PROBABILITY) / 1e9
print(f"slowest link that pays at {HIT_PROBABILITY:.0%}: {slowest:.1f} GB/s")

# %% [markdown]
# Behind a link slower than this card's own 3 GB/s, a hit would *lose* time. And as each prefix is written out while only some are fetched, the link must be a good deal faster than that before keeping pays. A faster card raises this bar; a model with less KV a token lowers what must be moved.
#
# ### Worth keeping, and worth keeping first
#
# Space is short. Beside A there are prefixes B of 2048 tokens, 288 MiB each, with the same chance: three of them fit where one A fits. One B saves 40.3 ms. Figure 8-22. Stop and play: which choice is better, and what would change it?

# %%
explore("prefix-value")

# %% [markdown]
# A saves 132.7 ms, three B save 120.9 ms: recomputing grows faster than the length (three times the tokens, 3.25 times the work, since each token attends to all before it), and fetching grows in proportion. A MiB of A saves 0.154 ms, a MiB of B 0.140 ms; sorting by that number compares prefixes of any size.
# Sorting is *greedy*, though. Whole prefixes have to fill a given space, and there the best choice can be another one (in brackets: places in the list):

# %%
from lib.prefix_value import Candidate, best_choice, greedy_choice
from lib.units import MIB

candidates = [Candidate(prefix_of(tokens), 0.5) for tokens in (6144, 4096, 4096)]
room = 1152 * MIB
for choose in (greedy_choice, best_choice):
    kept = choose(candidates, room)
    print(f"{choose.__name__:14} {kept.places} {shown(kept.value_s, 'ms', 1)}")

# %% [markdown]
# ### To be there when it is needed
#
# All this supposes that the prefix is still there. Back to the agent's twelve rounds: 19,556 tokens of input. They were sent again through a real engine, one round at a time, and in the gaps between them three other requests of 4000 tokens each. With a pool of 6 GiB 16,304 tokens were hits and 3252 had to be
# processed. With 1 GiB: none. Our cache, on the same lengths:

# %%
from lib.agent_replay import Setup, blocks_in, engine_replay, replay
from lib.units import GIB

for gib in (6, 1):
    setup = Setup(blocks_in(gib * GIB), interfering=3)
    print(f"{gib} GiB: {sum(replay(setup)):>6,} tokens hit")

# %% [markdown]
# The text has not changed, only the room. Three requests of 4000 tokens take 750 blocks of 16, and a pool of 1 GiB has 455: whatever the agent leaves is overwritten before it comes back. In between lies a cliff: with 750 blocks nothing is found, with 932 everything, and no more than 0.4 GiB lie between: from 1.65 to 2.05 GiB.

# %%
setup = Setup(blocks_in(6 * GIB), interfering=3)
edges = setup.blocks_between, setup.blocks_to_keep_all
for blocks in (*edges, sum(edges) // 2):
    print(f"{blocks} blocks: {sum(replay(Setup(blocks, interfering=3))):,} tokens hit")

# %% [markdown]
# And time? Another recorded run waited 0.2 s longer before each round (without other requests): the same hits. This cache forgets by *use*, not by the clock. (A service may add a time limit of its own.) The engine of this chapter, with the same pool and one request at a time, finds in each round of each recorded run exactly what was found there:

# %%
runs = [row for row in record("cache_replay_summary").rows if row["prefix_cache_on"]]
for run in runs:
    others = run["interfering_requests_per_gap"]
    setup = Setup(run["pool_capacity_tokens"] // 16, interfering=others)
    served = engine_replay(setup, gap_ns=round(run["gap_s"] * 1e9))
    found = sum(one.found for one in served)
    seconds, hits = run["agent_requests_total_s"], run["hit_tokens_total"]
    took = f"{seconds:.2f} s (client)"
    print(f"{run['run']:21} hits {hits:>6,}, ours {found:>6,}; {took}")

# %% [markdown]
# (The seconds are as recorded, without the waits; each run was made once.) Without hits the same rounds took about three times as long.
#
# ### A hit is not free
#
# The tokens behind a hit still attend to all that was found. A step of the engine pays for each pair of a new token and a token before it, wherever that one's KV came from. 2048 tokens behind a cached prefix of 6144 take longer than the same tokens alone:

# %%
from lib.step_time import FIT, step_plan

for cached in (0, 6144):
    seconds = FIT(step_plan((2048, cached))) / 1e9
    print(f"2048 behind {cached:>4}: {shown(seconds, 'ms', 1)} (fit)")

# %% [markdown]
# ### Who goes first?
#
# When room is needed, something must be forgotten. In most orders a chain loses its *end* first: what stands in front may still serve others, and without its beginning the rest can never be found. *Which* chain loses its end first is a policy. The agent again, in pools of so many blocks:

# %%
from lib.prefix_cache import Order

rows = []
for order in Order:
    setups = [Setup(n, interfering=3, order=order) for n in (800, 850, 900, 950)]
    rows.append((order, *(f"{sum(replay(setup)):,}" for setup in setups)))
Table(("evicted first", 800, 850, 900, 950), rows)

# %% [markdown]
# *Head first*, a chain that loses one block has lost all. The three others come to the same here: first goes what is left of the gap before, then the end of what the agent has just added, which is older than this gap's requests and has never been found. They part where something is *useful*. A system prompt is found again;
# around it come three long prompts that nobody ever sends twice, once before and after it, once all of them after:

# %%
from lib.agent_replay import time_to_make

system, a, b, c = list(range(2049)), *([k] * 2000 for k in (3000, 3001, 3002))
rows = []
for order in Order:
    worth, found = time_to_make if order == Order.LEAST_VALUE else None, []
    for prompts in ((system, a, system, b, c), (system, system, a, b, c)):
        cache = PrefixCache(blocks=400, order=order, worth=worth)
        for tokens in prompts:
            serve(cache, tokens)
        found.append(cache.match(system).tokens)
    rows.append((order, *found))
Table(("evicted first", "found lately", "found long ago"), rows)

# %% [markdown]
# *First in* does not care that the system prompt is in use. *Least recently used* does, and forgets it as soon as enough others have come by. *By value*, what counts is the time that computing a block would take, times how often it was found: what was never found goes first, however young it is. That is $p\,T_r$ per byte with $p$ guessed from the past, and like every guess it can be wrong: a prompt that was found often stays long after the last one who needed it.

# %% [markdown]
# ### A second tier
#
# Instead of forgetting, the pool can **swap out**: move what it evicts to host memory, and fetch it when it is matched there. (Engines call this *KV offloading*; by *swapping* they usually mean that the KV of a preempted request goes to the host instead of being computed again. Here whoever runs keeps its blocks.) Behind the 1 GiB pool that found nothing, 6 GiB of host memory:

# %%
from lib.host_tier import Link, TieredCache
from lib.model import QWEN3_8B, kv_bytes

link = Link(GEN5.bandwidth_bytes_s, token_bytes=kv_bytes(QWEN3_8B, 1))
tiers = TieredCache(blocks_in(GIB), blocks_in(6 * GIB), link, time_to_make)
load = list(Setup(blocks_in(GIB), interfering=3).load())
served = [(one, tiers.serve(tokens)) for one, tokens in load]
rounds = [how for one, how in served if one]
fetched = sum(how.fetched for how in rounds)
print(sum(how.found for how in rounds), "tokens found,", fetched, "fetched")
for name in ("compute_s", "fetch_s", "write_s"):
    total = sum(getattr(how, name) for _, how in served) * 1e3
    agent = sum(getattr(how, name) for how in rounds) * 1e3
    print(f"{name:9} {agent:6.1f} ms for the agent, {total:6.1f} ms for all")

# %% [markdown]
# (Nothing was run: links at their nominal bandwidth, computing by the FLOP rule, and no copy runs beside it; engines try to copy while they compute.) Everything that the large pool kept is fetched. A write is booked to the request that needs the room, so the agent's own blocks are written in the time of the others. The price is hidden in the last line: the interfering requests are written out as well, and nobody ever asks for them. That is $T_m$, paid whether it is needed or not, and the reason for the first of four policies:
#
# - **admission**: is a prefix kept at all when its request ends?
# - **eviction**: what is forgotten first when room is needed?
# - **swapping out**: to which tier does it go, if it is not forgotten?
# - **recomputing**: how much of a prompt is computed again, although it might be fetched?
#
# $V$ speaks to all four: below zero, do not admit; by value per byte, evict; behind a link that pays, swap out; where $T_r < T_f$, recompute.
#
# For the 16 long requests of the design problem there is nothing to decide. One copy of their prefix takes 864 MiB, is stored once instead of 16 times, and spares 15 prefills of 6144 tokens.

# %% [markdown]
# [Exercise 8-4](../exercises/ex_8_4_which_prefix_to_keep.ipynb): which prefixes to keep in 864 MiB, and why a recorded pool found nothing.
#
# Next: what if nothing can be shared, and it still must fit? [8.4](8_4_compression_and_offload.ipynb) makes it smaller, or moves it.
