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
# # 8.4 Compression and offloading
#
# Sharing removes what is stored twice. But what if no two requests begin alike? Then there are two ways left to make room: store each number in fewer bits, or keep on the card only what is needed now and bring the rest when its turn comes. Each has a price. The first may change the answers, the second moves the same bytes again in every step.
# [Back to the contents](8_0_design_problem.ipynb)

# %% [markdown]
# ## 8.4.1 Quantised weights
#
# **Quantisation** cuts a tensor into **groups** of values. Of each value it stores a short **code**, a small whole number, and of each group what is needed to turn codes back into numbers: a **scale**, sometimes a minimum. Reading computes code × scale, which is near the value and not the value. All that is stored beside the codes is **metadata**, and it takes bytes like everything else.
#
# Take Q2_K, one of the formats of GGML, a library that many run models with on small machines. "Q2" says that codes have 2 bits. A file of one billion values, then, takes a quarter of a billion bytes?

# %%
from lib.quantization import Q2_K

print(f"{Q2_K.group_bytes} = {Q2_K.code_bytes} + {Q2_K.metadata_bytes} bytes a group")
print(f"{float(Q2_K.bits_per_value)} bits a value")
print(f"{float(Q2_K.metadata_share):.0%} metadata")

# %% [markdown]
# Not quite. A group has 256 values: 64 bytes of codes, and another 20 of metadata. It is cut into 16 sub-groups, each with 4 bits for its scale and 4 for its minimum, together 16 bytes; two FP16 numbers that scale all of those take the other 4. 84 bytes for 256 values are 2.625 bits a value; 24 % of them metadata. The narrower the code, the larger this part.
#
# What comes back? Here 256 values, once without surprises and once with a single large one among them:

# %%
import numpy as np

from lib.q2_k import decode_q2_k, encode_q2_k

plain = np.random.default_rng(8).normal(size=256).astype(np.float32)
spike = plain.copy()
spike[100] = 20
beside, far = [*range(96, 100), *range(101, 112)], [*range(96), *range(112, 256)]
for name, values in {"plain": plain, "one spike": spike}.items():
    off = decode_q2_k(encode_q2_k(values)) - values
    near, rest = (np.sqrt(np.mean(off[places] ** 2)) for places in (beside, far))
    print(f"{name:10} error {near:.2f} in its sub-group, {rest:.2f} elsewhere")

# %% [markdown]
# The spike stretches the scale of its own sub-group: the 15 small values around it fall onto the few codes that are left, and their error grows to three times what it was. Elsewhere it hardly changes. That is what small groups are for: they keep such damage local. Each of them costs metadata.
#
# ### A file that must fit
#
# Weights are loaded once and shared by all requests; KV comes with each of them and grows. On a small machine they compete for the same memory. Qwen3-235B-A22B has been published as a file called Q2_K. It mixes formats: most tensors are Q2_K, some that matter more are wider, and a few small ones stay floats. (Which tensor has which format we infer from the model's shape; codes and metadata then agree with the file to the byte.)

# %%
from figures.tables import Table
from lib.file_budget import file_parts, stored_types
from lib.units import shown

types = stored_types()
rows = [
    (
        one.stored_as.name,
        one.tensors,
        f"{one.values / 1e9:.2f}",
        shown(one.code_bytes, "GiB", 2),
        shown(one.metadata_bytes, "GiB", 2),
    )
    for one in types
]
Table(("type", "tensors", "values, 10⁹", "codes or floats", "metadata"), rows)

# %%
from lib.file_budget import bits_per_weight

file = file_parts(types)
print(f"{file.total_bytes:,} bytes = {shown(file.total_bytes, 'GiB', 2)}")
print(f"{bits_per_weight(file.total_bytes):.2f} bits a weight")

