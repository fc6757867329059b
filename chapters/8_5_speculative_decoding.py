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
# # 8.5 Speculative decoding
#
# Everything so far changed what is stored and who shares a step. One thing stayed: a request gets *one* token from each step, and its steps come strictly one after the other. 256 outputs, 255 steps behind the first. Batching merges the steps of *different* requests. Can several steps of the *same* request be merged?
# [Back to the contents](8_0_design_problem.ipynb)

# %% [markdown]
# ## 8.5.1 Draft, verify, go back
#
# A step at batch 1 reads all weights for a single row (8.2.1). Five rows would cost hardly more. But which rows? The second needs the first one's output. Unless somebody *guesses* it.
#
# **Speculative decoding**: something cheap writes a **draft** of a few tokens. The model itself, the **target**, then computes all of them in one step, as it would a piece of a prompt, and so learns at each position what it would have written itself. What agrees is kept.
#
# ### If the target always takes its likeliest token
#
# This is **greedy** decoding, and checking is plain comparison. A draft of four tokens, a b c d. Behind the text so far the target chooses a, behind a it chooses b; behind b it chooses x. So a and b are kept, x is taken instead of c, and d? It was written behind c, which is not there. What the target computed behind c is **void**. Figure 8-29:

# %%
from figures.explorer import explore

explore("greedy-check")

# %% [markdown]
# Three outputs from one step: the accepted beginning and *exactly one* more, which is the correction, or, if the whole draft was right, one further token for nothing. At least one, at most $m + 1$, for $m + 1$ rows that were computed.

# %%
from lib.greedy_check import GreedyCheck

for choices in ("abxyz", "xyzyx", "abcde"):
    checked = GreedyCheck(tuple(map(ord, "abcd")), tuple(map(ord, choices)))
    kept = "".join(map(chr, checked.outputs))
    void = list(checked.void_positions)
    print(f"accepted {checked.accepted}, outputs {kept!r}, void positions {void}")

# %% [markdown]
# ### If it draws
#
# With sampling there is no single right token. The target has probabilities $p(x)$, the draft was drawn from its own $q(x)$. One could draw from $p$ at each position, put out what was drawn, and go on as long as the draft had the same. The text would be right, but two draws are seldom the same: with probability $\sum_x p(x)\,q(x)$. A rule that accepts more, as often as a right one can, $\sum_x \min(p(x), q(x))$: accept $x$ with probability
#
# $$\alpha(x) = \min\left(1, \frac{p(x)}{q(x)}\right),$$
#
# and if it is rejected, draw from what $q$ gave too little of, $[p - q]_+ = \max(p - q, 0)$, scaled to sum to 1. Why is that right? A token $x$ is drafted *and* accepted with probability $q(x)\,\alpha(x) = \min(p(x), q(x))$. What is missing up to $p(x)$ is just $[p(x) - q(x)]_+$, and the rejections supply it.
#
# Two tokens, $p(A) = 1/4$ and $p(B) = 3/4$. A draft that always says A is accepted in 1 of 4 cases, and in the other 3 of 4 B is put out instead. Figure 8-30:

# %%
explore("draft-always-a")

# %% [markdown]
# A draft that always says B (figure 8-31) is accepted in 3 of 4 cases, and in 1 of 4 A comes out instead.

# %%
explore("draft-always-b")

# %% [markdown]
# The same law comes out, A in a quarter of all cases. A bad draft costs speed, never truth. Is that so for *every* pair of distributions? For small ones we need not trust a sample, we can go through all cases in exact fractions. Here for a draft of three tokens that depend on what stands before them; the tests do it for many more:

# %%
from fractions import Fraction
from itertools import product

from lib.rejection_sampling import text_law


def target(text):
    of_a = Fraction(1 + len(text) % 3, 4)
    return (of_a, 1 - of_a)


def draft(text):
    of_a = Fraction(1, 2) if sum(text) % 2 else Fraction(3, 4)
    return (of_a, 1 - of_a)


law = text_law(target, draft, draft_tokens=3, tokens=3)
for text in product((0, 1), repeat=3):
    wanted = 1
    for place, token in enumerate(text):
        wanted *= target(text[:place])[token]
    name = "".join("AB"[token] for token in text)
    print(f"{name}: target {wanted}, speculative {law[text]}")

