"""Figures of a reader's own engine: what its runs complete, what of it is good, and how near a replay comes to it.

The book has no file of a real engine and shows a made one; `own_engine` draws the same for a file of the reader's.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import line_key, round_above, round_ticks, ticks_below, ticks_left
from figures.page import box, new_page, swatch, write
from figures.words import words
from lib import made_benchmark
from lib.benchmark_file import MADE, MADE_CORRECTNESS, Benchmark, read_benchmarks, read_correctness
from lib.checks import InputError, one_of, seconds, whole
from lib.clocks import Clock
from lib.goodput import Window
from lib.recalibration import Compared, Replay, fitted, replay
from lib.scheduling import Policy, chunked
from lib.service_record import DEADLINE_S
from lib.step_time import NS, Fit
from lib.units import shown

SLUG = "your-engine"
PAGE_PT, BOTTOM_PT, HEIGHT_PT, TITLE_PT = 296, 92, 178, 280
BARS_LEFT_PT, BARS_PT, DOTS_LEFT_PT, DOTS_PT = 30, 160, 250, 156
KEY_LINES_PT, RIGHT_PT = (46, 28, 10), 214
BAR, GAP = 0.36, 0.04
SOURCES, ROLES = ("measured", "replayed"), ("decode", "foreign")
MOST_RUNNING, LEAST_BUDGET, MOST_BUDGET = 24, 256, 8192
MORE_RUNNING = 2 * made_benchmark.POLICY.max_running
# A simulator wrote the file: no clock took its times.
_FITTED = (Clock.FIT,)
_CIRCLE: dict[str, Any] = {
    "linestyle": "", "marker": "o", "markersize": 4, "markerfacecolor": "none", "markeredgecolor": style.LINE["one"][0],
    "markeredgewidth": style.THIN_PT,
}  # fmt: skip
_DIAMOND = _CIRCLE | {"marker": "D", "markersize": 4, "markeredgecolor": style.LINE["launch"][0]}
_TIMES: dict[str, dict[str, Any]] = {"ttft": _CIRCLE, "interval": _DIAMOND}


class Run(StrEnum):
    """The runs of the made file, by their rate of sending."""

    SLOW, MIDDLE, FAST = (f"{rate}/s" for rate in made_benchmark.RATES_PER_S)


@dataclass(frozen=True)
class Served:
    """One run as measured and as replayed, and which of its answers are right, where somebody has told."""

    replay: Replay
    flags: tuple[int, ...] | None


def good_per_s(run: Benchmark, flags: Sequence[int] | None, deadline_s: float) -> float:
    """Right answers in time per second; where nobody told which are right, answers in time."""
    if flags is None:
        return run.in_time(deadline_s) / run.observed_s
    return run.with_correctness(flags).goodput(deadline_s)


def own_windows(path: Path | str, correctness: Sequence[Sequence[int]]) -> tuple[Window, ...]:
    """The runs of a benchmark file as windows of outcomes, with one list of 1 (right) and 0 (wrong) for each run.

    Raises InputError as `read_benchmark` and `with_correctness`, and for another number of lists.
    """
    runs = read_benchmarks(path)
    return tuple(run.with_correctness(flags) for run, flags in zip(runs, _flags(runs, correctness), strict=True))


def own_engine(
    path: Path | str,
    policy: Policy,
    correctness: Sequence[Sequence[int]] | None = None,
    *,
    replayed_with: Policy | None = None,
    fitted_on: int = 0,
    compared: int = 0,
    deadline_s: float = float(DEADLINE_S),
    language: str = "en",
) -> Figure:
    """The figure `your-engine` for a benchmark file of one's own, whose engine ran under this policy.

    The step time is fitted on one run (by number, from 0), and all are replayed with it under `replayed_with`, by
    default the engine's own policy. Without `correctness` bars count answers in time, right or wrong. A file without
    start times gives neither fit nor replay: then only what was measured is drawn. Raises InputError for a file or a
    run that makes no sense, and for one that does not tell the step time.
    """
    runs = read_benchmarks(path)
    flags = [None] * len(runs) if correctness is None else _flags(runs, correctness)
    engine, fits = _policy("policy", policy), runs[whole("fitted_on", fitted_on, at_most=len(runs) - 1)]
    under = engine if replayed_with is None else _policy("replayed_with", replayed_with)
    at, deadline = (
        whole("compared", compared, at_most=len(runs) - 1),
        seconds("deadline_s", deadline_s, above_zero=True),
    )
    if not all(run.has_start_times for run in runs):
        return _draw_measured(runs, flags, deadline, language)
    fit = fitted(fits, engine).fit
    served = [Served(replay(run, under, fit), known) for run, known in zip(runs, flags, strict=True)]
    return _draw(served, at, fit, deadline, language)


def your_engine(
    *,
    max_running: Annotated[int, Slider("running at most", 1, MOST_RUNNING, 1)] = made_benchmark.POLICY.max_running,
    token_budget: Annotated[int, Slider("token budget", LEAST_BUDGET, MOST_BUDGET, 256)] = made_benchmark.BUDGET,
    deadline_s: Annotated[float, Slider("deadline", 1.0, 8.0, 0.5, "s")] = float(DEADLINE_S),
    compared: Annotated[Run, Choice("dots show", tuple(Run))] = Run.FAST,
    fitted_on: Annotated[Run, Choice("fit from", tuple(Run))] = Run.MIDDLE,
    language: str = "en",
) -> Figure:
    """The runs of the made benchmark file, measured and replayed: good answers a second, and times request by request.

    The step time is fitted on one run, under the limits with which the file was made; all runs are replayed under the
    limits that are chosen. Raises InputError for values that make no sense. Source: section 8.6.2.
    """
    served, fit = served_at(max_running, token_budget, fitted_on)
    at = list(Run).index(one_of("compared", compared, Run))
    return _draw(served, at, fit, seconds("deadline_s", deadline_s, above_zero=True), language)


@cache
def _made() -> tuple[Benchmark, ...]:
    return read_benchmarks(MADE)


@lru_cache(len(Run))
def _fit(fitted_on: Run) -> Fit:
    return fitted(_made()[list(Run).index(fitted_on)], made_benchmark.POLICY).fit


@lru_cache(16)
def _served(policy: Policy, fit: Fit) -> tuple[Served, ...]:
    flags = read_correctness(MADE_CORRECTNESS)
    return tuple(Served(replay(run, policy, fit), flags) for run in _made())


def served_at(max_running: int, token_budget: int, fitted_on: str) -> tuple[tuple[Served, ...], Fit]:
    """The runs of the made file, replayed under these limits, and the fit from one of them."""
    rows = whole("max_running", max_running, at_least=1, at_most=MOST_RUNNING)
    budget = whole("token_budget", token_budget, at_least=LEAST_BUDGET, at_most=MOST_BUDGET)
    fit = _fit(one_of("fitted_on", fitted_on, Run))
    return _served(chunked(rows, budget, budget), fit), fit


def _flags(runs: Sequence[Benchmark], correctness: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    if isinstance(correctness, str) or not isinstance(correctness, Sequence) or len(correctness) != len(runs):
        allowed = f"a list of 1 and 0 for each of the {len(runs)} runs"
        raise InputError("correctness", correctness, allowed)
    for number, flags in enumerate(correctness):
        if isinstance(flags, str) or not isinstance(flags, Sequence):
            raise InputError(f"correctness, run {number}", flags, "a sequence of 1 (right) and 0 (wrong)")
    return [tuple(flags) for flags in correctness]


def _policy(parameter: str, value: object) -> Policy:
    if not isinstance(value, Policy):
        raise InputError(parameter, value, "a Policy, such as chunked(8, 2048, 2048)")
    return value


def _draw(served: Sequence[Served], compared: int, fit: Fit, deadline_s: float, language: str) -> Figure:
    text = words(language, SLUG)
    pairs = [(each.replay.measured, each.replay.predicted) for each in served]
    with style.in_book_style():
        page = _page_with_bars(pairs, [each.flags for each in served], deadline_s, text)
        run = _names([measured for measured, _ in pairs], text)[compared]
        write(page, RIGHT_PT, TITLE_PT, text["dots"].format(run=run))
        dots = box(page, DOTS_LEFT_PT, BOTTOM_PT, DOTS_PT, HEIGHT_PT)
        _draw_times(dots, served[compared].replay.compared, text)
        for height, (name, look) in zip(KEY_LINES_PT, _TIMES.items(), strict=False):
            where = [(RIGHT_PT + 5) / style.WIDTH_PT], [(height + 4) / PAGE_PT]
            page.add_artist(Line2D(*where, transform=page.transFigure, **look))
            write(page, RIGHT_PT + 16, height, text[name])
        write(page, RIGHT_PT, KEY_LINES_PT[2], text["fit"].format(**_terms(fit)))
    return page


def _draw_measured(
    runs: Sequence[Benchmark], flags: Sequence[tuple[int, ...] | None], deadline_s: float, language: str
) -> Figure:
    """The bars of what was measured, and a sentence that says why there is no more."""
    text = words(language, SLUG)
    with style.in_book_style():
        page = _page_with_bars([(run,) for run in runs], flags, deadline_s, text)
        write(page, RIGHT_PT, BOTTOM_PT + HEIGHT_PT, text["no_starts"], va="top", linespacing=1.5)
    return page


def _page_with_bars(
    runs: Sequence[Sequence[Benchmark]],
    flags: Sequence[tuple[int, ...] | None],
    deadline_s: float,
    text: Mapping[str, str],
) -> Figure:
    """A page with the bars on its left and their key: of each run as measured, and as replayed where it is."""
    page = new_page(PAGE_PT)
    write(page, 14, TITLE_PT, text["per_s"].format(deadline=f"{deadline_s:g}"))
    bars = box(page, BARS_LEFT_PT, BOTTOM_PT, BARS_PT, HEIGHT_PT)
    _draw_bars(bars, runs, flags, deadline_s)
    ticks_below(bars, dict(enumerate(_names([each[0] for each in runs], text))))
    counted = text["good" if flags[0] is not None else "in_time"]
    key = [*zip(SOURCES, ROLES, strict=True)][: len(runs[0])]
    for height, (source, role) in zip(KEY_LINES_PT, key, strict=False):
        swatch(page, 14, height, text[source].format(counted=counted), role)
    line_key(page, 14, KEY_LINES_PT[len(key)], text["completed"], "weights")
    return page


def _terms(fit: Fit) -> dict[str, str]:
    step, token = shown(fit.fixed_ns / NS, "ms", 2), f"{fit.per_new_token_ns / 1e3:.1f} µs"
    return {"step": step, "token": token, "pair": f"{fit.per_causal_pair_ns} ns"}


def _names(runs: Sequence[Benchmark], text: Mapping[str, str]) -> list[str]:
    """What each run is called: its rate, or its number where the file does not say, or says the same of two."""
    rates = [run.request_rate for run in runs]
    if None in rates or len(set(rates)) < len(rates):
        return [text["run"].format(number=number) for number in range(len(rates))]
    return [text["at_once"] if rate == math.inf else f"{rate:g}/s" for rate in rates]


def _draw_bars(
    axes: Axes, runs: Sequence[Sequence[Benchmark]], flags: Sequence[tuple[int, ...] | None], deadline_s: float
) -> None:
    """Of each run a bar as measured, and one as replayed: what is good, and in outline all that is completed."""
    highest = max(run.completion_throughput for each in runs for run in each)
    end = round_above(1.02 * highest, (1, 1.5, 2, 3, 4, 5, 6, 8, 10))
    axes.set(xlim=(-0.5, len(runs) - 0.5), ylim=(0, end))
    ticks_left(axes, {tick: f"{tick:g}" for tick in round_ticks(end)})
    for place, (each, known) in enumerate(zip(runs, flags, strict=True)):
        begin = place - len(each) * (BAR + GAP) / 2 + GAP / 2
        for role, run in zip(ROLES, each, strict=False):
            good, all_of_it = good_per_s(run, known, deadline_s), run.completion_throughput
            beyond = begin + BAR
            corners = [(begin, 0), (begin, good), (beyond, good), (beyond, 0)]
            axes.add_collection(PolyCollection([corners], **style.look(role)))
            outline = [good, all_of_it, all_of_it, good]
            axes.plot([begin, begin, beyond, beyond], outline, clip_on=False, **style.line("weights"))
            begin = beyond + GAP


def _draw_times(axes: Axes, compared: Sequence[Compared], text: Mapping[str, str]) -> None:
    """Each request's times, replayed against measured; on the line both are the same."""
    times = {
        "ttft": [(one.measured_ttft_s, one.predicted_ttft_s) for one in compared],
        "interval": [
            (one.measured_interval_s, one.predicted_interval_s)
            for one in compared
            if one.measured_interval_s and one.predicted_interval_s
        ],
    }
    # Powers on plain axes: matplotlib's logarithmic ones take longer to draw.
    powers = {name: [[math.log10(time) for time in pair] for pair in pairs] for name, pairs in times.items()}
    values = [power for pairs in powers.values() for pair in pairs for power in pair]
    limits = [math.floor(2 * min(values)) / 2, math.ceil(max(values))]
    axes.set(xlim=limits, ylim=limits)
    decades: dict[float, str] = {
        power: f"{10.0**power:g}" for power in range(math.ceil(limits[0]), math.ceil(limits[1]) + 1)
    }
    ticks_below(axes, decades, text["measured_s"])
    ticks_left(axes, decades)
    axes.plot(limits, limits, color=style.FAINT, linewidth=style.THIN_PT)
    for name, pairs in powers.items():
        if pairs:
            axes.plot(*zip(*pairs, strict=True), clip_on=False, **_TIMES[name])


