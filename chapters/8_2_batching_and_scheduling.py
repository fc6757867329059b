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
# # 8.2 Batching and scheduling
#
# One user leaves the card's compute units nearly idle; sixteen share it, and once their answers have begun, each hardly notices. Why, and where does it end? Then the second
# question: who is computed *when*? Everything the scheduler gives to a newcomer it takes from those who are already being answered.
# [Back to the contents](8_0_design_problem.ipynb)

# %% [markdown]
# ## 8.2.1 Sharing the weights
#
# A layer multiplies a matrix of inputs, one row per token, with its weights: $Y = XW$. Each weight is needed by every row, so once it has been
# read from memory it can serve them all. With $b$ rows and $s_w$ bytes for a weight, each weight read buys
#
# $$I_\mathrm{weight} \approx \frac{2b}{s_w}$$
#
# operations per byte, a multiplication and an addition for each row: the **arithmetic intensity** of the weights. In decode a request brings one row, so the batch *is* the number of rows.

# %%
from lib.reads import weight_intensity

[weight_intensity(batch, bytes_per_weight=2) for batch in (1, 4, 16, 64)]

# %% [markdown]
# Sixteen rows, 16 times the work from the same read. What is *not* shared is the past: attention reads the KV of each
# request for that request alone. With $D_w$ bytes of weights, $L$ tokens in context and $k$ bytes of KV per token, a decode step reads $D$ bytes,
# and each output costs $d$ of them:
#
# $$D(b,L) = D_w + bLk, \qquad d(b,L) = \frac{D_w}{b} + Lk .$$

# %%
from lib.design_problem import INSTANCE, LONG_CONTEXT, SHORT_CHAT
from lib.model import kv_bytes_per_token, streamed_weight_bytes
from lib.reads import reads_per_output
from lib.units import shown

weights = streamed_weight_bytes(INSTANCE.model)
each_token = kv_bytes_per_token(INSTANCE.model)
print("weights read per step:", shown(weights, "GiB", 1))
for batch in (1, 16, 64):
    total = reads_per_output(weights, batch, 2048, each_token)
    share = shown(weights / batch, "GiB", 2)
    each = shown(total, "GiB", 2)
    print(f"batch {batch:>2}: {each} an output, {share} of it weights")

# %% [markdown]
# At 2048 tokens the KV of a request is 0.28125 GiB. At batch 1 that is next to nothing beside 14.1 GiB of weights; at 64 the weights are down to 0.22 GiB an
# output and the KV is the larger part. Figure 8-3 draws both contexts, on logarithmic axes. Each tick to the right doubles the batch and halves the weights' part (dashed); the
# dotted level, the KV, does not move. A circle marks where the two are equal, a bar where our pool is full: beyond it the line is thin.

# %%
from figures.explorer import explore

explore("reads-per-output")

# %% [markdown]
# From 1 to 64 requests the read per output falls from 14.38 to 0.50 GiB, to 1/29. Where does it stop paying? The smallest batch whose KV
# read reaches the weight read is
#
# $$b_{KV} = \left\lceil \frac{D_w}{Lk} \right\rceil$$

# %%
from lib.reads import kv_crossover

for kind in (SHORT_CHAT, LONG_CONTEXT):
    print(kind.input_tokens, kv_crossover(weights, kind.input_tokens, each_token))

# %% [markdown]
# 51 at 2048 tokens, 13 at 8192: four times the context, a quarter of the batch. And the wall? Batching reads less *per output* and
# keeps more *in memory*. 64 short requests, one decode step in, hold this much with all weights (this time with the embedding, which is
# looked up and hardly read, but must be there):

# %%
from lib.model import weight_bytes
from lib.reads import resident_bytes

held = resident_bytes(weight_bytes(INSTANCE.model), 64, 2049, each_token)
shown(held, "GB", 1)

# %% [markdown]
# That is decimal GB, and more than our instance has. In its pool the wall stands at 37 short requests, *left* of the crossing at 51, and at 10 long ones, left of 13:
# on this instance, capacity stops the batch first. Move the pool above, and it stands elsewhere.
#
# ### Bytes are not yet time
#
# For a lower bound on the time of a step, take the card's peaks: $F$ operations per request at $P$ per second, bytes at $\beta$ per second. ($F$ grows a little
# with $L$: attention has more to look at.) The longer of the two decides:
#
# $$T_\mathrm{step} \approx \max\left(\frac{bF}{P}, \frac{D_w + bLk}{\beta}\right).$$

