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
# Three outputs from one step: the accepted beginning and *exactly one* more, which is the correction, or, if the whole draft was right, one further token for nothing. So a draft of $m$ tokens makes $m + 1$ rows, one behind the last known token and one behind each of the draft, and brings at least one output and at most $m + 1$. The KV of c and d has been written, too (hatched). It no longer counts, and the next round, which computes x, writes over it.

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
# With **sampling** there is no single right token. The target draws from probabilities $p(x)$, and the draft was drawn from its own, $q(x)$. One could let the target draw its own token, and keep the draft where both agree. The text would be the target's, but two draws often differ, even if $p$ and $q$ are equal. A better rule: accept $x$ with probability
#
# $$\alpha(x) = \min\left(1, \frac{p(x)}{q(x)}\right),$$
#
# and if it is rejected, draw from what $q$ gave too little of, $[p - q]_+ = \max(p - q, 0)$, scaled to sum to 1.
#
# Does the text then follow $p$ or $q$? Two tokens, $p(A) = 1/4$ and $p(B) = 3/4$, and a draft that always says A. Figure 8-30:

# %%
explore("draft-always-a")

# %% [markdown]
# A is accepted in 1 of 4 cases, and in the other 3 of 4 B is put out instead. And with a draft that always says B? Figure 8-31:

# %%
explore("draft-always-b")

# %% [markdown]
# B is accepted in 3 of 4 cases, and in 1 of 4 A comes out instead. The law is the same, A in a quarter of all cases. A bad draft costs speed, never truth. (In exact arithmetic. A step that verifies has other shapes than a plain one, and rounding may turn a close choice, as in 8.4.4.)
#
# Is that so for *every* pair of distributions? A token $x$ is drafted *and* accepted with probability $q(x)\,\alpha(x) = \min(p(x), q(x))$. What is missing up to $p(x)$ is just $[p(x) - q(x)]_+$, and the rejections supply it. For small examples we need not even trust the algebra: we can go through all cases in exact fractions. Here for drafts of three tokens, where $p$ and $q$ depend on what stands before; the tests do it for many more:

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
# The rule is easily broken. In the list below, each line behind the first changes one thing. The share of A that comes out should be 1/4. Here it is with a draft that always says A, then with one that says A half the time:

# %%
from lib.rejection_sampling import ALWAYS_A, TARGET, Rule, output_law

half = (Fraction(1, 2), Fraction(1, 2))
for rule in Rule:
    of_a, of_half = (str(output_law(TARGET, q, rule)[0]) for q in (ALWAYS_A, half))
    print(f"{of_a:>5} {of_half:>5}  {rule}")

# %% [markdown]
# All four are wrong. (The third would be right if it kept the token that was drawn from $p$. After a rejection it draws another.) But two of them show it only with a draft that really draws: test with one that is always the same, and they pass.
#
# ### Going back
#
# After the check the request is *shorter* than what was computed. All that moved on with the draft goes back to the confirmed position:
#
# - the **KV**: entries of rejected tokens count no more. The last output is not in KV either; it is the first row of the next step;
# - the **block table**: blocks that only the rejected tokens needed can be given back (many engines keep them for the next round), and nobody must be able to find them (8.3.2);
# - the **sampler**: random numbers that were drawn for void rows must be drawn again, or the same seed gives another text (of the same law);
# - a **grammar checker**, if the output has to follow a format: it has gone along with the draft and must go back.
#
# The last two are easily forgotten. Here a target draws brackets from a seeded generator (a draft token is kept where it equals the target's own draw, the simple rule from above; under the rule of $\alpha$ the law is the same, but not the text), and the grammar closes none that is not open and opens at most three deep. The same text is written token by token and through drafts; then only one of the two states goes back:

# %%
from lib.confirmed_state import State, breaks_at, plain_text, text_through_drafts

print(plain_text(40, seed=8), "token by token")
for goes_back in (tuple(State), (State.SAMPLER,), (State.GRAMMAR,)):
    text = text_through_drafts(40, seed=8, draft_tokens=4, goes_back=goes_back)
    print(f"{text} {' and '.join(goes_back)} back; forbidden: {breaks_at(text)}")

# %% [markdown]
# With both, it is the same text. Without the grammar, a bracket is closed that nobody opened (its place, counted from 0). Without the sampler, each bracket is allowed and yet the text is another one: no checker reports that.
#
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
    at_every_position,
    expected_outputs,
)

acceptance = {
    name: at_every_position(accepts, DRAFT_TOKENS)
    for name, accepts in {"AAAA": ACCEPTS_A, "BBBB": ACCEPTS_B}.items()
}
for name, a in acceptance.items():
    print(f"{name}: {expected_outputs(a):.2f} outputs a round")

# %% [markdown]
# ### What does verifying cost?
#
# We take the time of a plain step for it: 26.26 ms, batch 1, 2K of context (engine). Why may we? The weights are read once, however many rows use them, and so is the KV. What is added is arithmetic, 4 rows of it:

