"""Edits of a context: the chapter's three, what a live cache finds after them, and sums of turns done one by one."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError
from lib.context_edit import (
    APPENDED_TOKENS,
    EQUAL_TOKENS,
    HISTORY_TOKENS,
    MOST_TURNS,
    SUMMARY_TOKENS,
    Edit,
    Turn,
    append,
    break_even,
    reusable_tokens,
    rewrite,
    summarise,
    turns,
)
from lib.four_requests import HOST_NS
from lib.prefix_cache import PrefixCache
from lib.step_time import FIT, LaunchBound, StepTime, device, step_plan

LAUNCH_BOUND = LaunchBound(HOST_NS, device())
histories, appendeds, blocks = st.integers(1, 600), st.integers(0, 200), st.sampled_from((1, 3, 16, 64))


@st.composite
def edits(draw: st.DrawFn) -> Edit:
    history, appended, block = draw(histories), draw(appendeds), draw(blocks)
    position, summary = draw(st.integers(0, history)), draw(st.integers(1, history))
    made = append(appended, history, block), rewrite(position, appended, history, block)
    return draw(st.sampled_from((*made, summarise(summary, appended, history, block))))


def carried(turn: Turn) -> int:
    return turn.carried


def time_ns(turn: Turn) -> int:
    return turn.time_ns


def test_the_three_ways_of_the_chapter() -> None:
    kept, front, short = append(), rewrite(0), summarise()
    assert (kept.reusable, kept.to_process, kept.prompt, kept.written) == (8192, 1024, 9216, 0)
    assert (front.reusable, front.to_process, front.prompt, front.written) == (0, 9216, 9216, 0)
    assert (short.reusable, short.to_process, short.prompt, short.written) == (0, 3072, 3072, 2048)
    assert (HISTORY_TOKENS, APPENDED_TOKENS, SUMMARY_TOKENS) == (8192, 1024, 2048)


@pytest.mark.parametrize(
    ("model", "expected"), [(FIT, (0.084, 0.434, 53.951)), (LAUNCH_BOUND, (0.062, 0.488, 53.393))], ids=["fit", "max"]
)
def test_a_summary_costs_its_decode_steps(model: StepTime, expected: tuple[float, ...]) -> None:
    each = [edit.time_ns(model) / 1e9 for edit in (append(), rewrite(0), summarise())]
    assert each == pytest.approx(expected, abs=0.0005)
    assert summarise().write_ns(model) > 0.99 * summarise().time_ns(model)


def test_it_buys_room_and_hardly_any_time() -> None:
    assert break_even(summarise(), append(), carried) == 1
    for model in (FIT, LAUNCH_BOUND):
        assert break_even(summarise(), append(), time_ns, model) is None
        assert break_even(summarise(), rewrite(0), time_ns, model) is None
    assert break_even(summarise(512, 4096), append(4096), time_ns) == 142


def test_while_it_is_written_the_history_stands_too() -> None:
    assert summarise().carried_beside == HISTORY_TOKENS + SUMMARY_TOKENS - 1 > append().prompt
    assert append().carried_beside == 0


def test_of_equal_beginnings_all_is_found_and_nothing_behind() -> None:
    one = list(range(200))
    other = [*one[:EQUAL_TOKENS], 999, *one[EQUAL_TOKENS + 1 :]]
    cache = filled(one, 1)
    assert cache.match(other).tokens == reusable_tokens(200, EQUAL_TOKENS) == 100
    assert filled(one, 16).match(other).tokens == reusable_tokens(200, EQUAL_TOKENS, 16) == 96


def filled(tokens: list[int], block_tokens: int) -> PrefixCache:
    cache = PrefixCache(1000, block_tokens)
    lock = cache.lock(cache.match(tokens))
    cache.insert(lock, tokens, cache.take(cache.blocks_for(len(tokens))))
    return cache


@given(histories, appendeds, blocks, st.data())
def test_a_live_cache_finds_as_much(history: int, appended: int, block: int, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, history))
    before = list(range(history))
    after = [*before[:position], *(10**6 + each for each in range(min(1, history - position))), *before[position + 1 :]]
    after += range(10**7, 10**7 + appended)
    found = filled(before, block).match(after).tokens
    whole_blocks = history // block * block  # a tail that fills no block is not kept
    assert found == min(rewrite(position, appended, history, block).reusable, whole_blocks)


@given(edits())
def test_each_token_is_found_or_processed(edit: Edit) -> None:
    assert edit.reusable + edit.to_process == edit.prompt
    assert edit.reusable % edit.block_tokens == 0
    assert 0 <= edit.reusable <= min(edit.unchanged, edit.prompt - 1)
    assert edit.unchanged - edit.reusable < edit.block_tokens or edit.reusable + edit.block_tokens >= edit.prompt


@given(histories, appendeds, blocks, st.data())
def test_a_later_edit_never_finds_less(history: int, appended: int, block: int, data: st.DataObject) -> None:
    here, there = sorted(data.draw(st.tuples(*[st.integers(0, history)] * 2)))
    earlier, later = (rewrite(place, appended, history, block) for place in (here, there))
    assert earlier.reusable <= later.reusable <= append(appended, history, block).reusable
    assert earlier.prompt == later.prompt
    assert earlier.time_ns(LAUNCH_BOUND) >= later.time_ns(LAUNCH_BOUND)


@given(histories, st.data())
def test_writing_is_one_step_an_output(history: int, data: st.DataObject) -> None:
    written = data.draw(st.integers(1, min(history, 40)))
    for model in (FIT, LAUNCH_BOUND):
        steps = [step_plan((1, history - 1 + place)) for place in range(written)]
        assert summarise(written, 0, history).write_ns(model) == sum(map(model, steps))


@given(edits(), st.integers(0, 9))
def test_turns_one_by_one(edit: Edit, further: int) -> None:
    first, *others = turns(edit, further)[1 if edit.written else 0 :]
    if edit.written:
        found = reusable_tokens(edit.history, edit.history, edit.block_tokens)
        beside = edit.history + edit.written - 1
        assert turns(edit, further)[0] == Turn(beside, edit.history - found, edit.write_ns())
    assert first == Turn(edit.prompt, edit.to_process, edit.process_ns())
    lengths = list(accumulate([edit.appended] * further, initial=edit.prompt))
    assert [turn.carried for turn in others] == lengths[1:]
    for turn, before in zip(others, lengths, strict=False):
        found = reusable_tokens(turn.carried, before, edit.block_tokens)
        assert turn.processed == turn.carried - found
        assert turn.time_ns == FIT(step_plan((turn.processed, found)))
    assert sum(map(time_ns, turns(edit, 0))) == edit.time_ns()


@given(edits(), edits(), st.sampled_from((carried, time_ns)), st.integers(0, 12))
def test_break_even_is_the_first_turn_that_costs_no_more(edit: Edit, other: Edit, cost: object, within: int) -> None:
    assert callable(cost)
    costs = [[sum(map(cost, turns(each, further))) for further in range(within + 1)] for each in (edit, other)]
    no_more = [further for further, (mine, theirs) in enumerate(zip(*costs, strict=True)) if mine <= theirs]
    assert break_even(edit, other, cost, within=within) == (no_more[0] if no_more else None)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InputError, match=r"^position is 8193; allowed: a whole number from 0 to 8,192$"):
        rewrite(HISTORY_TOKENS + 1)
    with pytest.raises(InputError, match=r"^summary is 101; allowed: a whole number from 1 to 100$"):
        summarise(101, history=100)
    with pytest.raises(InputError, match=r"^summary is 0; "):
        summarise(0)
    with pytest.raises(InputError, match=r"^history is 0; "):
        append(history=0)
    with pytest.raises(InputError, match=rf"^further is {MOST_TURNS + 1}; "):
        turns(append(), MOST_TURNS + 1)