# %% [markdown]
# The rule is easily broken. Each of the others in this list looks almost the same and gives another text. The share of A that comes out, with the draft that always says A and with one that says A half the time (it should be 1/4):

# %%
from lib.rejection_sampling import ALWAYS_A, TARGET, Rule, output_law

half = (Fraction(1, 2), Fraction(1, 2))
for rule in Rule:
    of_a, of_half = (str(output_law(TARGET, q, rule)[0]) for q in (ALWAYS_A, half))
    print(f"{of_a:>5} {of_half:>5}  {rule}")

# %% [markdown]
# ### Going back
#
# After the check the request is *shorter* than what was computed. All that moved on with the draft goes back to the confirmed position:
#
# - the **KV**: entries of rejected tokens count no more. The last output is not in KV either; it is the first row of the next step;
# - the **block table**: blocks that only the rejected tokens needed are given back, and nobody must be able to find them (8.3.1);
# - the **sampler**: random numbers that were drawn for void rows must be drawn again, or the same seed gives another text (of the same law);
# - a **grammar checker**, if the output has to follow a format: it has gone along with the draft and must go back.
#
# The last two are easily forgotten. A target that draws brackets from a seeded generator, at most three deep, written token by token and through drafts:

# %%
from lib.confirmed_state import State, breaks_at, plain_text, text_through_drafts

print(plain_text(40, seed=8), "plain")
for goes_back in (tuple(State), (State.SAMPLER,), (State.GRAMMAR,)):
    text = text_through_drafts(40, seed=8, draft_tokens=4, goes_back=goes_back)
    names = " and ".join(goes_back)
    print(f"{text} set back: {names}; breaks at {breaks_at(text)}")

# %% [markdown]
# And the pool of 8.3 with a draft in it: room is taken before the step, and what was not confirmed is given back after it.

# %%
from lib.greedy_check import confirm, take_room
from lib.paging import Pool

pool = Pool(blocks=8, block_tokens=4)
sequence = pool.admit([1, 2, 3, 4, 5, 6, 7])
take_room(pool, sequence, draft_tokens=4)
print(pool.held, "blocks while the draft is verified")
confirm(pool, sequence, (8,))
print(pool.held, "blocks once one token is confirmed")

# %% [markdown]
# ## 8.5.2 Time and outputs of a round
#
# A round takes time $T_r$ and outputs $N_r$ tokens. Over several rounds the time per output is
#
# $$\bar t = \frac{\sum_r T_r}{\sum_r N_r}.$$
#
# Two rounds of 1.5 ms, one with 1 output, one with 5: 3 ms for 6 tokens, 0.5 ms each. Do not average the rounds' own quotients, 1.5 and 0.3 ms: their mean, 0.9 ms, counts the round with one token as much as the round with five.

# %%
from lib.speculation import TWO_ROUNDS, mean_of_ratios, time_per_output
from lib.units import shown

print(shown(time_per_output(TWO_ROUNDS), "ms", 1), "a token")
print(shown(mean_of_ratios(TWO_ROUNDS), "ms", 1), "if quotients are averaged")

# %% [markdown]
# ### How many outputs?
#
# Say each draft token is accepted with probability $a$ if all before it were. A round always gives one output. It gives a second if the first draft token is accepted, with probability $a$; a third if the first two are, $a^2$; and so on. Each term is the probability of *at least* that many, and their sum is the mean:
#
# $$E[N] = 1 + a + a^2 + a^3 + a^4.$$
#
# For the drafts of section 8.5.1, AAAA with $a = 1/4$ and BBBB with $a = 3/4$, it is 1.33 and 3.05.

# %%
from lib.speculation import (
    ACCEPTS_A,
    ACCEPTS_B,
    DRAFT_TOKENS,
    QUERY_S,
    Speculation,
    at_every_position,
)

rounds = {
    name: Speculation(at_every_position(accepts, DRAFT_TOKENS), QUERY_S)
    for name, accepts in {"AAAA": ACCEPTS_A, "BBBB": ACCEPTS_B}.items()
}
for name, one in rounds.items():
    each, count = shown(one.s_per_output, "ms", 2), f"{one.outputs_per_round:.2f}"
    print(f"{name}: {count} outputs a round, {each} each (engine, assumed query)")

# %% [markdown]
# ### What does verifying cost?
#
# We took the time of a plain step for it: 26.26 ms, batch 1, 2K of context (engine). Why may we? The weights are read once, however many rows use them, and so is the KV. What is added is arithmetic, 4 rows of it:

# %%
from lib.speculation import extra_verify_flops, extra_verify_s

flop = extra_verify_flops(DRAFT_TOKENS, context=2048)
seconds = extra_verify_s(DRAFT_TOKENS, context=2048)
print(f"{flop / 1e9:.0f} GFLOP, {shown(seconds, 'ms', 1)} (FLOP rule)")

# %% [markdown]
# 65 GFLOP, at 62 % of the peak 0.2 ms. The records agree: with a draft network (DFlash, experiment 8-5) that proposes 7 tokens a round, so that 8 positions are verified, a round took 15.2 ms, and a plain step of the same set-up 16.9 ms (engine, median). That is another set-up than ours, and the card was not exclusive: read it as "no longer", not as "faster".
#
# With 0.1 ms to look up the draft, a round takes 26.36 ms: 19.8 ms an output with AAAA, 8.64 ms with BBBB, against 26.26 ms for plain decode. Even the draft that is mostly rejected wins, for verification costs next to nothing and a round never gives less than one token. What if looking up takes longer? Figure 8-32. Stop and play:

# %%
explore("query-cost")

# %% [markdown]
# A round may take up to $26.26\, E[N]$. After verifying, AAAA has 8.7 ms left for its query, BBBB 53.9 ms.
#
# ### What was prepared counts
#
# Suppose the index in which drafts are looked up takes 2 s to build. BBBB saves 17.6 ms an output, so after 114 outputs it is paid for. For an answer of 256:

# %%
from lib.speculation import INDEX_S, OUTPUTS, expected_rounds, plain_time

b = rounds["BBBB"]
print(b.outputs_to_repay(INDEX_S), "outputs repay the index")
mean = expected_rounds(b.acceptance, OUTPUTS)
print(f"{mean:.2f} rounds for {OUTPUTS} outputs, on average")
print("plain:", shown(plain_time(OUTPUTS), "s", 2))
for name, one in rounds.items():
    print(f"index and {name}:", shown(one.time_of(OUTPUTS, INDEX_S), "s", 2))

# %% [markdown]
# 6.72 s plain (a step for each of the 256, as this section counts), 4.22 s with index and BBBB. With the index and AAAA it is 7.07 s: a draft that pays in each round can lose the whole answer to its preparation. Rounds are whole, and the last one may output more than is wanted, so their mean number is a little above $256 / E[N]$. If the index can be built beforehand, or serves many requests, its 2 s spread over more outputs.

# %% [markdown]
# ## 8.5.3 Where drafts come from
#
# The draft has to be cheap *and* right. A round has four stages, and each kind of draft should be asked about each:

# %%
from figures.tables import Table
from lib.draft_sources import SOURCES, Stage

for place, stage in enumerate(Stage, start=1):
    print(place, stage)

# %%
rows = [(one.name, one.reads, one.needs, one.order) for one in SOURCES.values()]
head = ("draft", "reads", "needs", "its tokens")
Table(head, rows, left=head)

# %% [markdown]
# ### One that really runs
#
# The simplest draft needs no network: look for the last few tokens in what came before, and propose what followed them there. We have no model to be the target here, so a *frozen text* takes its place, a short one that comes with the notebooks: the target "chooses" whatever stands there next. It shows the mechanism, and how much a text repeats itself, and says nothing about a model.

# %%
from lib.ngram_draft import serving_text, write

text = serving_text()
looked_up = write(text)
checks = [one.check for one in looked_up if one.check]
for check in sorted(checks, key=lambda check: check.accepted)[-1:-60:-12]:
    print(f"{check.accepted} of {len(check.draft)}: {text.spelled(check.draft)}")

# %%
written = len(text.tokens) - looked_up[0].known
accepted = sum(check.accepted for check in checks)
drafted = sum(len(check.draft) for check in checks)
print(f"{written} tokens in {len(looked_up)} rounds, {len(checks)} with a draft")
print(f"{accepted} of {drafted} draft tokens accepted")

# %% [markdown]
# ### Serial or parallel
#
# A draft network has weights that each of its passes must read. DFlash's are 1.95 GiB (2.10 GB as the book rounds it). At batch 1 the card reads 15.44 GB in 26.26 ms, 588 GB/s. So one pass takes 3.57 ms. A network that writes token by token needs four passes for four tokens, 14.28 ms (from the rounded 3.57; below unrounded); one that writes them in parallel needs one.

