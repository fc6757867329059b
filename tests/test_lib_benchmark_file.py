"""Files of benchmark clients: what is read, what is told, and what is refused by name."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lib import made_benchmark
from lib.benchmark_file import (
    MADE,
    MADE_CORRECTNESS,
    Benchmark,
    read_benchmark,
    read_benchmarks,
    read_correctness,
)
from lib.checks import InputError
from lib.goodput import Since

Fields = dict[str, Any]

# Four requests: a plain one, one that failed, one with two tokens in a chunk, one with a single output.
SMALL: Fields = {
    "duration": 3.0,
    "completed": 3,
    "failed": 1,
    "total_input_tokens": 160,
    "total_output_tokens": 9,
    "request_rate": 2.0,
    "max_concurrency": 4,
    "input_lens": [100, 50, 40, 20],
    "output_lens": [3, 0, 5, 1],
    "ttfts": [0.5, 0.0, 0.25, 0.75],
    "itls": [[0.25, 0.25], [], [0.5, 0.5], []],
    "start_times": [1000.0, 0.0, 1000.5, 1001.0],
    "errors": ["", "timed out", "", ""],
    "generated_texts": ["a", "", "b", "c"],
}


def written(folder: Path, *runs: Fields) -> Path:
    path = folder / "run.json"
    path.write_text("\n".join(map(json.dumps, runs)), encoding="utf-8")
    return path


def changed(**values: Any) -> Fields:
    return {name: value for name, value in (SMALL | values).items() if value is not ...}


@pytest.fixture
def small(tmp_path: Path) -> Benchmark:
    return read_benchmark(written(tmp_path, SMALL))


def test_what_is_read_of_each_request(small: Benchmark) -> None:
    assert (small.file, small.run, small.runs, small.duration_s) == ("run.json", 0, 1, 3.0)
    assert (small.request_rate, small.max_concurrency) == (2.0, 4)
    assert [one.sent_s for one in small.requests] == [0.0, None, 0.5, 1.0]
    assert [one.failed for one in small.requests] == [False, True, False, False]
    assert [one.latency_s for one in small.requests] == [1.0, None, 1.25, 0.75]
    assert [one.mean_interval_s for one in small.requests] == [0.25, None, 0.25, None]
    assert [one.one_token_a_chunk for one in small.requests] == [True, False, False, True]
    assert small.requests[2].arrivals_s == (0.75, 1.25, 1.75)


def test_failed_requests_are_kept_counted_and_told(small: Benchmark) -> None:
    assert (small.completed, small.failed) == (3, 1)
    assert small.completion_throughput == 1.0
    assert small.notes[0] == "Failed requests, kept as answers that never came and left out of fits: 1."
    assert any(note.startswith("Requests whose chunks are not single tokens") for note in small.notes)
    window = small.with_correctness([1, 0, 0, 1])
    assert (window.completed, window.correct, window.in_time(1.0), window.qualified(1.0)) == (3, 2, 2, 2)
    assert window.goodput(0.75) == pytest.approx(1 / 3)


def test_both_clocks_of_a_deadline_begin_with_the_sending(small: Benchmark) -> None:
    window = small.with_correctness([1, 0, 1, 1])
    assert window.longest_queue_s == 0
    for deadline in (0.7, 1.0, 1.3):
        assert window.qualified(deadline) == window.qualified(deadline, Since.SENDING) == small.in_time(deadline)


def test_without_correctness_nobody_is_called_right(small: Benchmark) -> None:
    assert small.in_time(1.0) == 2
    assert not hasattr(small, "goodput")


def test_a_failure_without_a_text_is_one(tmp_path: Path) -> None:
    run = read_benchmark(written(tmp_path, changed(errors=["", "", "", ""])))
    assert (run.completed, run.failed) == (3, 1)
    run = read_benchmark(written(tmp_path, changed(errors=["", None, "", ""])))
    assert run.failed == 1


@pytest.mark.parametrize(
    ("starts", "sent"),
    [
        ([1000.0, 999.5, 1000.5, 1001.0], [0.5, 0.0, 1.0, 1.5]),
        ([1000.0, 1002.5, 1000.5, 1001.0], [0.0, 2.5, 0.5, 1.0]),
        ([1000.0, 1.7e9, 1000.5, 1001.0], [0.0, None, 0.5, 1.0]),
        ([1000.0, 998.0, 1000.5, 1001.0], [0.0, None, 0.5, 1.0]),
        ([0.0, 0.0, 0.5, 1.0], [0.0, None, 0.5, 1.0]),
    ],
    ids=["sent first", "sent last", "1970", "too early", "from 0"],
)
def test_a_failed_request_has_its_sending_where_it_is_on_the_clock_of_the_run(
    tmp_path: Path, starts: list[float], sent: list[float | None]
) -> None:
    run = read_benchmark(written(tmp_path, changed(start_times=starts)))
    assert [one.sent_s for one in run.requests] == sent
    window = run.with_correctness([1, 0, 1, 1])
    assert (window.length_s, window.completed, window.qualified(1.25)) == (3.0, 3, 3)


@pytest.mark.parametrize(
    ("starts", "sent"),
    [
        ([1000.0, 1000.5, 0.0, 1002.0], [0.0, 0.5, None, 2.0]),
        ([1000.0, 1000.5, 1.7e9, 1002.0], [0.0, 0.5, None, 2.0]),
        ([0.0, 0.0, 0.0, 0.0], [None] * 4),
        (None, [None] * 4),
    ],
    ids=["one without", "1970", "none", "no list"],
)
def test_a_run_in_which_all_failed_is_a_window_without_a_result(
    tmp_path: Path, starts: list[float] | None, sent: list[float | None]
) -> None:
    fields = changed(start_times=starts, output_lens=[0] * 4, ttfts=[0.0] * 4, itls=[[]] * 4, errors=["lost"] * 4)
    run = read_benchmark(written(tmp_path, fields))
    assert [one.sent_s for one in run.requests] == sent
    window = run.with_correctness([0] * 4)
    assert (run.completed, run.completion_throughput, run.in_time(1.0)) == (0, 0.0, 0)
    assert (window.completed, window.goodput(1.0), window.length_s) == (0, 0.0, 3.0)


def test_a_file_of_an_older_client_has_no_start_times(tmp_path: Path) -> None:
    run = read_benchmark(written(tmp_path, changed(start_times=..., failed=...)))
    assert not run.has_start_times
    assert any(note.startswith("No start times") for note in run.notes)
    window = run.with_correctness([1, 0, 1, 1])
    assert (window.qualified(1.0), window.goodput(1.0)) == (2, pytest.approx(2 / 3))
    assert window.mean_in_system == pytest.approx((1 + 1.25 + 0.75) / 3)
    with pytest.raises(InputError, match="start_times"):
        _ = run.requests[0].arrivals_s


@pytest.mark.parametrize(
    ("rate", "read"), [("inf", math.inf), (math.inf, math.inf), (None, None), ("trace", None), (4, 4.0)]
)
def test_rates_are_numbers_or_infinite(tmp_path: Path, rate: object, read: float | None) -> None:
    assert read_benchmark(written(tmp_path, changed(request_rate=rate))).request_rate == read


def test_a_file_that_contradicts_itself_is_told(tmp_path: Path) -> None:
    run = read_benchmark(written(tmp_path, changed(completed=4, total_output_tokens=90)))
    assert run.notes[-2:] == (
        "The file says completed 4, its lists come to 3.",
        "The file says total_output_tokens 90, its lists come to 9.",
    )


def test_several_runs_are_chosen_by_number(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL, changed(request_rate="inf"), changed(request_rate=8))
    assert [run.request_rate for run in read_benchmarks(path)] == [2.0, math.inf, 8.0]
    assert read_benchmark(path, 1) == read_benchmarks(path)[1]
    with pytest.raises(InputError, match=r"^run is None; allowed: the number of one of the 3 runs in run.json \(0: 3"):
        read_benchmark(path)
    with pytest.raises(InputError, match=r"^run is 3; allowed: a whole number from 0 to 2$"):
        read_benchmark(path, 3)
    path = written(tmp_path, SMALL, changed(ttfts=[1]))
    with pytest.raises(InputError, match=r'^run.json, run 1, "ttfts" is .1 entries'):
        read_benchmark(path, 1)


def test_one_object_may_stand_on_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "pretty.json"
    path.write_text(json.dumps(SMALL, indent=2), encoding="utf-8-sig")
    assert read_benchmark(path).requests == read_benchmark(written(tmp_path, SMALL)).requests


@pytest.mark.parametrize("name", ["input_lens", "output_lens", "ttfts", "itls", "errors"])
def test_missing_lists_name_the_flag(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=rf'^run.json, "{name}" is .missing.*--save-detailed'):
        read_benchmark(written(tmp_path, changed(**{name: ...})))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"duration": ...}, '"duration" is .missing'),
        ({"completed": ...}, '"completed" is .missing'),
        ({"duration": 0}, '"duration" is 0; allowed: a time from above 0 s'),
        ({"duration": "3"}, "\"duration\" is '3'"),
        ({"duration": 1.0}, r'"duration" is 1.0; allowed: at least 1.750 s, when request 2 has its last token'),
        ({"completed": -1}, '"completed" is -1'),
        ({"failed": True}, '"failed" is True'),
        ({"max_concurrency": 0}, '"max_concurrency" is 0'),
        ({"request_rate": 0}, '"request_rate" is 0'),
        ({"request_rate": [4]}, r'"request_rate" is \[4\]'),
        ({"request_rate": math.nan}, '"request_rate" is nan'),
        ({"itls": [[], [], []]}, "\"itls\" is '3 entries'; allowed: 4 entries, as in input_lens"),
        ({"start_times": [1.0]}, "\"start_times\" is '1 entries'"),
        ({"errors": ["", "", ""]}, "\"errors\" is '3 entries'"),
        ({"ttfts": {"0": 1}}, '"ttfts" is .*a list'),
        ({name: [] for name in ("input_lens", "output_lens", "ttfts", "itls", "errors")}, "at least one request"),
        ({"input_lens": [100, 50, 40.5, 20]}, '"input_lens", request 2 is 40.5'),
        ({"input_lens": [0, 50, 40, 20]}, '"input_lens", request 0 is 0; allowed: at least one token'),
        ({"output_lens": [3, 0, True, 1]}, '"output_lens", request 2 is True'),
        ({"output_lens": [3, 0, -5, 1]}, '"output_lens", request 2 is -5'),
        ({"output_lens": [3, 0, 2**24 + 1, 1]}, '"output_lens", request 2 is 16777217; allowed: .* to 16,777,216'),
        ({"input_lens": [2**24 + 1, 50, 40, 20]}, '"input_lens", request 0 is 16777217'),
        ({"ttfts": [0.5, 0.0, math.nan, 0.75]}, '"ttfts", request 2 is nan'),
        ({"ttfts": [0.5, 0.0, -0.25, 0.75]}, '"ttfts", request 2 is -0.25'),
        ({"ttfts": [0, 0, 0.25, 0.75]}, '"ttfts", request 0 is 0.0; allowed: a time above 0 s'),
        ({"itls": [[0.25, math.inf], [], [], []]}, '"itls", request 0 is inf'),
        ({"itls": [0.25, [], [], []]}, '"itls", request 0 is 0.25; allowed: a list of seconds'),
        ({"itls": [["0.2"], [], [], []]}, "\"itls\", request 0 is '0.2'"),
        ({"start_times": [math.nan, 0, 1, 1]}, '"start_times", request 0 is nan'),
        ({"errors": ["", 7, "", ""]}, '"errors", request 1 is 7'),
    ],
    ids=str,
)
def test_a_wrong_field_is_named(tmp_path: Path, wrong: Fields, told: str) -> None:
    with pytest.raises(InputError, match=rf"^run.json, .*{told}|^run.json, {told}"):
        read_benchmark(written(tmp_path, changed(**wrong)))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", r"^bad.json is 'an empty file'"),
        ("  \n\n", r"^bad.json is 'an empty file'"),
        ('{"duration": 3,\n "completed": }', r"^bad.json, line 2, column 15 is .*allowed: JSON"),
        ('{"duration": 3} {', r"^bad.json, line 1, column 18 is"),
        ("{}\n[1]", r"^bad.json, line 2, column 1 is '\[1\]'; allowed: JSON objects"),
        ("[" * 100_000, r"^bad.json, line 1, column 1 is .*JSON"),
        ('{"duration": ' + "9" * 5000 + "}", r"^bad.json, line 1, column 1 is"),
        ("{}", r'^bad.json, "input_lens" is .missing'),
    ],
    ids=["empty", "blank", "no value", "cut off", "list", "too deep", "too long", "no field"],
)
def test_what_is_no_such_json_is_refused_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_benchmark(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^path is"):
        read_benchmark(tmp_path / "none.json")
    (tmp_path / "latin.json").write_bytes(b'{\n"a": "\xe9"}')
    with pytest.raises(InputError, match=r"^latin.json, line 2 is .*UTF-8"):
        read_benchmark(tmp_path / "latin.json")


@pytest.mark.parametrize("read", [read_benchmark, read_benchmarks, read_correctness], ids=lambda read: read.__name__)
@pytest.mark.parametrize("path", [None, 3, True, [], b"x", "a\0b", ""], ids=repr)
def test_what_is_no_path_is_refused(read: Callable[[Any], object], path: object) -> None:
    with pytest.raises(InputError) as refusal:
        read(path)
    assert refusal.value.parameter == "path"


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ([1, 0, 1], r"^flags is '3 flags'; allowed: one for each of the 4 requests"),
        ([], r"^flags is '0 flags'"),
        ([1, 0, 2, 1], r"^flags, request 2 is 2; allowed: a whole number from 0 to 1"),
        ([1, 0, True, 1], r"^flags, request 2 is True"),
        ([1, 0, 0.5, 1], r"^flags, request 2 is 0.5"),
        ([1, 0, None, 1], r"^flags, request 2 is None"),
        ([1, 1, 1, 1], r"^flags, request 1 is 1; allowed: 0: it failed"),
        ("1011", r"^flags is '1011'"),
        (7, r"^flags is 7"),
    ],
    ids=str,
)
def test_correctness_is_one_flag_a_request(small: Benchmark, flags: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        small.with_correctness(flags)


def test_flags_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "flags.csv"
    for text in ("is_correct\n1\n0\n", "1\n0", "1\r\n\r\n0\r\n"):
        path.write_text(text, encoding="utf-8", newline="")
        assert read_correctness(path) == (1, 0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("is_correct\n1\nyes\n", r"^flags.csv, line 3 is 'yes'"),
        ("1\nis_correct\n", r"^flags.csv, line 2 is"),
        ("2\n", r"^flags.csv, line 1 is '2'; allowed: 1 \(right\) or 0 \(wrong\)"),
        ("is_correct\n", r"^flags.csv is 'no flag'"),
        ("", r"^flags.csv is 'no flag'"),
    ],
    ids=["word", "second header", "two", "header only", "empty"],
)
def test_what_is_no_flag_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "flags.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_correctness(path)


@pytest.mark.parametrize("deadline", [0, -1, math.nan, True, "3"])
def test_a_deadline_is_a_time(small: Benchmark, deadline: Any) -> None:
    with pytest.raises(InputError, match=r"^deadline_s"):
        small.in_time(deadline)


@pytest.mark.parametrize(
    ("path", "made"),
    [(MADE, made_benchmark.made_text), (MADE_CORRECTNESS, made_benchmark.made_flags)],
    ids=["benchmark", "correctness"],
)
def test_the_made_file_is_made_again_byte_for_byte(path: Path, made: Callable[[], str]) -> None:
    assert path.read_bytes() == made().encode()
    assert path.stat().st_size < 60_000


def test_the_made_file_says_that_it_is_made_and_agrees_with_itself() -> None:
    assert all(json.loads(line)["made"] for line in MADE.read_text(encoding="utf-8").splitlines())
    flags = read_correctness(MADE_CORRECTNESS)
    for run, rate in zip(read_benchmarks(MADE), made_benchmark.RATES_PER_S, strict=True):
        assert run.request_rate == rate
        assert run.failed == len(made_benchmark.FAILED)
        assert not any("The file says" in note for note in run.notes)
        assert run.with_correctness(flags).correct == sum(flags)
