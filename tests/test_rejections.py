"""The explorers of rejection sampling: widths are probabilities, and what is said of them follows from `lib`."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D

from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.registry import Entry, entry
from figures.rejections import _LOOK, NAMES, RIGHT, ROW_PT, ROWS_PT, VERDICTS, WRONG, Case, case_of, rows_of
from figures.words import LANGUAGES, words
from lib.rejection_sampling import A, B, Outcome, Rule, output_law, position_law

ALWAYS_A, ALWAYS_B = entry("draft-always-a"), entry("draft-always-b")
SETTINGS: list[dict[str, Any]] = [
    {},
    {"replaced": WRONG},
    {"q_a": 0.0},
    {"q_a": 0.0, "replaced": WRONG, "samples": 10},
    {"q_a": 0.25},
    {"p_a": 0.33, "q_a": 0.5, "samples": 100_000, "seed": 20},
    {"p_a": 0.5, "q_a": 0.33, "replaced": WRONG},
    {"p_a": 0.02, "q_a": 0.01, "replaced": WRONG},
    {"p_a": 0.0, "q_a": 0.0},
    {"p_a": 1.0, "q_a": 0.0, "replaced": WRONG, "seed": 3},
]


def settings_of(figure: Entry, **settings: Any) -> dict[str, Any]:
    return book_values(figure.draw, figure.arguments) | settings


def case(**settings: Any) -> Case:
    return case_of(**settings_of(ALWAYS_A, **settings))


def readouts(figure: Entry = ALWAYS_A, **settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in figure.exploration.readouts(**settings_of(figure, **settings))}


def boxes(**settings: Any) -> dict[float, list[tuple[float, float, str]]]:
    """The boxes that are drawn, by the lower edge of their row, from left to right: both ends and the look."""
    found: dict[float, list[tuple[float, float, str]]] = {bottom: [] for bottom in ROWS_PT}
    (axes,) = ALWAYS_A.figure(**settings).axes
    looks = [collection for collection in axes.collections if isinstance(collection, PolyCollection)]
    for name, collection in zip(_LOOK, looks, strict=True):
        for extent in (path.get_extents() for path in collection.get_paths()):
            assert extent.height == ROW_PT
            found[extent.y0].append((extent.x0, extent.x1, name))
    return {bottom: sorted(row) for bottom, row in found.items()}


@pytest.mark.parametrize("settings", SETTINGS)
def test_each_row_is_one_and_has_no_gap(settings: dict[str, Any]) -> None:
    for row in boxes(**settings).values():
        ends = [0.0, *(end for _, end, _ in row)]
        assert [start for start, _, _ in row] == ends[:-1]
        assert ends[-1] == 1


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_width_of_each_branch_is_its_probability(settings: dict[str, Any]) -> None:
    here, rows = case(**settings), boxes(**settings)
    law = position_law(here.target, here.draft, here.rule)

    def widths(row: int, look: str) -> float:
        return sum(end - start for start, end, name in rows[ROWS_PT[row]] if name == look)

    def chance(**known: Any) -> float:
        return float(sum(each for way, each in law.items() if way._asdict().items() >= known.items()))

    for token, name in enumerate(NAMES):
        assert widths(0, name) == pytest.approx(chance(drafted=token)) == pytest.approx(float(here.draft[token]))
        assert widths(2, name) == pytest.approx(chance(output=token))
        assert widths(3, name) == pytest.approx(float(output_law(here.target, here.draft, here.rule)[token]))
        assert widths(4, name) == pytest.approx(float(here.target[token]))
        assert widths(5, name) == pytest.approx(here.sampled.outputs[token] / here.sampled.positions)
    for accepted, name in enumerate(VERDICTS):
        assert widths(1, name) == pytest.approx(chance(accepted=bool(accepted)))


@pytest.mark.parametrize("settings", SETTINGS)
def test_all_that_outputs_a_stands_left_of_all_that_outputs_b(settings: dict[str, Any]) -> None:
    here = case(**settings)
    outputs = [outcome.output for outcome, _ in here.leaves]
    assert outputs == sorted(outputs, key=lambda token: token or 0)
    assert dict(here.leaves) == position_law(here.target, here.draft, here.rule)


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_dashed_line_stands_at_the_target(settings: dict[str, Any]) -> None:
    here = case(**settings)
    (axes,) = ALWAYS_A.figure(**settings).axes
    (line,) = (line for line in axes.lines if isinstance(line, Line2D))
    assert list(np.unique(np.asarray(line.get_xdata()))) == [float(here.target[A])]


def test_what_is_rejected_lies_between_what_both_give_to_a() -> None:
    for p, q in ((0.25, 0.75), (0.75, 0.25)):
        (_, rejected, _) = rows_of(case(p_a=p, q_a=q))["judged"]
        assert rejected == ("rejected", Fraction(1, 4), Fraction(1, 2))


def test_the_book() -> None:
    shown = readouts()
    assert (shown["drafts kept"], shown["refused of 100 drafts"]) == ("0.2500", "75.0")
    assert (shown["P(A) that comes out"], shown["P(A) if replaced from p (wrong)"]) == ("0.2500", "0.4375")
    other = readouts(ALWAYS_B)
    assert (other["drafts kept"], other["refused of 100 drafts"]) == ("0.7500", "25.0")
    assert (other["P(A) that comes out"], other["P(A) if replaced from p (wrong)"]) == ("0.2500", "0.0625")
    for one in (shown, other):
        assert (one["refused of 100, draft always A"], one["refused of 100, draft always B"]) == ("75.0", "25.0")


def test_the_branches_of_the_book() -> None:
    assert dict(case().leaves) == {Outcome(A, True, A): Fraction(1, 4), Outcome(A, False, B): Fraction(3, 4)}
    assert dict(case(q_a=0.0).leaves) == {Outcome(B, False, A): Fraction(1, 4), Outcome(B, True, B): Fraction(3, 4)}


def told(**settings: Any) -> set[str]:
    return {text.get_text() for text in visible_texts(ALWAYS_A.figure(**settings))}


def test_parts_are_told_as_fractions_or_else_as_decimals() -> None:
    assert {"A  1", "accepted  1/4", "rejected  3/4", "A  1/4", "B  3/4"} <= told()
    assert {"A  3/16", "A  7/16", "B  9/16"} <= told(replaced=WRONG)
    assert {"A  0.33", "rejected  0.34", "B  0.67", "A  0.67", "B  0.33"} <= told(p_a=0.33, q_a=0.67)


def test_what_comes_out_is_told_beside_what_should() -> None:
    text = words("en", "draft-always-a")
    assert text["same"].format(out="1/4") in told()
    assert text["other"].format(out="7/16", wanted="1/4") in told(replaced=WRONG)
    assert text["same"].format(out="1/4") in told(replaced=WRONG, q_a=0.25)
    assert text["residual"] in told() and text["from_target"] in told(replaced=WRONG)


def test_draws_come_near_the_law_and_are_those_of_their_seed() -> None:
    for rule, law in ((RIGHT, 1 / 4), (WRONG, 7 / 16)):
        drawn = [case(replaced=rule, samples=100_000, seed=seed).sampled_a for seed in range(1, 21)]
        assert all(abs(float(share) - law) < 0.006 for share in drawn)
        assert len(set(drawn)) > 10
        assert drawn[0] == case(replaced=rule, samples=100_000, seed=1).sampled_a


def test_the_questions_are_answered_by_the_laws() -> None:
    bias, speed = ALWAYS_A.exploration.question(), ALWAYS_B.exploration.question()
    assert bias.answer == "no, it follows the target"
    here = case(**bias.reveals)
    assert output_law(here.target, here.draft) == here.target
    assert "P(A) would be 7/16" in bias.because
    assert speed.answer == "always B; the text does not change"
    assert readouts(ALWAYS_B, **speed.reveals)["refused of 100 drafts"] == "75.0"
    assert "say B, 25 are refused" in speed.because and "say A, 75." in speed.because


def test_the_rules_differ_where_something_is_rejected_only() -> None:
    assert case(q_a=0.25).leaves == case(q_a=0.25, replaced=WRONG).leaves
    assert case(q_a=0.25, replaced=WRONG).rule is Rule.FROM_TARGET
    explorer = explore("draft-always-a", q_a=0.25)
    explorer.widgets["replaced"].value = WRONG
    assert explorer.line == ""  # the picture names the rule


@pytest.mark.parametrize(("start", "name", "there", "line"), [
    ({"p_a": 0.0}, "seed", 2, "The target gives one token only, and so does every draw."),
    ({"samples": 10}, "seed", 2, "These draws happen to hold the same shares."),
])  # fmt: skip
def test_why_draws_do_not_change(start: dict[str, Any], name: str, there: int, line: str) -> None:
    explorer = explore("draft-always-a", **start)
    explorer.widgets[name].value = there
    assert explorer.line == line


def test_what_makes_no_sense_is_one_sentence() -> None:
    assert explore("draft-always-b", q_a=1.2).sentence.startswith("Nothing to draw: q_a is 1.2; ")
    assert explore("draft-always-a", samples=11).sentence.startswith("Nothing to draw: samples is 11; allowed: ")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("settings", SETTINGS)
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    for figure in (ALWAYS_A, ALWAYS_B):
        guard(figure.figure(language=language, **settings), figure.slug, figure.may_overlap)