# %%
from lib import dflash
from lib.draft_sources import DRAFT_TOKENS as FOUR
from lib.draft_sources import Order, drafting_time
from lib.speculation import PLAIN_S

for order, outputs in ((Order.SERIAL, 3), (Order.PARALLEL, 3), (Order.PARALLEL, 2)):
    drafting = drafting_time(order, FOUR, dflash.weight_bytes())
    each = shown((drafting + PLAIN_S) / outputs, "ms", 1)
    print(f"{order}: {shown(drafting, 'ms', 2)} to draft, {each} for each of {outputs}")

# %% [markdown]
# If a round outputs 3 tokens either way, the serial draft gives one in 13.5 ms, the parallel one in 9.9 ms. But tokens that do not see each other fit together less well. If the parallel draft yields 2 outputs a round, it is 14.9 ms: 10.7 ms were saved in drafting, and the round has less to show for it. The faster draft can be the slower choice.

# %% [markdown]
# ## 8.5.4 Draft length under load
#
# How long should a draft be? A longer one *can* output more, but its last token counts only if all before it were accepted. With $a_j$ the probability at position $j$,
#
# $$E[N_m] = 1 + \sum_{j=1}^{m} \prod_{i=1}^{j} a_i.$$
#
# From $m - 1$ tokens to $m$, the one token more adds $\Delta N = \prod_{i=1}^{m} a_i$ outputs, a factor for *each* position up to its own, and some time $\Delta T$. It pays if what it adds is cheaper than the $T/N$ that there was with $m - 1$:
#
# $$\frac{\Delta T}{\Delta N} < \frac{T}{N}.$$

# %%
from lib.draft_length import RoundTime, best_length, one_more

a = at_every_position(0.6, 16)
one_pass = drafting_time(Order.SERIAL, 1, dflash.weight_bytes())
serial = RoundTime(step_s=PLAIN_S, per_token_s=one_pass)
for length in (1, 2, 3, 4, 6, 8):
    more = one_more(a, serial, length)
    each, price = shown(more.average_s, "ms", 2), shown(more.price_s, "ms", 2)
    verdict = "pays" if more.pays else "does not pay"
    print(f"{length}: {each} an output; one more costs {price}: {verdict}")
print("best of all lengths:", best_length(a, serial))

# %% [markdown]
# The probabilities multiply, so the last tokens of a long draft are rarely reached, and to add them is ever dearer: stop where the price of one more output passes the average.
#
# ### Steps in the price
#
# $\Delta T$ need not be smooth. Say a step runs in captured shapes of 8 and 16 rows (8.2.4). To verify 4 tokens or 5 takes 8 rows either way, and 8 still fit; the ninth makes it 16 rows. The same holds for a draft network that works in groups: the first token of a group bears the price of all, the others come free. There the question is not "one more?" but "a whole group more?".

# %%
from lib.draft_length import CAPTURED, VERIFIED
from lib.shapes import padded_rows

for rows in VERIFIED:
    print(f"{rows} rows verified, {padded_rows(rows, CAPTURED)} executed")

# %% [markdown]
# ### Records are not geometric
#
# Is $a$ the same at each position? Count it: of the rounds that accepted $j - 1$ or more, how many accepted $j$? From the traced DFlash rounds:

# %%
from lib.acceptance import count_positions
from lib.dflash import K7, K15, traced_rounds
from lib.records import record

for length in (K7, K15):
    counts = count_positions(traced_rounds(length))[:7]
    shares = (f"{count.accepted} of {count.reached}" for count in counts)
    print(f"K{length}:", ", ".join(shares))

# %% [markdown]
# It does not look so. With both lengths the second token fails more often than the fourth, and the sixth and the seventh do again. (One traced run of four tasks: too few rounds for a law, enough not to take a constant $a$ for granted.)
#
# What did length bring there? A short task that looks something up, one request at a time (client, median of two runs): 90.0 ms plain, 30.6 ms with drafts of 7 tokens (K7), 29.4 ms with 15 (K15).

# %%
rows = record("dflash").where(task="short_lookup", concurrency_requests=1)
columns = {
    "draft tokens": "draft_tokens",
    "first token, ms": "ttft_median_ms",
    "all, ms": "request_median_ms",
}
Table.of(rows, columns)

