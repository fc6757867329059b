"""Numbers of sections 8.6.1 and 8.6.2 and of the footnote that belongs to them."""

from collections.abc import Callable
from functools import cache, partial
from typing import Literal

from lib import made_benchmark, recalibration
from lib.admission import FURTHER_QUEUE_S, Verdict, deadline_ns, time_used, verdict
from lib.arrivals import Arrivals, load_of
from lib.benchmark_file import MADE, MADE_CORRECTNESS, Benchmark, read_benchmarks, read_correctness
from lib.design_problem import (
    ASSUMED_QUEUE_S,
    SHORT_CHAT,
    Prompt,
    interval_alone,
    prefill_alone,
    timed_request,
)
from lib.goodput import Since, Window
from lib.latency import percentile
from lib.little import EXAMPLE_RATE_PER_S, EXAMPLE_STAYS_S, Phase, Seen, requests_in_system, seen
from lib.memory import RequestShape
from lib.overload import Fate
from lib.recalibration import Recalibration, Replay, fitted, replay
from lib.scheduling import chunked
from lib.service_calibration import LONG_TASK, SHORT_TASK
from lib.service_overload import (
    MOST_REQUESTS,
    RATE_PER_S,
    REQUESTS,
    Guess,
    Way,
    bearable_rate,
    overloaded,
    service_engine,
)
from lib.service_record import (
    CONDITIONS,
    DEADLINE_S,
    TAIL_PERCENT,
    Admission,
    Condition,
    RecordedWindow,
    all_windows,
    by_planned_rate,
    middle,
    recorded,
    wrong_by_task,
)
from lib.step_time import NS
from lib.tool_load import ARRIVING_S, CALLS_AFTER, MAX_RUNNING, OUTPUTS, WAIT_S, ToolLoad
from lib.units import GIB
from tests.claims.claim import Claim

RATES = sorted({condition.arrivals_per_s for condition in CONDITIONS if condition.arrivals_per_s})
LOW, MIDDLE, HIGH = RATES
# A deadline of twice the chapter's: no request of the continuous windows is late then.
LATE_DEADLINE_S = 2 * DEADLINE_S


def one_by_one(rate: int) -> Condition:
    return Condition(Admission.ONE_AT_A_TIME, rate)


def batched(rate: int) -> Condition:
    return Condition(Admission.CONTINUOUS, rate)


def completed(condition: Condition) -> float:
    return middle(condition, lambda each: each.window.completion_throughput)


def good(condition: Condition, deadline_s: float = DEADLINE_S, since: Since = Since.PLANNED_ARRIVAL) -> float:
    return middle(condition, lambda each: each.window.goodput(deadline_s, since))


def good_of_each(condition: Condition) -> list[float]:
    return sorted(each.window.goodput(DEADLINE_S) for each in recorded(condition))


def longest(condition: Condition) -> float:
    return middle(condition, lambda each: each.window.longest_s())


def typical(condition: Condition) -> RecordedWindow:
    """The window with the median of completions: rate, stay and number in the system are of one window."""
    return sorted(recorded(condition), key=lambda each: each.window.completion_throughput)[1]


def in_all(count: Callable[[Window], int]) -> int:
    return sum(map(count, all_windows()))


def drop_percent(before: float, after: float) -> float:
    return 100 * (1 - after / before)


def the_only(values: set[int]) -> int:
    (value,) = values
    return value


def requests_a_window() -> int:
    return the_only({len(window.outcomes) for window in all_windows()})


def windows_a_condition() -> int:
    return the_only({len(recorded(condition)) for condition in CONDITIONS})


def tasks() -> int:
    return the_only({len(set(each.tasks)) for condition in CONDITIONS for each in recorded(condition)})


def recorded_claim(
    value: Callable[[], float],
    what: str,
    printed: str,
    unit: str,
    *ids: str,
    kind: Literal["input", "measured", "computed"] = "computed",
) -> Claim:
    """A number of 8.6.2 about the recorded windows, to half a unit of its last digit, or exact where it is whole."""
    digits = len(printed.partition(".")[2])
    ids = tuple(f"8.6.2{place}" if place.startswith("-") else place for place in ids) or ("8.6.2",)
    return Claim(ids, what, kind, (printed,), unit, 0.5 * 10**-digits if digits else 0, value)


