"""Numbers of section 8.3 and of the footnotes that belong to it."""

from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

from lib import agent_replay, allotment, context_edit, copy_on_write, five_requests, prefix_value
from lib.allotment import COMMON_TOKENS, LENGTHS, NAMES, Allot, Load, wasted_slots
from lib.block_history import play_history
from lib.block_reuse import SHARED_BLOCK, Ending, Event, Kind, Moment, Rule, story
from lib.design_problem import INSTANCE, LONG_CONTEXT, LONG_REQUESTS_AT_ONCE
from lib.exercise_8_3 import BOOK as EXERCISE
from lib.exercise_8_4 import BOOK as WHICH_TO_KEEP
from lib.fast_forward import simulate
from lib.memory import KvPool, pages_for, tokens_stored
from lib.model import matrix_flops
from lib.paging import Findable, Pool
from lib.pool_size import EqualRequests, tokens_again
from lib.prefix_cache import PrefixCache
from lib.prefix_tree import ROUNDS, prefix_tree
from lib.prefix_value import A_TOKENS, B_TOKENS, GEN4, GEN5, HIT_PROBABILITY, prefix_of
from lib.records import record
from lib.residency import Gate, PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Request, chunked
from lib.state_cache import CARDS, KIMI_K3, MATCHED_TOKENS, SPACING_TOKENS, cached_text, mean_between_snapshots
from lib.step_time import NS
from lib.units import GB, GIB, MIB
from lib.window_state import (
    DEEPSEEK_V41,
    GLOBAL_SHRINK,
    V4_WINDOW_SHARE,
    Lookup,
    Recovery,
    long_lived_share,
    recorded_shrink,
    recover,
    window_reach,
)
from tests.claims.claim import Claim

POOL = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes)
LOAD, USABLE = EqualRequests(), (("pool_blocks", 1), ("reserved_blocks", -1))
SHARING, ALONE = LONG_CONTEXT.shape, LONG_CONTEXT.shape_alone
WITH_OTHERS, SMALL_POOL = "pool6gib_interference", "pool1gib_interference"
ALONE_AT_ONCE, ALONE_LATER = "pool6gib", "pool6gib_gap200ms"
A, B, A_GEN4 = prefix_of(A_TOKENS), prefix_of(B_TOKENS), prefix_of(A_TOKENS, GEN4.bandwidth_bytes_s)


def history_bytes(model: str) -> int:
    """Counted, not run."""
    return int(record("deepseek_state").one(context_tokens=8192, model=model)["global_history_bytes"])


def entry(logical: int) -> int:
    sequence = play_history().sequence
    assert sequence is not None
    return sequence.table[logical]


def free_block() -> int:
    pool = play_history().pool
    (free,) = (block for block in range(pool.blocks) if not pool.references(block))
    return free


def most_wasted() -> int:
    block = POOL.page_tokens
    return block - max(wasted_slots(length, block) for length in range(1, 16 * block + 1))


@cache
def allotted(allot: Allot, common: int = 0) -> allotment.Allotment:
    found = allotment.allotment(Load(common_tokens=common), allot)
    assert found is not None
    return found


def own(place: int) -> int:
    return pages_for(LENGTHS[place], allotment.BLOCK_TOKENS) * allotment.BLOCK_TOKENS


def blocks_saved() -> int:
    return (allotted(Allot.IN_BLOCKS).allotted - allotted(Allot.IN_BLOCKS, COMMON_TOKENS).allotted) // (
        allotment.BLOCK_TOKENS
    )


@cache
def counts() -> tuple[Moment, ...]:
    return story(2, 1, Rule.AFTER_STEP, Ending.FIRST_ADMITTED)


def most_references() -> int:
    return max(moment.references[SHARED_BLOCK] for moment in counts())


def references_after_a() -> int:
    return next(one.references[SHARED_BLOCK] for one in counts() if one.event == Event(Kind.ENDED, "A"))


def written() -> copy_on_write.Forked:
    return copy_on_write.write_in_branches()


def written_without_parent() -> copy_on_write.Forked:
    return copy_on_write.write_in_branches(parent=copy_on_write.Parent.LETS_GO)


def tokens_copied() -> int:
    """What the last copy has in common with the tail that it was made from."""
    forked = written()
    source, target = (forked.letters(block) for block in forked.copies[-1])
    return sum(a == b != "" for a, b in zip(source, target, strict=True))


def branches(run: str = "prefix_already_cached") -> dict[str, Any]:
    return dict(record("branch_sharing").one(run=run))


@cache
def admitted() -> tuple[Pool, tuple[int, ...]]:
    """The recorded branches, admitted to a pool in which the prompt lies idle: the pool, and what each found."""
    row = branches()
    prompt = list(range(row["input_tokens"]))
    pool = Pool(row["pool_blocks"] - 1, row["tokens_per_block"])
    pool.release(pool.admit(prompt))
    found = [pool.admit(prompt) for _ in range(row["branches"])]
    for place, branch in enumerate(found):
        pool.extend(branch, [10**6 * (place + 1) + n for n in range(row["output_tokens_per_branch"] - 1)])
    return pool, tuple(len(branch.table) for branch in found)


def references() -> int:
    return sum(admitted()[1])


def private_blocks() -> int:
    row = branches()
    stored = tokens_stored(row["input_tokens"], row["output_tokens_per_branch"])
    return pages_for(stored, row["tokens_per_block"]) - row["shared_blocks"]


def in_one_step(findable: Findable) -> Schedule:
    """Four equal prompts that enter together."""
    row = branches()
    prompt = list(range(row["input_tokens"]))
    load = [Request(0, len(prompt), row["output_tokens_per_branch"], ids=prompt)] * row["branches"]
    return simulate(load, chunked(4, 8192, 8192), pool=PoolSetup(row["pool_blocks"] - 1, findable=findable))


