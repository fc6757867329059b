"""Numbers of section 8.2 and of the footnotes that belong to it."""

import re
from functools import cache
from typing import Any

from lib import four_requests, memory, model, reads, shapes, step_time
from lib.attention import EXAMPLE_CHUNK, EXAMPLE_CONTEXT, causal_pairs
from lib.design_problem import ALLOWED_INTERVAL_S, INSTANCE, LONG_CONTEXT, SHORT_CHAT, foreign_delay, timed_request
from lib.fast_forward import simulate
from lib.four_requests import Batching, policy_of
from lib.four_requests import four_requests as worked_example
from lib.latency import InsertedAs
from lib.model import QWEN3_8B
from lib.records import record
from lib.schedule import Schedule
from lib.scheduling import Request, fixed_batch
from lib.traces import MADE, read_trace
from lib.units import GB, GIB, KIB, MIB
from tests.claims.claim import Claim

K = model.kv_bytes_per_token(QWEN3_8B)
D_W = model.streamed_weight_bytes(QWEN3_8B)
SHORT, LONG = SHORT_CHAT.input_tokens, LONG_CONTEXT.input_tokens
ADAPTER = memory.adapter_bytes(QWEN3_8B, reads.ADAPTER_RANK)


def sweep(batch: int) -> dict[str, float]:
    return dict(record("batch_sweep").one(input_kind="2k_independent", batch_requests=batch))


def each(batch: int, context: int) -> float:
    return float(reads.reads_per_output(D_W, batch, context, K)) / GIB


def weights_each(batch: int) -> float:
    return float(reads.reads_per_output(D_W, batch, 0, K)) / GIB


def fit_ms(new_tokens: int, context: int) -> float:
    return step_time.FIT(step_time.step_plan((new_tokens, context))) / 1e6


@cache
def run(policy: Batching) -> Schedule:
    return simulate(worked_example(), policy_of(policy))


def total_ms(policy: Batching) -> float:
    return run(policy).total_ns / 1e6


def longest_ms(policy: Batching) -> float:
    return max(run(policy).longest_interval_ns) / 1e6


def arrivals_alike() -> float:
    first, second, *_ = worked_example()
    assert first.arrival_ns == second.arrival_ns
    return first.arrival_ns


def steps_of_the_longer() -> int:
    longer, shorter, *_ = worked_example()
    pair = [Request(0, 1, longer.output), Request(0, 1, shorter.output)]
    return simulate(pair, fixed_batch(2)).idle_rows


def weight_read_ms() -> float:
    return step_time.device(mfu=1, mbu=1).read_ns(step_time.StepPlan(1, 1, 0, 1)) / 1e6


def chunk(index: int) -> dict[str, float]:
    return dict(record("chunk_times").one(chunk_index=index))


def last_chunk() -> dict[str, float]:
    return chunk(len(record("chunk_times").rows) - 1)


def chunk_flop(index: int) -> int:
    row = chunk(index)
    return model.matrix_flops(QWEN3_8B, int(row["new_tokens"]), int(row["existing_context_tokens"]), logit_positions=0)


def flop_growth() -> float:
    first, last = chunk_flop(0), chunk_flop(int(last_chunk()["chunk_index"]))
    assert (first, last) == (chunk(0)["backbone_matrix_flop"], last_chunk()["backbone_matrix_flop"])
    return (last / first - 1) * 100


def replay(budget: int) -> dict[str, float]:
    rows = record("six_request_replay_summary").where(token_budget_per_step=budget, chunked_prefill=1)
    return dict(next(row for row in rows if not row["decode_cuda_graph"]))


def replayed_requests() -> list[dict[str, float]]:
    return [dict(row) for row in record("six_request_replay").where(config="budget512_chunked_eager", trial=1)]


def spacing_ms() -> float:
    first, second, *_ = (row["planned_arrival_ms"] for row in replayed_requests())
    return second - first


def queue_bound_ms() -> float:
    """The chapter gives a bound; both late requests lie below it."""
    row, bound = replay(8192), 0.1
    return bound if max(row["r4_engine_queue_median_ms"], row["r5_engine_queue_median_ms"]) < bound else -1


def pairs_behind_context() -> int:
    return causal_pairs(EXAMPLE_CHUNK, EXAMPLE_CONTEXT)


def fewest_padded() -> int:
    small, large = shapes.CAPTURED
    return next(rows for rows in range(1, large + 1) if shapes.padded_rows(rows, shapes.CAPTURED) > small)


