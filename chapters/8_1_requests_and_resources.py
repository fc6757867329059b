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
# # 8.1 Requests and the resources they need
#
# Before anything is sped up: what happens to one request, what does it take up while it lives, and how do we say that it was served well?
# Three questions, three subsections. [Back to the contents](8_0_design_problem.ipynb)

# %% [markdown]
# ## 8.1.1 A request's life on the card
#
# Five words first, since the rest leans on them.
#
# - A **request** is one piece of inference work with an input, outputs and an end of its own.
# - A **batch** is the set of tokens that the card computes together in one execution.
# - A **scheduling iteration**, or **step**, is one round of the scheduler: choose the work, submit it, deal with the results. A request
#   lives through many steps, with different companions in each.
# - An **execution slot**, or **row**, is the one line of computation that a step sets aside for one running request.
# - The **KV** of a request is its state: keys and values of all its tokens so far.
#
# *Batch* has a second meaning, which we need too: from 8.1.3 on, "batch 16" counts the **requests** that are processed at the same time.
#
# Figure 8-1 shows two rows and three requests. B is done after the first step and C takes its row. Predict first.

# %%
from figures.explorer import explore

explore("rows-and-state")

# %% [markdown]
# What passes on is the row; what stays is the state, kept by the request's identity. Try *C must wait for all*: the row that B left stands idle,
# and nobody gains by it. Section 8.2 turns this into a policy.
#
# Now one request by itself, from arrival to end:
#
# 1. it waits in the **queue**;
# 2. the scheduler takes it into a batch and gives it room for KV;
# 3. **prefill**: all prompt tokens are known, so they are computed side by side, and every layer keeps their keys and values;
# 4. the last prompt token yields the **first output**;
# 5. **decode**: the token just produced goes in, the whole KV is read, the next one comes out. Inside a request this is strictly one after the
#    other; the current steps of *different* requests can be computed together. That is where all throughput will come from.
#
# Figure 8-2 draws it to true scale: prefill and intervals as measured with one request alone on the card (batch 1), dots at the first and
# the last output, the 7 s deadline dashed.

# %%
explore("request-timeline")

# %% [markdown]
# The first output splits the line in two. What lies before it decides when the user sees *something*; the 255 intervals after it decide when the user has
# *everything*. The sum, by hand:

# %%
queue, prefill, interval = 0.1, 0.096, 0.0265
round(queue + prefill + 255 * interval, 2)

# %% [markdown]
# It is in time, by a hair. If another request's prefill is pushed in between two outputs, as a pass of its own, one interval grows from 26.5 ms to
# about 123 ms and the whole from 6.95 s to 7.05 s.

# %%
from figures.tables import Table
from lib.design_problem import timed_request
from lib.latency import InsertedAs
from lib.units import shown

rows = []
for way in InsertedAs:
    late = timed_request(inserted=1, inserted_as=way)
    longest, total = late.longest_interval_s, late.total_s
    rows.append((way, shown(longest, "ms", 1), shown(total, "s", 2)))
Table(("one foreign prefill, as", "longest interval", "total"), rows)

# %% [markdown]
# The second line shares the step with a decode, as the scheduler of 8.2.2 will do, and is computed with that section's fit; the two readings are
# different models and are never mixed. Late is late in both. Two things to keep:
#
# - **This request's own work is the same, token for token; only the order of work on the card changed**, and the deadline was missed.
# - Every scheduling technique to come changes the length of one stretch of this line. Ask of each: which?
#
# And after the last output? The scheduler has no more work for the request. What becomes of its KV is decided by somebody else, the state
# manager: what belongs to this request alone is freed, while a prefix that others share may stay, under the rules of a cache. Section 8.3 is about that.

# %% [markdown]
# ## 8.1.2 Memory for weights, KV and buffers
#
# For requests to run side by side, weights, state and intermediate results must be in memory at the same time. On each card
#
# $$M_w + M_{KV} + M_a + M_u \le C$$
#
# weights, KV, activations and ordinary workspace, other buffers (such as those for replaying graphs), and the card's usable capacity. $M_{KV}$ counts
# *physical blocks, each once*, however many requests point to it. Written down plainly:

