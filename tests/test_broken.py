"""The picture of a broken engine shows the errors that the engine makes, in both languages."""

import math

import pytest

from figures.broken import BROKEN_EXPLORATION, FAULTS, SOUND, played, script_of, worst
from figures.guard import guard, visible_texts
from figures.registry import entry
from figures.words import LANGUAGES
from lib.broken_engine import TOLERANCE, Fault
from lib.checks import InputError
from lib.shortest_script import MOST_EVENTS, judge

each_script = pytest.mark.parametrize("script", Fault)


@each_script
@pytest.mark.parametrize("fault", FAULTS)
def test_a_script_runs_to_its_end_and_goes_wrong_by_its_own_fault_only(script: Fault, fault: str) -> None:
    engine = played(script, fault, MOST_EVENTS)
    assert engine.events == len(script_of(script))
    assert any(error > TOLERANCE for error in worst(engine).values()) == (fault == script)


@each_script
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("events", range(MOST_EVENTS + 1))
def test_every_moment_can_be_printed(script: Fault, language: str, events: int) -> None:
    guard(entry("broken-engine").figure(script=script, fault=script, events=events, language=language), str(script))


@each_script
def test_the_errors_written_are_those_of_the_engine(script: Fault) -> None:
    texts = [text.get_text() for text in visible_texts(entry("broken-engine").figure(script=script, fault=script))]
    for output in judge(script_of(script), script).wrong:
        told = "missing" if output.error == math.inf else f"{output.error:.2g}"
        assert f"{output.name}: {told}" in texts
    sound = [text.get_text() for text in visible_texts(entry("broken-engine").figure(script=script, fault=SOUND))]
    assert sum(text.endswith(": right") for text in sound) == len(worst(played(script, SOUND, MOST_EVENTS)))


def test_the_question_is_answered_by_the_engine() -> None:
    assert BROKEN_EXPLORATION.question().answer == "only A's"


@pytest.mark.parametrize("wrong", [{"script": "none"}, {"fault": "other"}, {"events": MOST_EVENTS + 1}], ids=repr)
def test_what_makes_no_sense_is_named(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=rf"^{next(iter(wrong))} is"):
        entry("broken-engine").figure(**wrong)
