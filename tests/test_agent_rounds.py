"""The figure of an agent's rounds: bars as recorded, hits as replayed, and what is said of both is true."""

from typing import Any

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures.agent_rounds import ASKED_BYTES, BLOCKS, Sizes
from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard
from figures.registry import entry
from figures.words import LANGUAGES
from lib.agent_replay import INTERFERING, Setup, blocks_in, engine_replay, recorded, replay, rounds
from lib.prefix_cache import Order
from lib.step_time import NS
from lib.units import GIB

AGENT_ROUNDS = entry("agent-rounds")
BOOK = book_values(AGENT_ROUNDS.draw, AGENT_ROUNDS.arguments)
READ_OUT = {
    "equal to the round before": "16,376",
    "found in the cache": "16,304",
    "computed": "3,252",
    "used up in each gap": "1.65 GiB",
    "all is found from": "2.05 GiB",
    "all rounds, to their first tokens": "0.43 s",
    "measured, without a wait": "0.40 s",
    "median time to first token": "34.8 ms",
    "median, measured without a wait": "30.7 ms",
}


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in AGENT_ROUNDS.exploration.readouts(**BOOK | settings)}


def parts(figure: Figure) -> list[dict[int, tuple[float, float]]]:
    """Of the tokens found, those not found and the rest: where the part of each round begins and ends."""
    drawn = [one for one in figure.axes[0].collections if isinstance(one, PolyCollection)]
    corners = [[path.vertices for path in one.get_paths()] for one in drawn]
    return [{round(each[:, 0].mean()): (each[:, 1].min(), each[:, 1].max()) for each in part} for part in corners]


def points(figure: Figure, marker: str) -> list[tuple[float, int]]:
    """GiB and tokens of each mark of this kind."""
    (line,) = (line for line in figure.axes[1].lines if line.get_marker() == marker)
    return [(round(float(x), 2), int(y)) for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]  # type: ignore[arg-type]


@pytest.mark.parametrize("pool", [GIB, 1.8 * GIB, 6 * GIB])
def test_bars_are_the_recorded_rounds_and_what_the_replay_finds_of_them(pool: float) -> None:
    found, lost, rest = parts(AGENT_ROUNDS.figure(pool=pool))
    hits = replay(Setup(blocks_in(round(pool)), interfering=INTERFERING))
    for one, hit in zip(rounds(), hits, strict=True):
        assert found.get(one.number, (0, 0)) == (0, hit)
        assert lost.get(one.number, (hit, hit)) == (hit, one.same)
        assert rest[one.number] == (one.same, one.tokens)


def test_at_first_only_what_was_measured_stands_beside_the_pool_that_is_shown() -> None:
    figure = AGENT_ROUNDS.figure()
    assert points(figure, "D") == [(6.0, 16_304), (1.0, 0)]
    assert points(figure, "o") == [(6.0, 16_304)]


def test_the_whole_curve_is_what_the_replays_find() -> None:
    drawn = points(AGENT_ROUNDS.figure(sizes=Sizes.ALL, pool=1.8 * GIB), "o")
    assert len(drawn) > 15 and [tokens for _, tokens in drawn] == sorted(tokens for _, tokens in drawn)
    assert {(1.0, 0), (3.0, 16_304), (6.0, 16_304)} <= set(drawn)
    assert sum(0 < tokens < 16_304 for _, tokens in drawn) > 8


@pytest.mark.parametrize("settings", [{"interfering": 2}, {"block_tokens": 64}, {"order": Order.FIRST_IN}])
def test_other_loads_were_not_measured(settings: dict[str, Any]) -> None:
    assert points(AGENT_ROUNDS.figure(**settings), "D") == []
    assert readouts(**settings)["measured, without a wait"] == "not recorded"


def test_the_readouts_at_the_book_and_at_the_recorded_pools() -> None:
    assert readouts() == READ_OUT
    small = readouts(pool=GIB)
    assert (small["found in the cache"], small["computed"]) == ("0", "19,556")
    assert (small["measured, without a wait"], small["median, measured without a wait"]) == ("1.32 s", "113.9 ms")
    assert readouts(interfering=0)["measured, without a wait"] == "0.44 s"