# %%
from lib.step_time import decode_plan, device

bound = device(mfu=1, mbu=1)
for context in (128, 2048, 8192):
    plan = decode_plan(64, context)
    compute, read = bound.compute_ns(plan) / 1e9, bound.read_ns(plan) / 1e9
    times = shown(compute, "ms", 2), shown(read, "ms", 2)
    print(f"{context:>5}: {times[0]} computing, {times[1]} reading")

# %% [markdown]
# Set the two equal and sort: $b\,(F/P - Lk/\beta) = D_w/\beta$. Each further request adds $F/P$ of computing and $Lk/\beta$ of reading. Only if the first is larger
# can a growing batch ever become bound by compute; if not, reading takes longer at *every* batch.

# %%
from lib.reads import compute_crossover, compute_kv_context

for context in (128, 2048, 8192):
    print(context, compute_crossover(bound, context) or "never")
compute_kv_context(bound)

# %% [markdown]
# So there are two different crossings, easily taken for one. 51 and 13 compare two kinds of *read*. This one compares *computing with reading*, and on this card it
# exists only below 371 tokens of context, where the two terms that grow with each request are equal. At 128 tokens it comes at batch 430; above 371, no batch makes
# the step as a whole bound by compute. (The products with the weights, taken alone, can be: they and attention are different kernels, and the bound lets them overlap.)
#
# Measured steps are longer than the bound. The share of the peak that a measured step reaches is the **MFU** for computing and the **MBU** for bandwidth. Most steps reach
# little of either; at batch 64 the reads count most (the host still has a part in it, so the card can do no less than this):

# %%
from lib.records import record

alike = {"input_kind": "2k_independent", "batch_requests": 64}
step_ms = record("step_efficiency").one(**alike)["decode_step_median_ms"]
read_ms = bound.read_ns(decode_plan(64, 2048)) / 1e6
print(f"{step_ms} ms measured, MBU {read_ms / step_ms:.0%}")

# %% [markdown]
# Section 8.6 calibrates both shares. What a user sees of all this was recorded, too. All requests of a batch were submitted at once, every output was forced to 256 tokens, and
# the pool was 24 GiB: 64 requests would not fit into ours.

# %%
from figures.tables import Table

sweep = record("batch_sweep").where(input_kind="2k_independent")
columns = {
    "batch": "batch_requests",
    "token/s": "throughput_median_tok_per_s",
    "first token, ms": "ttft_median_ms",
    "interval, ms": "mean_output_interval_median_ms",
}
digits = {"token/s": 0, "first token, ms": 0, "interval, ms": 0}
Table.of(sweep, columns, digits)

# %% [markdown]
# (Clock: client; medians of 3 rounds.) Throughput grows from 37 to 1165 token/s, and it is paid for: the first token comes after 3.29 s instead of 96 ms, the mean interval
# grows from 27 to 40 ms. A pure decode step of 64 takes only 29.63 ms (engine); the rest of the mean is other requests' prompts, computed in between. And a service that *waits* for a batch to fill up adds that wait to
# the time to first token; this sweep did not have to.
#
# ### Different tasks, one base
#
# Sharing asks that all rows use the same weights. **LoRA** loosens this: a task's change to a matrix is the product of two small ones, and the base stays as it is for
# all. An adapter of rank 16 on the query and value projections:

# %%
from lib.memory import adapter_bytes
from lib.model import kv_bytes

adapter = adapter_bytes(INSTANCE.model, rank=16)
contexts = 100 * kv_bytes(INSTANCE.model, 8192)
shown(adapter, "MiB", 1), shown(100 * adapter, "GiB", 2), shown(contexts, "GiB", 1)

# %% [markdown]
# One hundred adapters take 1.43 GiB; one hundred separate contexts of 8192 tokens take 112.5 GiB. Room for the first says nothing about room for the second. And in the step, an
# adapter's small matrices are shared only by the rows that use it:

# %%
from lib.reads import rows_per_adapter

