"""The query-cost explorer: lines, marks and read-outs are those of a round by all that may come of it."""

from typing import Any

import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from figures import style
from figures.exploration import book_values
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.query_costs import AT_PEAK_S, QUERY_COST_EXPLORATION, both_drafts
from figures.registry import entry
from figures.words import LANGUAGES
from lib.clocks import Clock

QUERY_COST = entry("query-cost")
BOOK = book_values(QUERY_COST.draw, QUERY_COST.arguments)
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"plain_s": AT_PEAK_S},
    {"query_s": 0.06, "acceptance_a": 0.74},
    {"draft_tokens": 12, "position_s": 0.001, "query_s": 0.02},
    {"position_s": 0.003, "acceptance_b": 0.3},
    {"acceptance_a": 0.0, "acceptance_b": 1.0},
    {"acceptance_a": 0.05, "acceptance_b": 0.05, "draft_tokens": 1},
    {"acceptance_a": 1.0, "acceptance_b": 1.0, "draft_tokens": 12, "plain_s": 0.03},
    {"plain_s": 0.0051, "draft_tokens": 1, "query_s": 0.03},
)
each_setting = pytest.mark.parametrize("settings", SETTINGS, ids=repr)


def by_outcome(a: float, settings: dict[str, Any]) -> tuple[float, float]:
    """Outputs a round and ms an output: each place of the first refusal, and none at all, by how often it comes."""
    m = settings["draft_tokens"]
    outputs = sum((accepted + 1) * a**accepted * (1 - a) for accepted in range(m)) + (m + 1) * a**m
    verify_s = settings["plain_s"] + settings["position_s"] * m
    return outputs, 1e3 * (settings["query_s"] + verify_s) / outputs


def lines(figure: Figure) -> dict[str, tuple[float, float]]:
    """Height of each line at its left and right end, by role, in ms."""
    roles = {style.LINE[role][0]: role for role in ("one", "other", "weights")}
    drawn = [line for line in figure.axes[0].lines if line.get_marker() == "None" and line.get_color() in roles]
    by_role = {roles[str(line.get_color())]: line for line in drawn if len(set(line.get_xdata())) > 1}  # type: ignore[arg-type]
    return {role: tuple(map(float, line.get_ydata())) for role, line in by_role.items()}  # type: ignore[arg-type,misc]


def marks(figure: Figure, marker: str) -> list[tuple[float, float]]:
    found: list[Any] = [line for line in figure.axes[0].lines if line.get_marker() == marker]
    return [(float(x), float(y)) for line in found for x, y in zip(*line.get_data(), strict=True)]


def readouts(**settings: Any) -> dict[str, str]:
    return {one.label: str(one) for one in QUERY_COST.exploration.readouts(**BOOK | settings)}


@each_setting
def test_the_dots_are_what_rounds_take_on_average(settings: dict[str, Any]) -> None:
    at = BOOK | settings
    for (query_ms, ms), a in zip(
        marks(QUERY_COST.figure(**settings), "o"), (at["acceptance_a"], at["acceptance_b"]), strict=True
    ):
        assert query_ms == pytest.approx(1e3 * at["query_s"])
        assert ms == pytest.approx(by_outcome(a, at)[1])


@each_setting
def test_the_lines_are_straight_through_the_dots_and_meet_plain_decode_at_the_marks(settings: dict[str, Any]) -> None:
    at, figure = BOOK | settings, QUERY_COST.figure(**settings)
    drawn, plain_ms = lines(figure), 1e3 * at["plain_s"]
    assert drawn["weights"] == pytest.approx((plain_ms, plain_ms))
    crossings = []
    for role, (query_ms, ms) in zip(("one", "other"), marks(figure, "o"), strict=True):
        low, high = drawn[role]
        assert ms == pytest.approx(low + (high - low) * query_ms / 60)
        if low < plain_ms <= high:
            crossings.append(((plain_ms - low) / (high - low) * 60, plain_ms))
    assert [part for mark in marks(figure, "D") for part in mark] == pytest.approx(
        [part for mark in crossings for part in mark]
    )
    drops = [found for found in figure.axes[0].collections if isinstance(found, LineCollection)]
    assert sum(len(found.get_segments()) for found in drops) == len(crossings)
    told = [text.get_text() for text in visible_texts(figure)]
    assert [f"{place:.1f} ms" in told for place, _ in crossings] == [True] * len(crossings)
    assert ("as quick as plain decode" in told) == bool(crossings)
    assert max(max(ends) for ends in drawn.values()) <= figure.axes[0].get_ylim()[1]


