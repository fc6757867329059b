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
# # 8.6 Performance under load, and the choice
#
# So far the requests were given: four, or sixteen, all there at the start. A service is never still. While one request is computed the next arrives, and whether the instance is well arranged shows in how many users have the right answer before they give up.
# [Back to the contents](8_0_design_problem.ipynb)

# %% [markdown]
# ## 8.6.1 Arrivals, queues, admission
#
# ### How many are in the system?
#
# A request is *in the system* from its arrival until it is done. Some **queue**. Some are **computed**. And some only **hold state**: an agent has called a tool, the tool runs for seconds, nothing is computed meanwhile, but the KV had better be there when it returns. (Many engines see two requests here, and between them keep the KV only as a cache does, 8.3.3. Ours holds it, to show what that takes.) So how much room a service needs depends on how many are in the system.
#
# How many are that on average? Let requests arrive at a mean rate $\lambda$ and stay for $\bar T$ on average, from arrival to last output, queue and tools included. Then
#
# $$\bar n = \lambda \bar T,$$
#
# **Little's law**. It knows nothing of schedulers or batches. Note how long each request stays, add it all up, divide by the time you watched: that is the mean number in the system, as whoever stays for a second adds one to the count for a second.

# %%
from lib.little import requests_in_system

for stay in (0.5, 2):
    here = requests_in_system(4, stay)
    print(f"4 arrive a second and stay {stay} s: {here:g} in the system")

# %% [markdown]
# In our scheduler a request that waits for a tool gives its row away and keeps its blocks. When the tool is done it takes the next free row, ahead of those who are new. Watch the three kinds over time, and the KV that they hold:

# %%
from figures.explorer import explore

explore("requests-in-system")

# %% [markdown]
# Compare the two lines *to the last*, rate times mean stay and the mean number: they agree in every run, as they count the same seconds. Over a window inside the run (6 to 12 s) they agree only where the service is *stable*. In overload each newcomer will stay longer than those who are there now, and $\lambda \bar T$ runs ahead. And a slower tool costs no computing at all, but room: with a tool that takes 3 s instead of 1, 14.6 are in the system instead of 6.6, still 2.5 of them with a row, and 83.3 % of the KV that is held belongs to requests without a row.
#
# Larger batches raise the rate that the instance can keep up with, but each request brings KV to read, tokens to compute, work for the host. Where processing can no longer follow the arrivals, the queue grows, and the wait with it.
#
# ### Let in, or not
#
# **Admission** decides whether a request is begun at all. Two questions, before anything is computed for it. Is there room for its KV at its *full* length, not at that of its prompt? And is there time: do queue, prefill and all intervals end before its deadline? Our short request once more, in whole nanoseconds as everything in the scheduler:

# %%
from lib.admission import deadline_ns, time_used
from lib.design_problem import SHORT_CHAT, timed_request
from lib.units import shown

alone = timed_request(queue=0)
prefill = round(1e9 * alone.ttft_s)
interval = round(1e9 * alone.intervals_s[0])
for queue in (100_000_000, 200_000_000):
    used = time_used(queue, prefill, SHORT_CHAT.output_tokens, interval)
    fits = used <= deadline_ns(SHORT_CHAT.deadline_s)
    times = [shown(t / 1e9, "s", 3) for t in (queue, used)]
    print("queue {}, done after {}, in time: {}".format(*times, fits))

# %% [markdown]
# With 0.1 seconds of queue it is in time; with 0.1 more it is late, and each token computed for it is computed for nobody. Whoever knows that on its arrival has three ways: **reject** it at once, so that the user can turn elsewhere; **pass it on** to another instance; or serve it by a **faster configuration**, with drafts say, or with a shorter answer.
#
# But how does a gateway know how long the queue will be? It keeps books: for each request that it let in, when it should end. That is a forecast, not the truth. Here is the engine that 8.6.2 will measure: at most four requests run, prompts are short or long, answers are due after 3 s. 4 requests arrive in a second, 1.7 times what it can bear. What becomes of the requests if all are let in, if users go away at the deadline, if the gateway refuses?