batch = ["law", "chat", "law", "code", "chat", "law"]
rows = rows_per_adapter(batch)
{name: weight_intensity(count) for name, count in rows.items()}

# %% [markdown]
# The base weights serve all six rows at once. *How many adapters* and *how many requests* go into a batch are two decisions.
#
# ### If the weights cost nothing
#
# Suppose the weights come from a fast store of their own, a ROM beside the compute units. Then memory is read for KV alone. Figure 8-4 compares; the sizes are
# our model's, which is our choice, as the book gives none for this figure.

# %%
explore("separate-weight-store")

# %% [markdown]
# Three things follow. The two curves approach each other as the batch grows: what batching saved *was* the weight term, and here there is little of it left to save.
# Batch still matters for keeping the compute units busy, and the KV that a *step* reads grows with it, and so does the interval. And the new crossing, computing against KV, now has both sides
# proportional to the batch: it lies in the *length of the context*, at 371 tokens, whatever the batch. Choose the batch by time to first token and by the interval.
#
# [Exercise 8-1](../exercises/ex_8_1_reads_and_capacity.ipynb) asks for these numbers, and which of the two ends of a batch comes first.

# %% [markdown]
# ## 8.2.2 From fixed batches to continuous batching
#
# Two requests start together; one needs 8 outputs, the other 2. In a **fixed batch** nobody enters until both are done, and the
# short one's row stands idle for 6 steps. **Continuous batching** decides anew at every border between two steps: a row that is free is
# given away at once. (A row here is the execution slot of figure 8-1, a line of computation; nothing to do with the slots of a network card.)
#
# Who enters earlier is also *prefilled* earlier. That is the catch: a newcomer's long prompt goes into the same steps as the others' next outputs. The scheduler
# divides the card's time between newcomers' input and residents' output.
#
# To see it, we need the time of a step. Fitted to one request alone on this card (clock: fit):
#
# $$T(n, q) = 26.22\ \mathrm{ms} + 30.4\ \mathrm{\mu s} \cdot n + 3\ \mathrm{ns} \cdot q$$
#
# for $n$ new tokens and $q$ pairs of a query with a key, summed over the step. The fixed part is paid once per step, however many requests are in it.

# %%
from lib.step_time import FIT, step_plan

decode = FIT(step_plan((1, 2048)))  # one new token, 2048 in context
prefill = FIT(step_plan((2048, 0)))
reading = bound.read_ns(step_plan((1, 0)))
print("decode ", shown(decode / 1e9, "ms", 2))
print("prefill", shown(prefill / 1e9, "ms", 1))
print("reading the weights at peak bandwidth", shown(reading / 1e9, "ms", 1))

# %% [markdown]
# Both values agree with the engine's log, from which the fit was made. The fixed part is what a step costs whatever is in it: the card needs 8.4 ms
# of it to read the weights at peak bandwidth; most of the rest it waits for the host, which submits one kernel after another.
#
# Four requests, at most two at a time: r0 and r1 arrive at 0 with 2048 tokens each and give 8 and 2 outputs; r2 arrives at 20 ms with 8192 tokens and gives 2;
# r3 at 30 ms with 2048 tokens and gives 4. (A request's first output comes with its prefill and its last is never fed back, so r0 needs 7 decode steps, and the KV of its
# eighth output is never written.) Figure 8-5: the fixed batch. One line a request; a band is as wide as the *whole step* that the request was in; triangles are arrivals.

# %%
explore("fixed-batch")

# %% [markdown]
# r2 and r3 wait until the first group is through; all is done after 870 ms. The longest interval is only 26 ms, so by that measure nothing is wrong. But r2 saw nothing for 772 ms after it had arrived. *Time to
# first token is not an interval*; look at both. A group may also wait until it is full: that, too, is time to first token.
#
# Figure 8-6: r2 enters as soon as r1 has ended.

# %%
explore("continuous-batching")

# %% [markdown]
# The total falls to 766 ms, by 12 %, and r2 has its first token 546 ms after its arrival. The price is paid by r0: between two of its outputs stands the whole prompt of r2, 376 ms instead of 26, 14 times
# the pause. Fewer idle rows, one long silence.
#
# So cut the prompt. Figure 8-7: at most 2048 tokens of a prompt in a step, at most 4096 tokens in all, and those in decode go first. Same time axis.

