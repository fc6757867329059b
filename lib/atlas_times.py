"""The measured times of the chapter beside the models that claim to predict them: one part of `lib.atlas`.

The same three step times run through the same engine for every record. That the card's host took about 26, 17 and 13 ms
for a step in three experiments stands in none of them: `Model.OWN_HOST` takes the time of an experiment's own steps.
"""

from collections.abc import Callable, Iterator, Mapping
from statistics import mean, median
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from lib import dflash, retries
from lib.agent_replay import first_token_ns
from lib.clocks import Clock
from lib.comparison import Comparison, Group, Model, Seen
from lib.fast_forward import simulate
from lib.four_requests import HOST_NS
from lib.goodput import Window
from lib.records import record
from lib.retries import Documents, expected_task_time
from lib.schedule import Schedule
from lib.scheduling import Policy, Request, chunked
from lib.service_calibration import UNSEEN, replayed
from lib.service_record import CONDITIONS as CONDITIONS_SERVED
from lib.service_record import DEADLINE_S, recorded
from lib.step_time import FIT, MEASURED_DECODE, NS, LaunchBound, StepPlan, StepTime, decode_plan, device, step_plan

MS = 10**6  # ns
# The limits of tokens a step. Source: conditions of the records batch_sweep and dflash.
SWEEP_TOKENS_PER_STEP, DRAFTS_TOKENS_PER_STEP = 4096, 512

BOUND = device(mfu=1, mbu=1)
STEP_TIMES: Mapping[Model, StepTime] = MappingProxyType(
    {Model.FIT: FIT, Model.DEVICE: device(), Model.HOST: LaunchBound(HOST_NS, device())}
)


def _own_host(step_ms: float) -> LaunchBound:
    """The device model beside a host that takes as long as an experiment's own decode steps did."""
    return LaunchBound(round(step_ms * MS), device())


class Condition(NamedTuple):
    """A condition of the batch sweep: how many requests, tokens of their input, and those of them that are cached."""

    kind: str
    requests: int
    tokens: int
    cached: int

    def __str__(self) -> str:
        prefix = f", {self.cached // 1024}K of it cached" if self.cached else ""
        return f"{self.requests} x {self.tokens // 1024}K{prefix}"

    def row(self, name: str) -> Mapping[str, Any]:
        """Its row of batch_sweep or step_efficiency."""
        return record(name).one(input_kind=self.kind, batch_requests=self.requests)

    def gave(self, model: Model, of_decode: bool) -> bool:
        """Whether a model has a constant from its decode step or its prefill: the fit from both that ran alone."""
        if model == Model.FIT:
            return self.requests == 1
        gave_host = model == Model.HOST and self.requests == 1 and of_decode
        share_from = (64 if of_decode else 1, 0)
        gave_share = model in (Model.DEVICE, Model.HOST) and (self.requests, self.cached) == share_from
        return gave_host or gave_share

    def walls_s(self) -> list[float]:
        """The seconds of its batches, one for each time that it was run."""
        rows = record("batch_walls").where(input_kind=self.kind, batch_requests=self.requests)
        return [row["batch_wall_s"] for row in rows]

    def decode(self) -> StepPlan:
        """A step in which each request has its first token behind the input."""
        return decode_plan(self.requests, self.tokens)

    def decode_read_once(self) -> StepPlan:
        """The same if the cached prefix, which all have in common, is read once for all of them."""
        plan = self.decode()
        return plan._replace(context_tokens=plan.context_tokens - (self.requests - 1) * self.cached)

    def prefills(self) -> list[StepPlan]:
        """The steps that compute all inputs, as many whole ones in each as the limit of the record allows."""
        together = SWEEP_TOKENS_PER_STEP // (self.tokens - self.cached)
        sizes = [min(together, self.requests - first) for first in range(0, self.requests, together)]
        return [step_plan(*[(self.tokens - self.cached, self.cached)] * size) for size in sizes]

    def run(self, step_time: StepTime) -> Schedule:
        """The batch through the engine, all requests there at time 0."""
        outputs = self.row("batch_sweep")["output_tokens_per_request"]
        load = [Request(0, self.tokens, outputs, cached_prefix=self.cached)] * self.requests
        return simulate(load, Policy(self.requests, token_budget=SWEEP_TOKENS_PER_STEP), step_time)


CONDITIONS = tuple(
    Condition(row["input_kind"], row["batch_requests"], row["input_tokens"], row["cached_prefix_tokens"])
    for row in record("batch_sweep").rows
)


