"""The engine of the recorded service, for the simulator: calibrated on requests that ran alone, tried on the rest.

Four medians of the windows at one request a second, one at a time, give the four terms of a step's time. The windows in
which requests share steps have no part in that, so what the simulator says of them is a test. Source: section 8.6.2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

from lib.admission import Engine, ServiceForecast, Verdict, decide
from lib.arrivals import at_once, even
from lib.attention import causal_pairs
from lib.checks import InputError, keep_whole, one_of
from lib.design_problem import INSTANCE
from lib.fast_forward import simulate
from lib.goodput import Outcome, Window
from lib.memory import KvPool, RequestShape
from lib.records import record
from lib.scheduling import Policy, Request
from lib.service_record import CONDITIONS, Admission, Condition, recorded
from lib.step_time import NS, StepPlan, StepTime, device, step_plan

# Tokens in and out of the tasks, by the beginning of their names. Source: experiment 8-9 of the book's repository.
OUTPUTS = 46
SHORT_TASK, LONG_TASK = RequestShape(1863, OUTPUTS), RequestShape(7239, OUTPUTS)
_SHAPES = {"n128": SHORT_TASK, "n512": LONG_TASK}
# Never answered right in the record, and so in the simulator.
WRONG_TASK = "n512-r0"

MOST_RUNNING = 4
# Not recorded. Prompts of 16,341 tokens together gave their first tokens in one step beside a decode, and of three long
# ones, 21,717 tokens, the third came a step later; the engine's default on a large card lies between.
TOKEN_BUDGET = 2**14
POOL = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes)

_ALONE = Condition(Admission.ONE_AT_A_TIME, 1)
# The conditions of which the calibration knows nothing.
UNSEEN = tuple(condition for condition in CONDITIONS if condition != _ALONE)


@dataclass(frozen=True)
class ComputeOrRead(StepTime):
    """The longer of computing and reading, in whole ns (clock: fit).

    Computing takes a time per new token, for the matrices, and one per thousand query-key pairs, for attention; reading
    one per step, for the weights, and one per token in context, for KV.
    """

    per_new_token_ns: int
    per_thousand_pairs_ns: int
    per_step_ns: int
    per_context_token_ns: int

    def __post_init__(self) -> None:
        keep_whole(self, NS * 3600, per_new_token_ns=0, per_thousand_pairs_ns=0, per_step_ns=1, per_context_token_ns=0)

    def __call__(self, plan: StepPlan) -> int:
        return max(self._compute_ns(plan.new_tokens, plan.pairs), self._read_ns(plan.context_tokens))

    def decode_stretch(self, decodes: int, pairs: int, most: int) -> tuple[int, int, int]:
        """As of any model; as long as reading takes longer, all steps are one series."""

        def reads(step: int) -> bool:
            pairs_now = pairs + step * decodes
            return self._compute_ns(decodes, pairs_now) <= self._read_ns(pairs_now - decodes)

        # What both take grows evenly, so if reading takes longer in the first and the last step it does between them.
        if not (reads(0) and reads(most - 1)):
            return super().decode_stretch(decodes, pairs, most)
        return most, self._read_ns(pairs - decodes), self.per_context_token_ns * decodes

    def _compute_ns(self, new_tokens: int, pairs: int) -> int:
        return self.per_new_token_ns * new_tokens + -(-self.per_thousand_pairs_ns * pairs // 1000)

    def _read_ns(self, context_tokens: int) -> int:
        return self.per_step_ns + self.per_context_token_ns * context_tokens


@dataclass(frozen=True)
class Alone:
    """A task with the engine to itself, in seconds: its prefill and the mean of its intervals (clock: client)."""

    prefill_s: float
    interval_s: float


def alone(task: RequestShape) -> Alone:
    """The medians over the 24 runs of a kind of task, one at a time at one request a second, without any queue.

    Raises InputError for a shape that none of the tasks has.
    """
    return _alone(one_of("task", task, _SHAPES.values()))


@cache
def _alone(shape: RequestShape) -> Alone:
    rows = record("service_requests").where(admission=_ALONE.admission, arrivals_per_s=_ALONE.arrivals_per_s)
    runs = [row for row in rows if shape_of(row["task"]) == shape]
    return Alone(
        prefill_s=median(row["ttft_s"] - row["application_queue_s"] - row["engine_queue_s"] for row in runs),
        interval_s=median(row["total_s"] - row["ttft_s"] for row in runs) / (shape.output_tokens - 1),
    )


def shape_of(task: str) -> RequestShape:
    """The tokens in and out of a task of the record, such as "n128-r2"; raises InputError for any other name."""
    kind, dash, _ = task.partition("-") if isinstance(task, str) else ("", "", "")
    if kind not in _SHAPES or not dash:
        raise InputError("task", task, f"a task of the record, such as {WRONG_TASK!r}")
    return _SHAPES[kind]


@cache
def service_step() -> ComputeOrRead:
    """The step time with which both kinds of task take alone what they took: four terms for four medians."""
    short, long = alone(SHORT_TASK), alone(LONG_TASK)
    per_token, per_pair = _two_terms(
        [(task.input_tokens, causal_pairs(task.input_tokens)) for task in (SHORT_TASK, LONG_TASK)],
        (short.prefill_s, long.prefill_s),
    )
    per_step, per_context_token = _two_terms(
        [(1, _mean_context(task)) for task in (SHORT_TASK, LONG_TASK)], (short.interval_s, long.interval_s)
    )
    return ComputeOrRead(
        round(per_token * NS), round(1000 * per_pair * NS), round(per_step * NS), round(per_context_token * NS)
    )


def _mean_context(task: RequestShape) -> int:
    """Tokens in context in the middle one of its steps of decode."""
    return task.input_tokens + (task.output_tokens - 2) // 2


def _two_terms(amounts: Sequence[tuple[float, float]], times_s: tuple[float, float]) -> tuple[float, float]:
    """The times x and y of which each time given is so many x and so many y."""
    (a, b), (c, d) = amounts
    first, second = times_s
    determinant = a * d - b * c
    return (first * d - b * second) / determinant, (a * second - first * c) / determinant


def prefill_mfu(task: RequestShape) -> float:
    """The share of the card's peak that the prefill of a task reached alone (clock: client)."""
    one = device(mfu=1, mbu=1)
    return one.compute_ns(step_plan((task.input_tokens, 0))) / NS / alone(task).prefill_s