# %%
explore("chunked-prefill")

# %% [markdown]
# The longest interval falls to 133 ms, and outputs come more evenly. Now look at the total: 844 ms. **By the fit, chunking gives back nearly all that continuous batching had saved**; against the fixed
# batch 3 % are left. Three more steps, each with its fixed part: more even intervals cost 78.66 ms, and r2's first token moves to 624 ms. Whether that price is real is a question for "What to believe" below.
#
# The same comparison by code; change the load, the policy or the model of step times:

# %%
from lib.fast_forward import simulate
from lib.four_requests import Batching, four_requests, policy_of

rows = []
for policy in Batching:
    run = simulate(four_requests(), policy_of(policy))
    longest, first = max(run.longest_interval_ns), run.ttft_ns[2]
    times = [shown(ns / 1e9, "ms") for ns in (run.total_ns, longest, first)]
    rows.append((policy, *times, f"{run.idle_rows} of {run.row_steps}"))
Table(("", "all done", "longest interval", "r2's first token", "idle rows"), rows)

# %% [markdown]
# ### The bill
#
# Where did a request's time go? Each nanosecond can be booked: the queue, its own prefill, its own decode, the decode of others, and the prefill of each other
# request *by name*. The parts add up exactly.

# %%
explore("the-bill")

# %% [markdown]
# ### What to believe
#
# "Chunking costs three fixed parts" follows from *adding* the fixed part to the rest. On the real machine the host submits while the device computes: a step takes
# about the *longer* of the two, not the sum. So there are two more models of a step. The **device** alone: FLOP over the share of peak compute that one prompt reached, or bytes over the share of bandwidth
# that 64 requests reached, whichever takes longer. And `max(host, device)`, with the host at about 26 ms. The record can tell which is nearer; prefill of many prompts, in steps of at most 4096 tokens:

# %%
from lib.step_time import NS

full_step, rows = step_plan((2048, 0), (2048, 0)), []
fit, by_device = FIT(full_step) / NS, device()(full_step) / NS
for batch, steps in ((4, 2), (16, 8), (64, 32)):
    alike = {"input_kind": "2k_independent", "batch_requests": batch}
    measured = record("step_efficiency").one(**alike)["prefill_phase_median_s"]
    times = measured, steps * fit, steps * by_device
    rows.append((batch, *(shown(time, "s", 2) for time in times)))
Table(("prompts", "engine", "fit", "device"), rows)

# %% [markdown]
# The fit, made from a single request, is 15 to 19 % too *low* here, and for small chunks (next section) far too *high*. The device model is 1 to 6 % low. (Its share of compute comes from the prefill of one prompt
# in the same record, so that it fits *one* is no proof; that it fits 64 is.) The four requests once more, by both:

# %%
from lib.step_time import LaunchBound

host_or_device, rows = LaunchBound(26_000_000, device()), []
for policy in Batching:
    pair = []
    for model in (FIT, host_or_device):
        run = simulate(four_requests(), policy_of(policy), model)
        both = run.total_ns, max(run.longest_interval_ns)
        pair += [shown(ns / NS, "ms") for ns in both]
    rows.append((policy, *pair))
head = ("", "done, fit", "longest, fit", "done, max", "longest, max")
Table(head, rows)

# %% [markdown]
# By `max(host, device)` chunks cost next to nothing, because a chunk of 2048 tokens keeps the device busy for longer than the host needs. Read figures 8-5 to 8-7 for what they show: **who waits for whom**. That holds under
# either model. For how many milliseconds it costs, switch the step time in the explorers, and believe the record where there is one.

# %% [markdown]
# ## 8.2.3 Long prefills, in chunks
#
# A large chunk brings the newcomer's prompt through in fewer steps; a small one lets residents answer sooner. A scheduler usually lets decodes go first and gives the rest
# of the step's tokens to prompts, so a long prompt is spread over many intervals.
#
# But equal chunks are not equal work. A chunk of $c$ tokens behind $h$ in context looks at
#
# $$N_\mathrm{pair} = (h+1) + (h+2) + \dots + (h+c) = ch + \frac{c(c+1)}{2}$$
#
# pairs: each new token sees all of the context, and itself and its predecessors in the chunk. Figure 8-8 counts the first chunk of a prompt, 4 tokens. White cells are the future and do not count. (Kernels work in tiles: on the diagonal they compute a few of them, and mask them.)

