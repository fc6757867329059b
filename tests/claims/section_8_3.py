"""Numbers of section 8.3 and of the footnotes that belong to it."""

from collections.abc import Callable
from functools import cache
from typing import Any

from lib import agent_replay, allotment, copy_on_write, five_requests, prefix_value
from lib.allotment import COMMON_TOKENS, LENGTHS, NAMES, Allot, Load, wasted_slots
from lib.block_history import play_history
from lib.block_reuse import SHARED_BLOCK, Ending, Event, Kind, Moment, Rule, story
from lib.design_problem import INSTANCE, LONG_CONTEXT, LONG_REQUESTS_AT_ONCE
from lib.exercise_8_3 import BOOK as EXERCISE
from lib.fast_forward import simulate
from lib.memory import KvPool, pages_for, tokens_stored
from lib.model import matrix_flops
from lib.paging import Findable, Pool
from lib.pool_size import EqualRequests, tokens_again
from lib.prefix_value import A_TOKENS, B_TOKENS, GEN4, GEN5, HIT_PROBABILITY, prefix_of
from lib.records import record
from lib.residency import Gate, PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Request, chunked
from lib.step_time import NS
from lib.units import GB, GIB, MIB
from tests.claims.claim import Claim

POOL = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes)
LOAD, USABLE = EqualRequests(), (("pool_blocks", 1), ("reserved_blocks", -1))
SHARING, ALONE = LONG_CONTEXT.shape, LONG_CONTEXT.shape_alone
WITH_OTHERS, SMALL_POOL = "pool6gib_interference", "pool1gib_interference"
ALONE_AT_ONCE, ALONE_LATER = "pool6gib", "pool6gib_gap200ms"
A, B, A_GEN4 = prefix_of(A_TOKENS), prefix_of(B_TOKENS), prefix_of(A_TOKENS, GEN4.bandwidth_bytes_s)


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
    same(lambda: sum(one.computed for one in replayed(WITH_OTHERS)), "computed again", "3252", "token", "8.3.4-42"),
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
)  # fmt: skip