def forked_blocks() -> int:
    row = branches()
    pool = Pool(row["pool_blocks"] - 1, row["tokens_per_block"])
    parent = pool.admit(list(range(row["input_tokens"])))
    for place, branch in enumerate([parent, *(pool.fork(parent) for _ in range(row["branches"] - 1))]):
        pool.extend(branch, [10**6 * (place + 1) + n for n in range(row["output_tokens_per_branch"] - 1)])
    return pool.held


def computed_warm() -> int:
    row, (pool, _) = branches(), admitted()
    stored = tokens_stored(row["input_tokens"], row["output_tokens_per_branch"])
    found = sum(pool.references(block) == row["branches"] for block in range(pool.blocks)) * pool.block_tokens
    return int(row["branches"] * (stored - found))


def private_tokens() -> int:
    return tokens_stored(SHARING.input_tokens, SHARING.output_tokens) - SHARING.shared_prefix_tokens


def recorded_again() -> int:
    large = record("preemption").one(run="large_pool")
    return int(small_pool()["scheduled_token_positions"] - large["scheduled_token_positions"])


def small_cancelled() -> dict[str, Any]:
    return dict(record("preemption").one(run="small_pool_one_cancelled"))


def small_pool() -> dict[str, Any]:
    return dict(record("preemption").one(run="small_pool"))


@cache
def preempted(run: str) -> Schedule:
    """The recorded four requests in a pool of which one block is kept back."""
    row = record("preemption").one(run=run)
    output = row["output_tokens_total"] // row["requests"]
    load = [Request(0, row["input_tokens_per_request"], output)] * row["requests"]
    return simulate(load, chunked(4, 512, 512), pool=PoolSetup(row["pool_blocks"] - row["reserved_blocks"]))


@cache
def cancelled() -> Schedule:
    """The recorded four requests, the last of which goes away once it has given 128 outputs."""
    row = record("preemption").one(run="small_pool_one_cancelled")
    gone = preempted("small_pool").output_times_ns(3)[127] + 1
    load = [Request(0, row["input_tokens_per_request"], 512)] * 3
    load.append(Request(0, row["input_tokens_per_request"], 512, cancel_ns=gone))
    return simulate(load, chunked(4, 512, 512), pool=PoolSetup(row["pool_blocks"] - row["reserved_blocks"]))


def event(name: str) -> dict[str, Any]:
    return dict(record("cancel").one(event=name))


def held(requests: int, sharing: bool = True) -> float:
    return POOL.held_bytes(SHARING if sharing else ALONE, requests) / MIB


@cache
def of_equal(blocks: int, gate: Gate = Gate.WHOLE_SEQUENCE) -> Schedule:
    """The recorded four requests in a pool of so many blocks."""
    return EqualRequests(gate=gate).in_pool(blocks)


def first_pool_for_all_prompts() -> int:
    """The least pool from which on each further block wastes more, up to what all four need at their largest."""
    least = LOAD.blocks_of_all - 1
    while tokens_again(of_equal(least - 1)) and tokens_again(of_equal(least - 1)) <= tokens_again(of_equal(least)):
        least -= 1
    return least


@cache
def of_five() -> Schedule:
    return simulate(five_requests.five_requests(), five_requests.policy(), pool=five_requests.pool_of())


def known_of_the_preempted() -> int:
    (lost,) = of_five().preemptions
    return of_five().requests[lost.place].prompt + lost.outputs


def snapshot(place: int) -> int:
    return cached_text(MATCHED_TOKENS, SPACING_TOKENS).snapshots[place]


def resume_at() -> int:
    return cached_text(MATCHED_TOKENS, SPACING_TOKENS).resume_at(MATCHED_TOKENS)


def recomputed(spacing: int = SPACING_TOKENS) -> int:
    return cached_text(MATCHED_TOKENS, spacing).recomputed(MATCHED_TOKENS)


def snapshots_of_8k(spacing: int) -> float:
    """MiB on one of the cards of all snapshots of 8192 tokens."""
    return cached_text(8192, spacing).stored_bytes(KIMI_K3.on_each_of(CARDS).snapshot_bytes) / MIB


def recovery(global_kv: Lookup = Lookup.HIT, window_state: Lookup = Lookup.HIT) -> Recovery:
    """A long prefix and a tool's result behind it."""
    return recover(8192, 1024, global_kv, window_state)


def found_of_equal_beginnings() -> int:
    """What a live cache finds of a prompt that differs from another in a single token."""
    one = list(range(2 * context_edit.EQUAL_TOKENS))
    other = [len(one) if place == context_edit.EQUAL_TOKENS else each for place, each in enumerate(one)]
    cache = PrefixCache(len(one), block_tokens=1)
    cache.insert(cache.lock(cache.match(one)), one, cache.take(len(one)))
    return cache.match(other).tokens


def tree_root() -> dict[str, Any]:
    return dict(record("agent_prefix_tree").one(parent_node=None))


def rounds_that_go_on() -> int:
    """Of those that part at the root, how many go on together, in the record and in the live tree."""
    (branch,) = record("agent_prefix_tree").where(parent_node=tree_root()["node"], is_leaf=0)
    (node,) = (node for node in prefix_tree().nodes if node.parent == 0 and len(node.rounds) > 1)
    assert node.depth == branch["tokens_from_root"]
    return len(node.rounds)


def efficiency_row() -> dict[str, Any]:
    return dict(record("step_efficiency").one(input_kind="2k_independent", batch_requests=1))


def break_even_percent(prefix: prefix_value.Prefix) -> float:
    assert prefix.break_even is not None
    return 100 * prefix.break_even


def b_in_the_room_of_a() -> int:
    return A.kv_bytes // B.kv_bytes


@cache
def replayed(run: str, gap_ns: int = 0) -> tuple[agent_replay.Served, ...]:
    """The rounds of the recorded task, through the engine with the pool and the load of a recorded run."""
    row = replay_row(run)
    blocks = row["pool_capacity_tokens"] // agent_replay.BLOCK_TOKENS
    return agent_replay.engine_replay(
        agent_replay.Setup(blocks, interfering=row["interfering_requests_per_gap"]), gap_ns
    )