def engine_version() -> int:
    found = re.search(r"vLLM 0\.(\d+)\.0", record("batch_sweep").conditions)
    return int(found[1]) if found else 0


def pool_of_sweep() -> int:
    found = re.search(r"(\d+) GiB KV pool", record("batch_sweep").conditions)
    return int(found[1]) if found else 0


def efficiency(batch: int) -> dict[str, float]:
    return dict(record("step_efficiency").one(input_kind="2k_independent", batch_requests=batch))


def below(by: step_time.StepTime, batch: int) -> float:
    """Per cent by which a model stays below the recorded prefills of a batch, two of them in each step."""
    modelled = by(step_time.step_plan((SHORT, 0), (SHORT, 0))) * batch / 2 / step_time.NS
    return (1 - modelled / efficiency(batch)["prefill_phase_median_s"]) * 100


def device_chunks_ms() -> float:
    return sum(step_time.device()(step_time.step_plan((512, 512 * i))) / 1e6 for i in range(16))


def in_shapes(context: int) -> int:
    beside = step_time.decode_plan(1, SHORT)
    return step_time.tokens_that_fit(50 * 10**6, step_time.FIT, context, beside, (256, 512, 1024))


def walls(batch: int) -> list[Any]:
    return record("batch_walls").where(input_kind="2k_independent", batch_requests=batch)


def inside() -> float:
    return foreign_delay(InsertedAs.INSIDE_STEP) * 1e3


def late_inside() -> float:
    return timed_request(inserted=1, inserted_as=InsertedAs.INSIDE_STEP).total_s


FIRST, CONTINUOUS, CHUNKED = Batching.FIXED, Batching.CONTINUOUS, Batching.CHUNKED
SWEPT = sorted({row["batch_requests"] for row in record("batch_sweep").rows})
POOL = memory.KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes)

