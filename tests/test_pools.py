"""The pool-size explorer: what is drawn is what the runs come to, and what is said of it is true."""

from typing import Any

import pytest
from matplotlib.figure import Figure

from figures.exploration import Slider, book_values, controls_of
from figures.explorer import explore
from figures.guard import guard
from figures.pools import FLOOR_PT, HEIGHT_PT, SMALL, Sizes, load_at
from figures.registry import entry
from figures.words import LANGUAGES
from lib.pool_size import EqualRequests, tokens_again
from lib.residency import Gate

POOL_SIZE = entry("pool-size")
BOOK = book_values(POOL_SIZE.draw, POOL_SIZE.arguments)


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in POOL_SIZE.exploration.readouts(**BOOK | settings)}


def points(figure: Figure, marker: str) -> list[tuple[int, float]]:
    """Blocks and the share of the box's height of each mark of this kind."""
    (line,) = (line for line in figure.axes[0].lines if line.get_marker() == marker)
    heights = [(float(height) - FLOOR_PT) / (HEIGHT_PT - FLOOR_PT) for height in line.get_ydata()]  # type: ignore[union-attr]
    return [(int(blocks), round(height, 9)) for blocks, height in zip(line.get_xdata(), heights, strict=True)]  # type: ignore[arg-type]


def test_at_first_only_what_was_measured_is_drawn_and_the_simulator_agrees() -> None:
    figure = POOL_SIZE.figure()
    assert points(figure, "D") == points(figure, "o") == [(454, 1805 / 2000), (909, 0)]


def test_all_sizes_are_drawn_as_the_runs_come_out() -> None:
    drawn = points(POOL_SIZE.figure(sizes=Sizes.ALL, blocks=510), "o")
    assert 60 <= len(drawn) <= 70 and {128, 510, 511, 512} <= {blocks for blocks, _ in drawn}
    for blocks, height in drawn[::7]:
        assert height * 10_000 == pytest.approx(tokens_again(EqualRequests().in_pool(blocks)))


def test_other_loads_were_not_measured() -> None:
    for settings in ({"requests": 5}, {"output": 576}, {"token_budget": 640}, {"gate": Gate.FINAL_SIZE}):
        lines = POOL_SIZE.figure(**settings).axes[0].lines
        assert not [line for line in lines if line.get_marker() == "D"]


def test_the_readouts_at_the_recorded_pools() -> None:
    assert readouts()["tokens computed once more"] == "1,805"
    assert readouts()["pool"] == "1.00 GiB"
    assert readouts(blocks=909)["preemptions"] == "0"
    assert readouts(sizes=Sizes.ALL, gate=Gate.FINAL_SIZE)["most of any size drawn"] == "none in any"


def test_the_question_is_answered_by_the_run() -> None:
    question = POOL_SIZE.exploration.question()
    assert question.answer == readouts(**question.reveals)["tokens computed once more"] == "2,029"
    assert question.choices == ("none", "1,583", "1,805", "2,029")


def test_a_larger_pool_never_has_to_hold_more_than_all_at_their_largest() -> None:
    assert readouts(blocks=2598)["most blocks held at once"] == "512"
    assert "no gate keeps anybody waiting" in POOL_SIZE.exploration.why_still("gate", BOOK | {"blocks": 910})


def test_the_reserve_counts_by_its_own_gate_only() -> None:
    assert load_at(4, 512, 512, Gate.WHOLE_SEQUENCE, 40) == EqualRequests()
    explorer = explore("pool-size")
    explorer.widgets["reserve_blocks"].value = 64
    assert "Only the gate with a reserve" in explorer.line
    assert load_at(4, 512, 512, Gate.RESERVE, 40).reserve_blocks == 40


def test_the_cursor_stops_at_what_is_named_and_at_the_end_of_the_axis() -> None:
    control = controls_of(POOL_SIZE.draw)["blocks"]
    assert isinstance(control, Slider) and control.step == 1
    assert control.low <= 128 and control.high == POOL_SIZE.figure().axes[0].get_xlim()[1]


def test_what_can_never_fit_is_one_sentence() -> None:
    explorer = explore("pool-size", blocks=134, output=1024)
    assert explorer.sentence.startswith("Nothing to draw: blocks is 134; allowed: ")
    assert not explore("pool-size", blocks=134).sentence


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "settings",
    [
        {"sizes": Sizes.ALL, "requests": 16, "output": 1024, "blocks": 2598},
        {"sizes": Sizes.ALL, "gate": Gate.FIRST_CHUNK, "requests": 8, "blocks": SMALL.blocks},
        {"requests": 2, "blocks": 1002},
    ],
)
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(POOL_SIZE.figure(language=language, **settings), "pool-size", POOL_SIZE.may_overlap)