# %%
explore("admission")

# %% [markdown]
# If all are let in, 10 of 32 are in time. If users give up at the deadline, it is 10 again. The queue stays as long as their patience: each of them gets a row at the last moment, has the whole prompt computed, and leaves. 69 % of all tokens are computed in vain, just as if nobody gave up. With a gateway that refuses 8, 24 are in time. But a gateway is as good as its forecast: one that reckons as if each request were *alone* in the engine refuses nobody here, and helps nobody. (Those who are late although users give up were in their last step when the time was over.)
#
# **Cancelling** is needed all the same. A user who goes away, or whose deadline has passed, needs no further steps, so none are scheduled. But a step that has been submitted still writes to its blocks: they are given back only when it has ended (8.3.2).
#
# Nothing here stands alone. Compressed KV lets more requests in; a larger batch shares the weights better; and with a larger batch drafts bring less (8.5.4). So techniques are to be compared on the *same* requests, all effects together. First we need a measure.

# %% [markdown]
# ## 8.6.2 Goodput: right and in time
#
# A short queue and many completed requests a second do not tell whether anybody got what they asked for. In 8.4.4 some answers were wrong. Here some are right and too late. Watch for a time $T_\text{obs}$; let $Q_i$ be 1 if request $i$ is answered correctly, and $D_i$ be 1 if it is done by its deadline. Then the **goodput** is
#
# $$R_\text{good} = \frac{\sum_i Q_i D_i}{T_\text{obs}}.$$
#
# (Elsewhere the word often counts what is in time, right or wrong, or means the highest arrival rate at which most requests still are. Look before you compare.) With *all* completed requests above the line it is the **completion throughput**. The difference is work that the card did for nobody.

# %%
from lib.goodput import goodput

# three requests in two seconds: right and late, right and in time, wrong and in time
goodput(correct=[True, True, False], in_time=[False, True, True], length_s=2)

# %% [markdown]
# ### 336 requests
#
# The same eight questions were asked again and again: find three numbers in a document. Four of the documents are short (1863 tokens), four long (7239); an answer has 46 tokens, and a program knows the right one. It is due 3 seconds after its request arrives. Three ways of letting requests in: **one at a time** (the others wait in the application), **continuous batching** (at most four run), and **all at once**, sixteen submitted together (four run). The first two at 1, 4 and 16 requests a second; with the third that makes seven conditions. Each was run in three windows of 16 requests:

# %%
from lib.service_record import DEADLINE_S, all_windows

windows = all_windows()
asked = sum(len(window.outcomes) for window in windows)
right = sum(window.correct for window in windows)
good = sum(window.qualified(DEADLINE_S) for window in windows)
print(f"{asked} answers, {right} right, {good} right and in time")
print(f"{right - good} right but late")

# %% [markdown]
# One question of the eight was answered wrongly each time; that makes 42 wrong answers. More than three times as many were right and came too late. Figure 8-33 counts all completed requests, condition by condition; the bar is the median of three windows, the dots are the windows. Our simulator can be put beside them, at any rate and length of window:

# %%
explore("completion-throughput")

# %% [markdown]
# Figure 8-34 has the same conditions on the same axis, and counts only answers that are right and in time:

# %%
explore("goodput")

# %% [markdown]
# At 1 request a second both ways give 0.90: there is little to do at any moment, and one after the other is quick enough. At 4 a second, one at a time completes 1.22 a second, and only 0.31 a second count: requests wait longer than the deadline allows. Continuous batching completes 2.33 a second, and 1.02 a second count. At 16 it completes hardly more, 2.38, but now 0.60 a second count, 41 % fewer. The card is as busy as before; it computes answers that come too late.
#
# Two things to know before you believe a bar. A window has 16 requests, so its 95th percentile is the value of rank 16, the longest of all: one slow request moves it. And the three windows of a condition differ: at 4 a second, goodput is 0.79 in one of them and 1.49 in another.
#
# **From when does the clock run?** One at a time, a request waits in the application, where the engine does not see it. Measured from its *sending*, each of them is quick. The user waits from the *planned arrival*.