# %%
explore("pairs-first-chunk")

# %% [markdown]
# Figure 8-9 is the same chunk with 8 tokens before it. The triangle is the same; the rectangle is new, and grows with the context.

# %%
explore("pairs-behind-context")

# %% [markdown]
# At real size: chunks of 512 from a prompt of 8K, the first and the last.

# %%
from lib.attention import causal_pairs

first, last = causal_pairs(512), causal_pairs(512, context=7680)
print(f"{first:,} and {last:,} pairs, {last / first:.0f} times as many")

# %% [markdown]
# 31 times the pairs. And the time? Predict, then look at sixteen recorded chunks beside the models.

# %%
explore("chunk-times")

# %% [markdown]
# From 25.3 to 35.1 ms, 39 % more (clock: events on the device, medians of 11 requests). Projections and FFN do the same work in every chunk, and they are most of it: counting all products of matrices, attention's too, the FLOP grow by 32 %. A step's time has one part
# that goes with its new tokens and one that goes with their context.
#
# The fit says 42 ms for the first chunk and 54 for the last, 769 ms for all sixteen together. Recorded were 481 ms; the device model gives 426. Here *fit and record disagree*: the first chunk took less than the
# fit's fixed part alone. In this run the host had less to do, its part overlaps, and events on the device leave out scheduling, logits and sampling. Use the fit to see who waits for whom; for what a chunk costs use the record, or the
# device model, which is 11 % low.
#
# Smaller chunks have another price. Cut a chunk of 256 tokens in two: one more chance for the residents, but each piece needs all weights. For the FFN of one layer:

# %%
from lib.model import ffn_bytes_per_layer
from lib.reads import reads_in_pieces

ffn = ffn_bytes_per_layer(INSTANCE.model)
[shown(reads_in_pieces(ffn, pieces), "MiB") for pieces in (1, 2)]

# %% [markdown]
# Twice the reads and twice the launches, with half the rows each. Hence the rule: **take the largest chunk that keeps the interval limit.**

# %% [markdown]
# ## 8.2.4 Token budgets, shapes and step time
#
# The **token budget** limits the tokens of a step, such as the 4096 above. What is then executed are matrices of certain shapes, often graphs that were
# captured beforehand, and a step is padded up to the next one. Less work is not always less executed.

# %%
explore("padded-rows")

# %% [markdown]
# With graphs for 16 and 32 rows, going from 18 rows of work to 17 saves nothing; from 17 to 16 it halves the rows executed. In time that is half a millisecond by the fit and nothing by the device model, as so small a step is bound by
# reading; padding hurts where rows cost time. A further graph for 17 rows saves 15 rows of padding. It
# costs time to capture, and its buffers stay in memory for good: they belong to $M_u$ in the balance of 8.1.2, and the KV pool is smaller by as much.
#
# The budget itself decides between newcomers and residents. In a recorded replay six other requests, also called r0 to r5, came 80 ms apart, under two limits; r4 is one of the two late ones:

# %%
replay = record("six_request_replay_summary")
runs = replay.where(chunked_prefill=1, decode_cuda_graph=0)
columns = {
    "tokens a step": "token_budget_per_step",
    "longest interval, ms (client)": "interval_max_ms",
    "p95": "interval_p95_ms",
    "median": "interval_median_ms",
    "queue of r4, ms (engine)": "r4_engine_queue_median_ms",
}
Table.of(runs, columns)

# %% [markdown]
# From 512 to 8192 tokens the late request's queue falls from 149 ms to below 0.1 ms, and the longest interval grows from 32 to 183 ms. A higher limit takes more input through in each step, so newcomers leave the queue
# sooner and residents wait longer. Look at the other columns too: the small limit gains only in the worst interval, at p95 it is the worse one.
#
# Half of the intervals are shorter than 13 ms, although we said that a step costs 26.22 ms whatever is in it. In this experiment the host needed at most about 13 ms a step (to read the weights may take as long), so the fit, made from another, does not describe it: by the fit, a
# step of 512 new tokens would take at least 41.8 ms. Again the record stands. (The card was not ours alone, so a few milliseconds mean nothing; and nothing between the two limits was run.)
#
# ### From an interval to a budget
#
# So the budget is found in two steps. The *allowed interval* says how long a step may be. The *time of a step* then says how many new tokens fit, given the context behind them, the residents beside them and
# the shapes that can be executed:

# %%
from lib.step_time import tokens_that_fit

limit_ns, residents = 50_000_000, decode_plan(1, 2048)
for context in (0, 7680):
    exact = tokens_that_fit(limit_ns, FIT, context, residents)
    shaped = tokens_that_fit(limit_ns, FIT, context, residents, (256, 512, 1024))
    print(f"behind {context:>4}: {exact} tokens, {shaped} in captured shapes")

# %% [markdown]
# 511 tokens and the resident's row fill the shape of 512. Behind 7680 tokens of context the step pays for all 512 rows just the same, so that only 348 tokens leave time for their pairs.

# %%
explore("interval-to-budget")

# %% [markdown]
# In the same 50 ms, a long context leaves room for fewer new tokens, a short one for more.
#
# ### On a larger load
#
# Everything above was four requests. The simulator takes any load. A *made* trace of 2000 requests is shipped with the chapter: 18 minutes, bursts, one request in ten with a long prompt.

# %%
from lib.traces import MADE, read_trace

trace = read_trace(MADE)
len(trace.requests), trace.requests[-1].arrival_ns / NS

# %% [markdown]
# Take a promise (an SLO): 95 % of the requests have their first token within 2 s, and 95 % have no interval longer than 0.1 s. Each pair of token budget
# and chunk is one simulation of the whole trace, at most 32 requests running; a request is *good* if it keeps both limits. By which model of a step? By both, for the pairs whose chunk is half the budget:

# %%
from lib.slo import Slo, trace_grid

slo = Slo(ttft_s=2.0, interval_s=0.1)
budgets, chunks = (256, 512, 1024, 2048, 4096), (128, 256, 512, 1024, 2048)
by_fit = trace_grid(trace.requests, budgets, chunks, 32, slo, FIT)
by_max = trace_grid(trace.requests, budgets, chunks, 32, slo, host_or_device)

# %%
rows = []
for one, other in zip(by_fit, by_max):
    if 2 * one.chunk == one.token_budget:
        row = [one.token_budget, one.chunk]
        for x in (one, other):
            waits = shown(x.ttft_s, "s", 2), shown(x.interval_s, "ms")
            row += [*waits, x.good_requests]
        rows.append(row)
fit_heads = "first, fit", "longest, fit", "good, fit"
max_heads = "first, max", "longest, max", "good, max"
Table(("budget", "chunk", *fit_heads, *max_heads), rows)

# %% [markdown]
# Both say that large limits break the intervals. Of the first tokens under small limits they think differently, as the fit charges its fixed part for every chunk. *The right limit depends on the model of a step: measure before you set it.* The plane has all
# pairs by `max(host, device)`; what keeps the promise is framed. Point at a cell to read its numbers. (It is drawn when you run it.)

# %% tags=["nbval-ignore-output"]
from figures.trace_view import goodput_plane

goodput_plane(by_max, slo)

# %%
for name, grid in (("fit", by_fit), ("max(host, device)", by_max)):
    real = [one for one in grid if one.chunk <= one.token_budget]
    kept = [one for one in real if one.keeps(slo)]
    best = max(real, key=lambda one: one.good_requests)
    print(f"{name}: {len(kept)} of {len(real)} pairs keep the promise;", end=" ")
    print("most good requests at", (best.token_budget, best.chunk))

# %% [markdown]
# Two rules, two aims. *The largest chunk that keeps the interval limit* spends the least on reads and launches. *The pair with the most good requests* also counts the first tokens, and on this load it prefers smaller chunks.
#
# To try your own load, give `read_trace` the path of a file; it knows the public layouts of Azure, BurstGPT and Mooncake, and says file, line and column where a
# file is not what it seems.

# %% [markdown]
# [Exercise 8-2](../exercises/ex_8_2_chunk_from_interval.ipynb) goes through the four requests by hand and then chooses a limit from the record.
#
# The scheduler now knows whom to compute. Where their KV goes, and how it is shared and given back, is section [8.3](8_3_kv_cache.ipynb).