# %% [markdown]
# From plain to K7 59 ms are saved, from K7 to K15 another 1.2 ms. In some rounds both accepted a single token: K7 threw 6 away, K15 14, and both put out the same two tokens. (32 pairs of outputs were compared, and all were equal. The two tasks of mathematics fail the checker with drafts and without; their times are not those of solved tasks.)
#
# And what is accepted is not always delivered: the short task's one round with K15 accepted 5 draft tokens, of which the answer, at its end, could use only some.
#
# So the length may follow the request: long drafts where much is accepted and a further row costs little, short ones where the first tokens already fail or the next shape begins. A rule that looks at the last rounds, on an answer with an easy part and a hard one:

# %%
from lib.draft_length import Passage, draw_rounds, next_length

answer = [Passage(400, at_every_position(a, 16)) for a in (0.95, 0.3)]
rules = {f"always {n}": (lambda _, n=n: n) for n in (2, 4, 8, 16)}
rules["by the last rounds"] = lambda history: next_length(history, 16, serial)
for name, rule in rules.items():
    rounds = draw_rounds(answer, rule, seed=8)
    total = sum(serial(one.drafted) for one in rounds)
    print(f"{name:19} {len(rounds)} rounds, {shown(total, 's', 1)} (modelled)")

# %% [markdown]
# ### Memory, for both
#
# A draft network needs room, too: 17,706 MiB were in use without and 20,894 MiB with it (K7, peak of the process). Its weights stay, and *its* KV grows with each token beside the target's. So the length of a draft is chosen with both in mind, and then 8.3 says how many requests are let in.

# %%
from lib.design_problem import INSTANCE, LONG_CONTEXT
from lib.memory import pages_for, tokens_stored
from lib.model import QWEN3_8B, kv_bytes_per_token
from lib.speculation_setup import blocks_beside_draft

of_target = kv_bytes_per_token(QWEN3_8B)
of_draft = dflash.kv_bytes_of_both() - of_target
pool_bytes, long = INSTANCE.kv_pool_bytes, LONG_CONTEXT.shape_alone
of_one = pages_for(tokens_stored(long.input_tokens, long.output_tokens), 16)
beside = {"nothing": (0, 0), "a draft network": (dflash.weight_bytes(), of_draft)}
for name, (weights, kv) in beside.items():
    blocks = blocks_beside_draft(pool_bytes, weights, of_target, kv)
    print(f"beside {name}: {blocks} blocks, {blocks // of_one} complete long requests")

# %% [markdown]
# ### When others want the card
#
# At low load a step leaves arithmetic idle, and verifying uses it. With many requests the weights are shared already, and drafts compete: each row that is thrown away is one that another request could have used. In our scheduler drafts are tokens of the step like all others, each request goes on by its own count, and a batch ends with its slowest:

# %%
from lib.fast_forward import simulate
from lib.scheduling import Request, continuous
from lib.speculation_setup import PLAIN, DrawnAcceptance, SpeculationSetup
from lib.step_time import device

four = [Request(0, prompt=512, output=128) for _ in range(4)]
drafts = SpeculationSetup(DrawnAcceptance(at_every_position(ACCEPTS_B, 4), seed=8))
for name, how in {"plain": PLAIN, "drafts of 4": drafts}.items():
    run = simulate(four, continuous(4), device(), speculation=how)
    steps = [step + 1 for step in run.last_output_step]
    total = shown(run.total_ns / 1e9, "s", 2)
    print(f"{name}: done after steps {steps}, {total} (FLOP rule)")
    computed, in_vain = run.scheduled_tokens, run.thrown_away_tokens
    print(f"   {computed} tokens computed, {in_vain} in vain")

# %% [markdown]
# (Several outputs of one step come at once, so an interval of zero between two of them is normal here.)
#
# Where does it stop paying? A verified row is nearly free as long as the step waits for something else: for the host that launches it, or for memory that is read. At 8K of context each further request brings its own KV to read, so arithmetic is never the limit, and the pool is full long before. With a short context and a fast host there is such a batch. Find it:

# %%
explore("speculation-under-load")

# %% [markdown]
# [Exercise 8-7](../exercises/ex_8_7_draft_length.ipynb): how long a draft should be, when tokens come one by one and when they come in groups.
