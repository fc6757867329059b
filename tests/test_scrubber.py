"""The run-scrubber: the picture shows the pool of the step looked at, and what is said of it is true."""

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.scrubber import AGAIN_STEP, FULL_STEP, LEAVING_STEP, MOST_STEPS, run_at
from figures.words import LANGUAGES
from lib.blocks import State
from lib.paging import Findable
from lib.residency import Gate

SCRUBBER = entry("run-scrubber")
BOOK = book_values(SCRUBBER.draw, SCRUBBER.arguments)


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in SCRUBBER.exploration.readouts(**BOOK | settings)}


def texts(**settings: Any) -> list[str]:
    return [text.get_text() for text in visible_texts(SCRUBBER.figure(**settings))]


def line_of(name: str, **settings: Any) -> str:
    (found,) = [text for text in texts(**settings) if text.startswith(f"{name}  ")]
    return found.split("  ")[1]


def stamped(**settings: Any) -> list[list[str]]:
    """The names in the cells, the numbers beside the rows of cells, and the numbers in the tables, as drawn."""
    drawn = [each for each in SCRUBBER.figure(**settings).artists if isinstance(each, PathCollection)]
    for each in drawn:
        assert len(each.get_paths()) == len(np.asarray(each.get_offsets())) == len(str(each.get_gid()).split())
    return [str(each.get_gid()).split() for each in drawn]


@pytest.mark.parametrize("step", range(1, 32))
def test_each_cell_names_who_holds_the_block(step: int) -> None:
    run = run_at(BOOK["blocks"], BOOK["gate"], BOOK["findable"])
    state = run.states[step - 1]
    holders = [state.holders(block) for block in range(28)]
    names, rows, numbers = stamped(step=step)
    assert names == [run.name(held[0]) for held in holders if held] and rows == ["0", "20"]
    assert readouts(step=step)["blocks held"] == f"{len(names)} of 28"
    tables = [(state.tokens[place], *state.tables[place]) for place in range(5) if place in state.tables]
    assert numbers == [str(number) for table in tables for number in table]


def test_what_is_shared_is_told_apart() -> None:
    settings = {"findable": Findable.ON_ADMISSION, "step": 12}
    assert stamped(**settings)[0].count("4×") == 2
    state = run_at(28, Gate.WHOLE_SEQUENCE, Findable.ON_ADMISSION).states[11]
    assert sum(len(state.holders(block)) == 4 for block in range(28)) == 2


def test_what_each_request_does() -> None:
    assert [line_of(name, step=1) for name in "ABCDE"] == ["prefill", "prefill", "not here yet"] + 2 * ["not here yet"]
    assert [line_of(name, step=FULL_STEP) for name in "ABCDE"] == [*4 * ["decode"], "waits"]
    assert [line_of(name, step=LEAVING_STEP) for name in "CD"] == ["user goes away", "preempted, waits"]
    assert [line_of(name, step=AGAIN_STEP) for name in "CDE"] == ["cancelled", "prefill again", "prefill"]
    assert [line_of(name, step=31) for name in "ABCDE"] == ["done", "done", "cancelled", "done", "decode"]


def test_whoever_has_a_row_computes_something_in_each_step() -> None:
    """So a request in the pool is in prefill or in decode, and there is no word for one that rests."""
    for blocks in range(16, 41, 4):
        for run in (run_at(blocks, gate, rule) for gate in Gate for rule in Findable):
            assert all(state.computing == state.tables.keys() for state in run.states)


def test_who_was_thrown_out_as_a_prompt_computes_it_again() -> None:
    run = run_at(16, Gate.FIRST_CHUNK, Findable.NEVER)
    place = run.schedule.preemptions[0].place
    assert run.schedule.preemptions[0].outputs == 0
    assert run.phase(place, run.schedule.stays()[place][1].start) == "again"


def test_a_user_who_goes_away_holds_blocks_until_the_step_is_done() -> None:
    assert readouts(step=LEAVING_STEP)["gave back as its user had gone"] == "nobody"
    assert readouts(step=LEAVING_STEP + 1)["gave back as its user had gone"] == "C"
    assert readouts(step=FULL_STEP + 1)["lost its blocks before this step"] == "D"


def test_the_question_is_answered_by_the_run() -> None:
    question = SCRUBBER.exploration.question()
    assert question.answer == readouts(**question.reveals)["lost its blocks before this step"] == "D"
    assert "C needs one more" in question.text and "12 outputs are kept; later 23 tokens" in question.because


def test_no_run_has_more_steps_than_the_slider_and_steps_beyond_the_end_are_the_last() -> None:
    runs = [run_at(blocks, gate, rule) for blocks in range(16, 41) for gate in Gate for rule in Findable]
    assert max(len(run.steps) for run in runs) == MOST_STEPS
    explorer = explore("run-scrubber", step=31)
    explorer.widgets["step"].value = 32
    assert explorer.line == "There is no step 32: the run has 31 steps."


def test_areas_over_time_are_the_counts_of_each_step() -> None:
    settings = {"findable": Findable.ONCE_DONE, "blocks": 20}
    run = run_at(20, BOOK["gate"], Findable.ONCE_DONE)
    held, with_idle = (patch.get_data() for patch in SCRUBBER.figure(**settings).axes[0].patches[:2])
    assert list(held.values) == [state.count(State.HELD) for state in run.states[:-1]]
    idle = [state.count(State.IDLE) for state in run.states[:-1]]
    assert list(with_idle.values) == [sum(both) for both in zip(held.values, idle, strict=True)]
    assert any(idle)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    "settings",
    [
        {"step": 30, "blocks": 16, "gate": Gate.FIRST_CHUNK, "findable": Findable.ONCE_DONE},
        {"step": 12, "blocks": 40, "findable": Findable.ON_ADMISSION},
        {"step": MOST_STEPS, "blocks": 16, "gate": Gate.FINAL_SIZE},
        {"step": 15, "blocks": 16, "gate": Gate.FIRST_CHUNK},
    ],
)
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(SCRUBBER.figure(language=language, **settings), "run-scrubber", SCRUBBER.may_overlap)
