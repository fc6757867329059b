"""What the benchmark client of a real engine has recorded, read from its file: requests, lengths, times, failures.

vLLM's `vllm bench serve --save-result --save-detailed` writes one JSON object, SGLang's client the same lists, one
object a line; a file with several objects holds several runs. Runs and requests are counted from 0, as in the lists.
No such file says whether an answer was right: who knows adds it, and only then can goodput be told.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from lib.checks import InputError, finite, seconds, whole
from lib.goodput import Outcome, Window, completion_throughput
from lib.step_time import MOST_TOKENS

MADE = Path(__file__).parent / "traces" / "made_benchmark.jsonl"
MADE_CORRECTNESS = MADE.with_name("made_correctness.csv")
# No request of a real engine has more tokens, in or out; a replay goes through them all.
MOST_REQUEST_TOKENS = 2**24
# The last token may be a little later than the end of the run: files round their times.
ROUNDED_S = 0.001
_CLOCK = "seconds on the client's own clock, from 0 on"  # which counts from anywhere, 1970 say
_PER_REQUEST = ("input_lens", "output_lens", "ttfts", "itls", "errors")
_DETAILS = "the per-request lists: the client writes them with --save-detailed (vLLM) or --output-details (SGLang)"


@dataclass(frozen=True)
class MeasuredRequest:
    """One request as the client saw it: lengths in tokens, times in seconds.

    `sent_s` counts from the first sending of the run; None in files of older clients, and for a failed one whose start
    is not on the clock of the run. `intervals_s` are the times
    between what arrived: fewer than outputs - 1 where one chunk brought several tokens. A failed one has no outputs.
    """

    input_tokens: int
    output_tokens: int
    ttft_s: float
    intervals_s: tuple[float, ...] = field(repr=False)
    sent_s: float | None
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether no answer came."""
        return bool(self.error) or not self.output_tokens

    @property
    def latency_s(self) -> float | None:
        """From its sending to its last token; None if it failed."""
        return None if self.failed else self.ttft_s + math.fsum(self.intervals_s)

    @property
    def one_token_a_chunk(self) -> bool:
        """Whether each of its tokens has a time of its own."""
        return len(self.intervals_s) == self.output_tokens - 1

    @property
    def mean_interval_s(self) -> float | None:
        """The mean time between two outputs; None for a failed request and for a single output."""
        return None if self.failed or self.output_tokens < 2 else math.fsum(self.intervals_s) / (self.output_tokens - 1)

    @property
    def arrivals_s(self) -> tuple[float, ...]:
        """When its first token and each further chunk arrived, from the first sending. Raises InputError without it."""
        if self.sent_s is None:
            raise InputError("sent_s", None, "a time: the file has no start_times")
        return tuple(accumulate(self.intervals_s, initial=self.sent_s + self.ttft_s))


