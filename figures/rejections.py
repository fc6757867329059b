"""Figures of rejection sampling: one position as a tree whose branches are as wide as they are likely."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby
from typing import Annotated, Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import ticks_below, ticks_left
from figures.page import box, new_page, write
from figures.words import words
from lib.checks import one_of, share, whole
from lib.rejection_sampling import (
    ALWAYS_A,
    ALWAYS_B,
    TARGET,
    A,
    Distribution,
    Outcome,
    Rule,
    Sampled,
    acceptance_rate,
    output_law,
    position_law,
    sample_positions,
)

PAGE_PT, LEFT_PT, AXIS_PT, WIDTH_PT, ROW_PT = 266, 104, 40, 300, 18
# The lower edges of the rows, above the axis: those of the tree, then those of what all branches come to.
ROWS_PT, TOLD_PT, RULE_PT = (176, 152, 128, 74, 48, 22), 104, 206
# How much room a letter takes, and a text on either side.
NARROW_PT, MARGIN_PT = 5, 3
NAMES, VERDICTS = "AB", ("rejected", "accepted")
RIGHT, WRONG = "from max(0, p − q)", "from p (wrong)"
REPLACED = {RIGHT: Rule.RESIDUAL, WRONG: Rule.FROM_TARGET}
SAMPLES = (10, 100, 1000, 10_000, 100_000)
MOST_SEED = 2**32
# Controls stand at decimals; the law is exact for the fractions that these are.
FINEST = 10**6
# Where the parts have no larger denominator they are told as fractions.
LARGEST_DENOMINATOR = 16
TICKS = {place / 4: str(Fraction(place, 4)) for place in range(5)}
_LOOK: dict[str, dict[str, Any]] = {
    name: {"facecolor": style.REQUEST[name], "edgecolor": style.INK, "linewidth": style.THIN_PT} for name in NAMES
} | {
    "accepted": {"facecolor": style.PAPER, "edgecolor": style.INK, "linewidth": style.THIN_PT},
    "rejected": style.look("queue"),
}
_BEHIND = {"edgecolor": "none", "pad": 0.5}
_LIMIT_LINE: dict[str, Any] = {"color": style.LIMIT, "linestyle": (0, (4, 2)), "linewidth": style.LINE_PT, "zorder": 2}

Tell = Callable[[Fraction], str]


class Part(NamedTuple):
    """A part of a row: its look, and where it begins and how wide it is, as probabilities."""

    look: str
    start: Fraction
    chance: Fraction


@dataclass(frozen=True)
class Case:
    """A target and a draft over the tokens A and B, what replaces a rejected draft, and draws that follow from it."""

    target: tuple[Fraction, Fraction]
    draft: tuple[Fraction, Fraction]
    rule: Rule
    sampled: Sampled

    @property
    def leaves(self) -> list[tuple[Outcome, Fraction]]:
        """The outcomes from left to right: all that output A stand left of those that output B."""
        law = position_law(self.target, self.draft, self.rule)
        return [(outcome, Fraction(law[outcome])) for outcome in sorted(law, key=_place)]

    @property
    def a_out(self) -> Fraction:
        return Fraction(output_law(self.target, self.draft, self.rule)[A])

    @property
    def sampled_a(self) -> Fraction:
        return Fraction(self.sampled.outputs[A], self.sampled.positions)


def _place(outcome: Outcome) -> tuple[int, bool, int | None]:
    """A accepted, A rejected, B rejected, B accepted: what is rejected stands between what p and q give to A."""
    return outcome.drafted, outcome.accepted != (outcome.drafted == A), outcome.output


def draft_and_target(
    *,
    p_a: Annotated[float, Slider("target, p(A)", 0.0, 1.0, 0.01)] = float(TARGET[A]),
    q_a: Annotated[float, Slider("draft, q(A)", 0.0, 1.0, 0.01)] = float(ALWAYS_A[A]),
    replaced: Annotated[str, Choice("rejected: draw", tuple(REPLACED))] = RIGHT,
    samples: Annotated[int, Choice("samples", SAMPLES)] = 1000,
    seed: Annotated[int, Slider("seed", 1, 20, 1)] = 1,
    slug: str = "draft-always-a",
    language: str = "en",
) -> Figure:
    """What becomes of a drafted token, and the law of the token that comes out beside the target's and beside draws.

    `slug` says under which name its labels stand. Raises InputError for values that make no sense. Source: section
    8.5.1, figures 8-30 and 8-31.
    """
    case = case_of(p_a, q_a, replaced, samples, seed)
    text = words(language, slug)
    told = _told_as(case)
    with style.in_book_style():
        page = new_page(PAGE_PT)
        axes = box(page, LEFT_PT, AXIS_PT, WIDTH_PT, PAGE_PT - AXIS_PT)
        axes.set(xlim=(0, 1), ylim=(0, PAGE_PT - AXIS_PT))
        ticks_left(axes, {})
        ticks_below(axes, TICKS, text["probability"])
        rows = rows_of(case)
        for (key, parts), bottom in zip(rows.items(), ROWS_PT, strict=True):
            name = text[key].format(samples=f"{case.sampled.positions:,}")
            write(page, 14, AXIS_PT + bottom + ROW_PT / 2, name, va="center_baseline")
            _write_in(axes, bottom, parts, text, _as_decimal if key == "sampled" else told)
        _draw_parts(axes, rows)
        axes.plot([float(case.target[A])] * 2, [ROWS_PT[-1] - 4, TOLD_PT - 4], **_LIMIT_LINE)
        verdict = text["same" if case.a_out == case.target[A] else "other"]
        write(page, LEFT_PT, AXIS_PT + TOLD_PT, verdict.format(out=told(case.a_out), wanted=told(case.target[A])))
        write(page, LEFT_PT, AXIS_PT + RULE_PT, text[case.rule.name.lower()])
    return page


def case_of(p_a: float, q_a: float, replaced: str, samples: int, seed: int) -> Case:
    """What the figure's parameters describe."""
    p, q = (Fraction(share(name, value)).limit_denominator(FINEST) for name, value in (("p_a", p_a), ("q_a", q_a)))
    target, draft = (p, 1 - p), (q, 1 - q)
    rule = REPLACED[one_of("replaced", replaced, REPLACED)]
    count, start = one_of("samples", samples, SAMPLES), whole("seed", seed, at_most=MOST_SEED)
    return Case(target, draft, rule, drawn(target, draft, count, start, rule))