# %% [markdown]
# 64.43 GiB are codes and floats, 15.37 GiB metadata, and with the header and some padding the file has 79.81 GiB. Divide by the number of values: nearly three bits, in a file named after two.
#
# An Apple M2 Max is sold with 96 GB of memory. We count them as decimal, which is the cautious reading: systems count memory in binary units, and do not give all of it to the GPU. Leave 8 GiB, binary, for the system and the workspace. 81.41 GiB remain. There is a second file of the same model, UD-Q2_K_XL, with 81.97 GiB. What fits?
#
# Before you move anything, predict: beside which of the two files is there room for the KV of one request of 8K tokens?

# %%
from figures.explorer import explore

explore("file-in-memory")

# %%
from lib.file_budget import CONTEXTS, file_budget

rows = []
for variant in ("Q2_K", "UD-Q2_K_XL"):
    for context in CONTEXTS:
        budget = file_budget(variant, context)
        left, kv = budget.left_bytes, budget.kv_bytes_per_request
        amounts = (shown(amount, "GiB", 2) for amount in (left, kv))
        rows.append((variant, context, *amounts, budget.requests_that_fit))
print(shown(budget.usable_bytes, "GiB", 2), "for weights and KV")
Table(("file", "context", "left beside it", "KV of a request", "fit"), rows)

# %% [markdown]
# Behind the first file 1.60 GiB are left. One context of 8K tokens takes 1.47 GiB of BF16 KV, so one request fits, with 0.13 GiB to spare. 32K tokens take 5.88 GiB and do not fit. The second file is 0.56 GiB too large before the first token. The files differ by 2.16 GiB, and that decides whether there is a service at all.
#
# ### But the file does load
#
# It does, and this is a trap. The CPU and the GPU of this machine share one memory (**unified memory**), and a weight file is usually **mapped**: its pages (of the operating system, not those of KV in 8.3) get an address at once, and become resident, that is, take memory, when they are first touched. So loading succeeds. But a decode step touches *all* pages of the weights that it uses, in the same order each time. If they are more than fit, some have to leave. A system that throws out the page that was not used for longest (real ones come near to it) throws out exactly the one that the next step needs first. This is **thrashing**. Here it is counted for a model that reads all of its weights in each step. (Qwen3-235B reads only a part of them for each token, and other parts for other tokens, which softens it.)

# %%
from lib.mapped_pages import MappedFile

for variant in ("Q2_K", "UD-Q2_K_XL"):
    budget = file_budget(variant, 8192)
    file = MappedFile(budget.file_bytes, budget.usable_bytes)
    pages = [file.pages_read(step) for step in range(3)]
    read = [shown(count * file.page_bytes, "GiB", 1) for count in pages]
    print(f"{variant:10} read in steps 1, 2, 3: {', '.join(read)}")

# %% [markdown]
# By this rule a file that is too large by a little is not read again a little: it is read again *whole*, in every step. Two remedies are left: fewer bytes, of weights as here or of KV (8.4.2); or only what is needed now, brought in time and by plan (8.4.3).
#
# What the machine was seen to do, with a model small enough for it (Qwen3-8B, 4-bit weights, BF16 KV):

# %%
from lib.records import record

columns = {
    "context": "context_tokens",
    "slots": "slots",
    "run": "repeat",
    "KV, GiB": "kv_gib",
    "all, GiB": "active_gib",
    "all prefills, s": "prefill_s",
    "right": "correct",
    "tasks": "tasks",
}
Table.of(record("m2max").rows, columns)

# %% [markdown]
# (Clock: client. A slot is room for one context. Contexts were filled one after another, and with one slot of 32K two tasks in a row: this is a record of capacity, not of speed with several users.) KV grows as counted, 1.125 GiB for each 8K. And it takes patience: two contexts of 32K took four to five minutes to fill.

# %% [markdown]
# ## 8.4.2 Smaller KV, and what reading it costs
#
# The same idea for KV. A context of 8K tokens takes 1152 MiB in BF16. There are two ways to make a token's KV smaller, and they multiply:
#
# - the **bit width** says how many bits each value takes;
# - the **representation** says how many values there are. The compact state of latent attention (MLA, chapter 9) has fewer of them: 549 MiB for 8K tokens in BF16, and that in a far larger model.

# %%
from lib.model import QWEN3_8B, kv_bytes, preset