@dataclass(frozen=True)
class Benchmark:
    """One run of a benchmark client against an engine: its duration in seconds, and its requests in the file's order.

    `request_rate` is what the client was told, in requests per second: infinite if it sent all at once, None if the
    file does not say, as with requests at the times of a trace. So is `max_concurrency`, the most that it kept in
    flight; None means no limit.
    """

    file: str
    run: int
    runs: int
    duration_s: float
    requests: tuple[MeasuredRequest, ...] = field(repr=False)
    request_rate: float | None
    max_concurrency: int | None
    said: Mapping[str, int] = field(repr=False)

    @property
    def completed(self) -> int:
        """Requests with an answer, right or wrong."""
        return sum(not request.failed for request in self.requests)

    @property
    def failed(self) -> int:
        return len(self.requests) - self.completed

    @property
    def observed_s(self) -> float:
        """T_obs: the run's duration, or until the last token where that comes later."""
        return max(self.duration_s, *(end for one in self.requests if (end := _end_s(one)) is not None), 0.0)

    @property
    def completion_throughput(self) -> float:
        """Completed requests per second, right or wrong: what can be said without knowing which answers are right."""
        return completion_throughput(self.completed, self.observed_s)

    @property
    def has_start_times(self) -> bool:
        """Whether the file says when each completed request was sent."""
        return all(request.sent_s is not None for request in self.requests if not request.failed)

    def in_time(self, deadline_s: float) -> int:
        """Answers, right or wrong, that took the deadline or less from their sending."""
        deadline = seconds("deadline_s", deadline_s, above_zero=True)
        latencies = (request.latency_s for request in self.requests)
        return sum(latency is not None and round(latency, 9) <= deadline for latency in latencies)

    def with_correctness(self, flags: Sequence[int]) -> Window:
        """The run as a window of outcomes, once it is known which answers are right: 1 or 0 for each request.

        A failed request never came. Planned arrivals are not in the file, so both clocks of a deadline start with the
        sending. Without start times each request is placed at the window's start: its own times are right, and so are
        all means, but not how many were in flight together. Raises InputError for another count of flags, for what is
        neither 1 nor 0, and for a failed request that is called right.
        """
        if isinstance(flags, str) or not isinstance(flags, Sequence):
            raise InputError("flags", flags, "a sequence of 1 (right) and 0 (wrong)")
        if len(flags) != len(self.requests):
            raise InputError("flags", f"{len(flags)} flags", f"one for each of the {len(self.requests)} requests")
        for place, (flag, request) in enumerate(zip(flags, self.requests, strict=True)):
            if whole(f"flags, request {place}", flag, at_most=1) and request.failed:
                raise InputError(f"flags, request {place}", flag, "0: it failed, so it has no answer")
        outcomes = (_outcome(*each) for each in zip(self.requests, flags, strict=True))
        return Window(tuple(outcomes), self.observed_s)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know before trusting the numbers, one sentence each."""
        several = sum(not one.failed and not one.one_token_a_chunk for one in self.requests)
        told = [
            f"Failed requests, kept as answers that never came and left out of fits: {self.failed:,}."
            * bool(self.failed),
            f"Requests whose chunks are not single tokens, so that not each token has a time: {several:,}."
            * bool(several),
            "No start times: each request's own times are known, not when it was sent, so neither queue nor "
            "concurrency nor a fit." * (not self.has_start_times),
            "Planned arrivals are not recorded: deadlines count from the sending.",
        ]
        counts = {
            "completed": self.completed,
            "failed": self.failed,
            "total_input_tokens": sum(one.input_tokens for one in self.requests if not one.failed),
            "total_output_tokens": sum(one.output_tokens for one in self.requests),
        }
        for name, said in self.said.items():
            if said != counts[name]:
                told.append(f"The file says {name} {said:,}, its lists come to {counts[name]:,}.")
        return tuple(filter(None, told))


def _end_s(request: MeasuredRequest) -> float | None:
    return None if (latency := request.latency_s) is None else (request.sent_s or 0.0) + latency


def _outcome(request: MeasuredRequest, flag: int) -> Outcome:
    sent = request.sent_s or 0.0
    if request.failed:
        return Outcome(sent, sent, None, None, False)
    return Outcome(sent, sent, sent + request.ttft_s, _end_s(request), bool(flag))


def read_benchmarks(path: Path | str) -> tuple[Benchmark, ...]:
    """All runs in a benchmark client's file. Raises InputError as `read_benchmark`."""
    file = _file(path)
    found = _objects(file.name, _text(file))
    return tuple(_run(file.name, found, number) for number in range(len(found)))


def read_benchmark(path: Path | str, run: int | None = None) -> Benchmark:
    """One run in a benchmark client's file; a file with several wants the number of one, from 0.

    Raises InputError, which names file, field and request, for a file that cannot be read, for JSON that is none (with
    line and column), for missing fields, lists of different lengths, and values that are no counts or times.
    """
    file = _file(path)
    found = _objects(file.name, _text(file))
    if run is None and len(found) > 1:
        told = "; ".join(f"{number}: {_told(each)}" for number, each in enumerate(found))
        raise InputError("run", None, f"the number of one of the {len(found)} runs in {file.name} ({told})")
    return _run(file.name, found, 0 if run is None else whole("run", run, at_most=len(found) - 1))