def decode_mbu(task: RequestShape) -> float:
    """The share of the card's bandwidth that the decode of a task reached alone (clock: client)."""
    one = device(mfu=1, mbu=1)
    return one.read_ns(step_plan((1, _mean_context(task)))) / NS / alone(task).interval_s


def serve(
    tasks: Sequence[str], arrivals_ns: Sequence[int], admission: Admission, deadline_s: float | None = None
) -> Window:
    """The window in which the simulator serves these tasks of the record, planned to arrive at these times.

    One at a time means that a request waits outside until no other is in the engine; otherwise it is sent on its
    arrival, and the engine runs at most four. With a deadline a gateway refuses whoever it expects to be late. An
    answer is right or wrong by its task; the window ends with the last answer or arrival. Raises InputError for what is
    no task, for arrivals out of order, and for a deadline by which nobody is expected to be done. Source: section
    8.6.2; the gateway: 8.6.1.
    """
    one_by_one = one_of("admission", admission, Admission) == Admission.ONE_AT_A_TIME
    policy = Policy(1 if one_by_one else MOST_RUNNING, token_budget=TOKEN_BUDGET)
    assert POOL.requests_that_fit(LONG_TASK) >= MOST_RUNNING, "the pool is never full, so it is left out"
    load = requests_of(tasks, arrivals_ns)
    let_in = range(len(load)) if deadline_s is None else _let_in(load, policy, deadline_s)
    schedule = simulate([load[place] for place in let_in], policy, service_step())
    sent = schedule.started_ns if one_by_one else schedule.arrival_ns
    times = zip(sent.tolist(), schedule.first_token_ns.tolist(), schedule.finish_ns.tolist(), strict=True)
    served = {place: (at / NS, first / NS, end / NS) for place, (at, first, end) in zip(let_in, times, strict=True)}
    outcomes = tuple(
        Outcome(request.arrival_ns / NS, *served[place], tasks[place] != WRONG_TASK)
        if place in served
        else Outcome(request.arrival_ns / NS, None, None, None, is_correct=False)
        for place, request in enumerate(load)
    )
    return Window(outcomes, max(schedule.total_ns, load[-1].arrival_ns) / NS)


def _let_in(load: Sequence[Request], policy: Policy, deadline_s: float) -> list[int]:
    """Whom the gateway lets in, which reckons with a full batch of the request's own like."""
    forecast = ServiceForecast(service_step(), policy.max_running)
    by_prompt = {request.prompt: request for request in load}
    expected = {prompt: forecast(request) for prompt, request in by_prompt.items()}
    engine = Engine(policy, service_step(), lambda request: expected[request.prompt])
    answers = decide(load, (engine,), deadline_s)
    places = [place for place, (answer,) in enumerate(answers) if answer.verdict == Verdict.LET_IN]
    if not places:
        raise InputError("deadline_s", deadline_s, "a deadline by which somebody is expected to be done")
    return places


def requests_of(tasks: Sequence[str], arrivals_ns: Sequence[int]) -> tuple[Request, ...]:
    """The tasks as requests of the simulator.

    Raises InputError for what is no sequence, and where there are not as many arrivals.
    """
    for name, given in (("tasks", tasks), ("arrivals_ns", arrivals_ns)):
        if not isinstance(given, Sequence):
            raise InputError(name, given, "a sequence, one for each request")
    if len(tasks) != len(arrivals_ns):
        raise InputError("arrivals_ns", len(arrivals_ns), f"one arrival for each of the {len(tasks)} tasks")
    shapes = map(shape_of, tasks)
    return tuple(
        Request(at, shape.input_tokens, shape.output_tokens) for at, shape in zip(arrivals_ns, shapes, strict=True)
    )


def replayed(condition: Condition) -> tuple[Window, ...]:
    """The three windows of a recorded condition, simulated: the same tasks and the same planned arrivals.

    Raises InputError for what is none.
    """
    recorded(condition)  # refuses what is none, which may have no hash
    return _replayed(condition)


@cache
def _replayed(condition: Condition) -> tuple[Window, ...]:
    windows = recorded(condition)
    rate, count = condition.arrivals_per_s, len(windows[0].tasks)
    arrivals = even(rate, count) if rate else at_once(count)
    return tuple(serve(window.tasks, arrivals, condition.admission) for window in windows)


def prediction_error(condition: Condition, quantity: Callable[[Window], float]) -> float:
    """How far the simulator's median over the three windows is from the recorded one: 0.01 means 1 % too high.

    Raises InputError for what is no condition, and where the recorded median is 0.
    """
    measured = median(quantity(each.window) for each in recorded(condition))
    if not measured:
        raise InputError("quantity", measured, "a quantity of which the recorded median is not 0")
    return median(map(quantity, replayed(condition))) / measured - 1