CLAIMS = (
    # 8.2.1
    Claim(("8.2.1-01",), "FLOP per multiply-add", "input", ("2",), "FLOP", 0, lambda: reads.weight_intensity(1, 1)),
    Claim(("8.2.1-02",), "bytes of a weight", "input", ("2",), "bytes", 0, lambda: INSTANCE.bytes_per_element),
    Claim(("8.2.1-03", "8.2.1-05"), "rows before", "input", ("1",), "rows", 0, lambda: SWEPT[0]),
    Claim(("8.2.1-04", "8.2.1-06"), "rows after", "input", ("16",), "rows", 0, lambda: SWEPT[2]),
    Claim(
        ("8.2.1-07",),
        "work per weight read, 16 rows against one",
        "computed",
        ("16",),
        "times",
        0,
        lambda: reads.weight_intensity(SWEPT[2]) / reads.weight_intensity(SWEPT[0]),
    ),
    Claim(("8.2.1-08",), "rank of an adapter", "input", ("16",), "", 0, lambda: reads.ADAPTER_RANK),
    Claim(("8.2.1-09",), "one adapter", "computed", ("14.6",), "MiB", 0.05, lambda: ADAPTER / MIB),
    Claim(("8.2.1-10", "8.2.1-13"), "adapters", "input", ("100",), "adapters", 0, lambda: reads.ADAPTERS),
    Claim(
        ("8.2.1-11", "8.2.1-14"),
        "all adapters",
        "computed",
        ("1.43",),
        "GiB",
        0.005,
        lambda: reads.ADAPTERS * ADAPTER / GIB,
    ),
    Claim(("8.2.1-12", "8.2.1-18"), "weights read per step", "computed", ("14.1",), "GiB", 0.05, lambda: D_W / GIB),
    Claim(("8.2.1-15",), "contexts beside them", "input", ("100",), "contexts", 0, lambda: reads.CONTEXTS),
    Claim(("8.2.1-16",), "length of each", "input", ("8K",), "token", 0, lambda: LONG),
    Claim(
        ("8.2.1-17",),
        "KV of these contexts",
        "computed",
        ("112.5",),
        "GiB",
        0,
        lambda: reads.CONTEXTS * model.kv_bytes(QWEN3_8B, LONG) / GIB,
    ),
    Claim(("8.2.1-19", "8.2.1-26"), "shorter context", "input", ("2K",), "token", 0, lambda: SHORT),
    Claim(("8.2.1-34",), "shorter context", "input", ("2048",), "token", 0, lambda: SHORT),
    Claim(("8.2.1-20",), "KV of it", "computed", ("0.28125",), "GiB", 0, lambda: model.kv_bytes(QWEN3_8B, SHORT) / GIB),
    Claim(
        ("8.2.1-21", "8.2.1-27", "8.2.1-46", "8.2.1-58"), "batch 1", "input", ("1",), "requests", 0, lambda: SWEPT[0]
    ),
    Claim(("8.2.1-59",), "batch 4", "input", ("4",), "requests", 0, lambda: SWEPT[1]),
    Claim(("8.2.1-22", "8.2.1-60"), "batch 16", "input", ("16",), "requests", 0, lambda: SWEPT[2]),
    Claim(
        ("8.2.1-24", "8.2.1-28", "8.2.1-39", "8.2.1-47", "8.2.1-61"),
        "batch 64",
        "input",
        ("64",),
        "requests",
        0,
        lambda: SWEPT[3],
    ),
    Claim(("8.2.1-23",), "weights per output, 16", "computed", ("0.88",), "GiB", 0.005, lambda: weights_each(16)),
    Claim(("8.2.1-25",), "weights per output, 64", "computed", ("0.22",), "GiB", 0.005, lambda: weights_each(64)),
    Claim(("8.2.1-29",), "read per output, 1, 2K", "computed", ("14.38",), "GiB", 0.005, lambda: each(1, SHORT)),
    Claim(("8.2.1-30",), "read per output, 64, 2K", "computed", ("0.50",), "GiB", 0.005, lambda: each(64, SHORT)),
    Claim(("8.2.1-31",), "their ratio", "computed", ("1/29",), "", 0.0006, lambda: each(64, SHORT) / each(1, SHORT)),
    Claim(("8.2.1-32",), "longer context", "input", ("8K",), "token", 0, lambda: LONG),
    Claim(("8.2.1-35",), "longer context", "input", ("8192",), "token", 0, lambda: LONG),
    Claim(("8.2.1-33", "8.2.1-38"), "growth of KV and context", "computed", ("4",), "times", 0, lambda: LONG / SHORT),
    Claim(
        ("8.2.1-36", "8.2.1-42"),
        "batch whose KV read reaches the weights', 2K",
        "computed",
        ("51",),
        "requests",
        0,
        lambda: reads.kv_crossover(D_W, SHORT, K),
    ),
    Claim(
        ("8.2.1-37", "8.2.1-43"),
        "batch whose KV read reaches the weights', 8K",
        "computed",
        ("13",),
        "requests",
        0,
        lambda: reads.kv_crossover(D_W, LONG, K),
    ),
    Claim(("8.2.1-40", "8.2.1-44", "8.2.1-56"), "input of the sweep", "input", ("2K",), "token", 0, lambda: SHORT),
    Claim(
        ("8.2.1-41",),
        "resident after one decode step of 64",
        "computed",
        ("35.7",),
        "GB",
        0.05,
        lambda: reads.resident_bytes(model.weight_bytes(QWEN3_8B), 64, SHORT + 1, K) / GB,
    ),
    Claim(
        ("8.2.1-45", "8.2.1-64"),
        "outputs",
        "input",
        ("256",),
        "token",
        0,
        lambda: sweep(64)["output_tokens_per_request"],
    ),
    Claim(
        ("8.2.1-48",),
        "throughput at 1",
        "measured",
        ("37",),
        "token/s",
        0.5,
        lambda: sweep(1)["throughput_median_tok_per_s"],
    ),
    Claim(
        ("8.2.1-49",),
        "throughput at 64",
        "measured",
        ("1165", "1,165"),
        "token/s",
        0.5,
        lambda: sweep(64)["throughput_median_tok_per_s"],
    ),
    Claim(("8.2.1-50",), "first token at 1", "measured", ("96",), "ms", 0.5, lambda: sweep(1)["ttft_median_ms"]),
    Claim(
        ("8.2.1-51",), "first token at 64", "measured", ("3.29",), "s", 0.005, lambda: sweep(64)["ttft_median_ms"] / 1e3
    ),
    Claim(
        ("8.2.1-52",),
        "interval at 1",
        "measured",
        ("27",),
        "ms",
        0.5,
        lambda: sweep(1)["mean_output_interval_median_ms"],
    ),
    Claim(
        ("8.2.1-53",),
        "interval at 64",
        "measured",
        ("40",),
        "ms",
        0.5,
        lambda: sweep(64)["mean_output_interval_median_ms"],
    ),
    Claim(("8.2.1-54",), "weights read per step", "input", ("15,136,811,008",), "bytes", 0, lambda: D_W),
    Claim(("8.2.1-55",), "KV of a token", "input", ("144",), "KiB", 0, lambda: K / KIB),
    Claim(("8.2.1-57", "8.2.1-65", "8.2.1-66"), "longer context", "input", ("8K",), "token", 0, lambda: LONG),
    Claim(("8.2.1-62",), "pool", "input", ("12",), "GiB", 0, lambda: POOL.pool_bytes / GIB),
    Claim(("8.2.1-63",), "tokens in a block", "input", ("16",), "token", 0, lambda: POOL.page_tokens),
    Claim(
        ("8.2.1",),
        "context at which computing and KV read cross, at peaks",
        "computed",
        ("371",),
        "token",
        0,
        lambda: reads.compute_kv_context(step_time.device(mfu=1, mbu=1)) or 0,
    ),
    Claim(
        ("8.2.1",),
        "batch that computes as long as it reads, at 128 tokens",
        "computed",
        ("430",),
        "requests",
        0,
        lambda: reads.compute_crossover(step_time.device(mfu=1, mbu=1), 128) or 0,
    ),
    Claim(("8.2.1",), "pool of the sweep", "input", ("24",), "GiB", 0, pool_of_sweep),
    Claim(
        ("8.2.1",),
        "decode step of 64, engine",
        "measured",
        ("29.63",),
        "ms",
        0.005,
        lambda: efficiency(64)["decode_step_median_ms"],
    ),
    # 8.2.2
    Claim(
        ("8.2.2-01", "8.2.2-05"), "requests at once", "input", ("2",), "requests", 0, lambda: four_requests.MAX_RUNNING
    ),
    Claim(("8.2.2-02", "8.2.2-08"), "outputs of r0", "input", ("8",), "token", 0, lambda: worked_example()[0].output),
    Claim(("8.2.2-03", "8.2.2-09"), "outputs of r1", "input", ("2",), "token", 0, lambda: worked_example()[1].output),
    Claim(("8.2.2-04",), "steps of an idle row", "computed", ("6",), "steps", 0, steps_of_the_longer),
    Claim(("8.2.2-06",), "arrival of r0 and r1", "input", ("0",), "ms", 0, arrivals_alike),
    Claim(("8.2.2-07",), "prompt of r0 and r1", "input", ("2048",), "token", 0, lambda: worked_example()[0].prompt),
    Claim(("8.2.2-10",), "arrival of r2", "input", ("20",), "ms", 0, lambda: worked_example()[2].arrival_ns / 1e6),
    Claim(("8.2.2-11",), "prompt of r2", "input", ("8192",), "token", 0, lambda: worked_example()[2].prompt),
    Claim(("8.2.2-27", "8.2.2-32"), "prompt of r2", "input", ("8K",), "token", 0, lambda: worked_example()[2].prompt),
    Claim(("8.2.2-12",), "outputs of r2", "input", ("2",), "token", 0, lambda: worked_example()[2].output),
    Claim(("8.2.2-13",), "arrival of r3", "input", ("30",), "ms", 0, lambda: worked_example()[3].arrival_ns / 1e6),
    Claim(("8.2.2-14",), "prompt of r3", "input", ("2048",), "token", 0, lambda: worked_example()[3].prompt),
    Claim(("8.2.2-15",), "outputs of r3", "input", ("4",), "token", 0, lambda: worked_example()[3].output),
    Claim(("8.2.2-16", "fn05-01"), "batch of the fit", "input", ("1",), "requests", 0, lambda: SWEPT[0]),
    Claim(("8.2.2-17",), "fixed part of a step", "input", ("26.22",), "ms", 0, lambda: step_time.FIT.fixed_ns / 1e6),
    Claim(
        ("8.2.2-18",), "part per new token", "input", ("30.4",), "us", 0, lambda: step_time.FIT.per_new_token_ns / 1e3
    ),
    Claim(("8.2.2-19",), "part per pair", "input", ("3",), "ns", 0, lambda: step_time.FIT.per_causal_pair_ns),
    Claim(("8.2.2-20", "fn05-02"), "input the fit is checked on", "input", ("2K",), "token", 0, lambda: SHORT),
    Claim(("8.2.2-21",), "decode step by the fit", "computed", ("26.26",), "ms", 0.005, lambda: fit_ms(1, SHORT)),
    Claim(("8.2.2-22",), "prefill by the fit", "computed", ("94.8",), "ms", 0.05, lambda: fit_ms(SHORT, 0)),
    Claim(
        ("8.2.2-23",),
        "peak bandwidth",
        "input",
        ("1792",),
        "GB/s",
        0,
        lambda: INSTANCE.card.bandwidth_bytes_s / GB,
    ),
    Claim(("8.2.2-24",), "weights read at peak bandwidth", "computed", ("8.4",), "ms", 0.05, weight_read_ms),
    Claim(("8.2.2-25",), "total, fixed", "computed", ("870",), "ms", 0.5, lambda: total_ms(FIRST)),
    Claim(("8.2.2-26", "8.2.2-34"), "total, continuous", "computed", ("766",), "ms", 0.5, lambda: total_ms(CONTINUOUS)),
    Claim(
        ("8.2.2",),
        "total, continuous, to the ns",
        "computed",
        ("765,590,636",),
        "ns",
        0,
        lambda: run(Batching.CONTINUOUS).total_ns,
    ),
    Claim(("8.2.2-28",), "longest interval, fixed", "computed", ("26",), "ms", 0.5, lambda: longest_ms(FIRST)),
    Claim(
        ("8.2.2-29", "8.2.2-33"),
        "longest interval, continuous",
        "computed",
        ("376",),
        "ms",
        0.5,
        lambda: longest_ms(CONTINUOUS),
    ),
    Claim(
        ("8.2.2-30",),
        "saved by continuous batching",
        "computed",
        ("12",),
        "%",
        0.5,
        lambda: (1 - total_ms(CONTINUOUS) / total_ms(FIRST)) * 100,
    ),
    Claim(
        ("8.2.2-31",),
        "growth of the longest interval",
        "computed",
        ("14",),
        "times",
        0.5,
        lambda: longest_ms(CONTINUOUS) / longest_ms(FIRST),
    ),
    Claim(("8.2.2-35",), "chunk", "input", ("2048",), "token", 0, lambda: four_requests.CHUNK),
    Claim(("8.2.2-36", "8.2.4-01"), "token budget", "input", ("4096",), "token", 0, lambda: four_requests.TOKEN_BUDGET),
    Claim(
        ("8.2.2-37", "8.2.2-39"),
        "longest interval, chunked",
        "computed",
        ("133",),
        "ms",
        0.5,
        lambda: longest_ms(CHUNKED),
    ),
    Claim(("8.2.2-38", "8.2.2-40"), "total, chunked", "computed", ("844",), "ms", 0.5, lambda: total_ms(CHUNKED)),
    # Not printed, but what 8.2.2 makes of the insertion of 8.1.1: it shares the fixed part of the step.
    Claim(("8.2.2",), "what a prefill inside a step adds", "computed", ("68.6",), "ms", 0.05, inside),
    Claim(("8.2.2",), "request time with it", "computed", ("7.02",), "s", 0.005, late_inside),
    Claim(
        ("8.2.2",),
        "what chunks cost against continuous batching",
        "computed",
        ("78.66",),
        "ms",
        0.005,
        lambda: total_ms(CHUNKED) - total_ms(CONTINUOUS),
    ),
    Claim(("8.2.2",), "first token of r2, fixed", "computed", ("772",), "ms", 0.5, lambda: run(FIRST).ttft_ns[2] / 1e6),
    Claim(
        ("8.2.2",),
        "first token of r2, continuous",
        "computed",
        ("546",),
        "ms",
        0.5,
        lambda: run(CONTINUOUS).ttft_ns[2] / 1e6,
    ),
    Claim(
        ("8.2.2",), "first token of r2, chunked", "computed", ("624",), "ms", 0.5, lambda: run(CHUNKED).ttft_ns[2] / 1e6
    ),
    Claim(
        ("8.2.2",),
        "saved by chunks against fixed",
        "computed",
        ("3",),
        "%",
        0.05,
        lambda: (1 - total_ms(CHUNKED) / total_ms(FIRST)) * 100,
    ),
    Claim(("8.2.2",), "fit below 4 prefills", "computed", ("15",), "%", 0.5, lambda: below(step_time.FIT, 4)),
    Claim(("8.2.2",), "fit below 64 prefills", "computed", ("19",), "%", 0.5, lambda: below(step_time.FIT, 64)),
    Claim(("8.2.2",), "device below 4 prefills", "computed", ("1",), "%", 0.5, lambda: below(step_time.device(), 4)),
    Claim(("8.2.2",), "device below 64 prefills", "computed", ("6",), "%", 0.5, lambda: below(step_time.device(), 64)),
    # 8.2.3
    Claim(
        ("8.2.3-01",),
        "divisor of the triangle",
        "computed",
        ("2",),
        "",
        0,
        lambda: 512 * 513 / causal_pairs(512),
    ),
    Claim(("8.2.3-02", "8.2.3-16"), "chunk", "input", ("512",), "token", 0, lambda: chunk(0)["new_tokens"]),
    Claim(
        ("8.2.3-03",),
        "pairs of the first chunk",
        "computed",
        ("131,328",),
        "pairs",
        0,
        lambda: causal_pairs(int(chunk(0)["new_tokens"])),
    ),
    Claim(("8.2.3-04",), "long input", "input", ("8K",), "token", 0, lambda: LONG),
    Claim(
        ("8.2.3-05",),
        "context of the last chunk",
        "computed",
        ("7680",),
        "token",
        0,
        lambda: LONG - chunk(0)["new_tokens"],
    ),
    Claim(
        ("8.2.3-06",),
        "pairs of the last chunk",
        "computed",
        ("4,063,488",),
        "pairs",
        0,
        lambda: causal_pairs(512, int(last_chunk()["existing_context_tokens"])),
    ),
    Claim(
        ("8.2.3-07",),
        "last chunk's pairs against the first's",
        "computed",
        ("31",),
        "times",
        0.5,
        lambda: last_chunk()["causal_pairs"] / chunk(0)["causal_pairs"],
    ),
    Claim(
        ("8.2.3",),
        "pairs of the first chunk, as recorded",
        "measured",
        ("131,328",),
        "pairs",
        0,
        lambda: chunk(0)["causal_pairs"],
    ),
    Claim(
        ("8.2.3",),
        "pairs of the last chunk, as recorded",
        "measured",
        ("4,063,488",),
        "pairs",
        0,
        lambda: last_chunk()["causal_pairs"],
    ),
    Claim(("8.2.3-08",), "new tokens of figure 8-8", "input", ("4",), "token", 0, lambda: EXAMPLE_CHUNK),
    Claim(
        ("8.2.3-09", "8.2.3-14"),
        "pairs of figure 8-8",
        "computed",
        ("10",),
        "pairs",
        0,
        lambda: causal_pairs(EXAMPLE_CHUNK),
    ),
    Claim(("8.2.3-10",), "context of figure 8-9", "input", ("8",), "token", 0, lambda: EXAMPLE_CONTEXT),
    Claim(("8.2.3-11",), "new tokens of figure 8-9", "input", ("4",), "token", 0, lambda: EXAMPLE_CHUNK),
    Claim(
        ("8.2.3-12",),
        "pairs with the context",
        "computed",
        ("32",),
        "pairs",
        0,
        lambda: pairs_behind_context() - causal_pairs(EXAMPLE_CHUNK),
    ),
    Claim(
        ("8.2.3-13",),
        "pairs among the new tokens",
        "computed",
        ("10",),
        "pairs",
        0,
        lambda: causal_pairs(EXAMPLE_CHUNK),
    ),
    Claim(("8.2.3-15",), "pairs of figure 8-9", "computed", ("42",), "pairs", 0, pairs_behind_context),
    Claim(("8.2.3-17",), "growth of the backbone's FLOP", "computed", ("32",), "%", 0.5, flop_growth),
    Claim(("8.2.3-18",), "time of the first chunk", "measured", ("25.3",), "ms", 0.05, lambda: chunk(0)["median_ms"]),
    Claim(
        ("fn06-03", "8.2.3"),
        "time of the first chunk",
        "measured",
        ("25.30",),
        "ms",
        0.005,
        lambda: chunk(0)["median_ms"],
    ),
    Claim(
        ("8.2.3-19",), "time of the last chunk", "measured", ("35.1",), "ms", 0.05, lambda: last_chunk()["median_ms"]
    ),
    Claim(
        ("fn06-04", "8.2.3"),
        "time of the last chunk",
        "measured",
        ("35.07",),
        "ms",
        0.005,
        lambda: last_chunk()["median_ms"],
    ),
    Claim(
        ("8.2.3-20",),
        "growth of a chunk's time",
        "computed",
        ("39",),
        "%",
        0.5,
        lambda: (last_chunk()["median_ms"] / chunk(0)["median_ms"] - 1) * 100,
    ),
    Claim(("8.2.3-21",), "chunk that is cut", "input", ("256",), "token", 0, lambda: reads.SPLIT_CHUNK),
    Claim(("8.2.3-22", "8.2.3-25"), "its pieces", "input", ("2",), "pieces", 0, lambda: reads.PIECES),
    Claim(("8.2.3-23",), "one piece", "computed", ("128",), "token", 0, lambda: reads.SPLIT_CHUNK // reads.PIECES),
    Claim(
        ("8.2.3-24", "8.2.3-26"),
        "FFN weights of a layer",
        "computed",
        ("288",),
        "MiB",
        0,
        lambda: model.ffn_bytes_per_layer(QWEN3_8B) / MIB,
    ),
    Claim(
        ("8.2.3-27",),
        "read by two pieces",
        "computed",
        ("576",),
        "MiB",
        0,
        lambda: reads.reads_in_pieces(model.ffn_bytes_per_layer(QWEN3_8B), reads.PIECES) / MIB,
    ),
    # Not printed: what the models say of the sixteen recorded chunks.
    Claim(("8.2.3",), "first chunk by the fit", "computed", ("42.2", "42"), "ms", 0.3, lambda: fit_ms(512, 0)),
    Claim(("8.2.3",), "last chunk by the fit", "computed", ("54",), "ms", 0.05, lambda: fit_ms(512, 7680)),
    Claim(
        ("8.2.3",),
        "all chunks, recorded",
        "measured",
        ("481",),
        "ms",
        0.5,
        lambda: sum(chunk(i)["median_ms"] for i in range(16)),
    ),
    Claim(
        ("8.2.3",),
        "all chunks by the fit",
        "computed",
        ("769",),
        "ms",
        0.5,
        lambda: sum(fit_ms(512, 512 * i) for i in range(16)),
    ),
    Claim(
        ("8.2.3",),
        "all chunks by the device model",
        "computed",
        ("426",),
        "ms",
        0.5,
        device_chunks_ms,
    ),
    Claim(
        ("8.2.3",),
        "device below all chunks recorded",
        "computed",
        ("11",),
        "%",
        0.5,
        lambda: (1 - device_chunks_ms() / sum(chunk(i)["median_ms"] for i in range(16))) * 100,
    ),
    # 8.2.4
    Claim(("8.2.4-02",), "smaller graph", "input", ("16",), "rows", 0, lambda: shapes.CAPTURED[0]),
    Claim(
        ("8.2.4-03", "8.2.4-05", "8.2.4-06"), "larger graph", "input", ("32",), "rows", 0, lambda: shapes.CAPTURED[1]
    ),
    Claim(("8.2.4-04",), "fewest rows padded to it", "computed", ("17",), "rows", 0, lambda: fewest_padded()),
    Claim(("8.2.4-07",), "rows of work", "input", ("18",), "rows", 0, lambda: fewest_padded() + 1),
    Claim(("8.2.4-08", "8.2.4-10"), "after the first cut", "computed", ("17",), "rows", 0, lambda: fewest_padded()),
    Claim(
        ("8.2.4-09",),
        "rows executed for it",
        "computed",
        ("32",),
        "rows",
        0,
        lambda: shapes.padded_rows(fewest_padded(), shapes.CAPTURED),
    ),
    Claim(
        ("8.2.4-11",),
        "after the second cut",
        "computed",
        ("16",),
        "rows",
        0,
        lambda: shapes.padded_rows(fewest_padded() - 1, shapes.CAPTURED),
    ),
    Claim(("8.2.4-12",), "rows of a further graph", "input", ("17",), "rows", 0, lambda: shapes.FURTHER),
    Claim(
        ("8.2.4-13",),
        "padding that it saves",
        "computed",
        ("15",),
        "rows",
        0,
        lambda: shapes.padded_rows(shapes.FURTHER, shapes.CAPTURED) - shapes.FURTHER,
    ),
    Claim(
        ("8.2.4-14", "8.2.4-26", "fn08-01"),
        "requests replayed",
        "input",
        ("6",),
        "requests",
        0,
        lambda: len(replayed_requests()),
    ),
    Claim(("8.2.4-15",), "their spacing", "input", ("80",), "ms", 0, spacing_ms),
    Claim(("8.2.4-16",), "smaller limit", "input", ("512",), "token", 0, lambda: replay(512)["token_budget_per_step"]),
    Claim(("8.2.4-17",), "larger limit", "input", ("8192",), "token", 0, lambda: replay(8192)["token_budget_per_step"]),
    Claim(
        ("8.2.4-18",),
        "queue of r4 at 512",
        "measured",
        ("149",),
        "ms",
        0.5,
        lambda: replay(512)["r4_engine_queue_median_ms"],
    ),
    Claim(("8.2.4-19",), "bound of the queue at 8192", "measured", ("0.1",), "ms", 0, queue_bound_ms),
    Claim(
        ("8.2.4",),
        "longest interval at 512, to the digit recorded",
        "measured",
        ("31.94",),
        "ms",
        0,
        lambda: replay(512)["interval_max_ms"],
    ),
    Claim(
        ("8.2.4-20",), "longest interval at 512", "measured", ("32",), "ms", 0.5, lambda: replay(512)["interval_max_ms"]
    ),
    Claim(
        ("8.2.4-21",),
        "longest interval at 8192",
        "measured",
        ("183",),
        "ms",
        0.5,
        lambda: replay(8192)["interval_max_ms"],
    ),
    Claim(("8.2.4-22",), "requests by hand", "input", ("4",), "requests", 0, lambda: len(worked_example())),
    Claim(("8.2.4-23",), "chunk of the exercise", "input", ("512",), "token", 0, lambda: chunk(0)["new_tokens"]),
    Claim(("8.2.4-24",), "its first context", "input", ("0",), "token", 0, lambda: chunk(0)["existing_context_tokens"]),
    Claim(
        ("8.2.4-25",),
        "its second context",
        "input",
        ("7680",),
        "token",
        0,
        lambda: last_chunk()["existing_context_tokens"],
    ),
    Claim(
        ("8.2.4-27",),
        "allowed interval",
        "input",
        ("50",),
        "ms",
        0,
        lambda: ALLOWED_INTERVAL_S * 1e3,
    ),
    Claim(
        ("8.2.4",),
        "tokens that fit 50 ms, no context",
        "computed",
        ("753",),
        "token",
        0,
        lambda: step_time.tokens_that_fit(50 * 10**6, step_time.FIT, 0, step_time.decode_plan(1, SHORT)),
    ),
    Claim(
        ("8.2.4",),
        "tokens that fit 50 ms behind 7680",
        "computed",
        ("438",),
        "token",
        0,
        lambda: step_time.tokens_that_fit(50 * 10**6, step_time.FIT, 7680, step_time.decode_plan(1, SHORT)),
    ),
    Claim(
        ("8.2.4",),
        "a step of 512 new tokens by the fit, at least",
        "computed",
        ("41.8",),
        "ms",
        0.05,
        lambda: (step_time.FIT.fixed_ns + 512 * step_time.FIT.per_new_token_ns) / 1e6,
    ),
    Claim(("8.2.4",), "tokens in captured shapes", "computed", ("511",), "token", 0, lambda: in_shapes(0)),
    Claim(("8.2.4",), "the same behind 7680", "computed", ("348",), "token", 0, lambda: in_shapes(7680)),
    Claim(("8.2.4",), "requests made up", "input", ("2000",), "requests", 0, lambda: len(read_trace(MADE).requests)),
    # Footnotes
    Claim(
        ("fn03-01", "8.2.1"), "version of the engine, second part of 0.23.0", "input", ("23",), "", 0, engine_version
    ),
    Claim(("fn03-02", "8.2.1"), "rounds of the sweep", "input", ("3",), "rounds", 0, lambda: len(walls(64))),
    Claim(("fn03-03", "8.2.1"), "context with the shared prefix", "input", ("8K",), "token", 0, lambda: LONG),
    Claim(
        ("fn05-03", "8.2.2"),
        "decode step",
        "measured",
        ("26.26",),
        "ms",
        0.005,
        lambda: efficiency(1)["decode_step_median_ms"],
    ),
    Claim(
        ("fn05-04", "8.2.2"),
        "prefill",
        "measured",
        ("94.8",),
        "ms",
        0.05,
        lambda: efficiency(1)["prefill_phase_median_s"] * 1e3,
    ),
    Claim(
        ("fn06-01", "8.2.3"),
        "requests cut into chunks",
        "input",
        ("11",),
        "requests",
        0,
        lambda: chunk(0)["n_requests"],
    ),
    Claim(
        ("fn06-02", "8.2.3"),
        "chunks of each",
        "computed",
        ("16",),
        "chunks",
        0,
        lambda: -(-LONG // int(chunk(0)["new_tokens"])),
    ),
)
