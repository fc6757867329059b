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
# # 8.7 Summary, history and further reading
#
# A card, a model, two kinds of request, seven seconds. In 8.0 you made a guess: sixteen long requests arrive at one moment; which technique decides? Guessed tokens: only with drafts are all answers in time. But alone they would not have been enough: it was the shared prefix that made room.
# [Back to the contents](8_0_design_problem.ipynb)

# %% [markdown]
# ## What was learnt
#
# **Weights are shared, KV is not.** A batch reads the weights once for all its requests, so each output costs less of them. But each request reads its own context, and at 8K sixteen contexts weigh more than the weights. How much a batch gains depends on where weights and KV are kept and how fast each is read; on other hardware the same formulas may give another winner (8.1, 8.2).
#
# **A step is an arrangement.** Continuous batching fills a row as soon as it is free, so the same work is done sooner. Chunked prefill bounds how long a long prompt holds up those who are writing; it does not make the card faster, it decides who waits (8.2).
#
# **Memory decides how many run together.** Pages are taken as they are needed, a common prefix is kept once, and what was computed before is found again. Editing the context breaks what can be found: a prefix is equal from its first token, or not at all (8.3).
#
# **Smaller, or elsewhere.** A format with fewer bits holds more and reads less, and may change answers. What is moved away is carried back in every step (8.4).
#
# **Fewer steps.** A draft makes one step of the large model yield several outputs. What is thrown away was computed all the same; a draft pays as long as the step was waiting for something else (8.5).
#
# **Right and in time.** None of these numbers is a goal. The goal is requests answered correctly before their deadline, per second, per joule (8.6).
#
# Each technique saves one thing and adds another. What it came to for the sixteen long requests, alone and one upon another:

# %%
from figures.tables import Table
from lib.serving import CONFIGURATIONS, needs
from lib.units import shown

a, b, c, d = map(needs, CONFIGURATIONS)
steps = {"share the prefix": (a, b), "q8_0 instead": (a, c), "then add drafts": (b, d)}
rows = []
for name, (before, after) in steps.items():
    both = before, after
    memory = " → ".join(shown(one.memory_bytes, "GiB", 1) for one in both)
    total = " → ".join(shown(one.total_s, "s", 1) for one in both)
    rows.append((name, memory, total, f"{before.rounds} → {after.rounds}"))
Table(("", "memory", "all done", "rounds"), rows)

# %% [markdown]
# Sharing the prefix made sixteen requests fit. It did not make them punctual: one output a step, 255 steps, and no step of this engine, run without graphs, is shorter than the host needs to submit it. Of the four only the one with fewer steps was in time. With half the memory none of the four configurations is left, and with outputs of 16 tokens drafts hardly matter. The choice changed whenever an input did, and each time a count of bytes, of time or of steps says why.

# %% [markdown]
# ## Three kinds of result to take along
#
# The next chapter distributes work over many accelerators: which of them do what, how many copies, how KV travels between them. It needs three things from this one. Measure them on your own system: scheduler, cache and kernels are all in these numbers.
#
# **First: how many requests' state the instance can hold**, for a card, a format and a length. Counted, for requests that share nothing, in the pool of 8.0:

# %%
from lib.kv_compression import POOL, stored_in
from lib.memory import RequestShape
from lib.quantization import BF16, FP8, Q4_0, Q8_0

formats = BF16, FP8, Q8_0, Q4_0
rows = []
for tokens in (2048, 8192, 32768):
    request = RequestShape(tokens, 256)
    fit = [stored_in(POOL, kind).requests_that_fit(request) for kind in formats]
    rows.append((tokens, *fit))
Table(("tokens in", *(kind.name for kind in formats)), rows)

# %% [markdown]
# **Second: how fast prefill and decode work**, each by its own unit: new tokens a second, and steps of a request a second. Measured, engine:

# %%
from lib.efficiency import Condition, batches, measured

rows = []
for condition in Condition:
    for one in (measured(condition, batch) for batch in batches(condition)):
        rates = [f"{rate:,.0f}" for rate in (one.prefill_rate, one.decode_rate)]
        rows.append((one.batch, one.context, one.cached, *rates))
head = "batch", "context", "of it cached", "new tokens a second", "calls a second"
Table(head, rows)

# %% [markdown]
# **Third: how long a request takes as the batch and the arrival rate grow.** Measured, client. First with all of a batch submitted together, 2048 tokens in and 256 out:

# %%
from lib.records import record

sweep = record("batch_sweep").where(input_kind="2k_independent")
columns = {
    "batch": "batch_requests",
    "first output, ms": "ttft_median_ms",
    "then one every, ms": "mean_output_interval_median_ms",
}
Table.of(sweep, columns, digits={name: 1 for name in list(columns)[1:]})

# %% [markdown]
# Then as they arrive, in the 336 requests of 8.6.2 (medians of three windows):

# %%
from lib.service_record import CONDITIONS, DEADLINE_S, middle

rows = []
for each in CONDITIONS:
    stay = middle(each, lambda one: one.window.mean_stay_s)
    good = middle(each, lambda one: one.window.goodput(DEADLINE_S))
    rate = f"{each.arrivals_per_s}/s" if each.arrivals_per_s else "together"
    rows.append((each.admission, rate, shown(stay, "s", 2), f"{good:.2f}"))
Table(("admission", "arrivals", "mean stay", "goodput, /s"), rows, left=("arrivals",))

# %% [markdown]
# ## Test yourself
#
# Predictions once more. Most of them no section asked in this form, and each is judged by the function that its section built. Your answers are not stored.

# %%
from figures.self_test import self_test

self_test()

# %% [markdown]
# ## The atlas of disagreement
#
# Many numbers of this chapter were measured, and many were said by a model. Where both exist they can be put side by side: 457 pairs, of decode steps, prefills, whole runs, cached rounds, drafts, sizes of files. A pair does not count as evidence where the model was fitted to that very number.
#
# What is *counted*, blocks, hits, bytes, preemptions, comes out exactly in 109 of 113 pairs. What is *timed* does not. Of each model of a time the smallest, the middle and the largest error, over all numbers that it was not fitted to (20 of the 344 times are left out):

# %%
from lib.atlas import atlas, judged
from lib.comparison import scores

rows = [
    (model, pairs, *(f"{error:.1%}" for error in errors))
    for model, pairs, *errors in scores(judged(atlas()))
]
Table(("model", "pairs", "smallest", "middle", "largest"), rows)

# %% [markdown]
# (*first + p x retry* is the rule of 8.4.4; *recorded decode steps* are taken from a batch of another kind that reads as much; *calibrated on requests alone* is the engine of 8.6.2; the lower bound is that of 8.2.1.) Each dot below is one pair:

# %%
from figures.explorer import explore

explore("atlas")

# %% [markdown]
# What should one believe?
#
# - **Recorded parts added**, as for B in 8.6.3, are off by little: 9.01 s, and the whole batch took 9.13 s. (The 9.02 s there are those of a request with median times.)
# - **The fit of 8.2.2** knows the decode of one request, and adds the host's time to the device's. Prefills of 4 and of 64 prompts it puts 15 and 19 % too low; the sixteen chunks of 8.2.3 took 481 ms, and it says 769. Ask it about a decode step, nothing far from that.
# - **The device** (FLOP and bytes over shares of the peaks) is off by 1 and 6 % on those prefills. But a step in which the card waits for the host it has too short, on decode steps by 46 % in the middle.
# - **max(host, device)** is what an engine without graphs does. Its host time is not a constant of the card: about 26, about 17 and at most 13 ms in three experiments (with *its own host*, the model takes each experiment's own). Calibrate it where you mean to use it, as 8.6.2 did: 0.9 % in the middle.
# - **A lower bound can be too high**: counted per request, 64 requests with a shared prefix would read for 51.6 ms, and 41.2 were measured. So shared blocks did not come from memory 64 times; the card's own cache may have served them. (With 16 requests this could not be told, 8.6.3.)

