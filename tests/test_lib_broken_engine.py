"""A sound engine is always right, a broken one is not, and no script shows a fault sooner than the stated one."""

import math
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.blocks import PagingError, State
from lib.broken_engine import TOLERANCE, Engine, Fault, Tracer, pool_with, run_script
from lib.checks import InputError
from lib.engine_script import HOW, MOST_EVENTS, Event, Script, Verb, read_script
from lib.paging import Pool
from lib.shortest_script import SHORTEST, judge, search

each_fault = pytest.mark.parametrize("fault", Fault)
EVERY_SET = [set(some) for count in range(len(Fault) + 1) for some in combinations(Fault, count)]
NAMES, PROMPTS = "ABCD", st.text("ab", min_size=1, max_size=5)


@st.composite
def scripts(draw: st.DrawFn) -> Script:
    """Events on names that run, most of which a pool of a few blocks can follow."""
    running, events = list[str](), list[Event]()
    for _ in range(draw(st.integers(1, 30))):
        verb = draw(st.sampled_from([verb for verb in Verb for _ in range(2 if verb == Verb.ADMIT else 1)]))
        free = [name for name in NAMES if name not in running]
        if verb == Verb.ADMIT and free:
            running.append(free[0])
            events.append(Event(verb, free[0], draw(PROMPTS)))
        elif verb == Verb.FORK and free and running:
            events.append(Event(verb, draw(st.sampled_from(running)), free[0]))
            running.append(free[0])
        elif verb in (Verb.APPEND, Verb.RELEASE) and running:
            name = draw(st.sampled_from(running))
            if verb == Verb.RELEASE:
                running.remove(name)
            events.append(Event(verb, name, draw(st.sampled_from("ab")) if verb == Verb.APPEND else ""))
        elif verb in (Verb.STEP, Verb.SUBMIT, Verb.COMPLETE):
            events.append(Event(verb))
    return tuple(events)


def follow(engine: Tracer, script: Script) -> list[bool]:
    """Which events the engine followed; what it refuses changes nothing, and neither does what then makes no sense."""
    followed = list[bool]()
    for event in script:
        before = engine.events, engine.texts[:], list(engine.sequences), engine.outputs[:], engine.due[:]
        try:
            engine.follow(event)
            followed.append(True)
        except (PagingError, InputError):
            followed.append(False)
            assert before == (engine.events, engine.texts, list(engine.sequences), engine.outputs, engine.due)
    return followed


@given(scripts(), st.integers(1, 6))
def test_a_sound_engine_is_always_right(script: Script, blocks: int) -> None:
    engine = Engine((), blocks)
    follow(engine, script)
    assert type(engine.pool) is Pool
    for output in engine.outputs:
        assert output.error < TOLERANCE


@given(scripts(), st.integers(1, 6), st.sampled_from(EVERY_SET))
def test_texts_tell_what_numbers_tell(script: Script, blocks: int, faults: set[Fault]) -> None:
    numbers, texts = Engine(faults, blocks), Tracer(faults, blocks)
    assert follow(numbers, script) == follow(texts, script)
    told = [(output.event, output.name, output.is_wrong) for output in numbers.outputs]
    assert told == [(output.event, output.name, output.is_wrong) for output in texts.outputs]
    assert numbers.texts == texts.texts


@given(scripts(), st.integers(1, 6), st.sampled_from(EVERY_SET))
def test_a_broken_pool_still_adds_up(script: Script, blocks: int, faults: set[Fault]) -> None:
    engine = Engine(faults, blocks)
    follow(engine, script)
    states = [engine.pool.state(block) for block in range(blocks)]
    assert states.count(State.HELD) == engine.pool.held
    assert states.count(State.WAITING) == engine.pool.waiting
    assert sum(map(states.count, (State.IDLE, State.EMPTY))) == engine.pool.free


@each_fault
def test_the_stated_script_shows_its_fault_and_no_other(fault: Fault) -> None:
    script = SHORTEST[fault]
    assert [bool(judge(script, other).is_shown) for other in Fault] == [other == fault for other in Fault]
    assert all(output.error < TOLERANCE for output in run_script(script).outputs)
    assert all(output.error > 0.1 for output in judge(script, fault).wrong)


@pytest.mark.parametrize(
    "fault", [pytest.param(each, marks=[pytest.mark.long] * (each == Fault.IDENTITY_KEPT)) for each in Fault]
)
def test_no_script_is_shorter_than_the_stated_one(fault: Fault) -> None:
    found = search(fault)
    assert found is not None and len(found) == len(SHORTEST[fault])
    assert judge(found, fault).is_shown


def test_a_search_that_ends_too_soon_finds_nothing() -> None:
    assert search(Fault.FULL_HIT, most_events=len(SHORTEST[Fault.FULL_HIT]) - 1) is None


@pytest.mark.parametrize("fault", [Fault.FREED_AT_ONCE, Fault.NO_COPY, Fault.FULL_HIT])
def test_in_three_blocks_it_takes_as_many(fault: Fault) -> None:
    found = search(fault, blocks=3)
    assert found is not None and len(found) == len(SHORTEST[fault])