def rate_claim(value: Callable[[], float], what: str, printed: str, *ids: str) -> Claim:
    return recorded_claim(value, f"{what}, median of three windows", printed, "/s", *ids, kind="measured")


def window_claim(value: Callable[[RecordedWindow], float], what: str, condition: Condition, printed: str) -> Claim:
    where = f"{condition.admission} at {condition.arrivals_per_s}/s"
    return recorded_claim(
        lambda: middle(condition, value), f"{what}, {where}, median of three windows", printed, "s", kind="measured"
    )


RECORDED_WINDOWS: tuple[Claim, ...] = (
    recorded_claim(tasks, "tasks of the service", "8", "tasks", "-01", "fn24-01", kind="input"),
    recorded_claim(lambda: DEADLINE_S, "deadline after the planned arrival", "3", "s", "-02", "-11", kind="input"),
    recorded_claim(lambda: len(Admission), "ways of admission", "3", "", "-03", kind="input"),
    recorded_claim(
        requests_a_window, "requests of a window", "16", "requests", "-04", "-10", "fn24-04", kind="input"
    ),
    recorded_claim(lambda: in_all(lambda each: each.completed), "answers in all windows", "336", "answers", "-05"),
    recorded_claim(
        lambda: in_all(lambda each: each.correct), "right answers", "294", "answers", "-06", kind="measured"
    ),
    recorded_claim(
        lambda: in_all(lambda each: each.qualified(DEADLINE_S)), "right answers in time", "155", "answers", "-07",
        kind="measured",
    ),
    recorded_claim(
        lambda: in_all(lambda each: each.correct_but_late(DEADLINE_S)), "right answers too late", "139", "answers",
        "-08",
    ),
    recorded_claim(windows_a_condition, "windows of a condition", "3", "windows", "-09", "fn24-03", kind="input"),
    recorded_claim(lambda: LOW, "lowest rate of arrival", "1", "/s", "-12", kind="input"),
    recorded_claim(
        lambda: sum(condition.arrivals_per_s == LOW for condition in CONDITIONS), "ways of admission at that rate", "2",
        "", "-13", kind="input",
    ),
    rate_claim(lambda: good(one_by_one(LOW)), "goodput, one at a time at 1/s", "0.90", "-14"),
    rate_claim(lambda: good(batched(LOW)), "goodput, continuous at 1/s", "0.90"),
    recorded_claim(lambda: MIDDLE, "middle rate of arrival", "4", "/s", "-15", kind="input"),
    rate_claim(lambda: completed(one_by_one(MIDDLE)), "completions, one at a time at 4/s", "1.22", "-16"),
    rate_claim(lambda: good(one_by_one(MIDDLE)), "goodput, one at a time at 4/s", "0.31", "-17"),
    rate_claim(lambda: completed(batched(MIDDLE)), "completions, continuous at 4/s", "2.33", "-18"),
    rate_claim(lambda: good(batched(MIDDLE)), "goodput, continuous at 4/s", "1.02", "-19"),
    recorded_claim(lambda: HIGH, "highest rate of arrival", "16", "/s", "-20", kind="input"),
    rate_claim(lambda: completed(batched(HIGH)), "completions, continuous at 16/s", "2.38", "-21"),
    rate_claim(lambda: good(batched(HIGH)), "goodput, continuous at 16/s", "0.60", "-22"),
    Claim(
        ("8.6.2-23",), "loss of goodput from 4/s to 16/s", "computed", ("41",), "%", 0.5,
        lambda: drop_percent(good(batched(MIDDLE)), good(batched(HIGH))),
    ),
    recorded_claim(lambda: len(CONDITIONS), "conditions", "7", "", "fn24-02", kind="input"),
    recorded_claim(lambda: sum(wrong_by_task().values()), "wrong answers", "42", "answers", "fn24-05"),
    recorded_claim(
        lambda: len(wrong_by_task()), "tasks that had a wrong answer", "1", "task", "fn24-06", kind="measured"
    ),
    recorded_claim(lambda: TAIL_PERCENT, "percentile reported", "95", "%", "fn24-07", kind="input"),
    recorded_claim(
        lambda: percentile(range(1, requests_a_window() + 1), TAIL_PERCENT), "its rank in a window", "16", "",
        "fn24-08",
    ),
    # What the notebook says beside that.
    recorded_claim(lambda: in_all(lambda each: each.in_time(DEADLINE_S)), "answers in time", "173", "answers"),
    recorded_claim(
        lambda: in_all(lambda each: each.in_time_but_wrong(DEADLINE_S)), "of these wrong", "18", "answers"
    ),
    recorded_claim(
        lambda: the_only({window.correct for window in all_windows()}), "right answers of each window", "14", "answers"
    ),
    rate_claim(
        lambda: good(one_by_one(MIDDLE), since=Since.SENDING), "goodput if time counts from sending, one by one, 4/s",
        "1.07",
    ),
    rate_claim(
        lambda: good(one_by_one(HIGH), since=Since.SENDING), "goodput if time counts from sending, one by one, 16/s",
        "1.08",
    ),
    rate_claim(lambda: good(one_by_one(HIGH)), "goodput, one at a time at 16/s", "0.23"),
    recorded_claim(
        lambda: in_all(lambda each: each.qualified(DEADLINE_S, Since.SENDING)), "good if time counts from sending",
        "216", "answers",
    ),
    window_claim(lambda each: each.window.longest_s(), "longest request", batched(MIDDLE), "3.75"),
    window_claim(lambda each: each.window.longest_s(), "longest request", batched(HIGH), "5.94"),
    window_claim(lambda each: each.window.longest_s(), "longest request", one_by_one(MIDDLE), "9.36"),
    window_claim(lambda each: each.window.longest_queue_s, "longest wait outside", one_by_one(MIDDLE), "8.75"),
    window_claim(lambda each: each.longest_engine_queue_s, "longest wait inside", batched(HIGH), "4.70"),
    rate_claim(lambda: good_of_each(batched(MIDDLE))[0], "least goodput, continuous at 4/s", "0.79"),
    rate_claim(lambda: good_of_each(batched(MIDDLE))[-1], "most goodput, continuous at 4/s", "1.49"),
    rate_claim(lambda: good_of_each(batched(HIGH))[0], "least goodput, continuous at 16/s", "0.44"),
    rate_claim(lambda: good_of_each(batched(HIGH))[-1], "most goodput, continuous at 16/s", "0.89"),
    # To so many digits that the length of each window is noticed.
    rate_claim(lambda: good(one_by_one(LOW)), "goodput, one at a time at 1/s", "0.8962"),
    rate_claim(lambda: good(batched(LOW)), "goodput, continuous at 1/s", "0.8968"),
    rate_claim(lambda: good(one_by_one(MIDDLE)), "goodput, one at a time at 4/s", "0.3112"),
    rate_claim(lambda: good(batched(HIGH)), "goodput, continuous at 16/s", "0.60405"),
    rate_claim(lambda: good_of_each(batched(HIGH))[0], "least goodput, continuous at 16/s", "0.4439"),
    recorded_claim(lambda: LATE_DEADLINE_S, "a later deadline", "6", "s"),
    rate_claim(lambda: good(batched(MIDDLE), LATE_DEADLINE_S), "goodput by 6 s, continuous at 4/s", "2.04"),
    rate_claim(lambda: good(batched(HIGH), LATE_DEADLINE_S), "goodput by 6 s, continuous at 16/s", "2.08"),
    recorded_claim(
        lambda: round(typical(one_by_one(MIDDLE)).window.mean_in_system),
        "requests in the system on average, one at a time at 4/s, rounded", "6", "requests", kind="measured",
    ),
    recorded_claim(
        lambda: round(by_planned_rate(typical(one_by_one(MIDDLE)))),
        "what 4/s times the mean stay would give, rounded", "19", "requests",
    ),
)  # fmt: skip


