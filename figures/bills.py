"""The figure of what each of four requests spent its time on."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures import machine, style
from figures.exploration import Choice, Exploration, Question, Readout
from figures.lines import ticks_below, ticks_left
from figures.page import box, new_page, write
from figures.schedules import (
    LANES_WIDTH_PT,
    LEFT_PT,
    ChosenPolicy,
    Chunk,
    MaxRunning,
    axis_end,
    in_ms,
    place_of,
    rows_for_four,
    time_ticks,
    whole_ms,
)
from figures.words import words
from lib import four_requests as example
from lib.bill import Account, Bill, bill
from lib.checks import one_of
from lib.clocks import Clock
from lib.fast_forward import simulate
from lib.four_requests import Batching
from lib.schedule import Schedule
from lib.step_time import NS

PAGE_PT = 190
BAR_PT, PITCH_PT = 15, 24
Part = tuple[str, str, int]  # account, name of the other whose prompt it is, ns
Corners = list[tuple[float, float]]
# The axis beside the longest bar, which leaves room for its length in figures.
ROOM = 1.2
# A name needs so much room inside its part of a bar.
NAME_PT = 20
# Nobody makes drafts or calls a tool here.
_ACCOUNTS = [account for account in Account if account not in (Account.DRAFTS, Account.TOOL)]
# Decodes of others look like decodes, prompts of others like all that is foreign.
OTHERS_PROMPTS = "prompts of others"
_LOOK: dict[str, dict[str, Any]] = {
    Account.QUEUE: style.look("queue"),
    Account.OWN_PREFILL: style.look("prefill"),
    Account.OWN_DECODE: style.look("decode"),
    Account.OTHERS_DECODE: style.look("decode") | {"hatch": "||||"},
    OTHERS_PROMPTS: style.look("foreign"),
}
# Decodes of others add so little that they are never seen.
_IN_KEY = [account for account in _LOOK if account != Account.OTHERS_DECODE]
_OVER_LINES = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}


def the_bill(
    *,
    policy: ChosenPolicy = Batching.CONTINUOUS,
    request: Annotated[str, Choice("read the bill of", example.NAMES)] = "r0",
    chunk: Chunk = example.CHUNK,
    max_running: MaxRunning = example.MAX_RUNNING,
    language: str = "en",
) -> Figure:
    """What each of the four requests spent its time on, from its arrival to its last output, one bar a request.

    Raises InputError for values that make no sense. Source: sections 8.1.1 and 8.2.2.
    """
    schedule = _schedule(policy, chunk, max_running)
    chosen = one_of("request", request, example.NAMES)
    text = words(language, "the-bill")
    bills = {name: bill(schedule, place_of(schedule, name)) for name in example.NAMES}
    end = axis_end(ROOM * in_ms(max(one.total_ns for one in bills.values())))
    height = len(bills) * PITCH_PT
    with style.in_book_style():
        page = new_page(PAGE_PT)
        write(page, 14, PAGE_PT - 16, text["from_arrival"])
        bars = box(page, LEFT_PT, 66, LANES_WIDTH_PT, height)
        bars.set(xlim=(0, end), ylim=(height, 0))
        ticks_below(bars, time_ticks(end))
        ticks_left(bars, {})
        boxes: dict[str, list[Corners]] = {account: [] for account in _LOOK}
        for line, (name, one) in enumerate(bills.items()):
            middle = (line + 0.5) * PITCH_PT
            _name_bar(bars, middle, name, read=name == chosen)
            _place_bill(bars, middle, _parts(schedule, one), boxes)
            bars.text(in_ms(one.total_ns) + 0.01 * end, middle, whole_ms(one.total_ns), va="center")
        for account, corners in boxes.items():
            bars.add_collection(PolyCollection(corners, **_LOOK[account]), autolim=False)
        _draw_key(page, text)
    return page


def _schedule(policy: Batching, chunk: int, max_running: int) -> Schedule:
    rows = rows_for_four(max_running)
    return simulate(example.four_requests(), example.policy_of(policy, max_running=rows, chunk=chunk), machine.fit())


def bill_readouts(*, request: str, **settings: Any) -> tuple[Readout, ...]:
    """The bill of one request, at the settings of `the_bill`."""
    schedule = _schedule(**settings)
    paid = bill(schedule, place_of(schedule, one_of("request", request, example.NAMES)))
    prompts = _others_prompts(schedule, paid)
    dearest = max(prompts, key=lambda name: prompts[name], default="")
    amounts = {account.value: paid.booked_ns.get(account, 0) for account in _ACCOUNTS}
    amounts |= {OTHERS_PROMPTS: sum(prompts.values()), "the dearest of these": prompts.get(dearest, 0)}
    return (
        *(Readout(name, amount / NS, "ms", 1, (Clock.FIT,)) for name, amount in amounts.items()),
        Readout("which is that of", dearest or "nobody"),
        Readout("sum, to the nanosecond", paid.total_ns / NS, "ns", 0, (Clock.FIT,)),
    )


def _parts(schedule: Schedule, paid: Bill) -> list[Part]:
    """The parts of a bill in the order of its bar."""
    own = [(account.value, "", paid.booked_ns.get(account, 0)) for account in _ACCOUNTS]
    return own + [(OTHERS_PROMPTS, name, amount) for name, amount in _others_prompts(schedule, paid).items()]


def _others_prompts(schedule: Schedule, paid: Bill) -> dict[str, int]:
    """What the prompts of others cost, in ns, by the name of each."""
    return {
        schedule.requests[account].name: amount
        for account, amount in sorted(paid.booked_ns.items(), key=lambda item: str(item[0]))
        if not isinstance(account, Account)
    }


def _ask_what_r2_costs() -> Question:
    runs = {
        policy: simulate(example.four_requests(), example.policy_of(policy))
        for policy in (Batching.CONTINUOUS, Batching.CHUNKED)
    }
    paid, in_chunks = (_r0_pays_for_r2(run) for run in runs.values())
    run = runs[Batching.CONTINUOUS]
    longest = run.longest_interval()
    assert longest
    total = bill(run, place_of(run, "r0")).total_ns
    return Question(
        text=f"Under continuous batching r0 takes {whole_ms(total)}; its longest interval is "
        f"{whole_ms(longest.length_ns)}, because r2's prompt is in that step. How much of its time did r2's prompt "
        "cost r0?",
        choices=("nothing", whole_ms(longest.length_ns - paid), whole_ms(paid), whole_ms(longest.length_ns)),
        answer=whole_ms(paid),
        reveals={"policy": Batching.CHUNKED},
        because=f"The step of {whole_ms(longest.length_ns)} gave r0 an output too, and alone that would have cost "
        f"{whole_ms(longest.length_ns - paid)}. In chunks of {example.CHUNK} r0 pays {whole_ms(in_chunks)} for the "
        "same prompt: they spread the cost over several intervals and do not lower it.",
    )


def _r0_pays_for_r2(run: Schedule) -> int:
    return _others_prompts(run, bill(run, place_of(run, "r0")))["r2"]


def _why_bill_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "chunk" and settings["policy"] != Batching.CHUNKED:
        return "Only chunked prefill limits the tokens of a step; here whole prompts are computed."
    if moved == "chunk":
        return "No prompt is cut differently: its length or the token budget limits each part first."
    if moved == "max_running":
        at_once = _most_at_once(_schedule(settings["policy"], settings["chunk"], settings["max_running"]))
        return f"Never more than {at_once} of the four run at once, so a further row stays idle."
    return ""


def _most_at_once(schedule: Schedule) -> int:
    """The most requests that are running, between their first and their last step, in any step."""
    spans = list(zip(schedule.started_step, schedule.last_output_step, strict=True))
    return max(sum(first <= step <= last for first, last in spans) for step in schedule.started_step)


BILL_EXPLORATION = Exploration(
    question=_ask_what_r2_costs,
    in_view=("policy", "request", "chunk", "max_running"),
    settings={
        "a fixed batch": {"policy": Batching.FIXED},
        "chunks of 256": {"policy": Batching.CHUNKED, "chunk": 256},
        "r2's own bill": {"policy": Batching.CHUNKED, "request": "r2"},
    },
    readouts=bill_readouts,
    why_still=_why_bill_still,
)


def _name_bar(axes: Axes, middle: float, name: str, read: bool) -> None:
    """The request's name beside its bar, and a mark if it is the one whose bill is read out."""
    beside = axes.get_yaxis_transform()
    axes.text(-0.02, middle, name, transform=beside, ha="right", va="center")
    if read:
        axes.plot([-0.075], [middle], ">", transform=beside, color=style.LIMIT, markersize=6, clip_on=False)


def _place_bill(axes: Axes, middle: float, parts: Iterable[Part], boxes: Mapping[str, list[Corners]]) -> None:
    """The parts of one bill in a row, each prompt of another with its name where there is room for it."""
    start, low, high = 0.0, middle - BAR_PT / 2, middle + BAR_PT / 2
    for account, name, amount in parts:
        length = in_ms(amount)
        if amount:
            end = start + length
            boxes[account].append([(start, low), (end, low), (end, high), (start, high)])
        if name and length / axes.get_xlim()[1] * LANES_WIDTH_PT >= NAME_PT:
            axes.text(start + length / 2, middle, name, ha="center", va="center", bbox=_OVER_LINES)
        start += length


def _draw_key(page: Figure, text: Mapping[str, str]) -> None:
    width, height = page.get_size_inches() * 72
    for place, account in enumerate(_IN_KEY):
        left, bottom = 14 + 130 * (place % 3), 28 - 18 * (place // 3)
        patch = Rectangle(
            (left / width, bottom / height), 14 / width, 9 / height, transform=page.transFigure, **_LOOK[account]
        )
        page.add_artist(patch)
        write(page, left + 20, bottom, text[account.replace(" ", "_")])