# %%
from lib.goodput import Since
from lib.service_record import CONDITIONS, middle


def good(since):
    return lambda one: one.window.goodput(DEADLINE_S, since)


for condition in CONDITIONS[:3]:
    rates = [f"{middle(condition, good(since)):.2f} from {since}" for since in Since]
    print(f"one at a time, {condition.arrivals_per_s}/s:", ", ".join(rates))

# %% [markdown]
# ### The load curve
#
# Two rates that were measured lie far apart. Where between them does goodput begin to fall? And is 4 a second really within what the instance can do? To ask, we calibrate the simulator on one condition, one at a time at 1 a second, where each request ran *alone*, and let it predict the six others. How far off is it there? (Simulated against recorded, medians of three windows.)

# %%
from lib.service_calibration import UNSEEN, prediction_error

for condition in UNSEEN:
    rate = condition.arrivals_per_s
    when = f", {rate}/s" if rate else ""
    done = prediction_error(condition, lambda w: w.completion_throughput)
    longest = prediction_error(condition, lambda w: w.longest_s())
    print(f"{condition.admission}{when}:", end=" ")
    print(f"completions {round(100 * done, 1) + 0:+} %,", end=" ")
    print(f"longest request {100 * longest:+.0f} %")

# %% [markdown]
# Completions are met within 1.5 %. Only where hardly anything shares a step, at 1 a second, a single request in the record took longer than the simulator thinks: other services ran on the card, and the simulator knows nothing of them. With it any rate and any length of window can be tried. Stop and play:

# %%
explore("load-curve")

# %% [markdown]
# In windows of 16 requests goodput is best where 2.9 arrive in a second, and at 4 half of it is left, 1.03. But the last of 16 arrives after less than four seconds, before the queue is long. With 256 requests a window it rises until 2.4 arrive in a second, as many as the instance can complete; it is 2.08 there, as one answer in eight is wrong. Beyond that it falls off a cliff: of 256 requests at 4 a second, 215 are answered correctly and too late, the longest takes 42.6 s. Goodput is 0.09, and completions are as high as ever. So 4 a second is not within what this instance can do, and a short window hides that. If requests come by chance, goodput is best at 2 a second already: they come in bunches.
#
# **The rule of action.** Find the rate at which goodput begins to fall, and limit *admission* to what can be served, so that the queue stays short. More arrivals then mean more refusals, told at once. In windows of 256 requests, right and in time a second:

# %%
from lib.load_curve import ServiceLoad

all_in = ServiceLoad(requests=256)
limited = ServiceLoad(requests=256, refuse_beyond_s=DEADLINE_S)
for rate in (2, 4, 8, 16):
    pair = [load.goodput(rate, DEADLINE_S) for load in (all_in, limited)]
    print(f"{rate:>2}/s: all let in {pair[0]:.2f}, late ones refused {pair[1]:.2f}")

# %% [markdown]
# With late ones refused, goodput does not stay level. At 16 a second the gateway lets in too many, and 37 right answers come late after all; still, 2.33 a second are left instead of 0.04. And look closer: how can 8 arrivals a second bring more good answers than the instance could complete before? The gateway refuses whom it expects to be late, and a long document takes longer, so it is the long ones that go. At 4 a second, 67 of the 128 requests with a long document are refused, and not one with a short. Goodput counts heads. Whoever limits admission decides *who* is served, and had better know it.
#
# So three things have to be measured, and none follows from another: tokens a second that the card puts out, how long one user waits, and how many requests a second are right and in time.
#
# ### Your own engine
#
# Everything above was the book's card. What does *yours* do? vLLM (`vllm bench serve --save-result --save-detailed`) and the benchmark client of SGLang (`--output-details`) write a file that `read_benchmarks` reads. Whether an answer was right, no such file knows: you add a 1 or a 0 for each request. Here is a file in that form, *made* by our simulator, no real engine's; put the path of your own in its place:

# %%
from lib.benchmark_file import MADE, MADE_CORRECTNESS, read_benchmarks, read_correctness

runs, right = read_benchmarks(MADE), read_correctness(MADE_CORRECTNESS)
for run in runs:
    good = run.with_correctness(right).goodput(DEADLINE_S)
    rates = f"{run.completion_throughput:.2f} completed, {good:.2f} good"
    print(f"sent at {run.request_rate:g}/s: {rates}")
print("\n".join(run.notes))

# %% [markdown]
# From the times of single tokens one can see what a step takes, and so fit the three terms of 8.2.2 to this engine. You say how the engine ran: how many rows, how many tokens a step. Another run, replayed with the fit, tells how far to trust it:

# %%
from lib.made_benchmark import POLICY
from lib.recalibration import fitted, replay

own = fitted(runs[1], POLICY)
fit = own.fit
step, token = (shown(ns / 1e9, "us") for ns in (fit.fixed_ns, fit.per_new_token_ns))
print(f"a step {step}, a new token {token}, a pair {fit.per_causal_pair_ns} ns")
again = replay(runs[2], POLICY, own.fit)
print(f"off by {again.ttft_error:.1%} (first tokens),", end=" ")
print(f"{again.interval_error:.1%} (intervals)")

# %% [markdown]
# On the left the file's runs, measured and replayed; on the right each request of one run, the times measured against the times replayed. (`own_engine` in `figures.own_engine` draws this for your file.)

# %%
explore("your-engine")

# %% [markdown]
# (The replay fits so well because the file comes from the simulator, with some noise. A real engine will not be so kind: look at how far the replay lies from what was measured before you believe a fit.)
#
# **Recalibrate the chapter.** With one line every explorer whose time is by the fit draws for that machine, here and in this notebook's other cells; its question, and the values that it names as the book's, stay the book's. Figure 8-6 on the engine of the file:

# %%
from figures.machine import back_to_the_book, recalibrate

recalibrate(own.fit)
explore("continuous-batching")

# %% [markdown]
# And back again:

# %%
back_to_the_book()

# %% [markdown]
# ## 8.6.3 Configuration, card, and the cost of a whole task
#
# ### How fast is this card, really?
#
# Before configurations can be compared, their times must be known. Measure: work done over the time that the card was taken. For **prefill** the work is new tokens, and the rate $r_P$. For **decode** it is *calls*: a request that has a token in a step has one call, sixteen of them share a step, and its time counts once; the rate is $r_D$. A request with $L$ new tokens and $G$ outputs takes
#
# $$t_\text{GPU} = \frac{L}{r_P} + \frac{G-1}{r_D}$$
#
# seconds of the card. These are not the seconds that its user waits.
#
# And where nothing was measured? Then take what must be done, and how much of its peak the card reaches at such work. FLOP over (**MFU** × peak) for a prefill, bytes over (**MBU** × bandwidth) for a decode round. A **round** here is one decode step of all requests in a batch; with drafts, drafting and verifying as in 8.5.2. This is what the card reached, at contexts of 2048 tokens (clock: engine, rounds without prefill in them):

# %%
from figures.tables import Table
from lib.efficiency import Condition, batches, measured

rows = []
for batch in batches(Condition.OWN):
    one = measured(Condition.OWN, batch)
    times = [shown(t, "ms", 2) for t in (one.read_bound_s, one.round_s)]
    shares = [f"{share:.0%}" for share in (one.mbu, one.mfu)]
    rows.append((batch, shown(one.read_bytes, "GB", 2), *times, *shares))