def short_request_s(further_queue_s: float = 0) -> float:
    """The short request of 8.1.1 from its arrival to its last output, by the rule of admission."""
    queue, prefill = ASSUMED_QUEUE_S + further_queue_s, prefill_alone(Prompt.SHORT).seconds
    queue_ns, prefill_ns, interval_ns = (round(time * NS) for time in (queue, prefill, interval_alone().seconds))
    return time_used(queue_ns, prefill_ns, SHORT_CHAT.output_tokens, interval_ns) / NS


def short_request_fits(further_queue_s: float) -> bool:
    left_ns = deadline_ns(SHORT_CHAT.deadline_s)
    return verdict(round(short_request_s(further_queue_s) * NS), left_ns, 0, 0, 0) == Verdict.LET_IN


def fate_claim(way: Way, fate: Fate, printed: str, guess: Guess = Guess.FULL) -> Claim:
    return Claim(
        ("8.6.1",), f"{fate}, if {way}, forecast: {guess}", "computed", (printed,), "requests", 0,
        lambda: overloaded(way, guess=guess).count(fate),
    )  # fmt: skip


def device_claim(way: Way, printed: str) -> Claim:
    return Claim(
        ("8.6.1",), f"device time for each request in time, if {way}", "computed", (printed,), "s", 0.005,
        lambda: (overloaded(way).busy_ns_per_result or 0) / NS,
    )  # fmt: skip