def _run(file: str, found: Sequence[Mapping[str, Any]], number: int) -> Benchmark:
    where = file if len(found) == 1 else f"{file}, run {number}"
    return _Run(where, found[number]).benchmark(file, number, len(found))


def read_correctness(path: Path | str) -> tuple[int, ...]:
    """One 1 (right) or 0 (wrong) a line, in the order of the requests; a first line `is_correct` is a header.

    Raises InputError, which names file and line, for everything else.
    """
    file = _file(path)
    lines = [line.strip() for line in _text(file).splitlines()]
    flags = []
    for number, line in enumerate(lines, start=1):
        if not line or (number == 1 and line == "is_correct"):
            continue
        if line not in ("0", "1"):
            raise InputError(f"{file.name}, line {number}", line, "1 (right) or 0 (wrong)")
        flags.append(int(line))
    if not flags:
        raise InputError(file.name, "no flag", "a line with 1 (right) or 0 (wrong) for each request")
    return tuple(flags)


def _file(path: object) -> Path:
    if not isinstance(path, str | Path) or "\0" in str(path):
        raise InputError("path", path, "the path of a file, as text or as a Path")
    return Path(path)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError("path", str(path), f"a file that can be read ({error.strerror})") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{path.name}, line {line}", data[error.start : error.end], "text in UTF-8") from None


def _objects(file: str, text: str) -> list[Mapping[str, Any]]:
    """The JSON objects of a file, one behind the other."""
    decoder, found, at = json.JSONDecoder(), list[Mapping[str, Any]](), 0
    while rest := text[at:].lstrip():
        at = len(text) - len(rest)
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        try:
            value, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            where = f"{file}, line {error.lineno}, column {error.colno}"
            raise InputError(where, text[error.pos : error.pos + 20], f"JSON ({error.msg})") from None
        except (ValueError, RecursionError):  # a number or a nesting beyond what Python reads
            raise InputError(f"{file}, line {line}, column {column}", rest[:20], "JSON") from None
        if not isinstance(value, dict):
            raise InputError(f"{file}, line {line}, column {column}", rest[:20], "JSON objects, one for each run")
        found.append(value)
    if not found:
        raise InputError(file, "an empty file", "at least one JSON object of a benchmark client")
    return found


def _told(run: Mapping[str, Any]) -> str:
    return f"{run.get('completed', '?')} completed at {run.get('request_rate', '?')}/s"


def _from_first_sending(requests: Sequence[MeasuredRequest], duration_s: float) -> tuple[MeasuredRequest, ...]:
    """The requests, their starts on the client's clock made times from the first sending on.

    A failed one may have 0 as its start, or a time on another clock: its start counts only if it is not 0 and fits
    into the duration of the run together with those of all answers.
    """
    earliest = max((end for one in requests if (end := _end_s(one)) is not None), default=-math.inf) - duration_s
    starts = (one.sent_s for one in requests if not one.failed or (one.sent_s and one.sent_s >= earliest))
    first = min((start for start in starts if start is not None), default=0.0)

    def sent_s(one: MeasuredRequest) -> float | None:
        if one.sent_s is None or (one.failed and not (one.sent_s and first <= one.sent_s <= first + duration_s)):
            return None
        return one.sent_s - first

    return tuple(replace(one, sent_s=sent_s(one)) for one in requests)


