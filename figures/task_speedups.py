"""The figure of a whole task whose decode gets faster: what the other parts of the task leave of the gain."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import style
from figures.exploration import Exploration, Question, Readout, Slider
from figures.lines import height_from_zero, label_ends, line_key, ticks_below
from figures.page import box, new_page, write
from figures.words import words
from lib.checks import InputError, finite, share
from lib.clocks import Clock
from lib.units import shown
from lib.whole_task import DECODE_SHARES, DECODE_SPEEDUP, TASK_S, FasterPart, task_speedup

PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT = 302, 34, 116, 316, 146
MOST_SPEEDUP = 100
TICKS: dict[float, str] = {tick: str(tick) for tick in (1, 2, 5, 10, 20, 50, MOST_SPEEDUP)}
PLACES = [MOST_SPEEDUP ** (step / 100) for step in range(101)]  # evenly apart on the axis
ROLES = ("launch", "other", "one")
LOW, MIDDLE, HIGH = DECODE_SHARES
_DOT: dict[str, Any] = {"marker": "o", "markersize": 5, "linestyle": "", "color": style.INK, "clip_on": False}
_CEILING: dict[str, Any] = {"linestyle": (0, (1, 2)), "linewidth": style.LINE_PT}


def task_speedups(
    *,
    speedup: Annotated[float, Slider("decode, times", 1.0, float(MOST_SPEEDUP), 1.0)] = DECODE_SPEEDUP,
    preparation_s: Annotated[float, Slider("preparation", 0.0, 60.0, 1.0, "s")] = 0.0,
    first_share: Annotated[float, Slider("first share", 0.0, 1.0, 0.05)] = LOW,
    second_share: Annotated[float, Slider("second share", 0.0, 1.0, 0.05)] = MIDDLE,
    third_share: Annotated[float, Slider("third share", 0.0, 1.0, 0.05)] = HIGH,
    language: str = "en",
) -> Figure:
    """How many times as fast a task gets, against how many times as fast its decode gets, for three shares of decode.

    `preparation_s` is what decode needs before it can be faster, in a task that took 100 s. Raises InputError for
    values that make no sense. Source: section 8.6.3, figure 8-36.
    """
    tasks = three_tasks(speedup, preparation_s, first_share, second_share, third_share)
    text = words(language, "task-speedup")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, PAGE_PT - 16, text["height"])
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        axes.set_xscale("log")
        axes.set_xlim(1, MOST_SPEEDUP)
        ticks_below(axes, TICKS, text["width"])
        ends = [_draw_curve(axes, task, role) for task, role in zip(tasks, ROLES, strict=True)]
        height_from_zero(axes, max([1, *ends, *(task.ceiling for task in tasks if task.ceiling < math.inf)]))
        axes.axhline(1, color=style.FAINT, linewidth=style.THIN_PT)
        _mark_speedup(axes, tasks, text["chosen"].format(times=f"{speedup:g}"))
        names = {_percent(task.part): end for task, end in zip(tasks, ends, strict=True)} | {text["before"]: 1}
        label_ends(axes, [*names.values()], [*names])
        for bottom, task, role in zip((62, 44, 26), reversed(tasks), reversed(ROLES), strict=True):
            line_key(page, 14, bottom, _told(task, text), role)
        prepared = text["prepared"] if preparation_s else text["nothing"]
        write(page, 14, 8, prepared.format(preparation=_seconds(preparation_s), task=_seconds(TASK_S)))
    return page


def three_tasks(
    speedup: float, preparation_s: float, first_share: float, second_share: float, third_share: float
) -> tuple[FasterPart, ...]:
    """The tasks that the figure's parameters describe, in the order of its shares."""
    allowed = f"a factor from 1 to {MOST_SPEEDUP}"
    if finite("speedup", speedup, 1, allowed) > MOST_SPEEDUP:
        raise InputError("speedup", speedup, allowed)
    shares = {"first_share": first_share, "second_share": second_share, "third_share": third_share}
    parts_s = [TASK_S * share(name, value) for name, value in shares.items()]
    return tuple(FasterPart(TASK_S, part_s, speedup, preparation_s) for part_s in parts_s)