# %%
from lib.speculation import extra_verify_flops, extra_verify_s

flop = extra_verify_flops(DRAFT_TOKENS, context=2048)
seconds = extra_verify_s(DRAFT_TOKENS, context=2048)
print(f"{flop / 1e9:.0f} GFLOP, {shown(seconds, 'ms', 1)} (FLOP rule)")

# %% [markdown]
# 65 GFLOP, at 62 % of the peak 0.2 ms. The records agree: with a draft network (DFlash, section 8.5.3, experiment 8-5) that proposes 7 tokens a round, so that 8 positions are verified, a round took 15.2 ms, and a plain step of the same set-up 16.9 ms (engine, median). That is another set-up than ours, and the card was not exclusive: read it as "no longer", not as "faster".
#
# The draft has to be found, too. Say it is looked up in an index, and this **query** takes 0.1 ms (assumed). Then a round takes 26.36 ms:

# %%
from lib.speculation import QUERY_S, Speculation

rounds = {name: Speculation(a, QUERY_S) for name, a in acceptance.items()}
for name, one in rounds.items():
    each = shown(one.s_per_output, "ms", 2)
    print(f"{name}: {each} an output (engine + assumed)")

# %% [markdown]
# 19.8 ms an output with AAAA, 8.64 ms with BBBB, against 26.26 ms for plain decode. Even the draft that is mostly rejected wins, for verifying it costs next to nothing and a round never gives less than one token. What if the query takes longer? Figure 8-32. Stop and play:

# %%
explore("query-cost")

# %% [markdown]
# A draft pays as long as a round takes less than $E[N]$ plain steps. One step goes into verifying; AAAA has 8.7 ms left for its query, BBBB 53.9 ms.
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
# The draft has to be cheap *and* right. A round has four stages. Of each kind of draft ask what it costs in each of them:

# %%
from figures.tables import Table
from lib.draft_sources import SOURCES, Stage

for place, stage in enumerate(Stage, start=1):
    print(place, stage)

# %% [markdown]
# The kinds differ mostly in the first. A **look-up** computes nothing; a **small model** is a model of its own, with weights and KV to keep. **EAGLE** and **DFlash** are small networks that read what the target's layers have computed for a token, its **features**, so they need not understand the text anew. EAGLE writes its tokens one after the other, DFlash all at once. **MTP heads** (multi-token prediction) are not added later: they are trained together with the target.

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
best_first = sorted(checks, key=lambda check: -check.accepted)
for check in best_first[:60:12]:
    print(f"{check.accepted} of {len(check.draft)}: {text.spelled(check.draft)}")

# %%
written = len(text.tokens) - looked_up[0].known
accepted = sum(check.accepted for check in checks)
drafted = sum(len(check.draft) for check in checks)
print(f"{written} tokens in {len(looked_up)} rounds, {len(checks)} with a draft")
print(f"{accepted} of {drafted} draft tokens accepted")

# %% [markdown]
# Few of the draft tokens are right, about one in seven, and still a quarter of the steps is saved.
#
# ### Serial or parallel
#
# A draft network has weights that each of its passes must read. DFlash's are 1.95 GiB, or 2.10 GB. In a plain step at batch 1 the card reads 15.44 GB in 26.26 ms, which is 588 GB/s. At that rate one pass takes 3.57 ms. A network that writes token by token needs four passes for four tokens, 14.28 ms (from the rounded 3.57; below unrounded); one that writes them in parallel needs one.

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
# A draft that has $T$ and $N$ with $m - 1$ tokens gets one token more, its $m$-th. That adds $\Delta N = a_1 a_2 \cdots a_m$ outputs, since *all* of them must be accepted, and some time $\Delta T$. It pays if an output that it adds is cheaper than the outputs there are:
#
# $$\frac{\Delta T}{\Delta N} < \frac{T}{N}.$$
#
# Say that the network drafts one token after the other, 3.57 ms each, and that each is accepted with $a = 0.6$. How many would you let it write?

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
# The probabilities multiply, so the last tokens of a long draft are rarely reached, and each further output is dearer than the one before. Stop where its price passes the average: from there on the average rises.
#
# ### Steps in the price
#
# $\Delta T$ need not be smooth. Say a step runs in captured shapes of 8 and 16 rows (8.2.4). Whether 4 rows are to be verified or 5, the step executes 8, and 8 still fit; the ninth makes it 16. The same holds for a draft network that works in groups: the first token of a group bears the price of all, the others come free. There the question is not "one more?" but "a whole group more?".

# %%
from lib.draft_length import CAPTURED, VERIFIED
from lib.shapes import padded_rows

for rows in VERIFIED:
    print(f"{rows} rows verified, {padded_rows(rows, CAPTURED)} executed")