def wasted_claim(way: Way, printed: str) -> Claim:
    return Claim(
        ("8.6.1",), f"share of tokens computed in vain, if {way}", "computed", (printed,), "%", 0.5,
        lambda: 100 * overloaded(way).wasted_tokens / overloaded(way).computed_tokens,
    )  # fmt: skip


def forecast_s(task: RequestShape, guess: Guess) -> float:
    (request,) = load_of((0,), [task])
    return service_engine(guess).forecast(request) / NS


ADMISSION: tuple[Claim, ...] = (
    Claim(
        ("8.6.1-06",), "time to first output of the short request", "computed", ("0.196",), "s", 0.0005,
        lambda: timed_request().ttft_s,
    ),
    Claim(
        ("8.6.1-07",), "its generation", "computed", ("6.76",), "s", 0.005,
        lambda: timed_request().total_s - timed_request().ttft_s,
    ),
    Claim(("8.6.1-08",), "time that it uses", "computed", ("6.95",), "s", 0.005, short_request_s),
    Claim(("8.6.1",), "the same, unrounded", "computed", ("6.9535",), "s", 0.00005, short_request_s),
    Claim(("8.6.1-09",), "further time in the queue", "input", ("0.1",), "s", 0, lambda: FURTHER_QUEUE_S),
    Claim(
        ("8.6.1",), "time that it then uses", "computed", ("7.0535",), "s", 0.00005,
        lambda: short_request_s(FURTHER_QUEUE_S),
    ),
    Claim(("8.6.1",), "whether it is let in", "computed", ("1",), "", 0, lambda: short_request_fits(0)),
    Claim(
        ("8.6.1",), "whether it is let in if it waits longer", "computed", ("0",), "", 0,
        lambda: short_request_fits(FURTHER_QUEUE_S),
    ),
    Claim(("8.6.1",), "requests of the load", "input", ("32",), "requests", 0, lambda: REQUESTS),
    Claim(("8.6.1",), "arrivals a second of the load", "input", ("4",), "requests/s", 0, lambda: RATE_PER_S),
    Claim(
        ("8.6.1",), "requests at once that tell what it can bear", "input", ("256",), "requests", 0,
        lambda: MOST_REQUESTS,
    ),
    Claim(("8.6.1",), "requests a second that the engine can bear", "computed", ("2.39",), "requests/s", 0.005,
          bearable_rate),
    Claim(("8.6.1",), "how many times that the load is", "computed", ("1.7",), "", 0.05,
          lambda: RATE_PER_S / bearable_rate()),
    fate_claim(Way.ALL_IN, Fate.IN_TIME, "10"),
    fate_claim(Way.ALL_IN, Fate.LATE, "22"),
    fate_claim(Way.GIVE_UP, Fate.IN_TIME, "10"),
    fate_claim(Way.GIVE_UP, Fate.LATE, "2"),
    fate_claim(Way.GIVE_UP, Fate.GIVEN_UP, "20"),
    fate_claim(Way.REFUSE, Fate.IN_TIME, "24"),
    fate_claim(Way.REFUSE, Fate.REFUSED, "8"),
    fate_claim(Way.REFUSE, Fate.IN_TIME, "10", Guess.ALONE),
    fate_claim(Way.REFUSE, Fate.REFUSED, "0", Guess.ALONE),
    fate_claim(Way.PASS_ON, Fate.IN_TIME, "32"),
    fate_claim(Way.FASTER, Fate.IN_TIME, "32"),
    Claim(
        ("8.6.1",), "long prompts among the refused", "computed", ("8",), "requests", 0,
        lambda: sum(
            each.request.prompt == LONG_TASK.input_tokens
            for each in overloaded(Way.REFUSE).outcomes
            if each.fate == Fate.REFUSED
        ),
    ),
    wasted_claim(Way.ALL_IN, "69"),
    wasted_claim(Way.GIVE_UP, "69"),
    device_claim(Way.ALL_IN, "1.34"),
    device_claim(Way.GIVE_UP, "1.08"),
    device_claim(Way.REFUSE, "0.36"),
    device_claim(Way.PASS_ON, "0.47"),
    device_claim(Way.FASTER, "0.42"),
    Claim(
        ("8.6.1",), "time in the engine forecast for a short task with rows full", "computed", ("0.87",), "s", 0.005,
        lambda: forecast_s(SHORT_TASK, Guess.FULL),
    ),
    Claim(
        ("8.6.1",), "time in the engine forecast for a long task with rows full", "computed", ("2.43",), "s", 0.005,
        lambda: forecast_s(LONG_TASK, Guess.FULL),
    ),
    Claim(
        ("8.6.1",), "time in the engine forecast for a short task alone", "computed", ("0.61",), "s", 0.005,
        lambda: forecast_s(SHORT_TASK, Guess.ALONE),
    ),
    Claim(
        ("8.6.1",), "time in the engine forecast for a long task alone", "computed", ("1.00",), "s", 0.005,
        lambda: forecast_s(LONG_TASK, Guess.ALONE),
    ),
)  # fmt: skip