def times() -> Iterator[Comparison]:
    """All comparisons of times."""
    yield from _decode_steps()
    yield from _prefills()
    yield from _chunks()
    yield from _batches()
    yield from _six_requests()
    yield from _agent_rounds()
    yield from _drafts()
    yield from _tasks()
    yield from _service()


def _decode_steps() -> Iterator[Comparison]:
    for condition in CONDITIONS:
        plan = condition.decode()
        measured = condition.row("step_efficiency")["decode_step_median_ms"]
        seen = Seen(Group.DECODE, str(condition), "step_efficiency", measured, "ms", Clock.ENGINE)
        for model, by in STEP_TIMES.items():
            yield Comparison(seen, model, by(plan) / MS, condition.gave(model, of_decode=True))
        yield Comparison(seen, Model.RECORDED_STEPS, MEASURED_DECODE(plan) / MS, not condition.cached)
        yield Comparison(seen, Model.BOUND, BOUND(plan) / MS)
        if condition.cached and condition.requests > 1:
            yield Comparison(seen, Model.READ_ONCE, BOUND(condition.decode_read_once()) / MS)


def _prefills() -> Iterator[Comparison]:
    for condition in CONDITIONS:
        measured = condition.row("step_efficiency")["prefill_phase_median_s"]
        seen = Seen(Group.PREFILL, str(condition), "step_efficiency", measured, "s", Clock.ENGINE)
        for model, by in {**STEP_TIMES, Model.BOUND: BOUND}.items():
            seconds = sum(map(by, condition.prefills())) / NS
            yield Comparison(seen, model, seconds, condition.gave(model, of_decode=False))


def _chunks() -> Iterator[Comparison]:
    rows = record("chunk_times").rows
    together = sum(row["median_ms"] for row in rows)
    for model, by in {**STEP_TIMES, Model.BOUND: BOUND}.items():
        says = [by(step_plan((row["new_tokens"], row["existing_context_tokens"]))) / MS for row in rows]
        for row, ms in zip(rows, says, strict=True):
            what = f"{row['new_tokens']} behind {row['existing_context_tokens']:,}"
            yield Comparison(Seen(Group.CHUNKS, what, "chunk_times", row["median_ms"], "ms", Clock.MEASURED), model, ms)
        whole = Seen(Group.CHUNKS, f"all {len(rows)}", "chunk_times", together, "ms", Clock.MEASURED)
        yield Comparison(whole, model, sum(says))


def _batches() -> Iterator[Comparison]:
    for condition in CONDITIONS:
        swept, steps = condition.row("batch_sweep"), condition.row("step_efficiency")
        rounds = swept["output_tokens_per_request"] - 1

        def seen(
            what: str, value: float, of: Condition = condition, name: str = "batch_sweep", unit: str = "ms"
        ) -> Seen:
            return Seen(Group.BATCHES, f"{of}, {what}", name, value, unit, Clock.CLIENT)

        whole = seen("whole", median(condition.walls_s()), name="batch_walls", unit="s")
        first = seen("first token", swept["ttft_median_ms"])
        interval = seen("interval", swept["mean_output_interval_median_ms"])
        added = steps["prefill_phase_median_s"] + rounds * steps["decode_step_median_ms"] / 1e3
        yield Comparison(whole, Model.ADDED, added)
        for model, by in STEP_TIMES.items():
            run = condition.run(by)
            yield Comparison(whole, model, run.total_ns / NS)
            yield Comparison(first, model, float(np.median(run.ttft_ns)) / MS)
            yield Comparison(interval, model, float(np.median(run.finish_ns - run.first_token_ns)) / rounds / MS)


def _six_requests() -> Iterator[Comparison]:
    for row in record("six_request_replay_summary").where(chunked_prefill=1, decode_cuda_graph=0):
        budget = row["token_budget_per_step"]
        load = [
            Request(round(one["planned_arrival_ms"] * MS), one["input_tokens"], one["output_tokens"])
            for one in record("six_request_replay").where(config=row["config"], trial=1)
        ]
        for model, by in {**STEP_TIMES, Model.OWN_HOST: _own_host(row["interval_median_ms"])}.items():
            run = simulate(load, chunked(len(load), budget, budget), by)
            lengths = [length for place in range(len(load)) for length in run.intervals_ns(place)]
            says = {
                "interval_median_ms": ("middle interval", median(lengths)),
                "interval_max_ms": ("longest interval", max(lengths)),
                "r3_ttft_median_ms": ("first token of r3", int(run.ttft_ns[3])),
                "r4_ttft_median_ms": ("first token of r4", int(run.ttft_ns[4])),
                "slowest_request_total_ms": ("slowest request", int(max(run.finish_ns - run.arrival_ns))),
            }
            for column, (what, ns) in says.items():
                name, source = f"{what}, {budget} a step", "six_request_replay_summary"
                seen = Seen(Group.SIX, name, source, row[column], "ms", Clock.CLIENT)
                yield Comparison(seen, model, ns / MS, (model, what) == (Model.OWN_HOST, "middle interval"))