Table(("batch", "read", "at peak", "a round took", "MBU", "MFU"), rows)

# %% [markdown]
# MBU doubles from batch 1 to batch 64. Is a large batch read faster? Look at the rounds: they hardly differ, 26.26 and 29.63 ms, while more than twice as much is read. These runs used no CUDA graphs, so the host submits kernel after kernel, whatever stands in them, and the card waits. The nearly fixed time is spread over more bytes. At batch 1 a round takes 17.6 ms longer than reading needs: most of that is **host overhead**, no term that our model forgot, and captured graphs and better scheduling could remove it. The rest is that no read reaches the peak.
#
# MFU stays: 58 to 62 % whatever the batch, and 52 to 58 % for prompts of which 6K of 8K are cached. A prefill has enough to compute to keep the card busy.
#
# ### Sixteen long requests
#
# Now the question of 8.0. Sixteen long requests arrive at one moment: 8192 tokens in, the first 6144 of them the same, 256 out. 12 GiB for KV and what drafts take, and 7 seconds. Four configurations (we take all their answers to be right):
#
# - **A**: BF16, each request with a context of its own;
# - **B**: BF16, the prefix shared, and cached before the requests come;
# - **C**: q8_0, each with its own context;
# - **D**: as B, with DFlash drafts of 7 tokens (8.5.3), so that 8 positions are verified. We assume 3 outputs a round: the rounds traced in 8.5.4 accepted more, but those were other tasks.
#
# (Moved weights are not among them: over PCIe their copies alone would take 10.8 s, 8.4.3.) Which of the four do you expect to fit, and which to be in time? Each is a line of data, and `needs` puts its times together:

# %%
from lib.serving import CONFIGURATIONS, needs

rows = []
for each in map(needs, CONFIGURATIONS):
    size = shown(each.memory_bytes, "MiB")
    times = shown(each.prefill_s, "s", 2), each.rounds, shown(each.round_s, "ms", 2)
    rows.append((each.configuration.name, size, *times, shown(each.total_s, "s", 2)))
Table(("", "memory", "prefill", "rounds", "a round", "all done"), rows)

# %% [markdown]
# Where do they come from?
#
# - **B was measured**, under just these conditions: 32,768 new tokens in 2.04 s, so $r_P$ = 16,059 a second, at 58 % of the peak; then rounds of 27.35 ms, $r_D$ = 585 calls a second. That makes 0.563 GPU seconds a request, 9.01 for all. (By the client's clock, a median first token and 255 mean intervals: 9.02 s.)
# - **A and C compute every prefix sixteen times**, 2137.5 TFLOP, at the share that B reached 7.34 s. A reads 34.46 GB in a round, just as much as 64 requests of 2048 tokens, so it takes their 29.63 ms. C reads 25.40 GB, between two batches of the table, so 28.26 ms. Converting is not charged, nor are retries (8.4.4). Both would only make C later.
# - **D's prefill** takes 9.4 % longer, as the draft network reads the prompt, too. In a round each request verifies 8 positions: 2.56 TFLOP, 8.8 ms of computing, less than the 27.35 ms that the round takes anyway. Its memory is B's and what the process took in addition with DFlash, 3188 MiB. (The 7 requests of 8.5.4 shared nothing.)
#
# Now ask in this order, cheapest question first. **Does it fit?** A does not. **Is it in time?** B is late, and its 255 rounds alone take 6.97 s, so its prefill would have to take next to nothing. C gave up the shared prefix and is later still. D needs 85 rounds. **What does a result cost?** Only D is left to ask. Figure 8-35:

# %%
explore("configurations")