# %%
from lib.design_problem import INSTANCE
from lib.memory import CardUse, fits
from lib.model import weight_bytes
from lib.units import GIB

weights = weight_bytes(INSTANCE.model)
use = CardUse(weight_bytes=weights, kv_bytes=12 * GIB, activation_bytes=4 * GIB)
fits(use, INSTANCE.share_bytes)

# %% [markdown]
# Several cards means several balances, one for each. Free memory on one card does nothing for another, unless data are moved there.

# %%
from lib.memory import fits_on_each

other = CardUse(weight_bytes=weights, kv_bytes=18 * GIB)
fits_on_each([use, other], INSTANCE.share_bytes)

# %% [markdown]
# The terms behave differently. Weights are loaded before the first request arrives and never change; KV grows with every arrival and every output. So
# how much does one token add? Two tensors (K and V), in each of 36 layers, for each of 8 KV heads, 128 values, 2 bytes each:

# %%
2 * 36 * 8 * 128 * 2

# %%
from lib.model import kv_bytes, kv_bytes_per_token

each = kv_bytes_per_token(INSTANCE.model)
print(each, "bytes =", shown(each, "KiB"))
for tokens in (2048, 8192):
    print(tokens, "tokens:", shown(kv_bytes(INSTANCE.model, tokens), "MiB"))

# %% [markdown]
# The 15.3 GiB of weights are shared by everybody. Each further long request with a context of its own brings 1.125 GiB, counting its input only; 16
# of them hold 18 GiB, and the pool has 12 GiB. It does not fit, before a single word has been said.
#
# And then they speak. The first output comes from the prefill; the 255 tokens after it are produced by feeding the previous one back in. The last output is
# never fed back, so its KV is never written: $N$ tokens in and $G$ out leave $N + G - 1$ tokens of KV. Memory comes in pages, here of 16 tokens,
# and each request is rounded up by itself.

# %%
from lib.design_problem import LONG_CONTEXT, SHORT_CHAT
from lib.memory import KvPool, pages_for, tokens_stored

for kind in (SHORT_CHAT, LONG_CONTEXT):
    tokens = tokens_stored(kind.input_tokens, kind.output_tokens)
    room = 16 * pages_for(tokens, 16)
    print(kind.name, "stores", tokens, "tokens in pages for", room)

# %%
pool = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes, page_tokens=16)
rows = []
for kind in (SHORT_CHAT, LONG_CONTEXT):
    alone = kind.shape_alone
    early, final = pool.private_bytes(alone, finished=False), pool.private_bytes(alone)
    count = pool.requests_that_fit(alone)
    rows.append((kind.name, shown(early, "MiB"), shown(final, "MiB"), count))
Table(("independent requests", "after prefill", "at their end", "that fit"), rows)

# %% [markdown]
# What the pool holds depends on *when* you count. Predict, then move lengths, pages and models.

# %%
explore("what-fits")

# %% [markdown]
# Admit by what requests hold after prefill, and 42 short ones are let in; once all have said their 256 tokens they need 13,608 MiB of a pool of
# 12,288. Some will be preempted in mid-sentence and computed again later (8.3.2). **Reserve what a request will need at its end when it is admitted**, and 37 get in, and all of them
# finish.
#
# The long requests have something to give back. 6144 of their tokens are the same text. As 16 separate copies, that is the same 864 MiB sixteen times; held once and
# referred to by all, the room becomes free for what is different: 288 MiB of input each, and outputs. Set *long, prefix shared* above.
# How blocks are shared, and what happens at the end of generation, is the subject of section 8.3.

# %% [markdown]
# ### Your own model
#
# Nothing above is special to one model. KV per token depends on how a layer remembers: all tokens for each KV head, a window of
# the last few, one compressed latent, or a state that does not grow at all.

# %%
from lib.model import PRESETS, kv_bytes_per_further_token, preset, tokens_that_fit