def engine_readouts(
    *, max_running: int, token_budget: int, deadline_s: float, compared: str, fitted_on: str
) -> tuple[Readout, ...]:
    """The fit, how near the replay comes, and what it says of the run, at the settings of `your_engine`."""
    served, fit = served_at(max_running, token_budget, fitted_on)
    one = served[list(Run).index(one_of("compared", compared, Run))]
    assert one.flags is not None
    was, is_said = (run.with_correctness(one.flags) for run in (one.replay.measured, one.replay.predicted))
    interval_error = one.replay.interval_error
    assert interval_error is not None
    return (
        Readout("a step, whatever is in it", fit.fixed_ns / NS, "ms", 2, _FITTED),
        Readout("a new token", fit.per_new_token_ns / NS, "us", 1, _FITTED),
        Readout("a query-key pair", fit.per_causal_pair_ns / NS, "ns", 0, _FITTED),
        Readout("first tokens: difference", f"{one.replay.ttft_error:.1%}"),
        Readout("intervals: difference", f"{interval_error:.1%}"),
        Readout("completed, in the file", was.completion_throughput, "/s", 2),
        Readout("completed, in the replay", is_said.completion_throughput, "/s", 2),
        Readout("right and in time, in the file", was.goodput(deadline_s), "/s", 2),
        Readout("right and in time, in the replay", is_said.goodput(deadline_s), "/s", 2),
        Readout("longest request, in the file", was.longest_s(), "s", 2, (Clock.FIT,)),
        Readout("longest request, in the replay", is_said.longest_s(), "s", 2, _FITTED),
    )