# The read-outs and the picture show the same draws.
drawn = lru_cache(maxsize=1)(sample_positions)


def rows_of(case: Case) -> dict[str, list[Part]]:
    """The rows from top to bottom: what is drafted, how it is judged, what is output; then sums over all branches."""
    tree = {key: _row_of_tree(case, known) for known, key in enumerate(("drafted", "judged", "output"), start=1)}
    sums = {"law": case.a_out, "target": case.target[A], "sampled": case.sampled_a}
    return tree | {key: _split_at(place) for key, place in sums.items()}


def _row_of_tree(case: Case, known: int) -> list[Part]:
    """A part for each way that the first so many entries of the outcome can be."""
    parts, start = list[Part](), Fraction(0)
    for way, leaves in groupby(case.leaves, key=lambda leaf: leaf[0][:known]):
        chance = sum((each for _, each in leaves), Fraction(0))
        parts.append(Part(_look_of(*way), start, chance))
        start += chance
    return parts


def _look_of(drafted: int, accepted: bool | None = None, output: int | None = None) -> str:
    if accepted is None:
        return NAMES[drafted]
    return NAMES[output] if output is not None else VERDICTS[accepted]


def _split_at(place: Fraction) -> list[Part]:
    return [part for part in (Part("A", Fraction(0), place), Part("B", place, 1 - place)) if part.chance]


def _draw_parts(axes: Axes, rows: Mapping[str, list[Part]]) -> None:
    corners: dict[str, list[list[tuple[float, float]]]] = {look: [] for look in _LOOK}
    for parts, bottom in zip(rows.values(), ROWS_PT, strict=True):
        for part in parts:
            left, right, top = float(part.start), float(part.start + part.chance), bottom + ROW_PT
            corners[part.look].append([(left, bottom), (right, bottom), (right, top), (left, top)])
    for look, boxes in corners.items():
        axes.add_collection(PolyCollection(boxes, clip_on=False, **_LOOK[look]), autolim=False)


def _write_in(axes: Axes, bottom: float, parts: list[Part], text: Mapping[str, str], told: Tell) -> None:
    """What each part is and how likely, as far as there is room for it."""
    for part in parts:
        number, name = told(part.chance), part.look if part.look in NAMES else text[part.look]
        longest = next((told_of for told_of in (f"{name}  {number}", name) if _fits(told_of, part.chance)), "")
        middle = float(part.start + part.chance / 2)
        behind = {"facecolor": style.PAPER if part.look == "rejected" else _LOOK[part.look]["facecolor"]}
        axes.text(middle, bottom + ROW_PT / 2, longest, ha="center", va="center_baseline", bbox=_BEHIND | behind)


def _fits(told: str, chance: Fraction) -> bool:
    wide = sum(character > "\u2e7f" for character in told)
    return wide * style.TEXT_PT + (len(told) - wide) * NARROW_PT + 2 * MARGIN_PT <= chance * WIDTH_PT