# %% [markdown]
# In these runs, without graphs, a round takes about the same in all four. Sharing spares 5.3 s of prefill and makes room, compression makes room; the 255 rounds stay. Of these four only the one with *fewer rounds* is in time. (Shorter rounds would do as well: we come back to that below.)
#
# All sixteen results of D take 4.56 s of the card, 0.285 GPU seconds each, and at the card's 600 W at most 171 J. B takes 9.01 s and has nothing to show for it: not one result in time.
#
# ### How firm is the choice?
#
# Take half the memory away: D no longer fits, and B fits and is late. Of the four none is left. What would help: a later deadline, shorter answers, or drafts that take no memory on the card ([exercise 8-9](../exercises/ex_8_9_choice_of_configuration.ipynb)). Or ask for 16 outputs instead of 256:

# %%
from lib.serving import LESS_MEMORY, LIMITS, SHORT_OUTPUTS, WORKLOAD, choose

cases = {"6 GiB": (WORKLOAD, LESS_MEMORY), "16 outputs": (SHORT_OUTPUTS, LIMITS)}
for name, (workload, limits) in cases.items():
    found = choose(workload=workload, limits=limits)
    print(f"{name}: {found.name or 'none'} is chosen")
    for one in found.judged:
        verdict = f"breaks the {one.broken}" if one.broken else "keeps both limits"
        print(f"  {one.name}: {shown(one.needs.total_s, 's', 2)}, {verdict}")

# %% [markdown]
# With 16 outputs both B and D are in time, and D is ahead by 0.08 s: the draft network costs 0.19 s more prefill, and ten saved rounds bring that back and little more.
#
# So every choice is a choice *at certain inputs*. How far can each of them move, all others as they are, until others are in time? (Who is chosen among them is in the read-outs of figure 8-35.)

# %%
from lib.flip_distance import Input, flip, within_limits

for moved in (Input.DEADLINE, Input.OUTPUTS, Input.REQUESTS, Input.OUTPUTS_PER_ROUND):
    found = flip(moved, verdict=within_limits)
    edges = {"below": found.below, "above": found.above}
    for side, edge in ((side, edge) for side, edge in edges.items() if edge):
        names = ", ".join(edge.then) or "none"
        print(f"{moved}, now {found.now:g}: {side} {edge.last:.4g}, in time: {names}")

# %% [markdown]
# The assumed 3 outputs a round may shrink to 1.47 before D is late: a firm choice. Below 183 outputs B is in time, too; only with up to 12 is it also the cheaper one, and chosen. No change of the *host's* time moves the choice; but take 7.9 ms off each round, and B is in time, too. With the host gone altogether a round of B would take at least 11.65 ms, the time to read weights, prefix and own parts at the peak, and all of it at least 5.01 s.
#
# ### The same, in the engine
#
# The table is arithmetic: all sixteen end together, drafts take no time, a round keeps its length while contexts grow. Our simulator does not need such simplifications. What does each of them hide?

# %%
from lib.serving_run import variations

rows = []
for one in variations():
    times = [shown(t, "s", 2) for t in (one.chapter_s, one.total_s)]
    change = shown(one.difference_s, "s", 2, signed=True)
    rows.append((f"{one.configuration.name}: {one.what}", *times, change))
Table(("", "table", "changed", "difference"), rows)