for model in (QWEN3_8B, preset("DeepSeek-V3")):
    print(f"{model.name:12} {shown(kv_bytes(model, 8192), 'MiB')}")

# %% [markdown]
# Now the bits. q8_0 gives 32 values one scale of two bytes (FP16) and a code of 8 bits each; q4_0 the same with 4 bits. 32 values in BF16 take 64 bytes. Figure 8-23. Stop and play:

# %%
explore("group-formats")

# %% [markdown]
# 34 and 18 bytes, not 32 and 16: per value 8.5 and 4.5 bits. Since every group has its scale, metadata grows with the context, too. For 8K tokens:
#
# $$M_{q8} = 1152 \times \frac{34}{64} = 612\ \mathrm{MiB}, \qquad M_{q4} = 1152 \times \frac{18}{64} = 324\ \mathrm{MiB}.$$
#
# 540 and 828 MiB are saved. Larger groups save a little more, and lose more: one scale must serve more values.
#
# ### Which values suffer
#
# Look at the two kinds of data in the figure. On plain normal values keys and values suffer alike. The keys of real models are not like that: a few of their channels are large in *every* token. They stretch the scale of each group they are in, and they make large scores, in which the same relative error moves more. So a test on random numbers proves little, and keys and values need to be tried apart. (FP8 in the table is a float of 8 bits, without groups.)

# %%
from lib import codecs
from lib.attention_error import Data, attention_error

rows = []
for stored in (codecs.BF16, codecs.fp8(), codecs.Q8_0, codecs.Q4_0):
    for data in Data:
        of_keys = attention_error(data, key=stored.as_read)
        of_values = attention_error(data, value=stored.as_read)
        rows.append((stored.name, data, f"{of_keys:.2%}", f"{of_values:.2%}"))
Table(("format", "data", "keys in it", "values in it"), rows, left=("data",))

# %% [markdown]
# (Made data with a fixed seed, by our own attention: an order of magnitude, no promise about a model.)
#
# ### A pool that stores bytes
#
# The pool of section 8.3 only counted. Here its blocks hold bytes, in a format for keys and one for values. Capacity, the bytes that copy on write moves, and the error of attention come from the same array:

# %%
from lib.paged_attention import KvBlocks, paged_attend
from lib.paging import Pool

draw = np.random.default_rng(8)
keys, values = draw.normal(size=(2, 40, 2, 64))
queries = draw.normal(size=(1, 4, 64))
pool = Pool(blocks=4, block_tokens=16)
sequence = pool.admit(list(range(40)))
outputs = {}
for stored in (codecs.FLOAT64, codecs.BF16, codecs.Q8_0, codecs.Q4_0):
    kv = KvBlocks(4, 16, kv_heads=2, head_dim=64, key=stored, value=stored)
    kv.write(pool.slots_to_write(sequence, 0, 40), keys, values)
    outputs[stored.name] = paged_attend(queries, kv, sequence.table, 40)
    off = np.linalg.norm(outputs[stored.name] - outputs["float64"])
    error = off / np.linalg.norm(outputs["float64"])
    print(f"{stored.name:8} {kv.block_bytes:>6} bytes a block, error {error:.2%}")

# %% [markdown]
# ### How many fit
#
# A long request that is done holds 1188 MiB in blocks. Stored as q8_0 it is $1188 \times 34/64 = 631.125$ MiB, and 16 independent ones take 9.86 GiB: they fit into the 12 GiB of the design problem, without any common prefix.

# %%
from lib.design_problem import LONG_CONTEXT
from lib.kv_compression import POOL, stored_in
from lib.quantization import BF16, Q4_0, Q8_0

kinds = {"alone": LONG_CONTEXT.shape_alone, "sharing": LONG_CONTEXT.shape}
rows = []
for kv_format in (BF16, Q8_0, Q4_0):
    pool = stored_in(POOL, kv_format)
    for name, kind in kinds.items():
        held = shown(pool.held_bytes(kind, 16), "GiB", 2)
        rows.append((kv_format.name, name, held, pool.requests_that_fit(kind)))
Table(("KV in", "16 long requests", "hold", "fit in 12 GiB"), rows)