def _told_as(case: Case) -> Tell:
    """As fractions where all that the law and both distributions have are short ones."""
    chances = [case.a_out, *case.target, *case.draft, *(chance for _, chance in case.leaves)]
    short = all(chance.denominator <= LARGEST_DENOMINATOR for chance in chances)
    return str if short else _as_decimal


def _as_decimal(chance: Fraction) -> str:
    return f"{float(chance):.4g}"


def rejection_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What is kept and what comes out, exactly and drawn, at the settings of `draft_and_target`."""
    case = case_of(**{name: value for name, value in settings.items() if name != "slug"})
    target, draft = case.target, case.draft
    wrong = output_law(target, draft, Rule.FROM_TARGET)
    return (
        Readout("drafts kept", float(acceptance_rate(target, draft)), "", 4),
        Readout("refused of 100 drafts", _refused(target, draft), "", 1),
        Readout("P(A) that comes out", float(case.a_out), "", 4),
        Readout("P(A) if replaced from p (wrong)", float(wrong[A]), "", 4),
        Readout("share of A, drawn", float(case.sampled_a), "", 4),
        Readout("drafts kept, drawn", case.sampled.accepted / case.sampled.positions, "", 4),
        Readout("refused of 100, draft always A", _refused(target, ALWAYS_A), "", 1),
        Readout("refused of 100, draft always B", _refused(target, ALWAYS_B), "", 1),
    )


def _refused(target: Distribution, draft: Distribution) -> float:
    """Of a hundred drafts, expected."""
    return float(100 * (1 - acceptance_rate(target, draft)))


def _ask_for_bias() -> Question:
    kept = acceptance_rate(TARGET, ALWAYS_A)
    outputs = dict(zip(NAMES, output_law(TARGET, ALWAYS_A), strict=True))
    assert tuple(outputs.values()) == TARGET
    wrong = output_law(TARGET, ALWAYS_A, Rule.FROM_TARGET)[A]
    true_to_it = "no, it follows the target"
    return Question(
        text=f"The target gives A in {TARGET[A]} of all cases and B in the rest. The draft is always A; each is "
        "judged, and replaced if rejected. Does the text that comes out lean to one side?",
        choices=("yes, too many A", "yes, too many B", true_to_it),
        answer=true_to_it,
        reveals={"samples": SAMPLES[-1]},
        because=f"A is accepted with p / q = {kept}; else B comes, the only token of which q gives too little. So A "
        f"comes out with {outputs['A']} and B with {outputs['B']}, from a draft that never says B. Drawn from p, "
        f"the replacement would be A once more now and then: P(A) would be {wrong}.",
    )


def _ask_which_is_refused_less() -> Question:
    of_a, of_b = (f"{_refused(TARGET, draft):g}" for draft in (ALWAYS_A, ALWAYS_B))
    law = output_law(TARGET, ALWAYS_A)
    assert law == output_law(TARGET, ALWAYS_B)
    right = "always B; the text does not change"
    return Question(
        text=f"The target gives A in {TARGET[A]} of all cases. One draft says always B, another always A. Which is "
        "refused less often, and does the law of the text depend on it?",
        choices=("always A; the text does not change", right, "always A, and A comes more often",
                 "always B, and B comes more often"),
        answer=right,
        reveals={"q_a": float(ALWAYS_A[A])},
        because=f"Of 100 drafts that say B, {of_b} are refused; of 100 that say A, {of_a}. The target itself says B "
        f"more often. The token that comes out is A with {law[A]} either way: a draft decides how fast, not what.",
    )  # fmt: skip


def _why_rejections_still(moved: str, settings: Mapping[str, Any]) -> str:
    if settings["p_a"] in (0, 1) and moved in ("seed", "samples"):
        return "The target gives one token only, and so does every draw."
    if moved in ("seed", "samples"):
        return "These draws happen to hold the same shares."
    return ""


DRAFT_A_EXPLORATION = Exploration(
    question=_ask_for_bias,
    in_view=("p_a", "q_a", "replaced", "samples"),
    settings={
        "replaced from p (wrong)": {"replaced": WRONG, "samples": SAMPLES[-1]},
        "the same in 10 draws": {"replaced": WRONG, "samples": SAMPLES[0]},
        "a draft that gives what the target gives": {"q_a": float(TARGET[A])},
    },
    readouts=rejection_readouts,
    why_still=_why_rejections_still,
)

DRAFT_B_EXPLORATION = Exploration(
    question=_ask_which_is_refused_less,
    in_view=("p_a", "q_a", "replaced", "samples"),
    settings={
        "draft always A": {"q_a": float(ALWAYS_A[A])},
        "a draft of both, evenly": {"q_a": 0.5},
        "replaced from p (wrong)": {"replaced": WRONG, "samples": SAMPLES[-1]},
    },
    readouts=rejection_readouts,
    why_still=_why_rejections_still,
)