def test_who_is_harmed_and_how() -> None:
    wrong = {fault: judge(SHORTEST[fault], fault).wrong for fault in Fault}
    assert {fault: [output.name for output in outputs] for fault, outputs in wrong.items()} == {
        Fault.IDENTITY_KEPT: ["C"], Fault.FREED_AT_ONCE: ["A"], Fault.NO_COPY: ["A"], Fault.FULL_HIT: ["B"],
    }  # fmt: skip
    assert wrong[Fault.FULL_HIT][0].error == math.inf
    # Beside another sequence, whoever has nothing to compute gets the other's output.
    shared = run_script("admit A ab\nstep\nadmit C xy\nadmit B ab\nstep", {Fault.FULL_HIT}).outputs[-1]
    assert shared.name == "B" and TOLERANCE < shared.error < math.inf


def test_a_block_waits_for_the_step_in_the_sound_pool_only() -> None:
    script = "admit A ab\nsubmit\nrelease A"
    assert run_script(script).pool.state(0) == State.WAITING
    assert run_script(script, {Fault.FREED_AT_ONCE}).pool.state(0) == State.EMPTY


def test_the_judge_says_what_is_enough_and_does_not_give_it_away() -> None:
    longer = "admit A a\nstep\nfork A B\nappend A x\nappend B y\nstep"
    verdict = judge(longer, Fault.NO_COPY)
    assert str(verdict).startswith("Shown in 6 events: in event 6 the output of A is wrong by ")
    assert str(verdict).endswith(" 5 are enough.")
    assert str(judge(SHORTEST[Fault.NO_COPY], Fault.NO_COPY)).endswith("It takes no fewer.")
    assert "is missing" in str(judge(SHORTEST[Fault.FULL_HIT], Fault.FULL_HIT))
    right = judge("admit A ab\nstep", Fault.NO_COPY)
    assert not right.is_shown and str(right).startswith("Not shown: ") and str(right).endswith("5 events are enough.")
    refused = judge("admit A abc\nstep\nfork A B\nappend A x\nadmit C z", Fault.NO_COPY)
    assert not refused.is_shown
    assert str(refused) == (
        "This does not count: the sound pool refuses event 4, 'append A x': 1 free blocks are needed and there are 0."
    )
    only_broken = judge("admit A ab\nstep\nadmit C z\nadmit B ab\nstep", Fault.FULL_HIT)
    assert only_broken.refusal.startswith("the sound pool refuses event 4")


@pytest.mark.parametrize(
    ("script", "named", "allowed"),
    [
        ("admit A ab\n\nadmt B ab", "line 3", "'admit A ab', 'append A c', 'fork A B', 'release A', 'step'"),
        ("admit A", "line 1", "such as 'admit A ab'"),
        ("step A", "line 1", "such as 'step'"),
        ("admit a ab", "line 1", "a capital letter"),
        ("admit AB ab", "line 1", "a capital letter"),
        ("admit A aB", "line 1", "from 1 to 32 small letters"),
        ("admit A ab\nappend A cd", "line 2", "one small letter"),
        ("admit A ab\nfork A b", "line 2", "a capital letter that names the branch"),
        ("", "script", "from 1 to 100 events"),
        (7, "script", "one event a line"),
        ("step\n" * (MOST_EVENTS + 1), "script", "from 1 to 100 events"),
        ([Event(Verb.STEP, "A")], "event 1", "such as 'step'"),
        ("release A", "event 1", "sequences that run: none yet"),
        ("admit A ab\nfork B C", "event 2", "sequences that run: A"),
        ("admit A ab\nadmit A c", "event 2", "a new sequence that is not called A"),
        ("admit A a\nadmit B b\nfork A B", "event 3", "a new sequence that is not called B"),
        ("admit A abcde", "event 1", "from 1 to 4 token ids"),
    ],
)  # fmt: skip
def test_a_script_that_makes_no_sense_is_refused_where_it_is_wrong(script: Any, named: str, allowed: str) -> None:
    with pytest.raises(InputError) as refusal:
        run_script(script)
    assert refusal.value.parameter == named
    assert allowed in refusal.value.allowed


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("step", "event 1, 'step': no sequence waits to be computed"),
        ("admit A a\nstep\nsubmit", "event 3, 'submit': no sequence waits to be computed"),
        ("complete", "event 1, 'complete': no step is in flight"),
        ("admit A abc\nadmit B c", "event 2, 'admit B c': 1 free blocks are needed and there are 0"),
    ],
)
def test_what_the_pool_refuses_is_told_with_its_event(script: str, why: str) -> None:
    with pytest.raises(PagingError, match=f"^{why}$"):
        run_script(script)


def test_each_verb_is_written_as_it_is_shown() -> None:
    assert HOW.keys() == set(Verb)
    assert [str(event) for event in read_script("\n".join(HOW.values()))] == list(HOW.values())


@pytest.mark.parametrize("faults", ["no copy on write", 7, {"no fault"}, [None]])
def test_faults_are_a_set_of_known_ones(faults: Any) -> None:
    with pytest.raises(InputError, match=r"^faults is"):
        pool_with(faults)
