"""The figure of a reader's engine draws what the file and its replay come to, for the made file and for any other."""

import json
from pathlib import Path
from typing import Any

import pytest

from figures import own_engine as own
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.own_engine import Run, own_windows, served_at, your_engine
from figures.words import LANGUAGES, words
from lib import made_benchmark
from lib.benchmark_file import MADE, MADE_CORRECTNESS, read_benchmark, read_benchmarks, read_correctness
from lib.checks import InputError
from lib.recalibration import fitted, replay
from lib.scheduling import chunked, continuous

FLAGS = read_correctness(MADE_CORRECTNESS)
POLICY = made_benchmark.POLICY


def heights(axes: Any) -> list[float]:
    return [float(bar.get_paths()[0].vertices[:, 1].max()) for bar in axes.collections]


@pytest.mark.parametrize("settings", [{}, {"max_running": 3, "deadline_s": 5.0, "token_budget": 512}], ids=str)
def test_bars_are_good_answers_measured_and_replayed(settings: dict[str, Any]) -> None:
    bars, dots = your_engine(**settings).axes
    deadline = settings.get("deadline_s", 3.0)
    budget = settings.get("token_budget", 2048)
    policy = chunked(settings.get("max_running", 8), budget, budget)
    fit = fitted(read_benchmark(MADE, 1), POLICY).fit
    expected = []
    for run in read_benchmarks(MADE):
        for each in (run, replay(run, policy, fit).predicted):
            expected.append(each.with_correctness(FLAGS).goodput(deadline))
    assert heights(bars) == pytest.approx(expected)
    outlines = [max(line.get_ydata()) for line in bars.lines if len(line.get_ydata()) == 4]
    completed = [run.completion_throughput for run in read_benchmarks(MADE)]
    assert outlines[::2] == pytest.approx(completed)
    assert len(dots.lines[1].get_xdata()) == 46 and len(dots.lines[2].get_xdata()) == 46


def test_dots_are_the_times_of_each_request() -> None:
    _, dots = your_engine(compared=Run.SLOW, max_running=2).axes
    served, _ = served_at(2, 2048, Run.MIDDLE)
    compared = served[0].replay.compared
    assert 10 ** dots.lines[1].get_xdata() == pytest.approx([one.measured_ttft_s for one in compared])
    assert 10 ** dots.lines[1].get_ydata() == pytest.approx([one.predicted_ttft_s for one in compared])
    assert 10 ** dots.lines[2].get_ydata() == pytest.approx([one.predicted_interval_s for one in compared])


def test_the_question_is_answered_by_the_replay() -> None:
    explorer = explore("your-engine")
    before = {one.label: one.amount for one in explorer.readouts}
    explorer.predict("fewer")
    after = {one.label: one.amount for one in explorer.readouts}
    good = "right and in time, in the replay"
    assert after[good] < before[good]
    assert 1 < after["completed, in the replay"] / before["completed, in the replay"] < 1.1
    assert after["right and in time, in the file"] == before["right and in time, in the file"]


def test_the_same_figure_is_drawn_for_a_file_of_ones_own() -> None:
    mine = own.own_engine(MADE, POLICY, [FLAGS] * 3, fitted_on=1, compared=2)
    for here, there in zip(mine.axes, your_engine().axes, strict=True):
        assert heights(here) == heights(there)


def test_windows_of_ones_own_file() -> None:
    windows = own_windows(MADE, [FLAGS] * 3)
    assert [window.goodput(3) for window in windows] == [
        run.with_correctness(FLAGS).goodput(3) for run in read_benchmarks(MADE)
    ]


def test_without_correctness_bars_count_answers_in_time_and_say_so() -> None:
    page = own.own_engine(MADE, POLICY, fitted_on=1, deadline_s=2.0)
    runs = read_benchmarks(MADE)
    assert heights(page.axes[0])[::2] == pytest.approx([run.in_time(2.0) / run.duration_s for run in runs])
    texts = {text.get_text() for text in page.texts}
    assert "in the file: in time" in texts and not any("right" in text for text in texts)