def test_the_book() -> None:
    assert readouts() == {
        "A: outputs a round, E[N]": "1.33",
        "A: an output takes": "19.8 ms",
        "A: saved an output": "+6.5 ms",
        "A: longest query that pays": "8.7 ms",
        "B: outputs a round, E[N]": "3.05",
        "B: an output takes": "8.64 ms",
        "B: saved an output": "+17.6 ms",
        "B: longest query that pays": "53.9 ms",
        "plain decode: an output takes": "26.26 ms",
        "rows verified": "5",
        "to verify them takes": "26.26 ms",
        "a round, with the query": "26.36 ms",
        "computing the extra rows alone": "0.2 ms",
    }
    told = {text.get_text() for text in visible_texts(QUERY_COST.figure())}
    assert {"8.7 ms", "53.9 ms", "AAAA", "BBBB"} <= told
    assert "AAAA, a = 0.25: 1.33 outputs a round, 19.8 ms each; pays up to 8.7 ms" in told
    assert "BBBB, a = 0.75: 3.05 outputs a round, 8.64 ms each; pays up to 53.9 ms" in told
    assert "plain decode: 26.26 ms (engine); to verify 5 rows: 26.26 ms (assumed)" in told


@each_setting
def test_the_readouts_are_those_of_rounds_on_average(settings: dict[str, Any]) -> None:
    at = BOOK | settings
    amounts = {one.label: one.amount for one in QUERY_COST.exploration.readouts(**at)}
    for letter, a in (("A", at["acceptance_a"]), ("B", at["acceptance_b"])):
        outputs, ms = by_outcome(a, at)
        assert amounts[f"{letter}: outputs a round, E[N]"] == pytest.approx(outputs)
        assert amounts[f"{letter}: an output takes"] == pytest.approx(ms / 1e3)
        longest = amounts[f"{letter}: longest query that pays"]
        if isinstance(longest, str):
            assert longest == "none"
            assert by_outcome(a, at | {"query_s": 0.0})[1] >= 1e3 * at["plain_s"]
        else:
            assert by_outcome(a, at | {"query_s": longest})[1] == pytest.approx(1e3 * at["plain_s"])


def test_only_the_measured_step_has_the_engines_clock() -> None:
    for settings, clocks in (({}, {"engine"}), ({"plain_s": AT_PEAK_S}, {"assumed"})):
        found = {one.label: one for one in QUERY_COST.exploration.readouts(**BOOK | settings)}
        assert set(found["plain decode: an output takes"].clocks) == clocks
        for label in ("to verify them takes", "a round, with the query", "A: an output takes"):
            assert set(found[label].clocks) == clocks | {Clock.ASSUMED}
    told = [text.get_text() for text in visible_texts(QUERY_COST.figure(plain_s=AT_PEAK_S))]
    assert "plain decode: 8.62 ms; to verify 5 rows: 8.62 ms (both assumed)" in told


def test_a_draft_never_pays_where_verifying_costs_more_than_it_brings() -> None:
    a, b = both_drafts(**BOOK | {"position_s": 0.003})
    assert a.pays_up_to_s is None and b.pays_up_to_s is not None
    assert readouts(position_s=0.003)["A: longest query that pays"] == "none"
    assert any("never pays" in text.get_text() for text in visible_texts(QUERY_COST.figure(position_s=0.003)))
    assert both_drafts(**BOOK | {"acceptance_a": 0.0})[0].pays_up_to_s is None


def test_the_question_is_answered_by_a_third_of_a_step() -> None:
    explorer = explore("query-cost")
    assert explorer.question.choices == ("8.7 ms", "23.4 ms", "2.9 ms", "no query pays")
    assert explorer.question.answer == "2.9 ms"
    assert "a plain step would take 8.62 ms" in explorer.question.text
    explorer.predict("2.9 ms")
    shown = {readout.label: str(readout) for readout in explorer.readouts}
    assert shown["A: longest query that pays"] == "2.9 ms"
    assert shown["plain decode: an output takes"] == "8.62 ms"


def test_named_settings_show_what_they_say() -> None:
    quick, slow, long = (both_drafts(**BOOK | dict(settings)) for settings in QUERY_COST_EXPLORATION.settings.values())
    assert all(draft.pays_up_to_s for draft in quick)
    assert [draft.rounds.saved_s_per_output > 0 for draft in slow] == [False, True]
    book = both_drafts(**BOOK)
    assert all(one.rounds.s_per_output > other.rounds.s_per_output for one, other in zip(long, book, strict=True))
    assert all(
        one.rounds.outputs_per_round > other.rounds.outputs_per_round for one, other in zip(long, book, strict=True)
    )


def test_a_query_beyond_the_book_moves_the_end_of_the_axis() -> None:
    figure = QUERY_COST.figure(query_s=0.5)
    assert figure.axes[0].get_xlim() == (0, 500)
    assert [query for query, _ in marks(figure, "o")] == [500, 500]


@pytest.mark.parametrize("name", ["acceptance_a", "acceptance_b", "draft_tokens", "query_s", "plain_s", "position_s"])
def test_what_makes_no_sense_is_one_sentence(name: str) -> None:
    assert explore("query-cost", **{name: -1}).sentence.startswith(f"Nothing to draw: {name} is -1; allowed: ")


@each_setting
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_fault_elsewhere(settings: dict[str, Any], language: str) -> None:
    guard(QUERY_COST.figure(language=language, **settings), "query-cost", QUERY_COST.may_overlap)


def test_drafts_that_are_accepted_alike_have_one_crossing() -> None:
    figure = QUERY_COST.figure(acceptance_a=0.75, acceptance_b=0.75)
    assert [text.get_text() for text in figure.texts].count("53.9 ms") == 1