# %% [markdown]
# (*By separate contexts*: a round takes what batches without a common prefix took for as many bytes. *Within the limit*: only as many of A run as 12 GiB hold.) No verdict turns. But see what would be wrong by how much. If acceptance is drawn by chance, sixteen requests do not end together: one of them needs 85.6 rounds on average, the *slowest* of sixteen 97.4, and the last answer is there after 4.90 s. If the pass of the draft network is charged, 3.57 ms a round, it is 4.86 s; with both, 5.24 s. Let nobody explain B's round by its shared prefix: by bytes, a prefix read once would make 27.58 ms and one read by each 29.63 ms, and 27.35 ms were measured, less than either.
#
# One line is a lesson in itself. Without the cached prefix, sixteen equal prompts come at once, and one of them has to compute it. Our pool finds a block as soon as it is planned; an engine that finds blocks only when they are computed, *and takes all sixteen prompts into one step*, would compute the prefix sixteen times, and B would take 14.33 s. In steps of 4096 tokens the first prompt is done before the others enter, and nothing is lost.
#
# D's memory is a record with *short* prompts. By its shape, the draft network needs KV of its own for the long ones: 10,688 MiB in all if it cannot share the prefix. That still fits.
#
# ### The whole task
#
# All this time was inside one instance. An agent also runs tools, and waits. If a task takes 100 s, and 50 of them are decode that gets 4 times as fast, 62.5 s are left: the task is 1.6 times as fast. Were only 20 of the 100 decode, it would take 85 s, and be 1.18 times as fast. In general, if a share $f$ of the time gets $s$ times as fast,
#
# $$S_\text{task} = \frac{1}{(1-f) + f/s}.$$

# %%
from lib.whole_task import DECODE_S, DECODE_SPEEDUP, LESS_DECODE_S, TASK_S, FasterPart

for decode in (DECODE_S, LESS_DECODE_S):
    task = FasterPart(TASK_S, decode, DECODE_SPEEDUP)
    print(f"{decode} s of decode: {task.new_task_s} s, {task.net_speedup:.2f} times")

# %% [markdown]
# **Amdahl's law.** What you do not touch is the ceiling. Figure 8-36, for decode shares of 20, 50 and 80 %:

# %%
explore("task-speedup")

# %% [markdown]
# How large is the share of the model in a real task? An agent repaired a program, four times (times of whole HTTP requests, without streaming: a call holds queue, prefill and decode, so this is *not* decode alone):

# %%
from lib.whole_task import agent_tasks

rows = []
for task in agent_tasks():
    shares = [f"{share:.0%}" for share in (task.model_share, task.tool_share)]
    fixed = "yes" if task.is_fixed else "no"
    rows.append((task.rounds, fixed, shown(task.span_s, "s", 2), *shares))
Table(("calls of the model", "fixed", "all", "model", "tools"), rows)

# %% [markdown]
# Nearly all of it was spent in the model, little in tools; so in *this* task faster decode would have helped, though by how much nobody can tell from such a record. And two runs of four fixed nothing: their time is part of the price of those that did.
#
# ### What a good answer costs
#
# Time and energy are to be divided by what they were spent *for*: $T_\text{GPU}/N_g$ and $E_\text{obs}/N_g$, where $E_\text{obs}$ is the energy used while we watched, and $N_g$ the number of **qualified** results, right and in time. Wrong answers and late ones took time and energy like the others, so they stay above the line and do not count below it. In the 336 requests the energy of GPU and CPU package was read as well:

# %%
from lib.service_record import recorded

for condition in CONDITIONS:
    joules = [one.energy_per_qualified() for one in recorded(condition)]
    typical = middle(condition, lambda one: one.energy_per_qualified())
    rate = condition.arrivals_per_s
    when = f"{rate}/s" if rate else "together"
    print(f"{condition.admission}, {when}: {typical:.1f} J", end="")
    print(f" (windows from {min(joules):.0f} to {max(joules):.0f})")

# %% [markdown]
# Continuous batching takes 615.0 J for a good answer at 1 a second, 652.0 J at 4, and at 16 a second 1083.7 J, 66 % more: the card completes as much, and more of it is late. One at a time at 4 a second costs 1982.3 J. The three windows of a condition differ widely, and other services ran on the card, so do not put these numbers beside the 171 J above: that was a bound from the power limit, for another experiment.
#
# [Exercise 8-8](../exercises/ex_8_8_whole_task.ipynb): which part of a task to make faster, and when preparing for it no longer pays. [Exercise 8-9](../exercises/ex_8_9_choice_of_configuration.ipynb): a fifth configuration, and the choice anew. Then on to the [summary](8_7_summary.ipynb).
