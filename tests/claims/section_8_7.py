"""What the models miss, record by record, which section 8.7 tells and the chapter does not print; and exercise 8-9."""

from collections.abc import Callable
from typing import Literal

from lib import atlas_counts, atlas_times
from lib.atlas import atlas, judged, of_group
from lib.comparison import Comparison, Group, Model, score
from lib.exercise_8_9 import BOOK as EXERCISE
from lib.exercise_8_9 import LOOKED_UP_OUTPUTS, ROUNDS
from lib.records import record
from lib.units import GIB, MIB
from tests.claims.claim import Claim

FIT, DEVICE, HOST, OWN_HOST = Model.FIT, Model.DEVICE, Model.HOST, Model.OWN_HOST


def found(group: Group, what: str, model: Model) -> Comparison:
    (one,) = (one for one in of_group(group) if (one.seen.what, one.model) == (what, model))
    return one


def same(value: Callable[[], float], what: str, printed: str, unit: str, tolerance: float = 0) -> Claim:
    return Claim(("8.7",), what, "computed", (printed,), unit, tolerance, value)


def above(group: Group, what: str, model: Model, printed: str, tolerance: float = 0.5) -> Claim:
    """By how many per cent a model lies above what was measured."""
    return same(
        lambda: found(group, what, model).error * 100, f"{group}, {what}: {model} above", printed, "%", tolerance
    )


def below(group: Group, what: str, model: Model, printed: str, tolerance: float = 0.5) -> Claim:
    """By how many per cent it lies below."""
    return same(
        lambda: -found(group, what, model).error * 100, f"{group}, {what}: {model} below", printed, "%", tolerance
    )


def said(group: Group, what: str, model: Model, printed: str, tolerance: float) -> Claim:
    one = found(group, what, model)
    return same(
        lambda: found(group, what, model).predicted, f"{group}, {what}, by {model}", printed, one.seen.unit, tolerance
    )


def seen(group: Group, what: str, model: Model, printed: str, tolerance: float) -> Claim:
    one = found(group, what, model)
    return Claim(
        ("8.7",), f"{group}, {what}, measured", "measured", (printed,), one.seen.unit, tolerance,
        lambda: found(group, what, model).seen.value,
    )  # fmt: skip


def middle(model: Model, group: Group | None = None) -> float:
    return score(judged(of_group(group) if group else atlas()), model).middle * 100


def counted() -> list[Comparison]:
    return [one for one in atlas() if one.seen.clock is None]


def asked(value: Callable[[], float], what: str, printed: str, unit: str, name: str, tolerance: float = 0) -> Claim:
    """An input of exercise 8-9, which stands at the end of section 8.6.3."""
    kind: Literal["input", "measured"] = "measured" if tolerance else "input"
    return Claim((name,), what, kind, (printed,), unit, tolerance, value)


def column(name: str, of: str, printed: str, unit: str) -> Claim:
    """The sum of a column of a record from which the atlas takes what was measured or what a model is asked about."""
    tolerance = 0.0005 if "." in printed else 0
    return Claim(
        ("8.7",), f"{name}, {of}, added up", "measured", (printed,), unit, tolerance,
        lambda: sum(row[of] for row in record(name).rows),
    )  # fmt: skip


def rounds_of_e() -> float:
    _, _, rounds = ROUNDS.key(**ROUNDS.cases(EXERCISE)[0])
    return float(rounds)


