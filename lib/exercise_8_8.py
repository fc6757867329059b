"""Exercise 8-8: what a faster part saves of a whole task, and what preparation takes back. Source: section 8.6.3."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import Any

from lib.checks import InputError, finite
from lib.exercises import RATIO, Exercise, Kind, Mistake, NumberPart, Quantity, some_of
from lib.whole_task import DECODE_S, DECODE_SPEEDUP, FasterPart

HALVED = 2  # how many times as fast each part gets in part a
LEAST_S, MOST_S, MOST_SPEEDUP = 0.001, 10**6, 1000
_CLEARLY = 0.02  # by what share of the old time a task gains or loses, at least

_PARTS = ("prefill_s", "decode_s", "tools_s")
_ALL = (*_PARTS, "speedup", "preparation_s")
Formula = Callable[[FasterPart], float]
Key = Callable[..., Any]


@dataclass(frozen=True)
class Inputs:
    """What the exercise starts from: the three parts of a task, how many times as fast decode gets, its preparation.

    Times in seconds. Raises InputError for values that make no sense.
    """

    prefill_s: float
    decode_s: float
    tools_s: float
    speedup: float
    preparation_s: float

    def __post_init__(self) -> None:
        for name in _PARTS:
            _keep_between(LEAST_S, MOST_S, name, getattr(self, name))
        _keep_between(1, MOST_SPEEDUP, "speedup", self.speedup)
        _keep_between(0, MOST_S, "preparation_s", self.preparation_s)


def _keep_between(least: float, most: float, name: str, value: float) -> None:
    allowed = f"a number from {least} to {most:,}"
    if finite(name, value, least, allowed) > most:
        raise InputError(name, value, allowed)


BOOK = Inputs(prefill_s=20, decode_s=DECODE_S, tools_s=30, speedup=DECODE_SPEEDUP, preparation_s=8)


def _halvings(formula: Formula) -> Key:
    """What a formula gives for the task with each of its parts halved alone."""

    def key(**parts_s: float) -> tuple[float, ...]:
        task_s = sum(parts_s.values())
        return tuple(formula(FasterPart(task_s, part_s, HALVED)) for part_s in parts_s.values())

    return key


def _one_after_the_other(**parts_s: float) -> tuple[float, ...]:
    saved_s = accumulate(_halvings(lambda case: case.break_even_s)(**parts_s))
    return tuple(sum(parts_s.values()) - so_far for so_far in saved_s)


HALVINGS = NumberPart(
    name="a",
    asked=tuple(
        Quantity(f"task with {part} halved", "s", relative=0.001) for part in ("prefill", "decode", "tools and waiting")
    ),
    cases=lambda inputs: [some_of(inputs, _PARTS)],
    key=_halvings(lambda case: case.new_task_s),
    mistakes=(
        Mistake("the whole part is taken off: half of it stays", _halvings(lambda case: case.task_s - case.part_s)),
        Mistake("one halving follows another: each begins with the task as it was", _one_after_the_other),
        Mistake("only the halved part is given: the task has two more", _halvings(lambda case: case.new_part_s)),
    ),
    first_step="add up the three parts: that is the task; then ask what of it is saved if one of them is halved",
    hint="take half of one part off the whole task, and for the next part begin with the whole task again",
)


def _of(formula: Formula) -> Key:
    """What a formula gives for the task whose decode gets faster."""

    def key(prefill_s: float, decode_s: float, tools_s: float, speedup: float, preparation_s: float) -> float:
        return formula(FasterPart(prefill_s + decode_s + tools_s, decode_s, speedup, preparation_s))

    return key


def _unprepared(case: FasterPart) -> float:
    return case.new_task_s - case.preparation_s


def _preparation_divided(case: FasterPart) -> float:
    return _unprepared(case) + case.preparation_s / case.speedup


def _only_the_rest_saved(case: FasterPart) -> float:
    return case.task_s - case.new_part_s + case.preparation_s


_WRONG_TIMES = {
    "the preparation is left out: it takes time as well": _unprepared,
    "the preparation gets faster, too: only decode does": _preparation_divided,
    "what decode still takes is counted as saved: saved is all the rest of its time": _only_the_rest_saved,
}

NEW_TIME = NumberPart(
    name="b",
    asked=(Quantity("new time of the task", "s", relative=0.001),),
    cases=lambda inputs: [some_of(inputs, _ALL)],
    key=_of(lambda case: case.new_task_s),
    mistakes=(
        *(Mistake(says, _of(time)) for says, time in _WRONG_TIMES.items()),
        Mistake(
            "only decode and its preparation are given: the task has two parts more",
            _of(lambda case: case.new_part_s + case.preparation_s),
        ),
        Mistake(
            "the preparation is taken off: it comes on top",
            _of(lambda case: _unprepared(case) - case.preparation_s),
        ),
    ),
    first_step="write down how long decode takes once it is so many times as fast; the other two parts stay",
    hint="add up the two other parts, the shorter decode and the preparation",
)


def _old_over(time: Formula) -> Key:
    """The speed-up if the new time were this one."""
    return _of(lambda case: case.task_s / time(case))


NET_SPEEDUP = NumberPart(
    name="c",
    asked=(Quantity("net speed-up", RATIO, relative=0.005),),
    cases=lambda inputs: [some_of(inputs, _ALL)],
    key=_of(lambda case: case.net_speedup),
    mistakes=(
        *(Mistake(says, _old_over(time)) for says, time in _WRONG_TIMES.items()),
        Mistake(
            "only decode is compared, with its preparation: asked is the whole task",
            _of(lambda case: case.part_s / (case.new_part_s + case.preparation_s)),
        ),
        Mistake("the speed-up of decode alone is given: the other parts get no faster", _of(lambda case: case.speedup)),
        Mistake(
            "the new time is divided by the old: a speed-up is the old time over the new",
            _of(lambda case: case.new_task_s / case.task_s),
        ),
        Mistake(
            "the preparation is counted in the old time, too: nothing was prepared then",
            _of(lambda case: (case.task_s + case.preparation_s) / case.new_task_s),
        ),
    ),
    first_step="write down how long the whole task takes before and after: these two are compared",
    hint="divide the time of the task as it was by that of b",
)

BREAK_EVEN = NumberPart(
    name="d",
    asked=(Quantity("preparation at which nothing is gained", "s", relative=0.005),),
    cases=lambda inputs: [some_of(inputs, _ALL)],
    key=_of(lambda case: case.break_even_s),
    mistakes=(
        Mistake("what decode still takes is given: asked is what it saves", _of(lambda case: case.new_part_s)),
        Mistake(
            "the preparation of b is taken off: asked is all of it, not what more of it there may be",
            _of(lambda case: case.break_even_s - case.preparation_s),
        ),
        Mistake("all of decode is given: some of it is still there", _of(lambda case: case.part_s)),
        Mistake(
            "the whole task is taken for faster: only decode saves anything",
            _of(lambda case: case.task_s - case.task_s / case.speedup),
        ),
    ),
    first_step="set the new time equal to the old one, with the preparation unknown",
    hint="both times contain the other two parts, which cancel: what is left is what decode saves",
)


def _drawn(random: Random) -> Inputs:
    prefill_s, decode_s, tools_s = random.sample(range(5, 71), 3)
    speedup = random.randint(5, 20) / 2  # not 2: there decode saves as much as it still takes
    most_s = 1.5 * decode_s * (1 - 1 / speedup)  # so that in a third of all draws the task takes longer than before
    return Inputs(prefill_s, decode_s, tools_s, speedup, round(random.uniform(0, most_s), 1))


def _suits(inputs: Inputs) -> bool:
    """Whether the task clearly gains or loses, no input nor answer is the book's, and `check` names each mistake."""
    (net_speedup,) = _answers(NET_SPEEDUP, inputs)
    return (
        abs(net_speedup - 1) >= _CLEARLY
        and all(getattr(inputs, name) != getattr(BOOK, name) for name in _ALL)
        and all(part.judge(inputs, _answers(part, BOOK)).kind is not Kind.RIGHT for part in PARTS)
        and all(
            part.judge_function(inputs, mistake.formula).kind is Kind.MISTAKE
            for part in PARTS
            for mistake in part.mistakes
        )
    )


def _answers(part: NumberPart, inputs: Inputs) -> list[Any]:
    return [part.key(**case) for case in part.cases(inputs)]


PARTS = (HALVINGS, NEW_TIME, NET_SPEEDUP, BREAK_EVEN)
EXERCISE = Exercise(number="8-8", parts=PARTS, drawn=_drawn, suits=_suits)