def one_run(folder: Path, number: int, **changed: Any) -> Path:
    fields = json.loads(MADE.read_text(encoding="utf-8").splitlines()[number]) | changed
    path = folder / "mine.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    return path


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("rate", ["inf", None, 16])
def test_a_single_run_of_any_rate_is_drawn(tmp_path: Path, rate: str | int | None, language: str) -> None:
    page = own.own_engine(one_run(tmp_path, 1, request_rate=rate), POLICY, [FLAGS], language=language)
    assert len(heights(page.axes[0])) == 2
    text = words(language, "your-engine")
    name = {"inf": text["at_once"], None: text["run"].format(number=0), 16: "16/s"}[rate]
    assert name in {one.get_text() for one in visible_texts(page)}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("known", [True, False], ids=["right", "in time"])
def test_a_file_without_start_times_shows_what_was_measured_and_says_why_no_more(
    tmp_path: Path, known: bool, language: str
) -> None:
    path = one_run(tmp_path, 1, start_times=None)
    page = own.own_engine(path, POLICY, [FLAGS] if known else None, language=language)
    (bars,) = page.axes
    run = read_benchmark(path)
    assert heights(bars) == pytest.approx([own.good_per_s(run, FLAGS if known else None, 3.0)])
    assert [max(line.get_ydata()) for line in bars.lines] == pytest.approx([run.completion_throughput])
    text = words(language, "your-engine")
    written = {one.get_text() for one in page.texts}
    assert text["no_starts"] in written
    assert text["measured"].format(counted=text["good" if known else "in_time"]) in written
    assert not any(one.startswith(text["replayed"][:3]) for one in written)
    guard(page, "your-engine without start times")


def test_limits_are_refused_without_start_times_too(tmp_path: Path) -> None:
    path = one_run(tmp_path, 1, start_times=None)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"policy": 8}, "policy"), ({"fitted_on": 1}, "fitted_on"), ({"compared": -1}, "compared"),
        ({"deadline_s": 0}, "deadline_s"), ({"replayed_with": 0}, "replayed_with"),
    ]  # fmt: skip
    for arguments, named in wrong:
        with pytest.raises(InputError, match=f"^{named} is"):
            own.own_engine(**{"path": path, "policy": POLICY} | arguments)


@pytest.mark.parametrize("flags", [[1, 0, 1], [None, FLAGS, FLAGS], [FLAGS, FLAGS, "1" * 48]], ids=["0", "1", "2"])
def test_windows_want_a_list_of_flags_for_each_run(flags: Any) -> None:
    with pytest.raises(InputError, match=r"^correctness, run \d is .*allowed: a sequence of 1 \(right\) and 0"):
        own_windows(MADE, flags)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"correctness": [FLAGS]}, r"^correctness is .*allowed: a list of 1 and 0 for each of the 3 runs"),
        ({"correctness": "111"}, r"^correctness is '111'"),
        ({"correctness": [0, 1, 1]}, r"^correctness, run 0 is 0; allowed: a sequence of 1 \(right\) and 0 \(wrong\)"),
        ({"replayed_with": 0}, r"^replayed_with is 0; allowed: a Policy"),
        ({"policy": None}, r"^policy is None; allowed: a Policy"),
        ({"correctness": [FLAGS, FLAGS, FLAGS[1:]]}, r"^flags is '47 flags'; allowed: one for each of the 48 requests"),
        ({"fitted_on": 3}, r"^fitted_on is 3; allowed: a whole number from 0 to 2"),
        ({"compared": True}, r"^compared is True"),
        ({"deadline_s": 0}, r"^deadline_s is 0"),
        ({"policy": continuous(2)}, r"^max_running is 2; allowed: at least \d"),
        ({"path": "nowhere.json"}, r"^path is 'nowhere.json'"),
        ({"language": "fr"}, r"^language is 'fr'"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        own.own_engine(**{"path": MADE, "policy": POLICY, "fitted_on": 1} | arguments)


@pytest.mark.parametrize(
    ("settings", "named"),
    [({"max_running": 0}, "max_running"), ({"max_running": 25}, "max_running"), ({"token_budget": 255}, "token_budget"),
     ({"deadline_s": float("nan")}, "deadline_s"), ({"compared": "2/s"}, "compared"), ({"fitted_on": 1}, "fitted_on")],
    ids=str,
)  # fmt: skip
def test_settings_out_of_range_are_refused(settings: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError) as refusal:
        your_engine(**settings)
    assert refusal.value.parameter == named