CLAIMS = (
    same(lambda: len(atlas()), "comparisons", "457", "comparisons"),
    same(lambda: len(counted()), "of counts", "113", "comparisons"),
    same(lambda: sum(one.error == 0 for one in counted()), "of them exact", "109", "comparisons"),
    same(lambda: len(atlas()) - len(counted()), "of times", "344", "comparisons"),
    same(lambda: len(judged(atlas())), "of times not fitted to", "324", "comparisons"),
    same(lambda: middle(FIT), "middle error of the fit", "24", "%", 0.5),
    same(lambda: middle(DEVICE), "middle error of the device model", "13", "%", 0.5),
    same(lambda: middle(HOST), "middle error of max(host, device)", "8", "%", 0.5),
    same(lambda: middle(OWN_HOST), "the same with the host of each experiment", "11", "%", 0.5),
    same(lambda: middle(Model.ADDED), "middle error of recorded parts added", "1.3", "%", 0.05),
    same(lambda: middle(FIT, Group.DECODE), "the fit on decode steps", "2.5", "%", 0.05),
    same(lambda: middle(DEVICE, Group.DECODE), "the device model on decode steps", "46", "%", 0.5),
    below(Group.PREFILL, "4 x 2K", FIT, "15"),
    below(Group.PREFILL, "64 x 2K", FIT, "19"),
    below(Group.PREFILL, "4 x 2K", DEVICE, "1"),
    below(Group.PREFILL, "64 x 2K", DEVICE, "6"),
    above(Group.PREFILL, "1 x 8K, 6K of it cached", FIT, "4.8", 0.05),
    below(Group.PREFILL, "64 x 8K, 6K of it cached", FIT, "16"),
    below(Group.PREFILL, "64 x 8K, 6K of it cached", DEVICE, "16"),
    said(Group.PREFILL, "64 x 2K", FIT, "5.23", 0.005),
    seen(Group.PREFILL, "64 x 2K", FIT, "6.46", 0.005),
    seen(Group.CHUNKS, "all 16", FIT, "481", 0.5),
    said(Group.CHUNKS, "all 16", FIT, "769", 0.5),
    said(Group.CHUNKS, "all 16", DEVICE, "426", 0.5),
    above(Group.CHUNKS, "all 16", FIT, "60"),
    below(Group.CHUNKS, "all 16", DEVICE, "11"),
    seen(Group.DECODE, "64 x 8K, 6K of it cached", FIT, "41.2", 0.05),
    said(Group.DECODE, "64 x 8K, 6K of it cached", Model.BOUND, "51.6", 0.05),
    said(Group.DECODE, "64 x 8K, 6K of it cached", Model.READ_ONCE, "19.7", 0.05),
    above(Group.DECODE, "64 x 8K, 6K of it cached", Model.BOUND, "25"),
    below(Group.DECODE, "64 x 8K, 6K of it cached", FIT, "28"),
    above(Group.DECODE, "64 x 8K, 6K of it cached", DEVICE, "93"),
    below(Group.BATCHES, "16 x 8K, 6K of it cached, whole", Model.ADDED, "1.3", 0.05),
    said(Group.BATCHES, "16 x 8K, 6K of it cached, whole", Model.ADDED, "9.01", 0.005),
    seen(Group.BATCHES, "16 x 8K, 6K of it cached, whole", Model.ADDED, "9.13", 0.005),
    below(Group.BATCHES, "64 x 2K, interval", FIT, "10"),
    seen(Group.SIX, "middle interval, 512 a step", FIT, "12.9", 0.05),
    said(Group.SIX, "middle interval, 512 a step", FIT, "26.4", 0.05),
    said(Group.SIX, "middle interval, 512 a step", DEVICE, "14.1", 0.05),
    above(Group.SIX, "middle interval, 512 a step", FIT, "104"),
    above(Group.SIX, "slowest request, 512 a step", FIT, "60"),
    below(Group.SIX, "slowest request, 512 a step", DEVICE, "15"),
    above(Group.AGENT, "pool6gib_cache_off, rounds", FIT, "49"),
    below(Group.AGENT, "pool6gib_cache_off, rounds", HOST, "6"),
    below(Group.AGENT, "pool6gib, rounds", FIT, "3"),
    seen(Group.DRAFTS, "long_lookup, first token", FIT, "129.4", 0.05),
    said(Group.DRAFTS, "long_lookup, first token", FIT, "208.1", 0.05),
    said(Group.DRAFTS, "long_lookup, first token", HOST, "130.0", 0.05),
    said(Group.DRAFTS, "long_lookup, first token", OWN_HOST, "111.6", 0.05),
    above(Group.DRAFTS, "short_math, whole, drafts of 7", Model.ADDED, "2.3", 0.05),
    same(
        lambda: score(judged(of_group(Group.SERVICE)), Model.CALIBRATED).middle * 100,
        "middle error of the service, calibrated on requests alone", "0.9", "%", 0.05,
    ),
    below(Group.SERVICE, "one at a time at 4/s, longest request", Model.CALIBRATED, "2", 0.5),
    below(Group.SERVICE, "continuous batching at 16/s, longest request", Model.CALIBRATED, "0.6", 0.05),
    below(Group.SERVICE, "continuous batching at 1/s, longest request", Model.CALIBRATED, "31"),
    above(Group.RETRIES, "new documents", Model.RETRY_RULE, "21"),
    above(Group.OUTPUTS, "drafts of 7", Model.BY_POSITION, "0"),
    below(Group.OUTPUTS, "drafts of 7", Model.ONE_RATE, "6"),
    below(Group.OUTPUTS, "drafts of 15", Model.ONE_RATE, "2"),
    below(Group.BYTES, "read by one layer, bf16_kv", Model.COUNT, "0.06", 0.005),
    below(Group.BYTES, "read by one layer, fp8_kv_default", Model.COUNT, "0.13", 0.005),
    same(lambda: len(atlas_counts.pool_runs()), "runs of equal requests in a pool", "20", "runs"),
    same(
        lambda: atlas_counts.runs_that_come_out(atlas_counts.INFERRED_TOKENS_PER_STEP),
        "of them with as many preemptions, 8192 tokens a step", "20", "runs",
    ),
    same(lambda: atlas_counts.runs_that_come_out(4096), "the same with 4096", "18", "runs"),
    same(lambda: atlas_counts.runs_that_come_out(512), "the same with 512", "8", "runs"),
    same(lambda: atlas_counts.INFERRED_TOKENS_PER_STEP, "tokens a step, inferred", "8192", "token"),
    same(lambda: atlas_counts.MOST_RUNNING, "most requests running there", "24", "requests"),
    same(lambda: atlas_counts.FORCED_OUTPUTS, "outputs forced there", "64", "token"),
    asked(lambda: LOOKED_UP_OUTPUTS, "outputs of a round of E", "2", "token", "8.6.3-150"),
    Claim(("8.6.3-151",), "rounds of E", "computed", ("128",), "rounds", 0, rounds_of_e),
    asked(lambda: EXERCISE.round_ms, "round of E without its query", "27.35", "ms", "8.6.3-152", 0.005),
    asked(lambda: EXERCISE.query_ms, "query of a round of E", "0.1", "ms", "8.6.3-153"),
    asked(lambda: EXERCISE.less_memory_mib * MIB / GIB, "less memory, in the exercise", "6", "GiB", "8.6.3-154"),
    asked(lambda: EXERCISE.short_output_tokens, "shorter outputs, in the exercise", "16", "token", "8.6.3-155"),
    column("batch_sweep", "input_tokens", "40,960", "token"),
    column("batch_sweep", "cached_prefix_tokens", "24,576", "token"),
    column("batch_sweep", "batch_requests", "170", "requests"),
    column("batch_sweep", "output_tokens_per_request", "2,048", "token"),
    column("batch_sweep", "ttft_median_ms", "10,838.29", "ms"),
    column("batch_sweep", "mean_output_interval_median_ms", "264.85", "ms"),
    column("batch_walls", "batch_requests", "510", "requests"),
    column("batch_walls", "batch_wall_s", "237.7514", "s"),
    column("chunk_times", "new_tokens", "8,192", "token"),
    column("chunk_times", "existing_context_tokens", "61,440", "token"),
    column("chunk_times", "median_ms", "481.3441", "ms"),
    column("cache_replay", "input_tokens", "97,780", "token"),
    column("cache_replay", "hit_tokens", "48,912", "token"),
    column("cache_replay", "recomputed_tokens", "48,868", "token"),
    column("six_request_replay", "input_tokens", "96,768", "token"),
    column("six_request_replay", "output_tokens", "8,064", "token"),
    column("six_request_replay_summary", "interval_median_ms", "51.692", "ms"),
    column("six_request_replay_summary", "r3_ttft_median_ms", "939.823", "ms"),
    column("six_request_replay_summary", "r4_ttft_median_ms", "823.9", "ms"),
    column("six_request_replay_summary", "slowest_request_total_ms", "9,344.4", "ms"),
    same(lambda: atlas_times.SWEEP_TOKENS_PER_STEP, "tokens a step of the sweep", "4096", "token"),
    same(lambda: atlas_times.DRAFTS_TOKENS_PER_STEP, "tokens a step where drafts were tried", "512", "token"),
)  # fmt: skip