# %% [markdown]
# Sharing and compressing save different things. Sharing removes a prefix that is stored twice and leaves each number as it is; compressing makes each number smaller and may change it. Nothing forbids both.
#
# ### Less to read, something to convert
#
# What is smaller is read faster, but must be converted before it is used. Say $\Delta D$ bytes less are read at an effective bandwidth $\beta$, and converting adds $T_c$ *in series*. Then a step saves
#
# $$\Delta T = \frac{\Delta D}{\beta} - T_c.$$
#
# In the step of 64 requests, the one nearest to the limit of reading, $\beta$ was at least 1.16 TB/s, 65 % of the 1792 GB/s in the data sheet (8.6.3 has the table). A context of 8K tokens in q8_0 is 540 MiB less, read in 0.487 ms. If converting takes 0.2 ms, 0.287 ms are saved; if it takes 0.8 ms, 0.313 ms are *lost*.

# %%
from lib.kv_compression import CONVERSIONS_S, READ_BYTES_S, net_saving, read_time
from lib.units import MIB

saved = 540 * MIB
bandwidth = f"{READ_BYTES_S / 1e12:.3f} TB/s (engine)"
read = shown(read_time(saved, READ_BYTES_S), "ms", 3)
print(f"reading less saves {read} at {bandwidth}")
for conversion in CONVERSIONS_S:
    net = shown(net_saving(saved, READ_BYTES_S, conversion), "ms", 3, signed=True)
    print(f"converting in {shown(conversion, 'ms', 1)} (assumed): {net}")

# %% [markdown]
# Whether a compressed format is faster is decided by two times, not by the format. And one of them grows with the context. An early evaluation on an H100 (Llama-3.1-8B, one request at a time) fitted the interval between outputs as
#
# $$T_\mathrm{BF16} = 6.44 + 4.37 \times 10^{-5} L, \qquad T_\mathrm{FP8} = 6.58 + 2.37 \times 10^{-5} L \quad \mathrm{ms}.$$
#
# FP8 costs 0.14 ms more whatever the length, and $2 \times 10^{-5}$ ms less for each token of context. They cross where one makes up for the other:

# %%
from lib.kv_compression import H100_FITS, compression_of_fits

for tokens in (2048, 16_384):
    bf16, fp8 = (shown(fit.at(tokens), "ms", 2) for fit in H100_FITS.values())
    print(f"{tokens:>6} tokens: BF16 {bf16}, FP8 {fp8} (fit)")
print(f"they cross at {compression_of_fits().break_even_tokens:.0f} tokens")

# %% [markdown]
# At 7000 tokens. At 2K FP8 is slower (6.63 against 6.53 ms), at 16K faster (6.97 against 7.16 ms). (A fit that others published; its coefficients were rounded there.)
#
# What does a kernel really read? Counters of one layer's decode attention on our card, 7239 tokens of context:

# %%
columns = {"KV": "kv_format", "bytes read": "dram_read_bytes", "time, ns": "kernel_ns"}
Table.of(record("decode_attention_traffic").rows, columns)

# %% [markdown]
# (Measured once each, on one layer, without the last reduction; do not multiply it by the number of layers.) The bytes are halved, as counted. The time is not: it falls by a third. (`fp8_kv_default` is what the engine does when asked for FP8 KV; 8.4.4 takes it apart.)
#
# And capacity? Requests of 7239 tokens in a pool of 8 GiB. Whoever does not fit waits; but the engine also lets in some whose *answers* will not fit, and these are preempted and computed again (8.3.2). Each line was run in two rounds, so 7 requests are 14 answers:

# %%
columns = {
    "KV": "kv_format",
    "requests": "requests",
    "preempted, a round": "preemptions",
    "right, of two rounds": "correct",
}
Table.of(record("kv_format_concurrency").rows, columns)