def in_pool(pool_bytes: int) -> agent_replay.Setup:
    """The recorded load in a pool of this size."""
    return agent_replay.Setup(agent_replay.blocks_in(pool_bytes), interfering=agent_replay.INTERFERING)


def replay_row(run: str) -> dict[str, Any]:
    return dict(record("cache_replay_summary").one(run=run))


def found_more_after_wait() -> int:
    """How many tokens more each round finds after a wait, as recorded and by the engine: all added up, sign or not."""
    rows = [record("cache_replay").where(run=run) for run in (ALONE_AT_ONCE, ALONE_LATER)]
    hits = [[row["hit_tokens"] for row in run] for run in rows]
    gap_ns = round(replay_row(ALONE_LATER)["gap_s"] * NS)
    hits += [[one.found for one in replayed(name, gap)] for name, gap in ((ALONE_AT_ONCE, 0), (ALONE_LATER, gap_ns))]
    return sum(abs(there - here) for run in hits[1:] for here, there in zip(hits[0], run, strict=True))


def of_prefix(value: Callable[[], float], what: str, printed: str, unit: str, tolerance: float, *ids: str) -> Claim:
    """A computed claim of section 8.3.4 that holds to the last printed digit; without an id the book prints it not."""
    return Claim(tuple(f"8.3.4{name}" for name in ids or [""]), what, "computed", (printed,), unit, tolerance, value)


def kept_mib(tokens: int) -> float:
    return tokens * WHICH_TO_KEEP.kv_bytes_per_token / MIB


def same(value: Callable[[], float], what: str, printed: str, unit: str, *ids: str, kind: Any = "computed") -> Claim:
    """A claim that holds exactly."""
    return Claim(ids, what, kind, (printed,), unit, 0, value)


