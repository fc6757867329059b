"""What was counted in the chapter's experiments beside what the same engine counts here: one part of `lib.atlas`.

Blocks, hits, preemptions and bytes follow from rules, so that a count can be exact; where it is not, the rule is wrong.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from lib import agent_replay, cancellation, dflash, file_budget
from lib.acceptance import acceptance_by_position, count_positions
from lib.checks import whole
from lib.comparison import Comparison, Group, Model, Seen
from lib.fast_forward import simulate
from lib.kv_compression import RECORDED_POOL, RECORDED_REQUEST, element_bytes, stored_in
from lib.model import QWEN3_8B, kv_bytes, kv_bytes_per_token
from lib.paging import Pool
from lib.pool_size import EqualRequests
from lib.quantization import BF16, FP8, GroupFormat
from lib.records import record
from lib.residency import PoolSetup
from lib.scheduling import Request, chunked
from lib.speculation import at_every_position, expected_outputs
from lib.step_time import MOST_TOKENS
from lib.units import GIB

# The formats of KV by their names in the records.
KV_FORMATS = {"bf16_kv": BF16, "fp8_kv_default": FP8}
# The runs of record kv_format_concurrency: at most so many ran at once, and so many outputs were forced in its last
# column. The limit of tokens a step is not on record and inferred: with it all preemptions come out.
MOST_RUNNING, FORCED_OUTPUTS, INFERRED_TOKENS_PER_STEP = 24, 64, 8192
# Blocks that the engine keeps back from requests. Source: record preemption.
KEPT_BACK = int(record("preemption").rows[0]["reserved_blocks"])


def counts() -> Iterator[Comparison]:
    """All comparisons of counts."""
    yield from _outputs()
    yield from _preemption()
    yield from _sharing()
    yield from _hits()
    yield from _capacity()
    yield from _bytes()


def _counted(group: Group, what: str, name: str, value: float, unit: str, predicted: float) -> Comparison:
    return Comparison(Seen(group, what, name, value, unit), Model.COUNT, predicted)


def _outputs() -> Iterator[Comparison]:
    """The acceptance that one traced run had, against the outputs of all rounds of the others."""
    for length in (dflash.K7, dflash.K15):
        run, traced = record("dflash_runs").one(draft_tokens=length), dflash.traced_rounds(length)
        tried = count_positions(traced)
        one_rate = sum(each.accepted for each in tried) / sum(each.reached for each in tried)
        outputs = run["accepted_draft_tokens"] / run["draft_rounds"] + 1
        seen = Seen(Group.OUTPUTS, f"drafts of {length}", "dflash_runs", outputs, "token")
        by_position = [float(each) for each in acceptance_by_position(traced)]
        yield Comparison(seen, Model.BY_POSITION, expected_outputs(by_position))
        yield Comparison(seen, Model.ONE_RATE, expected_outputs(at_every_position(one_rate, length)))


def _preemption() -> Iterator[Comparison]:
    for name in ("small_pool", "large_pool"):
        row = record("preemption").one(run=name)
        run = EqualRequests().in_pool(row["pool_blocks"] - row["reserved_blocks"])
        says = {
            "pool_blocks": ("blocks of the pool", agent_replay.blocks_in(row["kv_pool_gib"] * GIB)),
            "peak_request_blocks": ("most blocks held", run.peak_blocks or 0),
            "preemptions": ("preemptions", len(run.preemptions)),
            "scheduled_token_positions": ("positions computed", run.scheduled_tokens),
        }
        if run.preemptions:
            says["output_tokens_kept_at_preemption"] = ("outputs kept", run.preemptions[0].outputs)
        for column, (what, predicted) in says.items():
            unit = "block" if column.endswith("blocks") else "token" if "token" in column else "preemption"
            yield _counted(Group.PREEMPTION, f"{name}, {what}", "preemption", row[column], unit, predicted)
    freed = cancellation.recorded()
    predicted = freed.free_before + freed.request_blocks
    yield _counted(Group.PREEMPTION, "free after cancelling", "cancel", freed.free_after, "block", predicted)


def _sharing() -> Iterator[Comparison]:
    """Four admissions of one prompt: behind a request that had filled the cache, or in a cold engine."""
    for row in record("branch_sharing").rows:
        prompt, tokens = list(range(row["input_tokens"])), row["output_tokens_per_branch"]
        pool = Pool(row["pool_blocks"] - KEPT_BACK, row["tokens_per_block"])
        if row["run"] == "prefix_already_cached":
            pool.release(pool.admit(prompt))
        four = [pool.admit(prompt) for _ in range(row["branches"])]
        for place, branch in enumerate(four):
            first = row["input_tokens"] + place * tokens
            pool.extend(branch, range(first, first + tokens - 1))
        shared = sum(pool.references(block) == row["branches"] for block in range(pool.blocks))
        says = {
            "shared_blocks": ("shared", "block", shared),
            "distinct_blocks": ("held", "block", pool.held),
            "table_references": ("entries of tables", "entry", sum(len(branch.table) for branch in four)),
            "scheduled_token_positions": (
                "positions computed", "token", sum(len(branch.tokens) - branch.cached for branch in four)
            ),
        }  # fmt: skip
        for column, (what, unit, predicted) in says.items():
            yield _counted(Group.SHARING, f"{row['run']}, {what}", "branch_sharing", row[column], unit, predicted)


def _hits() -> Iterator[Comparison]:
    for row in record("cache_replay_summary").rows:
        blocks = agent_replay.blocks_in(row["kv_pool_gib"] * GIB)
        pool = blocks * agent_replay.BLOCK_TOKENS
        yield _counted(
            Group.HITS, f"{row['run']}, pool", "cache_replay_summary", row["pool_capacity_tokens"], "token", pool
        )
        if row["prefix_cache_on"]:
            setup = agent_replay.Setup(blocks, interfering=row["interfering_requests_per_gap"])
            rounds = record("cache_replay").where(run=row["run"])
            for seen, found in zip(rounds, agent_replay.replay(setup), strict=True):
                what = f"{row['run']}, round {seen['round']}"
                yield _counted(Group.HITS, what, "cache_replay", seen["hit_tokens"], "token", found)


class PoolRun(NamedTuple):
    """Equal requests submitted together to the pool of record kv_format_concurrency, and how many were preempted."""

    requests: int
    outputs: int
    kv_format: GroupFormat
    preempted: int

    def __str__(self) -> str:
        return f"{self.kv_format.name}, {self.requests} requests of {self.outputs} outputs"

    def preempted_by(self, tokens_per_step: int) -> int:
        """Preemptions of the same requests in our engine, under a limit of tokens a step."""
        pool = stored_in(RECORDED_POOL, self.kv_format)
        blocks = pool.pool_bytes // pool.bytes_of(pool.page_tokens) - KEPT_BACK
        load = [Request(0, RECORDED_REQUEST.input_tokens, self.outputs)] * self.requests
        limit = whole("tokens_per_step", tokens_per_step, at_least=MOST_RUNNING, at_most=MOST_TOKENS)
        policy = chunked(MOST_RUNNING, limit, limit)
        return len(simulate(load, policy, pool=PoolSetup(blocks, pool.page_tokens)).preemptions)


@cache
def pool_runs() -> tuple[PoolRun, ...]:
    """The runs on record, each with answers that end by themselves and with forced ones."""
    columns = {"preemptions": RECORDED_REQUEST.output_tokens, "preemptions_64_outputs": FORCED_OUTPUTS}
    return tuple(
        PoolRun(row["requests"], outputs, KV_FORMATS[row["kv_format"]], row[column])
        for row in record("kv_format_concurrency").rows
        for column, outputs in columns.items()
    )


def runs_that_come_out(tokens_per_step: int) -> int:
    """How many of these runs have as many preemptions in our engine under a limit of tokens a step."""
    return sum(run.preempted_by(tokens_per_step) == run.preempted for run in pool_runs())


def _capacity() -> Iterator[Comparison]:
    """The most requests that ran at once without a preemption, and the preemptions of each run."""
    name = "kv_format_concurrency"
    for column, kv_format in KV_FORMATS.items():
        rows = record(name).where(kv_format=column, preemptions=0)
        fitting = stored_in(RECORDED_POOL, kv_format).requests_that_fit(RECORDED_REQUEST)
        most = max(row["requests"] for row in rows)
        yield _counted(Group.CAPACITY, f"{kv_format.name}, requests at once", name, most, "request", fitting)
    for run in pool_runs():
        seen = Seen(Group.CAPACITY, str(run), name, run.preempted, "preemption")
        yield Comparison(seen, Model.COUNT, run.preempted_by(INFERRED_TOKENS_PER_STEP), is_fitted=True)


def _bytes() -> Iterator[Comparison]:
    types = {stored.stored_as.name: stored for stored in file_budget.stored_types()}
    for row in record("q2k_bytes").rows:
        stored = types[row["storage_type"]]
        for column, predicted in (
            ("code_or_float_bytes", stored.code_bytes),
            ("scale_bytes", stored.metadata_bytes),
        ):
            what = f"{row['storage_type']}, {column.partition('_')[0]}"
            # which tensors have which type was inferred from these numbers
            yield Comparison(Seen(Group.BYTES, what, "q2k_bytes", row[column], "byte"), Model.COUNT, predicted, True)
    for row in record("m2max").rows:
        if row["repeat"] == 1:
            what = f"M2 Max, {row['slots']} x {row['context_tokens'] // 1024}K"
            predicted = row["slots"] * kv_bytes(QWEN3_8B, row["context_tokens"]) / GIB
            yield _counted(Group.BYTES, what, "m2max", row["kv_gib"], "GiB", predicted)
    for row in record("decode_attention_traffic").rows:
        each = kv_bytes_per_token(QWEN3_8B, element_bytes(QWEN3_8B, KV_FORMATS[row["kv_format"]]))
        predicted = row["context_tokens"] * each // QWEN3_8B.layer_count
        what = f"read by one layer, {row['kv_format']}"
        yield _counted(Group.BYTES, what, "decode_attention_traffic", row["dram_read_bytes"], "byte", predicted)