# %% [markdown]
# In the same memory FP8 holds twice the tokens, and less has to be computed again. Look at the last column too: not all were right with BF16, and in each pair fewer with FP8. Section 8.4.4 is about that.
#
# ### Local and global state
#
# Models with windows keep two kinds of state, and compression acts on them differently. At 8K tokens DeepSeek V4.1 keeps 6.953 MiB for the whole text and 2.578 MiB in its windows, 9.531 MiB together. V4 keeps 30.521 MiB:

# %%
from lib.kv_compression import deepseek_state

states = [deepseek_state(name) for name in ("deepseek_v4", "deepseek_v4.1")]
for tokens in (8192, 131_072):
    v4, v41 = (float(state.bytes_at(tokens)) for state in states)
    mib = f"V4 {shown(v4, 'MiB', 3)}, V4.1 {shown(v41, 'MiB', 3)}"
    print(f"{tokens:>7} tokens: {mib}, {v4 / v41:.2f} x")
whole_text = [float(state.global_bytes(8192)) for state in states]
print(f"of the whole text alone: {whole_text[0] / whole_text[1]:.2f} x")

# %% [markdown]
# 3.20 times as much in all, but 3.95 times for the part that covers the whole text. The windows are a *fixed* amount, whatever the length; in a short context they weigh more, and pull the ratio down. In a long one they hardly count.

# %% [markdown]
# ## 8.4.3 Offloading weights, prefetching, and what moves in each step
#
# Compression makes data smaller. The other way is to let data take turns: bring them to the card when they are needed, and use the space for others when they are done. **Weight offloading** keeps some weights in host memory and copies them to the card just before their layer is computed. The memory becomes free for KV. But weights are used in *every* step, so they are moved in every step, as long as the answer lasts.
#
# ### Room
#
# The feed-forward network (FFN) of one layer of Qwen3-8B is three matrices, 288 MiB in BF16. Offload the FFN of every fourth of 36 layers: nine sets, 2592 MiB. They need a place to arrive, though, a **prefetch buffer** of 288 MiB; copying ahead of time into it is **prefetching**. With one buffer 2304 MiB are gained, with two 2016 MiB. Figure 8-24:

# %%
explore("offload-memory")

# %% [markdown]
# In units of 8K inputs (1152 MiB) that is room for 2 more with one buffer, and for 1 with two. In units of *complete* long requests (1188 MiB) it is 1 either way. Count what is needed at the end, not at the beginning: the second buffer seemed to cost a request and costs none. (Try *every other layer* above: there it is the other way round.)

# %%
from lib.memory import paged_bytes
from lib.model import kv_bytes_per_token
from lib.offload import Offload, bytes_of_set, every_nth


def every_fourth(buffers):
    return Offload(36, every_nth(36, 4), bytes_of_set(QWEN3_8B), buffers)


begun = kv_bytes(QWEN3_8B, 8192)
done = paged_bytes(8192 + 255, 16, kv_bytes_per_token(QWEN3_8B))
for buffers in (1, 2):
    offload = every_fourth(buffers)
    net = shown(offload.net_bytes, "MiB")
    more = offload.extra_requests(begun), offload.extra_requests(done)
    print(f"{buffers}: {net} gained, {more[0]} more inputs, {more[1]} more complete")

# %% [markdown]
# ### Two rules
#
# Copy and compute may run at the same time, under two rules:
#
# 1. a layer is computed after its copy is **done**;
# 2. a buffer is filled again after the layer that uses it is **done**.
#
# With one buffer the second rule stops the next copy while *this* layer computes; all other layers still hide it. With two, the next copy goes to the other buffer. The picture shows one **pass** through all layers, a step, after so many that it repeats itself: the link above, the layers below. Over this link compute has to wait. Find what makes the waiting go away.

# %%
explore("copy-and-compute")

# %% [markdown]
# The times are those of footnote 16 of the book: the recorded step of 26.26 ms (engine, batch 1) in 36 equal parts of 0.729 ms, copies at the nominal bandwidth of the link. Nothing of it was run.

# %%
from lib.offload import NVLINK, PCIE
from lib.prefetch import StepKind, hiding_link, plain_step_ns, prefetch