@pytest.mark.parametrize("setup", [one.setup for one in recorded()])
def test_the_time_of_all_rounds_is_the_engines(setup: Setup) -> None:
    total = sum(one.first_token_ns for one in engine_replay(setup, gap_ns=NS // 5)) / NS
    pool = 6 * GIB if setup.blocks > 1000 else GIB
    assert readouts(pool=pool, interfering=setup.interfering)["all rounds, to their first tokens"] == f"{total:.2f} s"


def test_the_question_is_answered_by_the_replay() -> None:
    question = AGENT_ROUNDS.exploration.question()
    assert question.answer == "nearly all"
    assert question.because.startswith(f"{readouts(**question.reveals)['found in the cache']}. ")
    assert readouts(pool=ASKED_BYTES)["found in the cache"] == "15,952"


def test_a_wait_changes_nothing_and_the_engine_says_so_too() -> None:
    explorer = explore("agent-rounds", pool=ASKED_BYTES, sizes=Sizes.ALL)
    picture = explorer.png
    explorer.widgets["gap"].value = 0.2
    assert explorer.png == picture
    assert explorer.line.endswith("Measured alone: 16,304 after 0.0 s, 16,304 after 0.2 s.")
    setup = Setup(blocks_in(ASKED_BYTES), interfering=INTERFERING)
    assert tuple(one.found for one in engine_replay(setup, gap_ns=NS // 5)) == replay(setup)


@pytest.mark.parametrize(
    ("pool", "line"),
    [(GIB, "All blocks come to be used"), (1.8 * GIB, "By both orders what"), (6 * GIB, "keeps all that")],
)
def test_why_another_order_changes_nothing(pool: float, line: str) -> None:
    explorer = explore("agent-rounds", pool=pool)
    explorer.widgets["order"].value = Order.LEAST_VALUE
    explorer.widgets["order"].value = Order.FIRST_IN
    assert line in explorer.line


def test_what_holds_by_last_use_is_not_said_of_every_order() -> None:
    large_blocks: dict[str, Any] = {"pool": 2.5 * GIB, "block_tokens": 256}
    first_in = readouts(**large_blocks, order=Order.FIRST_IN)
    assert first_in["found in the cache"] < readouts(**large_blocks)["found in the cache"]
    assert "all is found from" not in first_in and first_in["all is found from, by last use"] < "2.5 GiB"
    explorer = explore("agent-rounds", **large_blocks)
    explorer.widgets["order"].value = Order.LEAST_VALUE
    assert explorer.line == "By both orders the pool keeps all that a later round can find."


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("interfering", [1, 3, 6])
def test_the_edges_of_the_cliff_hold_for_every_order(interfering: int, order: Order) -> None:
    setup = Setup(blocks_in(6 * GIB), interfering=interfering, order=order)
    low, high = (Setup(blocks, interfering=interfering, order=order) for blocks in _edges(setup))
    assert sum(replay(low)) == 0 < sum(replay(high)) == 16_304


def _edges(setup: Setup) -> tuple[int, int]:
    return max(setup.blocks_between, 250), setup.blocks_to_keep_all


def test_from_the_head_less_is_found_on_the_cliff() -> None:
    head = int(readouts(pool=ASKED_BYTES, order=Order.HEAD_FIRST)["found in the cache"].replace(",", ""))
    assert 0 < head < 15_952


@pytest.mark.parametrize("block_tokens", BLOCKS)
def test_larger_blocks_lose_more_to_rounding(block_tokens: int) -> None:
    found = sum(one.same // block_tokens * block_tokens for one in rounds())
    assert readouts(block_tokens=block_tokens)["found in the cache"] == f"{found:,}"


def test_a_pool_out_of_reach_is_one_sentence() -> None:
    for pool in (0.99 * GIB, 7 * GIB):
        sentence = explore("agent-rounds", pool=pool).sentence
        assert sentence.startswith("Nothing to draw: pool is ")
        assert sentence.endswith("; allowed: a pool from 1 GiB to 6 GiB.")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "settings",
    [
        {"sizes": Sizes.ALL, "interfering": 6, "pool": 3.5 * GIB, "block_tokens": 256},
        {"sizes": Sizes.ALL, "interfering": 0, "pool": GIB, "block_tokens": 1},
        {"order": Order.HEAD_FIRST, "pool": 1.72 * GIB},
    ],
)
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(AGENT_ROUNDS.figure(language=language, **settings), "agent-rounds", AGENT_ROUNDS.may_overlap)