def _fast(max_running: int) -> Window:
    served, _ = served_at(max_running, made_benchmark.BUDGET, Run.MIDDLE)
    flags = served[-1].flags
    assert flags is not None
    return served[-1].replay.predicted.with_correctness(flags)


def _ask_for_more_rows() -> Question:
    rows = made_benchmark.POLICY.max_running
    now, more = _fast(rows), _fast(MORE_RUNNING)
    good, then = now.goodput(DEADLINE_S), more.goodput(DEADLINE_S)
    assert now.completion_throughput < more.completion_throughput < 1.1 * now.completion_throughput and then < good
    answer = "fewer"
    return Question(
        text=f"Requests come at {Run.FAST}; at most {rows} run at once. {now.completion_throughput:.2f} a second are "
        f"completed, {good:.2f} of them right and within {DEADLINE_S} s. Let {MORE_RUNNING} run at once: how many good "
        "answers a second then?",
        choices=("twice as many", "as many", answer),
        answer=answer,
        reveals={"max_running": MORE_RUNNING},
        because=f"{then:.2f} a second in the replay. At {rows} it meets the file; now it completes "
        f"{more.completion_throughput:.2f} a second, only "
        f"{more.completion_throughput / now.completion_throughput - 1:.0%} more: the card was busy already. More "
        "requests share each step, so each takes longer, and nobody is done in time.",
    )


def _why_engine_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "deadline_s":
        return "No answer took longer than the one deadline and less than the other."
    if moved == "max_running":
        return "So many never run at once: no request waits for a row, before and now."
    return ""


ENGINE_EXPLORATION = Exploration(
    question=_ask_for_more_rows,
    in_view=("max_running", "token_budget", "deadline_s", "compared"),
    settings={
        f"{MORE_RUNNING} at once": {"max_running": MORE_RUNNING},
        "half as many at once": {"max_running": made_benchmark.POLICY.max_running // 2},
        "small budget": {"token_budget": 2 * LEAST_BUDGET},
    },
    readouts=engine_readouts,
    why_still=_why_engine_still,
)
