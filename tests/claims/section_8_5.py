"""Numbers of section 8.5 and of the footnotes that belong to it."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

from lib import dflash, draft_sources, ngram_draft, speculation
from lib.acceptance import acceptance_by_position
from lib.design_problem import INSTANCE, SHORT_CHAT
from lib.dflash import K7, K15, PLAIN
from lib.draft_length import CAPTURED, VERIFIED
from lib.draft_sources import Order, Stage, drafting_time, pass_time, passes
from lib.exercise_8_7 import BOOK as EXERCISE
from lib.exercise_8_7 import GROUPED
from lib.four_requests import HOST_NS
from lib.greedy_check import GreedyCheck, example
from lib.memory import KvPool, RequestShape
from lib.model import kv_bytes_per_token
from lib.records import record
from lib.rejection_sampling import (
    ALWAYS_A,
    ALWAYS_B,
    TARGET,
    A,
    B,
    Distribution,
    Outcome,
    Rule,
    acceptance_probability,
    acceptance_rate,
    output_law,
    position_law,
)
from lib.shapes import padded_rows
from lib.speculation import (
    ACCEPTS_A,
    ACCEPTS_B,
    BASELINE,
    INDEX_S,
    OUTPUTS,
    PLAIN_S,
    QUERY_S,
    TWO_ROUNDS,
    Speculation,
    at_every_position,
    mean_of_ratios,
    plain_time,
    time_per_output,
)
from lib.speculation_by_batch import SHORT_CONTEXT, SpeculativeDecode, context_that_always_pays
from lib.speculation_setup import MOST_PLACE, MOST_ROUNDS, blocks_beside_draft
from lib.step_time import MFU, LaunchBound, decode_plan, device
from lib.units import GB, GIB
from tests.claims.claim import Claim

LENGTH, CONTEXT = speculation.DRAFT_TOKENS, BASELINE["context_tokens"]
AAAA, BBBB = (Speculation(at_every_position(a, LENGTH), QUERY_S) for a in (ACCEPTS_A, ACCEPTS_B))
MOST_IN_STEP = 1024
MATH, LOOK_UP = "short_math", "short_lookup"


def emitted(draft: Distribution, drafted: int, output: int, rule: Rule = Rule.RESIDUAL) -> float:
    """How often this draft is rejected and this token comes instead."""
    return float(position_law(TARGET, draft, rule)[Outcome(drafted, False, output)])


def a_out_by_the_wrong_rule(draft: Distribution = ALWAYS_A) -> float:
    return float(output_law(TARGET, draft, Rule.FROM_TARGET)[A])


def refused_of_100(draft: Distribution) -> float:
    return float(100 * (1 - acceptance_rate(TARGET, draft)))


def rows(speculative: Speculation) -> int:
    """Positions verified in a round: as many as it may output."""
    return len(speculation.outputs_at_least(speculative.acceptance))


def plain_rows() -> int:
    return decode_plan(BASELINE["batch_requests"], CONTEXT).new_tokens


def seconds_of_round(place: int) -> float:
    return TWO_ROUNDS[place][0]


def per_output_of_round(place: int) -> float:
    time, outputs = TWO_ROUNDS[place]
    return time / outputs


def run(draft_tokens: int) -> dict[str, Any]:
    return dict(record("dflash_runs").one(draft_tokens=draft_tokens))


def request_ms(draft_tokens: int) -> float:
    row = record("dflash").one(draft_tokens=draft_tokens, task=LOOK_UP, concurrency_requests=1)
    return float(row["request_median_ms"])


def pairs() -> int:
    """Each request that ran with drafts has its like among those without."""
    return int(sum(row["requests"] for row in record("dflash_runs").rows if row["draft_tokens"]))


def draft_pass_ms() -> float:
    return pass_time(dflash.weight_bytes()) * 1e3


def draft_ms(order: Order) -> float:
    return drafting_time(order, draft_sources.DRAFT_TOKENS, dflash.weight_bytes()) * 1e3


def serial_ms_of_rounded_passes() -> float:
    """The chapter rounds a pass to 0.01 ms before it takes four; unrounded they are 14.27 ms."""
    return passes(Order.SERIAL, draft_sources.DRAFT_TOKENS) * round(draft_pass_ms(), 2)


def ms_per_output(order: Order, outputs: float) -> float:
    return (draft_ms(order) + PLAIN_S * 1e3) / outputs


def first_round(draft_tokens: int) -> Any:
    """The first verification of the same answer: with both lengths one token is accepted."""
    return dflash.recorded_rounds(draft_tokens, MATH)[0]


def accepted_per_round(draft_tokens: int) -> float:
    return float(run(draft_tokens)["accepted_draft_tokens"] / run(draft_tokens)["draft_rounds"])


def traced_per_round(draft_tokens: int) -> float:
    rounds = dflash.traced_rounds(draft_tokens)
    return sum(each.accepted for each in rounds) / len(rounds)


def acceptance(draft_tokens: int, position: int) -> float:
    return float(acceptance_by_position(dflash.recorded_rounds(draft_tokens, MATH))[position - 1])


@cache
def looked_up() -> tuple[ngram_draft.LookedUp, ...]:
    return ngram_draft.write(ngram_draft.serving_text())


def of_figure() -> GreedyCheck:
    return example()


def stops_at(context: int, accepted: float, host_ns: int = HOST_NS) -> float:
    """The batch at which drafts that take no time stop paying; NaN where they pay at each one."""
    acceptance = at_every_position(accepted, LENGTH)
    found = SpeculativeDecode(context, acceptance, LaunchBound(host_ns, device())).stops_paying_at(MOST_IN_STEP)
    return math.nan if found is None else found


def always_pays_from(accepted: float) -> float:
    found = context_that_always_pays(device(), at_every_position(accepted, LENGTH))
    return math.nan if found is None else found


def requests_that_fit(context: int) -> int:
    request = RequestShape(context, SHORT_CHAT.output_tokens)
    return KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes).requests_that_fit(request)


def blocks_at_12_gib(has_draft: bool) -> int:
    """Blocks of the pool of section 8.0, which may have to hold the draft network, too."""
    of_target = kv_bytes_per_token(INSTANCE.model)
    weights, of_draft = (dflash.weight_bytes(), dflash.kv_bytes_of_both() - of_target) if has_draft else (0, 0)
    return blocks_beside_draft(INSTANCE.kv_pool_bytes, weights, of_target, of_draft)


def grouped_draft(place: int) -> int:
    """A length that the exercise compares in groups."""
    return int(GROUPED.cases(EXERCISE)[place]["draft_tokens"])


def same(value: Callable[[], float], what: str, printed: str, unit: str, *ids: str, kind: Any = "computed") -> Claim:
    """A claim that holds exactly."""
    return Claim(ids, what, kind, (printed,), unit, 0, value)


def near(value: Callable[[], float], what: str, printed: str, unit: str, *ids: str, kind: Any = "computed") -> Claim:
    """A claim that holds to half a unit of the last printed digit."""
    digits = len(printed.partition(".")[2])
    return Claim(ids, what, kind, (printed,), unit, 0.5 / 10**digits, value)


CLAIMS = (
    same(lambda: OUTPUTS, "outputs of an answer", "256", "token", "8.5.1-01", "8.5.2-46", "fn22-02", kind="input"),
    same(plain_rows, "outputs of a plain step", "1", "token", "8.5.1-02", kind="input"),
    same(lambda: len(of_figure().draft), "draft of figure 8-29", "4", "token", "8.5.1-03", kind="input"),
    same(lambda: of_figure().accepted, "accepted of it", "2", "token", "8.5.1-04", kind="input"),
    same(lambda: of_figure().differs_at or 0, "where it first differs", "3", "", "8.5.1-05", "8.5.1-08"),
    same(lambda: of_figure().void_positions[0], "first void position", "4", "", "8.5.1-06", "8.5.1-09"),
    same(lambda: len(of_figure().outputs), "outputs of the round", "3", "token", "8.5.1-07"),
    same(lambda: len(of_figure().choices), "rows verified", "5", "rows", "8.5.1"),
    same(lambda: len(of_figure().discarded), "draft tokens thrown away", "2", "token", "8.5.1"),
    same(lambda: float(TARGET[A]), "p(A)", "1/4", "", "8.5.1-10", kind="input"),
    same(lambda: float(TARGET[B]), "p(B)", "3/4", "", "8.5.1-11", kind="input"),
    same(
        lambda: float(acceptance_probability(TARGET, ALWAYS_A, A)),
        "A accepted", "1/4", "", "8.5.1-12", "8.5.1-15",
    ),
    same(lambda: emitted(ALWAYS_A, A, B), "A rejected, B output", "3/4", "", "8.5.1-13", "8.5.1-16"),
    same(
        lambda: float(acceptance_probability(TARGET, ALWAYS_B, B)),
        "B accepted", "3/4", "", "8.5.1-14", "8.5.1-17",
    ),
    same(lambda: emitted(ALWAYS_B, B, A), "B rejected, A output", "1/4", "", "8.5.1-18"),
    same(a_out_by_the_wrong_rule, "A output if a rejection draws from p", "7/16", "", "8.5.1"),
    same(lambda: len(TWO_ROUNDS), "rounds to average", "2", "rounds", "8.5.2-01", kind="input"),
    same(lambda: seconds_of_round(0) * 1e3, "time of the first", "1.5", "ms", "8.5.2-02", kind="input"),
    same(lambda: seconds_of_round(1) * 1e3, "time of the second", "1.5", "ms", "8.5.2", kind="input"),
    same(lambda: TWO_ROUNDS[0][1], "outputs of the first", "1", "token", "8.5.2-03", kind="input"),
    same(lambda: TWO_ROUNDS[1][1], "outputs of the second", "5", "token", "8.5.2-04", kind="input"),
    same(lambda: sum(time for time, _ in TWO_ROUNDS) * 1e3, "time of both", "3", "ms", "8.5.2-05"),
    same(lambda: sum(outputs for _, outputs in TWO_ROUNDS), "outputs of both", "6", "token", "8.5.2-06"),
    same(lambda: time_per_output(TWO_ROUNDS) * 1e3, "time over outputs", "0.5", "ms", "8.5.2-07"),
    same(lambda: per_output_of_round(0) * 1e3, "an output of the first", "1.5", "ms", "8.5.2-08"),
    same(lambda: per_output_of_round(1) * 1e3, "an output of the second", "0.3", "ms", "8.5.2-09"),
    same(lambda: mean_of_ratios(TWO_ROUNDS) * 1e3, "mean of the two, which misleads", "0.9", "ms", "8.5.2-10"),
    same(lambda: LENGTH, "draft tokens", "4", "token", "8.5.2-11", "8.5.2-35", kind="input"),
    same(lambda: ACCEPTS_A, "AAAA accepted", "1/4", "", "8.5.2-12", kind="input"),
    near(lambda: AAAA.outputs_per_round, "outputs a round, AAAA", "1.33", "token", "8.5.2-13"),
    same(lambda: ACCEPTS_B, "BBBB accepted", "3/4", "", "8.5.2-14", kind="input"),
    near(lambda: BBBB.outputs_per_round, "outputs a round, BBBB", "3.05", "token", "8.5.2-15"),
    same(
        lambda: BASELINE["batch_requests"], "batch of plain decode", "1", "requests", "8.5.2-16", "8.5.2-38",
        kind="input",
    ),
    same(lambda: CONTEXT, "its context", "2K", "token", "8.5.2-17", "8.5.2-39", kind="input"),
    near(
        lambda: PLAIN_S * 1e3, "plain step", "26.26", "ms", "8.5.2-18", "8.5.2-37", "8.5.3-05", "fn22-03",
        kind="measured",
    ),
    same(lambda: rows(AAAA), "positions verified", "5", "rows", "8.5.2-19"),
    same(lambda: rows(AAAA) - plain_rows(), "rows more than in a plain step", "4", "rows", "8.5.2-20"),
    near(lambda: speculation.extra_verify_flops(LENGTH, CONTEXT) / 1e9, "their FLOP", "65", "GFLOP", "8.5.2-21"),
    near(lambda: 100 * MFU, "share of the peak, of which the chapter prints two digits", "62", "%", "8.5.2-22",
         kind="input"),
    near(lambda: speculation.extra_verify_s(LENGTH, CONTEXT) * 1e3, "their time", "0.2", "ms", "8.5.2-23"),
    near(
        lambda: BBBB.verify_s * 1e3, "round of verification", "26.26", "ms", "8.5.2-24", "8.5.2-36", "8.5.3-12",
        kind="measured",
    ),
    same(lambda: K7, "draft of K7", "7", "token", "8.5.2-25", "8.5.4-07", kind="input"),
    same(lambda: K7 + plain_rows(), "positions it verifies", "8", "rows", "8.5.2-26"),
    near(lambda: run(K7)["step_median_ms"], "its round", "15.2", "ms", "8.5.2-27", kind="measured"),
    near(lambda: run(PLAIN)["step_median_ms"], "a plain step beside it", "16.9", "ms", "8.5.2-28", kind="measured"),
    same(lambda: QUERY_S * 1e3, "time to look up a draft", "0.1", "ms", "8.5.2-29", "8.5.2-40", kind="input"),
    same(lambda: BBBB.round_s * 1e3, "round with it", "26.36", "ms", "8.5.2-30"),
    near(lambda: AAAA.s_per_output * 1e3, "an output, AAAA", "19.8", "ms", "8.5.2-31"),
    near(lambda: BBBB.s_per_output * 1e3, "an output, BBBB", "8.64", "ms", "8.5.2-32"),
    near(lambda: AAAA.break_even_draft_s * 1e3, "longest look-up, AAAA", "8.7", "ms", "8.5.2-33", "8.5.2-41"),
    near(lambda: BBBB.break_even_draft_s * 1e3, "longest look-up, BBBB", "53.9", "ms", "8.5.2-34", "8.5.2-42"),
    near(lambda: AAAA.break_even_draft_s * 1e3, "the same, AAAA", "8.719", "ms", "8.5.2"),
    near(lambda: BBBB.break_even_draft_s * 1e3, "the same, BBBB", "53.854", "ms", "8.5.2"),
    same(lambda: INDEX_S, "time to build the index", "2", "s", "8.5.2-43", "fn22-01", kind="input"),
    near(lambda: BBBB.saved_s_per_output * 1e3, "saved an output, BBBB", "17.6", "ms", "8.5.2-44"),
    same(lambda: BBBB.outputs_to_repay(INDEX_S) or 0, "outputs that repay it", "114", "token", "8.5.2-45"),
    near(lambda: plain_time(OUTPUTS), "256 plain steps", "6.72", "s", "8.5.2-47"),
    near(lambda: BBBB.time_of(OUTPUTS, INDEX_S), "index and BBBB", "4.22", "s", "8.5.2-48"),
    near(lambda: AAAA.time_of(OUTPUTS, INDEX_S), "index and AAAA", "7.07", "s", "8.5.2"),
    near(
        lambda: speculation.expected_rounds(BBBB.acceptance, OUTPUTS), "rounds of 256 outputs", "84.386", "rounds",
        "8.5.2",
    ),
    near(
        lambda: INDEX_S + OUTPUTS * BBBB.s_per_output, "the same without whole rounds", "4.21", "s", "8.5.2",
    ),
    same(lambda: draft_sources.DRAFT_TOKENS, "draft tokens", "4", "token", "8.5.3-01", kind="input"),
    same(lambda: len(Stage), "stages of a round", "4", "stages", "8.5.3-02", kind="input"),
    near(lambda: dflash.weight_bytes() / GIB, "draft network", "1.95", "GiB", "8.5.3-03", kind="measured"),
    near(lambda: dflash.weight_bytes() / GB, "draft network", "2.10", "GB", "8.5.3-04"),
    same(dflash.weight_bytes, "draft network", "2,097,252,864", "bytes", "8.5.3"),
    near(lambda: BASELINE["nominal_read_bytes_per_step"] / GB, "read by a plain step", "15.44", "GB", "8.5.3-06"),
    same(lambda: BASELINE["nominal_read_bytes_per_step"], "the same", "15,438,800,896", "bytes", "8.5.3"),
    near(lambda: draft_sources.REACHED_BYTES_S / GB, "bandwidth reached", "588", "GB/s", "8.5.3-07"),
    near(draft_pass_ms, "a pass of the draft network", "3.57", "ms", "8.5.3-08"),
    same(lambda: passes(Order.SERIAL, draft_sources.DRAFT_TOKENS), "passes in series", "4", "passes", "8.5.3-09"),
    near(serial_ms_of_rounded_passes, "drafting in series", "14.28", "ms", "8.5.3-10"),
    near(lambda: draft_ms(Order.PARALLEL), "drafting in parallel", "3.57", "ms", "8.5.3-11"),
    same(lambda: draft_sources.OUTPUTS, "outputs a round", "3", "token", "8.5.3-13", kind="input"),
    near(lambda: ms_per_output(Order.SERIAL, draft_sources.OUTPUTS), "an output, series", "13.5", "ms", "8.5.3-14"),
    near(lambda: ms_per_output(Order.PARALLEL, draft_sources.OUTPUTS), "an output, parallel", "9.9", "ms", "8.5.3-15"),
    same(lambda: draft_sources.FEWER_OUTPUTS, "outputs if fewer are accepted", "2", "token", "8.5.3-16", kind="input"),
    near(
        lambda: ms_per_output(Order.PARALLEL, draft_sources.FEWER_OUTPUTS), "an output, parallel, then", "14.9", "ms",
        "8.5.3-17",
    ),
    near(lambda: draft_ms(Order.SERIAL) - draft_ms(Order.PARALLEL), "drafting time saved", "10.7", "ms", "8.5.3-18"),
    same(lambda: kv_bytes_per_token(dflash.DRAFT_NETWORK), "KV of a token, draft", "20,480", "bytes", "8.5.3"),
    same(dflash.kv_bytes_of_both, "KV of a token, both models", "167,936", "bytes", "8.5.3"),
    same(lambda: run(PLAIN)["peak_memory_mib"], "peak memory, plain", "17,706", "MiB", "8.5.3", kind="measured"),
    same(lambda: run(K7)["peak_memory_mib"], "peak memory, K7", "20,894", "MiB", "8.5.3", kind="measured"),
    same(lambda: run(K15)["peak_memory_mib"], "peak memory, K15", "20,814", "MiB", "8.5.3", kind="measured"),
    same(lambda: len(ngram_draft.serving_text().tokens), "tokens of the frozen text", "579", "token", "8.5.3"),
    same(lambda: len(looked_up()), "rounds that write it", "386", "rounds", "8.5.3"),
    same(lambda: sum(each.verified.outputs for each in looked_up()), "written in them", "515", "token", "8.5.3"),
    same(lambda: sum(each.check is not None for each in looked_up()), "that had a draft", "123", "rounds", "8.5.3"),
    same(lambda: VERIFIED[0], "tokens verified", "4", "token", "8.5.4-01", kind="input"),
    same(lambda: VERIFIED[1], "tokens verified", "5", "token", "8.5.4-02", kind="input"),
    same(lambda: padded_rows(VERIFIED[1], CAPTURED), "rows executed", "8", "rows", "8.5.4-03"),
    same(lambda: padded_rows(VERIFIED[0], CAPTURED), "rows executed for 4", "8", "rows", "8.5.4"),
    same(lambda: VERIFIED[2], "tokens that still fit", "8", "token", "8.5.4-04", kind="input"),
    same(lambda: VERIFIED[3], "tokens that do not", "9", "token", "8.5.4-05", kind="input"),
    same(lambda: padded_rows(VERIFIED[3], CAPTURED), "rows executed then", "16", "rows", "8.5.4-06"),
    same(lambda: K15, "draft of K15", "15", "token", "8.5.4-08", kind="input"),
    same(
        lambda: record("dflash").where(task=LOOK_UP)[0]["concurrency_requests"],
        "requests at a time", "1", "requests", "8.5.4-09", "fn23-01", kind="input",
    ),
    near(lambda: request_ms(PLAIN), "short look-up, plain", "90.0", "ms", "8.5.4-10", kind="measured"),
    near(lambda: request_ms(PLAIN), "the same", "90.02", "ms", "fn23-02", kind="measured"),
    near(lambda: request_ms(K7), "short look-up, K7", "30.6", "ms", "8.5.4-11", kind="measured"),
    near(lambda: request_ms(K7), "the same", "30.58", "ms", "fn23-03", kind="measured"),
    near(lambda: request_ms(K15), "short look-up, K15", "29.4", "ms", "8.5.4-12", kind="measured"),
    near(lambda: request_ms(K15), "the same", "29.43", "ms", "fn23-04", kind="measured"),
    near(lambda: request_ms(PLAIN) - request_ms(K7), "saved by K7", "59", "ms", "8.5.4-13"),
    near(lambda: request_ms(K7) - request_ms(K15), "saved further by K15", "1.2", "ms", "8.5.4-14"),
    same(lambda: first_round(K7).accepted, "accepted in a round of K7", "1", "token", "8.5.4-15", kind="measured"),
    same(lambda: first_round(K15).accepted, "and of K15", "1", "token", "8.5.4", kind="measured"),
    same(lambda: first_round(K7).discarded, "discarded by K7", "6", "token", "8.5.4-16"),
    same(lambda: first_round(K15).discarded, "discarded by K15", "14", "token", "8.5.4-17"),
    same(pairs, "pairs of outputs", "32", "pairs", "fn23-05", kind="measured"),
    same(lambda: sum(dflash.delivered(K7, MATH)), "delivered by the rounds of K7", "94", "token", "8.5.4"),
    same(lambda: sum(dflash.delivered(K15, MATH)), "delivered by the rounds of K15", "94", "token", "8.5.4"),
    same(lambda: len(dflash.delivered(K7, MATH)), "rounds of K7", "14", "rounds", "8.5.4", kind="measured"),
    same(lambda: len(dflash.delivered(K15, MATH)), "rounds of K15", "11", "rounds", "8.5.4", kind="measured"),
    same(
        lambda: dflash.recorded_rounds(K15, LOOK_UP)[0].outputs, "outputs of the only round of a short answer", "6",
        "token", "8.5.4", kind="measured",
    ),
    same(lambda: dflash.delivered(K15, LOOK_UP)[0], "delivered of them", "4", "token", "8.5.4"),
    near(lambda: accepted_per_round(K7), "accepted a round, K7", "5.11", "token", "8.5.4", kind="measured"),
    near(lambda: accepted_per_round(K15), "accepted a round, K15", "6.71", "token", "8.5.4", kind="measured"),
    near(lambda: traced_per_round(K7), "the same, traced", "5.11", "token", "8.5.4", kind="measured"),
    near(lambda: traced_per_round(K15), "the same, traced", "6.71", "token", "8.5.4", kind="measured"),
    near(lambda: acceptance(K7, 1), "first token accepted, K7", "0.93", "", "8.5.4"),
    near(lambda: acceptance(K7, 3), "third token accepted, K7", "1.00", "", "8.5.4"),
    near(lambda: acceptance(K7, 7), "seventh token accepted, K7", "0.73", "", "8.5.4"),
    same(lambda: SHORT_CONTEXT, "a short context", "128", "token", "8.5.4", kind="input"),
    same(lambda: stops_at(SHORT_CONTEXT, ACCEPTS_A), "where AAAA stops paying there", "143", "requests", "8.5.4"),
    same(lambda: stops_at(SHORT_CONTEXT, ACCEPTS_B), "where BBBB stops paying there", "327", "requests", "8.5.4"),
    same(lambda: stops_at(SHORT_CONTEXT, ACCEPTS_B, 0), "the same without a host", "206", "requests", "8.5.4"),
    same(lambda: always_pays_from(ACCEPTS_A), "context from which AAAA always pays", "1,515", "token", "8.5.4"),
    same(lambda: always_pays_from(ACCEPTS_B), "context from which BBBB always pays", "641", "token", "8.5.4"),
    same(lambda: blocks_at_12_gib(False), "blocks in 12 GiB", "5,461", "blocks", "8.5.4"),
    same(lambda: blocks_at_12_gib(True), "blocks in 12 GiB beside the draft network", "4,014", "blocks", "8.5.4"),
    same(lambda: refused_of_100(ALWAYS_A), "refused of 100 drafts A", "75", "drafts", "8.5.1"),
    same(lambda: refused_of_100(ALWAYS_B), "refused of 100 drafts B", "25", "drafts", "8.5.1"),
    same(lambda: a_out_by_the_wrong_rule(ALWAYS_B), "A output by the wrong rule, draft B", "1/16", "", "8.5.1"),
    same(lambda: requests_that_fit(SHORT_CONTEXT), "short contexts that the pool holds", "227", "requests", "8.5.4"),
    same(lambda: EXERCISE.acceptance[0], "acceptance in the exercise", "3/4", "", "8.5.4-18", kind="input"),
    same(lambda: EXERCISE.lengths[0], "its first length", "1", "token", "8.5.4-19", kind="input"),
    same(lambda: EXERCISE.lengths[1], "its second", "2", "token", "8.5.4-20", kind="input"),
    same(lambda: EXERCISE.lengths[2], "its third", "4", "token", "8.5.4-21", kind="input"),
    same(lambda: EXERCISE.lengths[3], "its fourth", "8", "token", "8.5.4-22", kind="input"),
    same(lambda: EXERCISE.verify_ms, "its verification, to one decimal", "26.3", "ms", "8.5.4-23"),
    same(lambda: EXERCISE.draft_ms, "its draft token, to one decimal", "3.6", "ms", "8.5.4-24"),
    same(lambda: EXERCISE.group, "its group", "4", "token", "8.5.4-25", kind="input"),
    same(lambda: grouped_draft(0), "its draft of a full group", "4", "token", "8.5.4-26", kind="input"),
    same(lambda: grouped_draft(1), "its draft of one more", "5", "token", "8.5.4-27", kind="input"),
    # A draw is that of its request and round alone: as many of each have draws of their own.
    same(lambda: MOST_PLACE, "requests told apart by draws", "1,099,511,627,776", "requests", "8.5.1", kind="input"),
    same(lambda: MOST_ROUNDS, "rounds told apart by draws", "1,099,511,627,776", "rounds", "8.5.1", kind="input"),
)  # fmt: skip