step = plain_step_ns(StepKind.DECODE)
for link in (PCIE, NVLINK):
    for buffers in (1, 2):
        run = prefetch(every_fourth(buffers), step, link.bandwidth_bytes_s)
        copy, full = (shown(ns / 1e9, "ms", 2) for ns in (run.copy_ns, run.pass_ns))
        print(f"{link.name:18} {buffers} buffer(s): a set {copy}, a pass {full}")

# %% [markdown]
# Over PCIe one set takes 4.72 ms, and a copy has only four layers to hide behind, 2.92 ms of work: compute waits, whatever the number of buffers. With two the link never rests, and the pass takes as long as its copies. With one the link rests as well, while a layer computes from the only buffer, and those rests come on top. Over NVLink-C2C a set takes 0.67 ms and is hidden in either case.
#
# Nor does one buffer put everything in series: it keeps the copy only from the compute of *its own* layer, and the three layers between, 2.19 ms, still run beside it. What the second buffer buys is that a slower link still hides everything:

# %%
for buffers in (1, 2):
    least = hiding_link(every_fourth(buffers), step) / 1e9
    print(f"{buffers} buffer(s): from {least:.0f} GB/s")

# %% [markdown]
# ### The bytes decide
#
# Our card hangs on PCIe 5.0 x16, nominally 64 GB/s in one direction. Nine sets are 2592 MiB, 2.72 GB, and
#
# $$T_\mathrm{copy} \ge \frac{2.72\ \mathrm{GB}}{64\ \mathrm{GB/s}} = 42.5\ \mathrm{ms}.$$
#
# The decode step took 26.26 ms. Even if all else runs beside the copies, no step is shorter than 42.5 ms. Figure 8-25. Stop and play:

# %%
explore("copy-time")

# %% [markdown]
# With four requests in a step the card gives at most $4 / 0.0425 = 94$ tokens a second, and each of the four waits 42.5 ms between two of its outputs. 256 outputs need 255 steps after the first: 10.8 s for copies alone, and the design problem allows 7 s. Over PCIe, with one output a step, these weights cannot be offloaded, whatever the scheduler does.
#
# GH200 joins its CPU and GPU by NVLink-C2C, 450 GB/s in one direction (the 900 GB/s of the data sheet are both). There the same bytes take 6.0 ms a step and 1.54 s in all, and would hide behind the 26.26 ms. (These are of our card; a GH200 computes at its own pace.)

# %%
from lib.offload import decode_steps, lowest_link

steps = decode_steps(outputs=256)
for link in (PCIE, NVLINK):
    copies = every_fourth(2).released_bytes / link.bandwidth_bytes_s
    one, every = shown(copies, "ms", 1), shown(steps * copies, "s", 2)
    print(f"{link.name:18} {one} a step, {every} in {steps}")
print(f"in time from {lowest_link(every_fourth(2), steps, limit_s=7) / 1e9:.0f} GB/s")

# %% [markdown]
# What decides is the bytes of a step over the bandwidth. Overlap hides time; it moves no byte less.
#
# But per *step* is not per *token*. A larger batch, or several tokens a round (8.5), spread the same copy over more outputs; and a prefill of many tokens computes long enough to hide it. Offloading can be free in prefill and ruin decode. From how many tokens on does a prefill hide the copies over PCIe, with two buffers? It depends on whom you ask for the time of a step. The FLOP rule counts only what the device itself has to do; the fit (8.2.2) has what a step costs anyway in it as well, so its short prefills take longer and hide more:

# %%
from lib.prefetch import hiding_prompt
from lib.step_time import FIT, device

for name, model in {"fit": FIT, "FLOP rule": device()}.items():
    tokens = hiding_prompt(every_fourth(2), PCIE.bandwidth_bytes_s, model)
    print(f"{tokens:>5} tokens ({name})")

# %% [markdown]
# ### Compress, then move
#
# Fewer bytes could be moved if the weights were compressed for the journey. Say $S$ bytes become $rS$, and the decompressor puts out $R$ bytes of the original a second, after the transfer. That is faster only if
#
# $$\frac{rS}{B} + \frac{S}{R} < \frac{S}{B}, \qquad\text{that is}\qquad R > \frac{B}{1 - r}.$$
#
# For 96 MiB, compressed to a quarter, over PCIe 5.0: 1.57 ms as they are, 0.39 ms compressed. Decompression may use up the 1.18 ms between them, but no more: to gain anything it must put out more than 85.3 GB/s.

