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
# # 8.0 The design problem
#
# One accelerator, one language model. Ask a single user, and the answer trickles in at a few dozen tokens a second. Ask its
# operator, and the same card hands out more than a thousand tokens a second. Both are right: requests that are computed
# together share every read of the weights, so the card does far more work while each user waits *longer*.
#
# How much longer depends on the company: the length of each context, who came first, what is computed in which order.
# This chapter is about arranging that work so that, in a given time, the instance returns more **correct** answers.
#
# *To use a notebook:* click into the first grey cell below and press Shift + Enter; then the next, as you come to it. What has run
# can be moved, and every line can be changed. Nothing is lost by trying: one button brings back the book's values, and
# `git checkout -- chapters` the book's text.

# %% [markdown]
# ## First, move something
#
# One request, alone on the card: 2048 tokens go in, 256 come out, and the whole answer is due 7 seconds after the request
# arrives. Figure 8-2 follows it from arrival to last output. Make a prediction before you touch a slider.

# %%
from figures.explorer import explore

explore("request-timeline")

# %% [markdown]
# Beside each number stands the clock that took it: *client* was measured where the user sits, *assumed* was not measured at all; "Which clock?" below
# has the list.
#
# Two stretches make up the wait. Until the first output there is the queue and the **prefill**, in which the model works
# through the whole prompt at once. After it comes **decode**: one step for each further output, so 256 outputs have
# 255 intervals between them. Nearly all the time is there.
#
# Two settings are worth a second look. Insert a foreign prefill *inside a decode step* instead of as *a pass of its own*: it
# costs less, since the two share what a step costs anyway, but the request is late all the same. And take the queue away: what is
# left before the deadline is then a real reserve. The 0.1 seconds of queue are assumed, not measured, and they use up most of it.

# %%
from figures.tables import Table
from lib.design_problem import timed_request
from lib.units import shown

rows = []
for queue in (0.1, 0):
    r = timed_request(queue=queue)
    rows.append((f"{queue} s", shown(r.total_s, "s", 2), shown(r.slack_s, "s", 2)))
Table(("queue", "done after", "left before the deadline"), rows)

# %% [markdown]
# ## The paradox in numbers
#
# The same kind of request was sent to the card one at a time, then several at once. Read down the columns: what all users get
# together, then what one of them sees. Times are by the client's clock, and every answer was forced to the same length. (The runs had a larger
# KV pool than the instance below will have: of its own, it could not hold the last row. Section 8.1.2 counts why.)

# %%
from lib.records import record

sweep = record("batch_sweep").where(input_kind="2k_independent")
columns = {
    "requests at once": "batch_requests",
    "token/s, all together": "throughput_median_tok_per_s",
    "first output, ms": "ttft_median_ms",
    "then one every, ms": "mean_output_interval_median_ms",
}
Table.of(sweep, columns, digits={name: 1 for name in list(columns)[1:]})

# %% [markdown]
# ## What is given and what is asked
#
# An **instance** is one running copy of a model. It may be spread over several cards or several servers; how a model
# is cut up and how the pieces talk to each other was the subject of chapters 6 and 7. Where computation and state should live,
# and how many copies a service needs, is that of chapter 9. Here the accelerators are given. The question is what one
# instance makes of them.
#
# Ours is a single card with a well-known model on it. The peak counts dense matrix
# products only, with BF16 inputs and sums kept in FP32.

# %%
from lib.design_problem import INSTANCE
from lib.hardware import published

rows = [("model", INSTANCE.model.name), ("card", INSTANCE.card.name)]
Table(("what", "value"), rows + published(INSTANCE.card), left=("value",))

# %% [markdown]
# All experiments of this chapter were run on this card, except that of 8.4.1 on an Apple M2 Max, and what others have published, which is marked.
#
# The instance does not own the whole card. It has a share of 32 GiB, out of which 12 GiB are reserved for the **KV cache**: the
# keys and values of every token already processed, which later tokens look up in attention. (Memory of the
# instance is counted in binary GiB, the maker's GB we read as decimal.)

# %%
from lib.memory import left_for_activations
from lib.model import weight_bytes

weights = weight_bytes(INSTANCE.model, INSTANCE.bytes_per_element)
left = left_for_activations(INSTANCE.share_bytes, weights, INSTANCE.kv_pool_bytes)
sizes = INSTANCE.share_bytes, weights, INSTANCE.kv_pool_bytes, left
names = "share of the card", "weights", "KV cache", "left"
rows = [(name, shown(size, "GiB", 1)) for name, size in zip(names, sizes)]
Table(("what", "size"), rows)

# %% [markdown]
# What is left holds activations, the fixed buffers for replaying a recorded sequence of kernels (a graph), and other working space. Strictly, the
# 12 GiB are for KV *and its auxiliary buffers*; whenever we count how many requests fit, we give all of it to KV.
#
# Weights are stored in BF16, 2 bytes each. Write `1` for `INSTANCE.bytes_per_element` in the cell above and see what an 8-bit format
# would set free.

# %% [markdown]
# ## Two kinds of request, one deadline