# %% [markdown]
# ## History and further reading
#
# **Batching.** The idea to let requests enter and leave at every iteration is that of Orca. Sarathi-Serve cuts prompts into chunks so that they no longer stall decode; NanoFlow overlaps, inside one card, work that needs compute, memory and network. Vidur simulates whole clusters, as our scheduler simulates one instance.
#
# - Gyeong-In Yu and others, *Orca: a distributed serving system for Transformer-based generative models*, OSDI 2022
# - Amey Agrawal and others, *Taming throughput-latency tradeoff in LLM inference with Sarathi-Serve*, OSDI 2024
# - Kan Zhu and others, *NanoFlow: towards optimal large language model serving throughput*, OSDI 2025
# - Amey Agrawal and others, *Vidur: a large-scale simulation framework for LLM inference*, MLSys 2024
#
# **Memory for KV.** PagedAttention brought the pages of operating systems to KV; SGLang keeps finished prefixes in a radix tree. FlashAttention keeps no less KV, but never writes the scores.
#
# - Tri Dao and others, *FlashAttention: fast and memory-efficient exact attention with IO-awareness*, NeurIPS 2022
# - Woosuk Kwon and others, *Efficient memory management for large language model serving with PagedAttention*, SOSP 2023
# - Lianmin Zheng and others, *SGLang: efficient execution of structured language model programs*, NeurIPS 2024
#
# **Many adapters, one model.** Low-rank adapters let many variants share one set of weights (8.2.1). Punica computes a batch in which each row may have an adapter of its own; S-LoRA keeps thousands of them, and their KV, in one memory.
#
# - Edward Hu and others, *LoRA: low-rank adaptation of large language models*, ICLR 2022
# - Lequn Chen and others, *Punica: multi-tenant LoRA serving*, MLSys 2024
# - Ying Sheng and others, *S-LoRA: serving thousands of concurrent LoRA adapters*, MLSys 2024
#
# **Attention that keeps less.** Grouped queries, latents, windows and recurrent layers change what has to be kept (8.1.2, 8.3.3). With a recurrent state a prefix is no longer a piece of a table but a snapshot; Marconi asks which snapshots are worth their room.
#
# - Joshua Ainslie and others, *GQA: training generalized multi-query transformer models from multi-head checkpoints*, EMNLP 2023
# - DeepSeek-AI, *Technical reports of DeepSeek-V2 (2024), V3 (2024), V4 and V4.1 (2026)*
# - Kimi Team, *Kimi Linear: an expressive, efficient attention architecture*, 2025
# - Rui Pan and others, *Marconi: prefix caching for the era of hybrid LLMs*, MLSys 2025
#
# **Smaller numbers.** The formats q8_0, q4_0 and Q2_K come from the ggml library, which llama.cpp is built on. LLM.265 goes another way: it lets the video codec of a GPU compress tensors. With memory that CPU and GPU share, capacity and link become one question; the record of the M2 Max in 8.4.1 shows KV that was really allocated there.
#
# - Georgi Gerganov and others, *ggml* and *llama.cpp*
# - Ceyu Xu and others, *LLM.265: video codecs are secretly tensor codecs*, MICRO 2025
# - Qwen Team, *Qwen3 technical report*, 2025
#
# **Drafts.** That a draft need not change the distribution was shown twice in the same months. What came later changes mostly what a draft costs and how much of it is accepted: looked up in the prompt, guessed from the target's own features (EAGLE), by heads that were trained with it (MTP, in DeepSeek-V3), written in parallel (DFlash).
#
# - Yaniv Leviathan, Matan Kalman, Yossi Matias, *Fast inference from Transformers via speculative decoding*, ICML 2023
# - Charlie Chen and others, *Accelerating large language model decoding with speculative sampling*, 2023
# - Apoorv Saxena, *Prompt lookup decoding*, 2023
# - Yuhui Li and others, *EAGLE: speculative sampling requires rethinking feature uncertainty*, ICML 2024
# - Jian Chen, Yesheng Liang, Zhijian Liu, *DFlash: block diffusion for flash speculative decoding*, ICML 2026
#
# **Loads, and laws older than any of this.** The public traces that `read_trace` knows come with the papers on Splitwise (the Azure traces), BurstGPT and Mooncake.
#
# - Gene Amdahl, *Validity of the single processor approach to achieving large scale computing capabilities*, AFIPS 1967
# - John Little, *A proof for the queuing formula L = λW*, Operations Research 9(3), 1961
# - Samuel Williams, Andrew Waterman, David Patterson, *Roofline: an insightful visual performance model for multicore architectures*, CACM 52(4), 2009
# - Pratyush Patel and others, *Splitwise: efficient generative LLM inference using phase splitting*, ISCA 2024
# - Yuxin Wang and others, *BurstGPT: a real-world workload dataset to optimize LLM serving systems*, 2024
# - Ruoyu Qin and others, *Mooncake: trading more storage for less computation — a KVCache-centric architecture for serving LLM chatbot*, FAST 2025
#
# This chapter follows chapter 8 of Bojie Li, *Understanding AI Infra: quantitative analysis and system design* (in Chinese). Its measured numbers come from the public repository of that book.