CLAIMS = (
    same(lambda: 0, "logical block", "0", "", "8.3.1-01", kind="input"),
    same(lambda: entry(0), "where logical block 0 is", "2", "", "8.3.1-02", kind="input"),
    same(lambda: 1, "logical block", "1", "", "8.3.1-03", kind="input"),
    same(lambda: entry(1), "where logical block 1 is", "0", "", "8.3.1-04", kind="input"),
    same(lambda: 2, "logical block", "2", "", "8.3.1-05", kind="input"),
    same(lambda: entry(2), "where logical block 2 is", "3", "", "8.3.1-06", kind="input"),
    same(free_block, "the free block", "1", "", "8.3.1-07", kind="input"),
    same(lambda: 2023, "year of PagedAttention", "2023", "", "8.3.1-08", kind="input"),
    same(most_wasted, "how much less than a block is wasted at most", "1", "token", "8.3.1-09"),
    *(
        same(lambda place=place: LENGTHS[place], f"length of {NAMES[place]}", printed, "token", *ids, kind="input")
        for place, (printed, *ids) in enumerate(
            (
                ("9", "8.3.1-10", "8.3.1-26", "8.3.2-45"),
                ("13", "8.3.1-11", "8.3.1-27", "8.3.2-46"),
                ("5", "8.3.1-12", "8.3.1-28", "8.3.2-47"),
                ("15", "8.3.1-13", "8.3.1-29", "8.3.2-48"),
            )
        )
    ),
    same(lambda: allotment.MAX_TOKENS, "largest length", "16", "token", "8.3.1-14", "8.3.1-30", kind="input"),
    same(lambda: len(LENGTHS), "sequences", "4", "requests", "8.3.1-15", "8.3.2-44", kind="input"),
    same(lambda: allotted(Allot.MAXIMUM).allotted, "reserved in all", "64", "token", "8.3.1-16", "8.3.1-31"),
    same(lambda: allotment.BLOCK_TOKENS, "block size", "4", "token", "8.3.1-17", "8.3.1-32", kind="input"),
    *(
        same(lambda place=place: own(place), f"slots of {NAMES[place]} in blocks", printed, "token", *ids)
        for place, (printed, *ids) in enumerate(
            (
                ("12", "8.3.1-18", "8.3.1-33"),
                ("16", "8.3.1-19", "8.3.1-34"),
                ("8", "8.3.1-20", "8.3.1-35"),
                ("16", "8.3.1-21", "8.3.1-36"),
            )
        )
    ),
    same(lambda: allotted(Allot.IN_BLOCKS).allotted, "allotted in blocks", "52", "token", "8.3.1-22", "8.3.1-37"),
    same(lambda: allotted(Allot.IN_BLOCKS).used, "tokens stored", "42", "token", "8.3.1-23"),
    same(lambda: allotted(Allot.MAXIMUM).unused, "unused, reserved", "22", "token", "8.3.1-24", "8.3.1-38"),
    same(lambda: allotted(Allot.IN_BLOCKS).unused, "unused, in blocks", "10", "token", "8.3.1-25", "8.3.1-39"),
    same(lambda: COMMON_TOKENS, "tokens common to A and B", "8", "token", "8.3.1-40", kind="input"),
    same(blocks_saved, "blocks shared by A and B", "2", "blocks", "8.3.1-41", "8.3.1-43", "8.3.2-01"),
    same(
        lambda: allotted(Allot.IN_BLOCKS, COMMON_TOKENS).allotted,
        "allotted with sharing", "44", "token", "8.3.1-42", "8.3.1-44",
    ),
    same(lambda: most_references(), "references before A ends", "2", "references", "8.3.2-02", kind="input"),
    same(references_after_a, "references after A ends", "1", "references", "8.3.2-03"),
    same(
        lambda: copy_on_write.BLOCK_TOKENS, "tokens of a block in figure 8-15", "4", "token", "8.3.2-04", "8.3.2-08",
        kind="input",
    ),
    same(lambda: copy_on_write.TAIL_TOKENS, "common tokens in the tail", "3", "token", "8.3.2-05", kind="input"),
    same(lambda: copy_on_write.TAIL_TOKENS + 1, "the position both would write", "4", "", "8.3.2-06"),
    same(tokens_copied, "tokens copied", "3", "token", "8.3.2-07", kind="input"),
    same(lambda: len(written().copies), "copies while the parent stays", "2", "copies", "8.3.2"),
    same(lambda: len(written_without_parent().copies), "copies once it has let go", "1", "copies", "8.3.2"),
    same(lambda: branches()["branches"], "branches", "4", "branches", "8.3.2-09", "fn09-01", kind="input"),
    same(lambda: branches()["shared_blocks"], "shared blocks", "95", "blocks", "8.3.2-10", kind="measured"),
    same(
        lambda: branches()["private_blocks_per_branch"], "private blocks of a branch", "9", "blocks", "8.3.2-11",
        kind="measured",
    ),
    same(references, "references of the four tables", "416", "references", "8.3.2-12", "8.3.2-14"),
    same(lambda: branches()["table_references"], "references, recorded", "416", "references", "8.3.2", kind="measured"),
    same(lambda: admitted()[0].held, "physical blocks", "131", "blocks", "8.3.2-13"),
    same(lambda: branches()["distinct_blocks"], "physical blocks, recorded", "131", "blocks", "8.3.2", kind="measured"),
    Claim(
        ("8.3.2-15",), "saved by sharing", "computed", ("69",), "%", 0.5,
        lambda: (1 - admitted()[0].held / references()) * 100,
    ),
    same(lambda: 4 * private_blocks(), "private tail blocks", "36", "blocks", "8.3.2-16"),
    same(
        lambda: branches()["scheduled_token_positions"], "tokens computed, warm", "572", "token", "8.3.2",
        kind="measured",
    ),
    same(lambda: computed_warm(), "tokens computed by the pool, warm", "572", "token", "8.3.2"),
    same(
        lambda: branches("cold_engine")["scheduled_token_positions"], "tokens computed, cold", "2092", "token", "8.3.2",
        kind="measured",
    ),
    same(
        lambda: in_one_step(Findable.ON_ADMISSION).scheduled_tokens, "tokens computed by the pool, cold", "2092",
        "token", "8.3.2",
    ),
    same(lambda: branches()["input_tokens"], "prompt of the branches", "1536", "token", "8.3.2", kind="input"),
    same(lambda: branches()["input_tokens"] - 1, "tokens that a hit may cover", "1535", "token", "8.3.2"),
    same(lambda: branches()["input_tokens"] // 16, "whole blocks of the prompt", "96", "blocks", "8.3.2"),
    same(
        lambda: branches()["output_tokens_per_branch"], "outputs of a branch", "128", "token", "8.3.2", kind="input"
    ),
    same(
        lambda: branches()["output_tokens_per_branch"] - 1, "outputs stored of a branch", "127", "token", "8.3.2"
    ),
    same(lambda: branches()["shared_blocks"] * 16, "tokens in the shared blocks", "1520", "token", "8.3.2"),
    same(lambda: computed_warm() // 4, "tokens that a branch computes", "143", "token", "8.3.2"),
    same(forked_blocks, "blocks of four forks", "128", "blocks", "8.3.2"),
    same(lambda: LONG_REQUESTS_AT_ONCE, "long requests", "16", "requests", "8.3.2-17", kind="input"),
    same(lambda: SHARING.shared_prefix_tokens, "common prefix", "6144", "token", "8.3.2-18", kind="input"),
    same(lambda: SHARING.shared_prefix_tokens // 16, "blocks of the common prefix", "384", "blocks", "8.3.2"),
    same(lambda: POOL.shared_bytes(SHARING) / MIB, "KV of the prefix", "864", "MiB", "8.3.2-19", "8.3.2-31"),
    same(lambda: SHARING.input_tokens, "input", "8192", "token", "8.3.2-20", kind="input"),
    same(lambda: SHARING.output_tokens - 1, "outputs that are stored", "255", "token", "8.3.2-21"),
    same(private_tokens, "private tokens", "2303", "token", "8.3.2-22"),
    same(lambda: POOL.page_tokens, "tokens per block", "16", "token", "8.3.2-23", kind="input"),
    same(
        lambda: pages_for(private_tokens(), POOL.page_tokens) * POOL.page_tokens, "private capacity", "2304", "token",
        "8.3.2-24",
    ),
    same(lambda: POOL.private_bytes(SHARING) / MIB, "private KV", "324", "MiB", "8.3.2-25", "8.3.2-32"),
    same(lambda: held(16), "KV of the group", "6048", "MiB", "8.3.2-26"),
    same(lambda: held(1, False), "KV of one alone", "1188", "MiB", "8.3.2-27"),
    same(lambda: held(16, False), "KV of the group without sharing", "19008", "MiB", "8.3.2-28"),
    Claim(("8.3.2-29",), "KV of the group", "computed", ("5.91",), "GiB", 0.005, lambda: held(16) / 1024),
    same(lambda: INSTANCE.kv_pool_bytes / GIB, "KV pool", "12", "GiB", "8.3.2-30", kind="input"),
    same(lambda: POOL.requests_that_fit(ALONE), "independent ones that fit", "10", "requests", "8.3.2-33"),
    same(lambda: POOL.requests_that_fit(SHARING), "sharing ones that fit", "35", "requests", "8.3.2-34"),
    Claim(
        ("8.3.2-35", "8.3.2-38"), "cancel returned, from two digits", "measured", ("1.6",), "ms", 0.05,
        lambda: round(event("abort_call_returned")["time_after_abort_call_ms"], 2),
    ),
    Claim(
        ("fn29-01", "8.3.2"), "cancel returned", "measured", ("1.55",), "ms", 0.005,
        lambda: event("abort_call_returned")["time_after_abort_call_ms"],
    ),
    same(
        lambda: event("abort_called")["request_r3_blocks"], "blocks of the request", "104", "blocks", "8.3.2-36",
        kind="measured",
    ),
    Claim(
        ("8.3.2-37", "8.3.2-39"), "blocks freed", "measured", ("31",), "ms", 0.5,
        lambda: event("blocks_released")["time_after_abort_call_ms"],
    ),
    same(
        lambda: event("blocks_released")["time_after_abort_call_ms"], "blocks freed", "31.41", "ms", "fn29-02", "8.3.2",
        kind="measured",
    ),
    same(lambda: event("abort_called")["free_blocks"], "free before", "35", "blocks", "8.3.2", kind="measured"),
    same(lambda: event("blocks_released")["free_blocks"], "free after", "139", "blocks", "8.3.2", kind="measured"),
    same(lambda: cancelled().scheduled_tokens, "tokens scheduled beside the cancel", "7805", "token", "8.3.2"),
    same(lambda: cancelled().peak_blocks or 0, "most blocks held beside the cancel", "419", "blocks", "8.3.2"),
    same(
        lambda: small_cancelled()["scheduled_token_positions"], "the same, recorded", "7805", "token", "8.3.2",
        kind="measured",
    ),
    same(lambda: small_cancelled()["peak_request_blocks"], "the same", "419", "blocks", "8.3.2", kind="measured"),
    same(lambda: small_pool()["pool_blocks"], "blocks of the smaller pool", "455", "blocks", "8.3.2", kind="measured"),
    same(lambda: POOL.bytes_of(1) / MIB, "a block", "2.25", "MiB", "8.3.2"),
    same(lambda: GIB // POOL.bytes_of(1), "blocks of 1 GiB", "455", "blocks", "8.3.2"),
    Claim(
        ("8.3.2",), "elapsed, smaller pool", "measured", ("17.4",), "s", 0.05,
        lambda: small_pool()["elapsed_with_observer_s"],
    ),
    Claim(
        ("8.3.2",), "elapsed, larger pool", "measured", ("14.8",), "s", 0.05,
        lambda: record("preemption").one(run="large_pool")["elapsed_with_observer_s"],
    ),
    Claim(
        ("8.3.2",), "between them, by the fit", "computed", ("6.2",), "s", 0.05,
        lambda: (preempted("small_pool").total_ns - preempted("large_pool").total_ns) / 1e9,
    ),
    same(lambda: small_pool()["kv_pool_gib"], "smaller pool", "1", "GiB", "8.3.2-40", kind="input"),
    same(
        lambda: sum(record("preemption").one(run="large_pool")[part] * sign for part, sign in USABLE),
        "blocks of it that requests can have", "909", "blocks", "8.3.2",
    ),
    same(lambda: small_pool()["preemptions"], "preemptions in it", "1", "preemptions", "8.3.2-41", kind="measured"),
    same(recorded_again, "tokens scheduled again", "1805", "token", "8.3.2-42", kind="measured"),
    same(
        lambda: preempted("small_pool").preemptions[0].lost_tokens, "by the simulator", "1805", "token", "8.3.2"
    ),
    same(lambda: small_pool()["output_tokens_kept_at_preemption"], "outputs kept", "270", "", "8.3.2", kind="measured"),
    same(lambda: preempted("small_pool").preemptions[0].outputs, "the same by the simulator", "270", "", "8.3.2"),
    same(lambda: preempted("small_pool").scheduled_tokens, "tokens scheduled, 1 GiB", "9993", "token", "8.3.2"),
    same(lambda: preempted("large_pool").scheduled_tokens, "tokens scheduled, 2 GiB", "8188", "token", "8.3.2"),
    same(lambda: preempted("small_pool").peak_blocks or 0, "most blocks held, 1 GiB", "454", "blocks", "8.3.2"),
    same(lambda: preempted("large_pool").peak_blocks or 0, "most blocks held, 2 GiB", "512", "blocks", "8.3.2"),
    same(lambda: small_pool()["peak_request_blocks"], "the same, recorded", "454", "blocks", "8.3.2", kind="measured"),
    same(
        lambda: record("preemption").one(run="large_pool")["kv_pool_gib"], "larger pool", "2", "GiB", "8.3.2-43",
        kind="input",
    ),
    same(lambda: LOAD.blocks_of_all, "blocks of all four at their largest", "512", "blocks", "8.3.2"),
    same(lambda: tokens_again(of_equal(454)), "tokens again at 454 blocks", "1805", "token", "8.3.2"),
    same(lambda: tokens_again(of_equal(512)), "tokens again at 512 blocks", "0", "token", "8.3.2"),
    same(first_pool_for_all_prompts, "blocks from which on more is wasted", "386", "blocks", "8.3.2"),
    same(
        lambda: tokens_again(of_equal(454, Gate.FIRST_CHUNK)), "tokens again by the first chunk", "83,754", "token",
        "8.3.2",
    ),
    Claim(
        ("8.3.2",), "that against the work itself", "computed", ("10",), "times", 0.5,
        lambda: tokens_again(of_equal(454, Gate.FIRST_CHUNK)) / of_equal(909).scheduled_tokens,
    ),
    same(lambda: five_requests.pool_of().blocks, "blocks of the five requests", "28", "blocks", "8.3.2", kind="input"),
    same(lambda: of_five().preemptions[0].outputs, "outputs that D keeps", "12", "", "8.3.2"),
    same(known_of_the_preempted, "tokens of D when it is preempted", "24", "token", "8.3.2"),
    same(lambda: of_five().preemptions[0].lost_tokens, "tokens that D loses", "23", "token", "8.3.2"),
    same(lambda: of_five().cancellations[0].step, "the step in which the user of C goes away", "20", "", "8.3.2"),
    same(
        lambda: of_five().stays()[of_five().preemptions[0].place][1].start + 1, "the step in which D comes back", "21",
        "", "8.3.2",
    ),
    *(
        same(
            lambda place=place: EXERCISE.block_sizes[place], "block size of the exercise", printed, "token", name,
            kind="input",
        )
        for place, (printed, name) in enumerate((("2", "8.3.2-49"), ("4", "8.3.2-50"), ("8", "8.3.2-51")))
    ),
    *(
        same(lambda place=place: EXERCISE.batches[place], "group asked about", printed, "requests", name, kind="input")
        for place, (printed, name) in enumerate((("8", "8.3.2-52"), ("16", "8.3.2-53"), ("32", "8.3.2-54")))
    ),
    same(lambda: MATCHED_TOKENS, "end of the match", "10,752", "token", "8.3.3-10", kind="input"),
    same(lambda: snapshot(0), "first snapshot", "4096", "token", "8.3.3-11", kind="input"),
    same(lambda: snapshot(1), "second snapshot", "8192", "token", "8.3.3-12", kind="input"),
    same(resume_at, "where it goes on", "8192", "token", "8.3.3-13", "8.3.3-23"),
    same(lambda: resume_at() + recomputed(), "what it comes up to", "10752", "token", "8.3.3-14", "8.3.3-22"),
    same(recomputed, "recomputed", "2560", "token", "8.3.3-15", "8.3.3-24"),
    same(lambda: CARDS, "cards of one request", "8", "cards", "8.3.3-16", kind="input"),
    Claim(
        ("8.3.3-17",), "a snapshot on each card", "input", ("53.6",), "MiB", 0.05,
        lambda: KIMI_K3.on_each_of(CARDS).snapshot_bytes / MIB,
    ),
    same(
        lambda: KIMI_K3.on_each_of(CARDS).snapshot_bytes, "the same, in bytes", "56,171,520", "bytes", "8.3.3",
        kind="input",
    ),
    same(lambda: len(cached_text(8192, SPACING_TOKENS).snapshots), "few snapshots", "2", "", "8.3.3-18", kind="input"),
    Claim(("8.3.3-19",), "those on each card", "computed", ("107",), "MiB", 0.5, lambda: snapshots_of_8k(4096)),
    same(lambda: len(cached_text(8192, 256).snapshots), "many snapshots", "32", "", "8.3.3-20", kind="input"),
    # 32 times the printed 53.6 would be 1715.
    Claim(("8.3.3-21",), "those on each card", "computed", ("1714",), "MiB", 0.5, lambda: snapshots_of_8k(256)),
    same(lambda: recomputed(SPACING_TOKENS // 2), "recomputed at half the spacing", "512", "token", "8.3.3"),
    Claim(
        ("8.3.3",), "recomputed on average", "computed", ("2048",), "token", 0.5,
        lambda: mean_between_snapshots(SPACING_TOKENS),
    ),
    Claim(
        ("8.3.3",), "the same at half the spacing", "computed", ("1024",), "token", 0.5,
        lambda: mean_between_snapshots(SPACING_TOKENS // 2),
    ),
    same(lambda: DEEPSEEK_V41.resident_layers, "layers with windows", "40", "layers", "8.3.3-31", kind="input"),
    same(
        lambda: recovery(window_state=Lookup.MISS).rerun_tokens, "tokens that the encoder replays at most", "128",
        "token", "8.3.3-32", kind="input",
    ),
    same(
        lambda: recovery().decoder_tokens, "tokens that the decoder replays at most", "128", "token", "8.3.3-33",
        kind="input",
    ),
    same(lambda: DEEPSEEK_V41.decoder_layers, "layers of the decoder", "20", "layers", "8.3.3-34", kind="input"),
    same(lambda: DEEPSEEK_V41.window, "window of a layer", "128", "token", "8.3.3-35", kind="input"),
    same(
        lambda: window_reach(DEEPSEEK_V41.encoder_layers, DEEPSEEK_V41.window), "how far its encoder's windows reach",
        "2540", "token", "8.3.3",
    ),
    same(lambda: DEEPSEEK_V41.resident_bytes, "windows of one turn", "2,703,360", "bytes", "8.3.3"),
    same(lambda: V4_WINDOW_SHARE, "windows' share of what lasts", "1/2", "", "8.3.3-36", kind="input"),
    same(lambda: 1 / GLOBAL_SHRINK, "what becomes of global KV", "1/4", "", "8.3.3-37", kind="input"),
    same(long_lived_share, "what becomes of what lasts", "1/8", "", "8.3.3-38"),
    same(lambda: history_bytes("deepseek_v4"), "global KV of V4, 8K tokens", "28788736", "B", "8.3.3", kind="measured"),
    same(lambda: history_bytes("deepseek_v4.1"), "the same of V4.1", "7290880", "B", "8.3.3", kind="measured"),
    Claim(
        ("8.3.3",), "the same by the recorded bytes", "computed", ("0.1266",), "", 0.00005,
        lambda: long_lived_share(shrink=recorded_shrink(8192)),
    ),
    same(
        lambda: len({recovery(*found).path for found in product(Lookup, repeat=2)}), "ways to go on", "3", "ways",
        "8.3.3-39", kind="input",
    ),
    same(lambda: SHARING.shared_prefix_tokens, "prefix of long ones", "6144", "token", "8.3.3-01", kind="input"),
    same(
        lambda: SHARING.input_tokens - context_edit.reusable_tokens(SHARING.input_tokens, SHARING.shared_prefix_tokens),
        "input that is left behind it", "2048", "token", "8.3.3-02",
    ),
    same(lambda: context_edit.EQUAL_TOKENS, "tokens that are equal in front", "100", "token", "8.3.3-03", kind="input"),
    same(lambda: found_of_equal_beginnings() + 1, "the first token that is not found", "101", "", "8.3.3-04"),
    same(lambda: ROUNDS, "rounds in the prefix tree", "4", "rounds", "8.3.3-05", "8.3.3-08", kind="input"),
    same(
        lambda: tree_root()["added_tokens_on_edge"], "tokens that all of them share", "206", "token", "8.3.3-06",
        "8.3.3-09", kind="measured",
    ),
    same(lambda: prefix_tree().first_fork or 0, "the same by the live tree", "206", "token", "8.3.3"),
    same(rounds_that_go_on, "rounds that go on along one branch", "3", "rounds", "8.3.3-07", kind="input"),
    same(lambda: prefix_tree().read, "tokens that the four read", "2080", "token", "8.3.3"),
    same(lambda: prefix_tree().stored, "tokens of the tree", "896", "token", "8.3.3"),
    same(lambda: prefix_tree(2).reusable, "what round 2 finds in blocks of 16", "192", "token", "8.3.3"),
    same(lambda: context_edit.HISTORY_TOKENS, "history that is edited", "8K", "token", "8.3.3-25", kind="input"),
    same(lambda: context_edit.APPENDED_TOKENS, "what a turn appends", "1K", "token", "8.3.3-26", kind="input"),
    same(lambda: context_edit.append().reusable, "found when it only appends", "8K", "token", "8.3.3-27"),
    same(lambda: context_edit.SUMMARY_TOKENS, "summary", "2K", "token", "8.3.3-28", kind="input"),
    same(
        lambda: context_edit.summarise().appended, "appended to the summary", "1K", "token", "8.3.3-29", kind="input"
    ),
    same(
        lambda: len({context_edit.append(), context_edit.rewrite(0), context_edit.summarise()}), "ways of an update",
        "3", "", "8.3.3-30", kind="input",
    ),
    same(lambda: A_TOKENS, "prefix A", "6144", "token", "8.3.4-01", kind="input"),
    same(lambda: A.kv_bytes / MIB, "its KV", "864", "MiB", "8.3.4-02", "8.3.4-30", "8.3.4-31", "8.3.4-48"),
    of_prefix(lambda: A.kv_bytes / GB, "the same", "0.906", "GB", 0.0005, "-03"),
    of_prefix(lambda: matrix_flops(INSTANCE.model, A_TOKENS, 0) / 1e12, "recomputing it", "96.5", "TFLOP", 0.05, "-04"),
    same(lambda: efficiency_row()["batch_requests"], "batch of the share", "1", "request", "8.3.4-05", kind="input"),
    Claim(
        ("8.3.4-06",), "share of the peak", "measured", ("62",), "%", 0.5,
        lambda: 100 * efficiency_row()["prefill_compute_efficiency_fraction"],
    ),
    same(lambda: 100 * prefix_value.EFFICIENCY, "the share that is used", "62.2", "%", "8.3.4", kind="measured"),
    of_prefix(lambda: A.recompute_s * 1e3, "recomputing A", "307.9", "ms", 0.05, "-07"),
    of_prefix(lambda: prefix_value.recompute_time(A_TOKENS, 0.62) * 1e3, "with 62 %", "308.9", "ms", 0.05),
    same(lambda: GEN5.bandwidth_bytes_s / GB, "PCIe Gen5 x16", "64", "GB/s", "8.3.4-08", kind="input"),
    of_prefix(lambda: A.fetch_s * 1e3, "fetching A", "14.2", "ms", 0.05, "-09"),
    of_prefix(lambda: A.write_s * 1e3, "writing A out", "14.2", "ms", 0.05, "-10", "-13"),
    same(lambda: 100 * HIT_PROBABILITY, "probability of a hit", "50", "%", "8.3.4-11", "8.3.4-37", kind="input"),
    of_prefix(lambda: A.value_s(HIT_PROBABILITY) * 1e3, "net saving of A", "132.7", "ms", 0.05, "-12", "-32"),
    of_prefix(lambda: A.saving_per_hit_s * 1e3, "a hit saves", "293.7", "ms", 0.05, "-14"),
    of_prefix(lambda: break_even_percent(A), "A pays from", "4.8", "%", 0.05, "-15"),
    same(lambda: GEN4.bandwidth_bytes_s / GB, "PCIe Gen4 x16", "32", "GB/s", "8.3.4-16", kind="input"),
    of_prefix(lambda: A_GEN4.fetch_s * 1e3, "fetching A over Gen4", "28.3", "ms", 0.05, "-17"),
    of_prefix(lambda: A_GEN4.saving_per_hit_s * 1e3, "a hit saves over Gen4", "279.6", "ms", 0.05, "-18"),
    of_prefix(lambda: break_even_percent(A_GEN4), "A pays over Gen4 from", "10.1", "%", 0.05, "-19"),
    same(lambda: B_TOKENS, "a prefix B", "2048", "token", "8.3.4-20", kind="input"),
    same(lambda: B.kv_bytes / MIB, "its KV", "288", "MiB", "8.3.4-21", "8.3.4-34"),
    of_prefix(lambda: B.recompute_s * 1e3, "recomputing B", "94.7", "ms", 0.05, "-22"),
    of_prefix(lambda: B.fetch_s * 1e3, "fetching B", "4.7", "ms", 0.05, "-23"),
    of_prefix(lambda: B.value_s(HIT_PROBABILITY) * 1e3, "net saving of a B", "40.3", "ms", 0.05, "-24", "-35"),
    same(b_in_the_room_of_a, "prefixes B in the room of A", "3", "prefixes", "8.3.4-25", "8.3.4-33"),
    of_prefix(
        lambda: b_in_the_room_of_a() * B.value_s(HIT_PROBABILITY) * 1e3, "net saving of three B", "120.9", "ms", 0.05,
        "-26", "-36",
    ),
    of_prefix(lambda: A.recompute_s / B.recompute_s, "recomputing A against B", "3.25", "times", 0.005, "-27"),
    of_prefix(
        lambda: A.value_per_byte(HIT_PROBABILITY) * MIB * 1e3, "net saving of A per MiB", "0.154", "ms/MiB", 0.0005,
        "-28",
    ),
    of_prefix(
        lambda: B.value_per_byte(HIT_PROBABILITY) * MIB * 1e3, "net saving of B per MiB", "0.140", "ms/MiB", 0.0005,
        "-29",
    ),
    same(lambda: len(agent_replay.rounds()), "rounds replayed", "12", "rounds", "8.3.4-38", kind="input"),
    same(
        lambda: replay_row(WITH_OTHERS)["input_tokens_total"], "their input", "19,556", "token", "8.3.4-39",
        kind="measured",
    ),
    same(lambda: sum(one.tokens for one in agent_replay.rounds()), "their input", "19,556", "token", "8.3.4"),
    same(lambda: sum(one.same for one in agent_replay.rounds()), "of it equal to before", "16,376", "token", "8.3.4"),
    same(lambda: replay_row(WITH_OTHERS)["kv_pool_gib"], "larger pool", "6", "GiB", "8.3.4-40", kind="input"),
    same(
        lambda: replay_row(WITH_OTHERS)["hit_tokens_total"], "found in it", "16,304", "token", "8.3.4-41",
        kind="measured",
    ),
    same(lambda: sum(one.found for one in replayed(WITH_OTHERS)), "by the engine", "16,304", "token", "8.3.4"),
    same(lambda: sum(one.computed for one in replayed(WITH_OTHERS)), "computed", "3252", "token", "8.3.4-42"),
    same(
        lambda: replay_row(WITH_OTHERS)["recomputed_tokens_total"], "the same, recorded", "3252", "token", "8.3.4",
        kind="measured",
    ),
    same(lambda: replay_row(SMALL_POOL)["kv_pool_gib"], "smaller pool", "1", "GiB", "8.3.4-43", kind="input"),
    same(lambda: replay_row(SMALL_POOL)["hit_tokens_total"], "found in it", "0", "token", "8.3.4-44", kind="measured"),
    same(lambda: sum(one.found for one in replayed(SMALL_POOL)), "by the engine", "0", "token", "8.3.4"),
    same(lambda: replay_row(ALONE_LATER)["gap_s"], "wait", "0.2", "s", "8.3.4-45", kind="input"),
    same(found_more_after_wait, "more found after it", "0", "token", "8.3.4-46", kind="measured"),
    same(lambda: agent_replay.INTERFERING, "other requests in a gap", "3", "requests", "8.3.4", kind="input"),
    same(lambda: agent_replay.INTERFERING_TOKENS, "tokens of each", "4000", "token", "8.3.4", kind="input"),
    same(lambda: sum(agent_replay.replay(in_pool(2 * GIB))), "found in 2 GiB", "15,952", "token", "8.3.4"),
    same(lambda: in_pool(6 * GIB).blocks_between, "blocks used up in each gap", "750", "blocks", "8.3.4"),
    same(lambda: in_pool(6 * GIB).blocks_to_keep_all, "blocks with which all is found", "932", "blocks", "8.3.4"),
    Claim(
        ("8.3.4",), "between nothing and all", "computed", ("0.4",), "GiB", 0.05,
        lambda: POOL.bytes_of(16) * (in_pool(6 * GIB).blocks_to_keep_all - in_pool(6 * GIB).blocks_between) / GIB,
    ),
    Claim(
        ("8.3.4",), "used up in each gap", "computed", ("1.65",), "GiB", 0.005,
        lambda: POOL.bytes_of(1) * in_pool(6 * GIB).blocks_between / GIB,
    ),
    Claim(
        ("8.3.4",), "pool from which on all is found", "computed", ("2.05",), "GiB", 0.005,
        lambda: POOL.bytes_of(1) * in_pool(6 * GIB).blocks_to_keep_all / GIB,
    ),
    same(lambda: LONG_REQUESTS_AT_ONCE, "long requests", "16", "requests", "8.3.4-47", kind="input"),
    of_prefix(lambda: A.recompute_bytes_s / GB, "recomputing A makes KV at", "2.9", "GB/s", 0.05),
    of_prefix(lambda: B.recompute_bytes_s / GB, "recomputing B makes KV at", "3.2", "GB/s", 0.05),
    of_prefix(
        lambda: prefix_value.break_even_link(A, HIT_PROBABILITY) / GB, "slowest link that pays for A", "8.8", "GB/s",
        0.05,
    ),
    same(lambda: WHICH_TO_KEEP.room_bytes / MIB, "room of the exercise", "864", "MiB", "8.3.4-49", kind="input"),
    same(lambda: WHICH_TO_KEEP.a_tokens, "prefix A of the exercise", "6144", "token", "8.3.4-50", kind="input"),
    same(lambda: kept_mib(WHICH_TO_KEEP.a_tokens), "KV of A", "864", "MiB", "8.3.4-51"),
    same(lambda: WHICH_TO_KEEP.b_count, "B's in place of A", "3", "prefixes", "8.3.4-52", kind="input"),
    same(lambda: WHICH_TO_KEEP.b_tokens, "each B of the exercise", "2048", "token", "8.3.4-53", kind="input"),
    same(lambda: kept_mib(WHICH_TO_KEEP.b_tokens), "KV of a B", "288", "MiB", "8.3.4-54"),
    same(lambda: WHICH_TO_KEEP.peak_flop_s / 1e12, "peak", "503.8", "TFLOP/s", "8.3.4-55", kind="input"),
    same(lambda: WHICH_TO_KEEP.efficiency * 100, "share of it", "62", "%", "8.3.4-56", kind="input"),
    same(lambda: WHICH_TO_KEEP.link_bytes_s / GB, "first link", "64", "GB/s", "8.3.4-57", kind="input"),
    same(lambda: WHICH_TO_KEEP.a_probability * 100, "hit of A", "50", "%", "8.3.4-58", kind="input"),
    same(lambda: WHICH_TO_KEEP.b_probability * 100, "hit of a B", "50", "%", "8.3.4", kind="input"),
    same(lambda: WHICH_TO_KEEP.other_link_bytes_s / GB, "other link", "32", "GB/s", "8.3.4-59", kind="input"),
    same(lambda: WHICH_TO_KEEP.rounds, "rounds of the replay", "12", "rounds", "8.3.4-60", "fn13-01", kind="input"),
    same(lambda: agent_replay.OUTPUTS, "outputs of a round", "1", "token", "fn13-02", kind="input"),
)  # fmt: skip