# %% [markdown]
# ### Is $a$ the same at each position?
#
# Count it: of the rounds that accepted $j - 1$ or more, how many accepted $j$ or more? DFlash was recorded with drafts of 7 tokens (K7) and of 15 (K15). The first seven positions of the rounds that were traced:

# %%
from lib.acceptance import count_positions
from lib.dflash import K7, K15, traced_rounds
from lib.records import record

for length in (K7, K15):
    counts = count_positions(traced_rounds(length))[:7]
    shares = (f"{count.accepted} of {count.reached}" for count in counts)
    print(f"K{length}:", ", ".join(shares))

# %% [markdown]
# It is not. With both lengths the second token fails more often than the first, and than the fourth and fifth; from the sixth on more fail again. (One traced run of four tasks: too few rounds for a law. But they do not look like one $a$ for all.)
#
# What did length bring there? A short task that looks something up, one request at a time (client, median of two runs): 90.0 ms plain, 30.6 ms with K7, 29.4 ms with K15.

# %%
rows = record("dflash").where(task="short_lookup", concurrency_requests=1)
columns = {
    "draft tokens": "draft_tokens",
    "first token, ms": "ttft_median_ms",
    "all, ms": "request_median_ms",
}
Table.of(rows, columns)

# %% [markdown]
# From plain to K7 59 ms are saved, from K7 to K15 another 1.2 ms. More was not to be had: the answer has 5 tokens. The first comes with the prefill, and one round brings all the others with either length. K15 accepted 5 draft tokens in that round, and the answer ended after 4: what is accepted is not always delivered.
#
# And a longer draft throws more away. In the first round of the short task of mathematics both accepted a single token: K7 threw 6 away, K15 14, and both put out the same two tokens. (32 pairs of outputs were compared, and all were equal. The two tasks of mathematics fail the checker with drafts and without; their times are not those of solved tasks.)
#
# So the length may follow the request: long drafts where much is accepted and a further row costs little, short ones where the first tokens already fail or the next shape begins. Such a rule estimates each $a_j$ from the last eight rounds and takes the length that would be best for them. Here on an answer with an easy part ($a = 0.95$) and a hard one (0.3), beside fixed lengths:

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
# The longest drafts need the fewest rounds and the most time. The rule takes less time than any fixed length: it drafts long where the answer is easy, short where it is hard.
#
# ### Memory, for both
#
# A draft network needs room, too: 17,706 MiB were in use without and 20,894 MiB with it (K7, peak of the process). Its weights stay, and *its* KV grows with each token beside the target's. So the length of a draft is chosen with both in mind, and then 8.3 says how many requests are let in.

# %%
from lib.design_problem import INSTANCE, LONG_CONTEXT
from lib.memory import pages_for
from lib.model import QWEN3_8B, kv_bytes_per_token
from lib.speculation_setup import blocks_beside_draft

of_target = kv_bytes_per_token(QWEN3_8B)
of_draft = dflash.kv_bytes_of_both() - of_target
pool_bytes = INSTANCE.kv_pool_bytes
request = pages_for(LONG_CONTEXT.input_tokens + LONG_CONTEXT.output_tokens, 16)
beside = {"nothing": (0, 0), "a draft network": (dflash.weight_bytes(), of_draft)}
for name, (weights, kv) in beside.items():
    blocks = blocks_beside_draft(pool_bytes, weights, of_target, kv)
    print(f"beside {name}: {blocks} blocks, {blocks // request} complete long requests")

# %% [markdown]
# Drafts make each request faster, and the pool of 8.0 holds 7 of them instead of 10, if none shares its prefix.
#
# ### When others want the card
#
# At low load a step leaves arithmetic idle, and verifying uses it. With many requests the weights are shared already, and drafts compete: each row that is thrown away is one that another request could have used. In our scheduler drafts are tokens of the step like all others, each request goes on by its own count, and a batch ends with its slowest. Four requests, drafts of 4 tokens that take no time to write, each accepted with $a = 3/4$:

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
# Where does it stop paying? A verified row is nearly free as long as the step waits for something else: for the host that launches it, or for memory that is read. The more requests, the more there is to compute. But each also brings its own KV to read. (Here, too, drafts themselves take no time, and no memory.) Stop and play:

# %%
explore("speculation-under-load")

# %% [markdown]
# At 8K of context there is no such batch: the KV of a request takes longer to read than its five rows to compute, however many requests there are, and drafts read it once for 3.05 outputs. With contexts of 128 tokens and a quick host drafts cost time from batch 206 on. Behind a host that takes 26 ms it would be from batch 327 on, and the pool holds 227.
#
# [Exercise 8-7](../exercises/ex_8_7_draft_length.ipynb): how long a draft should be, when tokens come one by one and when they come in groups.
#
# Next: requests that keep arriving, and the choice, in [8.6](8_6_serving_and_choice.ipynb).