@dataclass(frozen=True)
class _Run:
    """One object of a file, and how errors call it."""

    where: str
    fields: Mapping[str, Any]

    def benchmark(self, file: str, run: int, runs: int) -> Benchmark:
        lists = self._lists()
        duration = seconds(self._named("duration"), self._needed("duration"), above_zero=True)
        requests = self._requests(lists, duration)
        for place, request in enumerate(requests):
            if (end := _end_s(request)) is not None and end > duration + ROUNDED_S:
                allowed = f"at least {end:.3f} s, when request {place} has its last token"
                raise InputError(self._named("duration"), duration, allowed)
        said = {"completed": self._count("completed", self._needed("completed"))}
        for name in ("failed", "total_input_tokens", "total_output_tokens"):
            if self.fields.get(name) is not None:
                said[name] = self._count(name, self.fields[name])
        concurrency = self.fields.get("max_concurrency")
        most = None if concurrency is None else whole(self._named("max_concurrency"), concurrency, at_least=1)
        return Benchmark(file, run, runs, duration, requests, self._rate(), most, said)

    def _named(self, name: str, request: int | None = None) -> str:
        return f'{self.where}, "{name}"' + ("" if request is None else f", request {request}")

    def _needed(self, name: str) -> Any:
        if self.fields.get(name) is None:
            raise InputError(self._named(name), "missing", "a field of the client's result")
        return self.fields[name]

    def _count(self, name: str, value: object) -> int:
        return whole(self._named(name), value, at_most=MOST_TOKENS)

    def _tokens(self, name: str, value: object, request: int) -> int:
        return whole(self._named(name, request), value, at_most=MOST_REQUEST_TOKENS)

    def _time(self, name: str, value: object, request: int) -> float:
        return seconds(self._named(name, request), value)

    def _rate(self) -> float | None:
        rate = self.fields.get("request_rate")
        if rate in ("inf", math.inf):
            return math.inf
        if rate is None or isinstance(rate, str):  # SGLang's client writes "trace" where it replays one
            return None
        allowed = 'a rate above 0, or "inf"'
        number = finite(self._named("request_rate"), rate, 0, allowed)
        if not number:
            raise InputError(self._named("request_rate"), rate, allowed)
        return number

    def _lists(self) -> Mapping[str, Sequence[Any]]:
        names = [*_PER_REQUEST, *(["start_times"] if self.fields.get("start_times") is not None else [])]
        if missing := [name for name in names if self.fields.get(name) is None]:
            raise InputError(self._named(missing[0]), "missing", _DETAILS)
        lists = {name: self.fields[name] for name in names}
        for name, values in lists.items():
            if not isinstance(values, list):
                raise InputError(self._named(name), values, "a list with an entry for each request")
        count = len(lists["input_lens"])
        if not count:
            raise InputError(self._named("input_lens"), "empty", "at least one request")
        for name, values in lists.items():
            if len(values) != count:
                raise InputError(self._named(name), f"{len(values)} entries", f"{count} entries, as in input_lens")
        return lists

    def _requests(self, lists: Mapping[str, Sequence[Any]], duration_s: float) -> tuple[MeasuredRequest, ...]:
        read: Mapping[str, Callable[[int, Any], Any]] = {
            "input_lens": lambda place, value: self._tokens("input_lens", value, place),
            "output_lens": lambda place, value: self._tokens("output_lens", value, place),
            "ttfts": lambda place, value: self._time("ttfts", value, place),
            "itls": self._intervals,
            "errors": self._error,
            "start_times": lambda place, value: finite(self._named("start_times", place), value, 0, _CLOCK),
        }
        columns = {name: [read[name](*each) for each in enumerate(values)] for name, values in lists.items()}
        names = ("input_lens", "output_lens", "ttfts", "itls", "start_times", "errors")
        unknown = [None] * len(columns["errors"])
        rows = zip(*(columns.get(name, unknown) for name in names), strict=True)
        found = _from_first_sending([MeasuredRequest(*row) for row in rows], duration_s)
        for place, request in enumerate(found):
            if not request.failed and not request.input_tokens:
                raise InputError(self._named("input_lens", place), 0, "at least one token in")
            if not request.failed and not request.ttft_s:
                raise InputError(self._named("ttfts", place), 0.0, "a time above 0 s, as it has an answer")
        return found

    def _intervals(self, place: int, values: object) -> tuple[float, ...]:
        if not isinstance(values, list):
            raise InputError(self._named("itls", place), values, "a list of seconds")
        return tuple(self._time("itls", value, place) for value in values)

    def _error(self, place: int, value: object) -> str:
        if value is not None and not isinstance(value, str):
            raise InputError(self._named("errors", place), value, "text, empty if there was none")
        return value or ""