def _draw_curve(axes: Axes, task: FasterPart, role: str) -> float:
    """The curve of one task, and its ceiling dotted if it has one; gives where the curve ends."""
    preparation = task.preparation_s / task.task_s
    gains = [task_speedup(task.part, place, preparation) for place in PLACES]
    axes.plot(PLACES, gains, zorder=3, **style.line(role))
    if task.ceiling < math.inf:
        axes.axhline(task.ceiling, color=style.LINE[role][0], **_CEILING)
    return gains[-1]


def _mark_speedup(axes: Axes, tasks: tuple[FasterPart, ...], name: str) -> None:
    """A line through the speed-up of decode that is looked at, its name above, and a dot on each curve."""
    speedup = tasks[0].speedup
    axes.axvline(speedup, color=style.FAINT, linewidth=style.THIN_PT)
    side = "left" if speedup < MOST_SPEEDUP**0.2 else "right" if speedup > MOST_SPEEDUP**0.8 else "center"
    axes.text(speedup, 1.02, name, transform=axes.get_xaxis_transform(), ha=side, va="bottom")
    axes.plot([speedup] * len(tasks), [task.net_speedup for task in tasks], zorder=4, **_DOT)


def _told(task: FasterPart, text: Mapping[str, str]) -> str:
    now = text["slower"] if task.net_speedup < 1 else text["faster"]
    most = text["most"] if task.ceiling < math.inf else text["none"]
    return (now + most).format(share=_percent(task.part), now=f"{task.net_speedup:.2f}", most=f"{task.ceiling:.2f}")


def _percent(part: float) -> str:
    return f"{100 * part:.4g} %"


def _seconds(time: float) -> str:
    return shown(time, "s", 0 if float(time).is_integer() else 1)


def task_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What becomes of the three tasks at the settings of `task_speedups`."""
    tasks = three_tasks(**settings)
    found = []
    for name, task in zip(("first", "second", "third"), tasks, strict=True):
        found += [
            Readout(f"{name} share: task, times as fast", task.net_speedup, "", 2),
            Readout(f"{name} share: ceiling", task.ceiling if task.ceiling < math.inf else "none", "", 2),
            Readout(f"{name} share: then decode, in %", 100 * task.new_share),
            Readout(f"{name} share: the task takes", task.new_task_s, "s", 1, (Clock.ASSUMED,)),
        ]
    return tuple(found)


LONG_PREPARATION_S = 60.0
FASTER, AS_FAST, SLOWER = "faster", "as fast as before", "slower"


def _ask_about_preparation() -> Question:
    task, fastest = (
        FasterPart(TASK_S, TASK_S * MIDDLE, times, LONG_PREPARATION_S) for times in (DECODE_SPEEDUP, MOST_SPEEDUP)
    )
    assert task.net_speedup < fastest.net_speedup < 1
    return Question(
        text=f"Decode is {_percent(MIDDLE)} of a task of {_seconds(TASK_S)}, and gets {DECODE_SPEEDUP} times as fast. "
        f"But a model must be loaded for it first, which takes {_seconds(LONG_PREPARATION_S)}. What does the task "
        "become?",
        choices=(FASTER, AS_FAST, SLOWER),
        answer=SLOWER,
        reveals={"preparation_s": LONG_PREPARATION_S},
        because=f"It takes {_seconds(task.new_task_s)}, so it is {task.net_speedup:.2f} times as fast. The preparation "
        "is longer than all of decode was: no speed-up earns it back in one task. With decode "
        f"{MOST_SPEEDUP} times as fast it is {fastest.net_speedup:.2f}.",
    )


TASK_SPEEDUP_EXPLORATION = Exploration(
    question=_ask_about_preparation,
    in_view=("speedup", "preparation_s", "second_share"),
    settings={
        "decode 100 times as fast": {"speedup": MOST_SPEEDUP},
        "20 s of preparation": {"preparation_s": 20.0},
        "100 times as fast after 60 s": {"speedup": MOST_SPEEDUP, "preparation_s": LONG_PREPARATION_S},
    },
    readouts=task_readouts,
    why_still=lambda moved, settings: "",
)