def in_system_claim(value: Callable[[], float], what: str, printed: str, *ids: str, unit: str = "requests") -> Claim:
    """A number of requests, or what follows from it; half a unit of the last digit."""
    digits = len(printed.partition(".")[2])
    return Claim(ids or ("8.6.1",), what, "computed", (printed,), unit, 0.5 * 10**-digits if digits else 0, value)


def example_input(value: Callable[[], float], what: str, printed: str, unit: str, *ids: str) -> Claim:
    return Claim(ids or ("8.6.1",), what, "input", (printed,), unit, 0, value)


@cache
def tool_load(**other: float) -> ToolLoad:
    return ToolLoad(**other)  # type: ignore[arg-type]


@cache
def by_chance() -> ToolLoad:
    return ToolLoad(arrivals=Arrivals.POISSON)


def first_seconds() -> Seen:
    """A window that begins with the run and cuts off the last stays."""
    return seen(tool_load().run, 0, 2 * NS)


LITTLE: tuple[Claim, ...] = (
    example_input(lambda: EXAMPLE_RATE_PER_S, "arrivals of the example", "4", "requests/s", "8.6.1-01"),
    example_input(lambda: EXAMPLE_STAYS_S[0], "mean stay", "0.5", "s", "8.6.1-02"),
    example_input(lambda: EXAMPLE_STAYS_S[1], "longer mean stay", "2", "s", "8.6.1-04"),
    *(
        in_system_claim(
            partial(requests_in_system, EXAMPLE_RATE_PER_S, stay), f"in the system at {stay} s", printed, claim
        )
        for stay, printed, claim in zip(EXAMPLE_STAYS_S, ("2", "8"), ("8.6.1-03", "8.6.1-05"), strict=True)
    ),
    example_input(lambda: OUTPUTS, "outputs of a request that calls a tool", "16", "token"),
    example_input(lambda: CALLS_AFTER, "outputs before the call", "8", "token"),
    example_input(lambda: WAIT_S, "time of the tool", "1", "s"),
    example_input(lambda: MAX_RUNNING, "rows", "8", "rows"),
    example_input(lambda: ARRIVING_S, "time in which requests arrive", "12", "s"),
    in_system_claim(lambda: tool_load(wait_s=0).whole_run.mean_stay_s, "mean stay without a tool", "0.63", unit="s"),
    in_system_claim(lambda: tool_load(wait_s=0).settled.mean(), "in the system without a tool", "2.6"),
    in_system_claim(lambda: tool_load().whole_run.mean_stay_s, "mean stay", "1.64", unit="s"),
    in_system_claim(lambda: tool_load().by_the_law, "rate times mean stay", "6.6"),
    in_system_claim(lambda: tool_load().settled.mean(), "in the system, by its area", "6.6"),
    in_system_claim(lambda: tool_load().settled.mean(Phase.COMPUTING), "of these with a row", "2.5"),
    in_system_claim(lambda: tool_load().settled.mean(Phase.HOLDING), "of these at a tool", "4.0"),
    in_system_claim(lambda: tool_load().whole_run.by_the_law, "rate times mean stay over the whole run", "5.9"),
    in_system_claim(lambda: tool_load().present.mean(), "mean over the whole run", "5.9"),
    in_system_claim(lambda: first_seconds().by_the_law, "rate times mean stay, first 2 s", "6.6"),
    in_system_claim(lambda: first_seconds().in_system, "mean of the first 2 s", "4.3"),
    in_system_claim(lambda: first_seconds().carried_out_ns / NS, "of these stays, after the window", "4.6", unit="s"),
    in_system_claim(lambda: tool_load().peak_bytes / GIB, "peak of KV held", "1.98", unit="GiB"),
    in_system_claim(lambda: 100 * tool_load().idle_share, "of KV held, idle", "62.1", unit="%"),
    in_system_claim(lambda: tool_load(wait_s=3).settled.mean(), "in the system, tool of 3 s", "14.6"),
    in_system_claim(lambda: tool_load(wait_s=3).settled.mean(Phase.COMPUTING), "with a row, tool of 3 s", "2.5"),
    in_system_claim(lambda: tool_load(wait_s=3).peak_bytes / GIB, "peak of KV, tool of 3 s", "4.25", unit="GiB"),
    in_system_claim(lambda: 100 * tool_load(wait_s=3).idle_share, "idle, tool of 3 s", "83.3", unit="%"),
    in_system_claim(lambda: tool_load().fit, "requests that the pool holds", "42"),
    in_system_claim(lambda: tool_load(wait_s=10).by_the_law, "rate times mean stay, tool of 10 s", "42.4"),
    in_system_claim(lambda: tool_load(rate_per_s=5, wait_s=10).longest_queue, "longest queue, 5/s, tool of 10 s", "12"),
    in_system_claim(
        lambda: tool_load(rate_per_s=5, wait_s=10).settled.mean(Phase.COMPUTING), "with a row meanwhile", "1.4"
    ),
    in_system_claim(
        lambda: 100 * tool_load(rate_per_s=5, wait_s=10).idle_share, "of KV held, idle meanwhile", "94.6", unit="%"
    ),
    in_system_claim(lambda: tool_load(max_running=1).longest_queue, "longest queue with one row", "23"),
    in_system_claim(lambda: tool_load(max_running=1).by_the_law, "rate times mean stay with one row", "27.1"),
    in_system_claim(lambda: tool_load(max_running=1).settled.mean(), "in the system with one row", "20.0"),
    in_system_claim(lambda: by_chance().present.peak, "most at once, by chance", "13"),
    in_system_claim(lambda: by_chance().whole_run.mean_stay_s, "mean stay, by chance", "1.69", unit="s"),
)