# %%
from lib.design_problem import LONG_CONTEXT, SHORT_CHAT

Table.of([SHORT_CHAT, LONG_CONTEXT])

# %% [markdown]
# Every long request begins with the same 6144 tokens: a system prompt and the definitions of tools. Short ones share nothing.
#
# **"Within 7 s" means the complete and correct answer, counted from arrival.** Time in the queue counts. A first token after a
# tenth of a second does not help if the last one is late, and a fast wrong answer does not count at all. These conditions return in every
# section; whatever a technique promises, we ask what it does to *them*.

# %% [markdown]
# ## Which clock?
#
# You will meet several numbers for what seems to be one thing. Here is one decode step of one short request.

# %%
from lib.clocks import one_decode_step

rows = [(r.covers, shown(r.seconds, "ms", 2), r.clock) for r in one_decode_step()]
Table(("what is timed", "time", "clock"), rows, left=("clock",))

# %% [markdown]
# None of them is wrong; they stand at different places. A user waits about 26.5 ms from one output to the next. Inside the engine a
# step takes 26.26 ms; the rest is delivery and what is done around a step. A fit is a formula made from such engine times, good for asking "what if",
# and its constant, 26.22 ms, is what a step costs *before* its tokens are counted: no time that anyone ever saw. So every
# time in these notebooks carries its clock.

# %%
from lib.clocks import MEANING

Table(("clock", "meaning"), MEANING.items(), left=("meaning",))

# %% [markdown]
# ## The road through the chapter
#
# First we count: how many requests the memory can hold, then how much less has to be read per output token when a batch shares the
# weights. Each technique after that saves one thing and adds another, and both sides will be computed:
#
# | technique | saves | adds |
# | --- | --- | --- |
# | larger batches | weight reads per output | KV to hold and read; a longer wait for each user |
# | continuous batching, chunked prefill | places left empty, long pauses | decisions at every step |
# | paged memory | space reserved and never used | tables, and the bookkeeping of blocks |
# | prefix sharing and caching | computing and storing the same text twice | state that occupies memory while nobody uses it |
# | compression | bytes to hold and to read | conversion, and answers that may differ |
# | offloading | memory on the card | copies over a slower link, at every step |
# | speculative decoding | steps | drafts that are thrown away |
#
# Section 8.6 asks one question of them: **16 long requests arrive at the same moment. Which
# configuration should the instance run?** Make a guess now and keep it: a shared prefix,
# smaller KV, moved weights, or guessed tokens?

# %% [markdown]
# ## Contents
#
# **[8.1 Requests and the resources they need](8_1_requests_and_resources.ipynb)** · 8.1.1 A request's life on the card · 8.1.2 Memory for weights, KV and
# buffers · 8.1.3 From one request's time to a service objective
#
# **[8.2 Batching and scheduling](8_2_batching_and_scheduling.ipynb)** · 8.2.1 Sharing the weights · 8.2.2 From fixed to continuous batches · 8.2.3 Long prefills,
# in chunks · 8.2.4 Token budgets, shapes and step time
#
# **[8.3 The KV cache](8_3_kv_cache.ipynb)** · 8.3.1 Reserving, wasting, paging · 8.3.2 Sharing branches, copying on write, giving back · 8.3.3 Reusing prefixes in
# conversations and agents · 8.3.4 What to keep, evict, move or recompute
#
# **[8.4 Compression and offloading](8_4_compression_and_offload.ipynb)** · 8.4.1 Quantised weights · 8.4.2 Smaller KV and what reading it costs · 8.4.3 Offloaded weights and
# prefetching · 8.4.4 Capacity and speed, at what quality
#
# **[8.5 Speculative decoding](8_5_speculative_decoding.ipynb)** · 8.5.1 Draft, verify, go back · 8.5.2 Time and outputs of a round · 8.5.3 Where drafts come
# from · 8.5.4 Draft length under load
#
# **[8.6 Performance under load, and the choice](8_6_serving_and_choice.ipynb)** · 8.6.1 Arrivals, queues, admission · 8.6.2 Goodput: right and in time · 8.6.3 Configuration, card and the
# cost of a whole task
#
# **[8.7 Summary](8_7_summary.ipynb)**, a test of your predictions, what the models miss, history and further reading
#
# **Exercises**, each named at the end of what it belongs to:
# [exercise 8-1](../exercises/ex_8_1_reads_and_capacity.ipynb) · [exercise 8-2](../exercises/ex_8_2_chunk_from_interval.ipynb) · [exercise 8-3](../exercises/ex_8_3_blocks_and_sharing.ipynb) · [exercise 8-4](../exercises/ex_8_4_which_prefix_to_keep.ipynb) · [exercise 8-5](../exercises/ex_8_5_weights_in_host_memory.ipynb) · [exercise 8-6](../exercises/ex_8_6_compressed_kv.ipynb) · [exercise 8-7](../exercises/ex_8_7_draft_length.ipynb) · [exercise 8-8](../exercises/ex_8_8_whole_task.ipynb) · [exercise 8-9](../exercises/ex_8_9_choice_of_configuration.ipynb)