def sizes(model):
    each, later = kv_bytes_per_token(model), kv_bytes_per_further_token(model)
    longest = tokens_that_fit(model, 12 * GIB) or "no limit"
    return model.name, each, later, shown(kv_bytes(model, 8192), "MiB"), longest


head = ("model", "bytes a token", "windows full", "8192 tokens", "longest in 12 GiB")
Table(head, [sizes(preset(name)) for name in PRESETS])

# %% [markdown]
# A windowed layer *needs* only its window. An engine that keeps one block table for all layers reserves the full length all the same; newer ones keep one for each kind of layer:

# %%
from lib.model import paged_kv_bytes

gemma = preset("Gemma-3-4B")
needed, reserved = kv_bytes(gemma, 8192), paged_kv_bytes(gemma, 8192, page_tokens=16)
shown(needed, "MiB"), shown(reserved, "MiB")

# %% [markdown]
# To see a model of yours, write the path of its `config.json` between the quotation marks. What the reader of configs does not understand it
# refuses; it never guesses.

# %%
from lib.checks import InputError
from lib.model import from_config

path = ""
try:
    model = from_config(path) if path else INSTANCE.model
    answer = Table(head, [sizes(model)])
except InputError as error:
    answer = str(error)
answer

# %% [markdown]
# ## 8.1.3 From one request's time to a service objective
#
# Back to the line of time, now with names. A request arrives at $t_a$; its $G$ outputs come back at $t_1 \dots t_G$. Then
#
# $$\mathrm{TTFT} = t_1 - t_a, \qquad \mathrm{ITL}_j = t_{j+1} - t_j, \qquad T_{\mathrm{request}} = \mathrm{TTFT} + \sum_{j=1}^{G-1} \mathrm{ITL}_j .$$

# %%
from lib.latency import intervals, request_time

request = timed_request()
gaps = intervals(request.output_times_s)
print(len(gaps), "intervals, together", shown(sum(gaps), "s", 2))
print(shown(request.ttft_s, "s", 3), "to the first,", end=" ")
print(shown(request_time(request.ttft_s, gaps), "s", 2), "in all")

# %% [markdown]
# $G$ outputs have exactly $G - 1$ intervals: TTFT is not one of them, and waiting before the first step belongs to TTFT, wherever it was spent. Each measure means
# something else to a reader of the answer:
#
# - **TTFT**: something happens.
# - **even intervals**: it can be read as it comes.
# - **total time**: it can be used.
#
# A **service level objective**, SLO, puts limits on these. Ours is a total of 7 s; when we compare schedules, the longest interval will be
# looked at too.
#
# All of these belong to *one* request. What the instance puts out depends on how many it handles at once, its **batch size**. **Throughput** is work done per unit
# of time: 16 outputs in each step of 27.44 ms, or one in each step of 26.26 ms (both by the engine's clock; the user sees 26.5 ms in the second case, as
# delivery and other handling come on top).

# %%
from lib.latency import throughput
from lib.records import record

for row in record("step_efficiency").where(input_kind="2k_independent"):
    batch, step_ms = row["batch_requests"], row["decode_step_median_ms"]
    tokens_a_second = throughput(batch, step_ms / 1e3)
    print(f"batch {batch:>2}: {step_ms} ms a step, {tokens_a_second:.0f} token/s")

# %% [markdown]
# From one request to 16, the step hardly grows and the output grows with the batch: from 38 to 583 token/s. More outputs a step or shorter steps, either
# raises throughput. But a user also waits *before* execution starts, and throughput does not see that.
#
# Finally: was the answer right? Experiments here come in two kinds, and you need to know which one you look at. With a **forced output length**
# every variant does the same work, so times can be compared; with a **natural stop** the model decides when it is done, so correctness, length of the answer and
# retries can be seen. Section 8.6 counts what is both correct and in time.
#
# Where several times must be summed up in one number, we take a percentile by nearest rank: the smallest recorded value that so many per cent do not
# exceed. Nothing is interpolated, so it is always a time that somebody waited.
#
# Next: why a batch hands out so much more, and who is computed when, in [8.2](8_2_batching_and_scheduling.ipynb).