# A reader's own engine: the made file, what it was made with, what is fitted to it, and what the replay says.


@cache
def made_runs() -> tuple[Benchmark, ...]:
    return read_benchmarks(MADE)


@cache
def made_fit(run: int) -> Recalibration:
    return fitted(made_runs()[run], made_benchmark.POLICY)


@cache
def made_replay(run: int, rows: int = made_benchmark.ROWS) -> Replay:
    return replay(made_runs()[run], chunked(rows, made_benchmark.BUDGET, made_benchmark.BUDGET), made_fit(1).fit)


def made_window(run: int) -> Window:
    return made_runs()[run].with_correctness(read_correctness(MADE_CORRECTNESS))


def replayed_window(run: int, rows: int) -> Window:
    return made_replay(run, rows).predicted.with_correctness(read_correctness(MADE_CORRECTNESS))


def interval_error(run: int) -> float:
    error = made_replay(run).interval_error
    assert error is not None
    return error


def made_claim(
    what: str,
    printed: str,
    unit: str,
    value: Callable[[], float],
    kind: Literal["input", "measured", "computed"] = "computed",
) -> Claim:
    decimals = len(printed.partition(".")[2])
    tolerance = 0 if kind == "input" else 0.5 * 10**-decimals
    return Claim(("8.6.2",), f"made file: {what}", kind, (printed,), unit, tolerance, value)