def _agent_rounds() -> Iterator[Comparison]:
    for row in record("cache_replay_summary").rows:
        rounds = [(one["input_tokens"], one["hit_tokens"]) for one in record("cache_replay").where(run=row["run"])]
        others = [(row["interfering_request_tokens"], 0)] * row["interfering_requests_total"]
        says = {"agent_requests_total_s": ("rounds", rounds), "interfering_requests_total_s": ("others", others)}
        for column, (what, prompts) in says.items():
            if not prompts:
                continue
            name = f"{row['run']}, {what}"
            seen = Seen(Group.AGENT, name, "cache_replay_summary", row[column], "s", Clock.CLIENT)
            for model, by in STEP_TIMES.items():
                yield Comparison(seen, model, sum(first_token_ns(*prompt, by) for prompt in prompts) / NS)


def _drafts() -> Iterator[Comparison]:
    plain, k7 = (record("dflash_runs").one(draft_tokens=length) for length in (dflash.PLAIN, dflash.K7))
    policy = chunked(1, DRAFTS_TOKENS_PER_STEP, DRAFTS_TOKENS_PER_STEP)

    def seen(task: str, what: str, value: float) -> Seen:
        return Seen(Group.DRAFTS, f"{task}, {what}", "dflash", value, "ms", Clock.CLIENT)

    for task in record("dflash_tasks").rows:
        name = task["task"]
        alone, drafted = (
            record("dflash").one(task=name, draft_tokens=length, concurrency_requests=1)
            for length in (dflash.PLAIN, dflash.K7)
        )
        first, whole = (
            seen(name, "first token", alone["ttft_median_ms"]),
            seen(name, "whole", alone["request_median_ms"]),
        )
        for model, by in {**STEP_TIMES, Model.OWN_HOST: _own_host(plain["step_median_ms"])}.items():
            run = simulate([Request(0, task["input_tokens"], task["output_tokens"])], policy, by)
            yield Comparison(first, model, int(run.ttft_ns[0]) / MS)
            yield Comparison(whole, model, run.total_ns / MS)
        steps = task["output_tokens"] - 1
        yield Comparison(whole, Model.ADDED, alone["ttft_median_ms"] + steps * plain["step_median_ms"])
        if rounds := dflash.recorded_rounds(dflash.K7, name):
            whole = seen(name, f"whole, drafts of {dflash.K7}", drafted["request_median_ms"])
            yield Comparison(whole, Model.ADDED, drafted["ttft_median_ms"] + len(rounds) * k7["step_median_ms"])


def _tasks() -> Iterator[Comparison]:
    """The known documents give the rule its numbers; the new ones are those it has not seen."""
    known = retries.recorded_runs(Documents.KNOWN)
    again = [answer.generation_s for run in known for answer in run.answers[1:]]
    expected = expected_task_time(
        mean(run.answers[0].generation_s for run in known), len(again) / len(known), mean(again)
    )
    for documents in Documents:
        measured = mean(run.task_s for run in retries.recorded_runs(documents))
        seen = Seen(Group.RETRIES, f"{documents} documents", "retries", measured, "s", Clock.MEASURED)
        yield Comparison(seen, Model.RETRY_RULE, expected, documents == Documents.KNOWN)


def _service() -> Iterator[Comparison]:
    """The simulated service was calibrated on the condition in which requests ran alone."""
    quantities: dict[str, tuple[str, Callable[[Window], float]]] = {
        "longest request": ("s", Window.longest_s),
        "longest first token": ("s", Window.longest_ttft_s),
        "goodput": ("1/s", lambda window: window.goodput(DEADLINE_S)),
    }
    for condition in CONDITIONS_SERVED:
        rate = f" at {condition.arrivals_per_s}/s" if condition.arrivals_per_s else ""
        for what, (unit, quantity) in quantities.items():
            measured = median(quantity(each.window) for each in recorded(condition))
            name = f"{condition.admission}{rate}, {what}"
            seen = Seen(Group.SERVICE, name, "service_requests", measured, unit, Clock.CLIENT)
            simulated = median(map(quantity, replayed(condition)))
            yield Comparison(seen, Model.CALIBRATED, simulated, condition not in UNSEEN)