# %%
from lib.offload import (
    COMPRESSED_EXAMPLE_BYTES,
    COMPRESSED_TO,
    break_even_decompression,
    compressed_transfer_time,
)
from lib.units import GB

size, link = COMPRESSED_EXAMPLE_BYTES, PCIE.bandwidth_bytes_s
plain = shown(size / link, "ms", 2)
for rate in (50, 85.3, 200):
    seconds = compressed_transfer_time(size, COMPRESSED_TO, link, round(rate * GB))
    print(f"{rate:>5} GB/s: {shown(seconds, 'ms', 2)} instead of {plain}")
for link in (PCIE, NVLINK):
    least = break_even_decompression(link.bandwidth_bytes_s, COMPRESSED_TO) / GB
    print(f"{link.name}: above {least:.1f} GB/s")

# %% [markdown]
# The faster the link, the faster the decompressor has to be.
#
# In all this section the GPU computes and host memory only stores. Chapter 9 goes a step further: if the weights are in host memory anyway, the CPU can compute with them, and only small activations travel. Then rows per expert and the CPU's time decide.
#
# [Exercise 8-5](../exercises/ex_8_5_weights_in_host_memory.ipynb): what offloading gains and what it moves, and the link that would be fast enough.

# %% [markdown]
# ## 8.4.4 Capacity and speed, at what quality
#
# So far a smaller format cost conversion time and an *error*. Does the error change answers? That is a question for experiments, and for careful ones, because more than one thing can change at a time. An **execution backend** is the implementation (the kernels) that carries out the attention. Turn on "FP8 KV" in an engine, and up to four things change:
#
# - the format in which KV is **stored**;
# - the format of the **queries** it is multiplied with;
# - the **conversion** between them;
# - the precision in which sums are **reduced**.
#
# To find the cause, change one and keep the rest.
#
# The material: documents of records with a six-digit number each, and a question for three of those numbers. Documents of 128 records and of 512, four of each, make eight fixed tasks, called n128-r0 to n128-r3 and n512-r0 to n512-r3, here 1 to 8. Each is run twice alone and twice with three others, which makes 32 answers a configuration. Qwen3-8B with BF16 weights, temperature 0. Figure 8-26, with KV in BF16:

# %%
explore("bf16-kv-answers")

# %% [markdown]
# 28 of 32 are right. And the errors have an address: all four are task 5. Not one answer in eight is wrong by chance; one task of eight is wrong every time.
#
# Figure 8-27: the engine's FP8 option as it comes. It stores KV in FP8, and makes FP8 of the queries as well:

# %%
explore("fp8-default-answers")

# %% [markdown]
# 26. Now task 6 is wrong in all four runs. Task 5 has become right when it runs alone, and is still wrong beside others: who else is in the batch can change the shapes of the kernels, and with them the order in which sums are rounded.
#
# Is it the 8 bits of the KV? Figure 8-28 changes *one* thing: queries stay in BF16, KV stays in FP8.

# %%
explore("fp8-kv-bf16-q-answers")

# %% [markdown]
# 28 again, as many as with BF16 KV. And not the same: task 5 is right in all runs, task 6 wrong in all. Eight cells have changed, four each way, and the total shows none of it.

# %%
from lib.quality import Changes, Config, Weights, formats_changed, recorded_answers

grids = {config: recorded_answers(Weights.BF16, config) for config in Config}
last = Config.FP8_KV_BF16_Q
for before in (Config.BF16_KV, Config.FP8_DEFAULT):
    changes = Changes(grids[before], grids[last])
    tasks = ", ".join(f"{task} {how}" for task, how in changes.tasks.items())
    changed = " and ".join(formats_changed(before, last))
    print(f"{changed} changed: {changes.changed_cells} cells, {tasks}")