def engine_claims() -> tuple[Claim, ...]:
    made = made_benchmark
    inputs = [
        made_claim("rows of the engine", "8", "requests", lambda: made.ROWS, "input"),
        made_claim("token budget of the engine", "2048", "tokens", lambda: made.BUDGET, "input"),
        made_claim("requests of a run", "48", "requests", lambda: made.REQUESTS, "input"),
        made_claim("failed in a run", "2", "requests", lambda: len(made.FAILED), "input"),
        made_claim("a step, true", "9.00", "ms", lambda: made.FIT.fixed_ns / 1e6, "input"),
        made_claim("a new token, true", "60.0", "us", lambda: made.FIT.per_new_token_ns / 1e3, "input"),
        made_claim("a pair, true", "5", "ns", lambda: made.FIT.per_causal_pair_ns, "input"),
        *(
            made_claim(f"rate of sending, run {run}", f"{rate}", "/s", lambda run=run: made.RATES_PER_S[run], "input")  # type: ignore[misc]
            for run, rate in enumerate((1, 4, 16))
        ),
    ]
    limits = [
        made_claim("together, share of a short interval", "0.25", "", lambda: recalibration.TOGETHER, "input"),
        made_claim("a short interval, percentile", "5", "%", lambda: recalibration.SHORT_PERCENT, "input"),
        made_claim("classes of pairs an octave", "4", "", lambda: recalibration.CLASSES_AN_OCTAVE, "input"),
        made_claim("least share of a column of its own", "0.02", "", lambda: recalibration.APART, "input"),
        made_claim("most that a term leaves vague", "0.25", "", lambda: recalibration.VAGUE, "input"),
        made_claim("rounds of weights", "50", "rounds", lambda: recalibration.ROUNDS, "input"),
        made_claim("least residual", "0.0001", "", lambda: recalibration.LEAST_RESIDUAL, "input"),
        made_claim("deviation of a normal law over its median", "1.4826", "", lambda: recalibration.NORMAL, "input"),
    ]
    fits = [
        made_claim("a step, fitted to the run at 4/s", "9.00", "ms", lambda: made_fit(1).fit.fixed_ns / 1e6),
        made_claim("a new token, fitted", "60.0", "us", lambda: made_fit(1).fit.per_new_token_ns / 1e3),
        made_claim("a pair, fitted", "5", "ns", lambda: made_fit(1).fit.per_causal_pair_ns),
        made_claim("median error of an equation", "0.11", "%", lambda: 100 * made_fit(1).error),
        made_claim(
            "first tokens at 16/s, median error of the replay", "0.0", "%", lambda: 100 * made_replay(2).ttft_error
        ),
        made_claim("intervals at 16/s, median error of the replay", "0.0", "%", lambda: 100 * interval_error(2)),
    ]
    outcomes = [
        made_claim("right answers of a run", "40", "answers", lambda: made_window(1).correct),
        made_claim("completed at 1/s", "0.80", "/s", lambda: made_window(0).completion_throughput),
        made_claim("completed at 4/s", "3.42", "/s", lambda: made_window(1).completion_throughput),
        made_claim("completed at 16/s", "4.25", "/s", lambda: made_window(2).completion_throughput),
        made_claim("good by 3 s at 1/s", "0.69", "/s", lambda: made_window(0).goodput(DEADLINE_S)),
        made_claim("good by 3 s at 4/s", "2.45", "/s", lambda: made_window(1).goodput(DEADLINE_S)),
        made_claim("good by 3 s at 16/s", "0.46", "/s", lambda: made_window(2).goodput(DEADLINE_S)),
        made_claim("in time at 16/s", "5", "answers", lambda: made_window(2).in_time(DEADLINE_S)),
        made_claim("longest at 16/s", "8.50", "s", lambda: made_window(2).longest_s()),
        made_claim("rows doubled", "16", "requests", lambda: 2 * made.ROWS),
        made_claim(
            "completed at 16/s, rows doubled", "4.61", "/s",
            lambda: replayed_window(2, 2 * made.ROWS).completion_throughput,
        ),
        made_claim(
            "good at 16/s, rows doubled", "0.00", "/s", lambda: replayed_window(2, 2 * made.ROWS).goodput(DEADLINE_S)
        ),
        made_claim(
            "completed at 16/s, rows halved", "3.63", "/s",
            lambda: replayed_window(2, made.ROWS // 2).completion_throughput,
        ),
        made_claim(
            "good at 16/s, rows halved", "0.55", "/s", lambda: replayed_window(2, made.ROWS // 2).goodput(DEADLINE_S)
        ),
    ]  # fmt: skip
    return (*inputs, *limits, *fits, *outcomes)


CLAIMS: tuple[Claim, ...] = (*LITTLE, *ADMISSION, *RECORDED_WINDOWS, *engine_claims())