# %% [markdown]
# So is it the 8 bits of the KV? For task 6, here, yes: it is wrong whichever format the queries have. Task 5 beside others depends on the queries, too: in the second line only their format changed, and answers changed with it. So "FP8 KV" is no single thing, and the storage format and the precision of the query have to be tried apart. (Each line changes one format and nothing else that is on record; how a kernel converts and adds up is not.)
#
# ### Eight tasks are not 32 trials
#
# It is tempting to put an error bar on 28 of 32. But four runs of a task that always end alike are one observation, not four. How sure may one be of the share of right answers (95 %, Wilson's interval)?

# %%
from lib.quality import share_interval

right = grids[Config.BF16_KV].share_right
for trials, what in ((32, "answers, were they independent"), (8, "tasks")):
    low, high = share_interval(right, trials)
    print(f"{low:.0%} to {high:.0%} from {trials} {what}")

# %% [markdown]
# From eight tasks, of which one got better and one worse, nobody can say which format answers better. (The *sign test* in the read-outs asks how often a fair coin would part the changed tasks at least as unevenly. One against one: always.) What the grids *do* show is that the answers depend on the format, and where.
#
# A second group, with weights in FP8, is a warning against quick conclusions:

# %%
rows = []
for weights in Weights:
    of_group = [recorded_answers(weights, config) for config in Config]
    rows.append((weights, *(f"{grid.right_answers} of 32" for grid in of_group)))
Table(("weights", *Config), rows)

# %% [markdown]
# There FP8 KV with BF16 queries answers everything right, 32 of 32, and the default path 28 of 32. (The two groups ran apart and with pools of other sizes; each is compared within itself.)
#
# ### A wrong answer costs time
#
# If an answer is checked and found wrong, it is asked for again. The time of the *task* is then the first answer, the check, and the second answer. In a recorded run (another group than that of the figures: FP8 weights, FP8 KV; first answers by the default path, one more try with BF16 queries) two retries were needed. They corrected both errors, and added about 2.0 s of generation and 92 tokens.

# %%
from lib.retries import (
    Documents,
    added_by_retries,
    last_answer_per_solved_task,
    recorded_runs,
    time_per_solved_task,
)

for documents in Documents:
    runs = recorded_runs(documents)
    added = added_by_retries(runs)
    print(f"{documents} documents: {len(runs)} tasks, {added.retries} retries")
    print(f"   added {shown(added.generation_s, 's', 2)} and {added.tokens} tokens")
    each, last = time_per_solved_task(runs), last_answer_per_solved_task(runs)
    print(f"   {shown(each, 's', 3)} a solved task (measured)")
    print(f"   {shown(last, 's', 3)} if failed answers are forgotten")

# %% [markdown]
# The last line of each is the mistake to avoid: whoever counts only the answer that was right makes the format look faster than it is. The new documents, not used before, needed no retry: both errors of the known ones are one document, run twice.
#
# When is a faster first answer slower in the end? If one retry is enough and the check takes next to nothing, a task takes on average $T_\mathrm{first} + p_\mathrm{wrong}\, T_\mathrm{retry}$:

# %%
from lib.retries import expected_task_time

for first, wrong in ((1.0, 0.05), (0.9, 0.25)):
    task = shown(expected_task_time(first, wrong, retry_s=first), "s", 3)
    print(f"first in {first} s, wrong in {wrong:.0%}: a task takes {task} (assumed)")

# %% [markdown]
# ### Which of the two
#
# Back to the 16 long requests. With q8_0 and no sharing they take 9.86 GiB; in BF16, with their prefix shared, 5.91 GiB. The first changes numbers and needs no common prefix. The second changes no number, and needs one. Which is better depends on the whole task: conversion, generation, retries. Section 8.6 compares the two by memory and time alone, with all answers taken to be right and converting for nothing; one of them loses already then.
#
# [Exercise 8-6](../exercises/ex_8_6_compressed_kv.ipynb): capacity, changed answers, and what retries cost.
#
# Next: not fewer bytes in a step, but fewer steps, in [8.5](8_5_speculative_decoding.ipynb).
