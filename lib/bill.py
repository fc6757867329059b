"""The bill of a request: every nanosecond from its arrival to its last output, booked to what it was spent on."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lib.checks import InputError, whole
from lib.schedule import Part, Schedule, Step
from lib.step_time import step_plan, verifying


class Account(StrEnum):
    """What a request's time is booked to, beside the prompts of others, which are named one by one."""

    QUEUE = "queue"
    OWN_PREFILL = "own prefill"
    OWN_DECODE = "own decode"
    OTHERS_DECODE = "decode of others"
    DRAFTS = "making drafts"
    TOOL = "waiting for a tool"


@dataclass(frozen=True)
class Bill:
    """Nanoseconds by account; those of another request's prefill stand under its place."""

    booked_ns: Mapping[Account | int, int]

    @property
    def total_ns(self) -> int:
        """Exactly the time from arrival to last output."""
        return sum(self.booked_ns.values())


def bill(schedule: Schedule, place: int) -> Bill:
    """What one request of a schedule spent its time on, from its arrival to its last output.

    All before its first step is queue. What a tool takes is booked to it, whatever is computed meanwhile, and from its
    return to the step in which the request has a row again it queues. Each other step is built up by the schedule's own
    model of step times: the request's own part first, at the price that it would have alone, then the others in decode,
    then each other prompt; each is booked what it adds. Making drafts comes ahead of that and serves all who have one,
    so it is an account of its own. Raises InputError for what is no schedule and for a request without output. Source:
    sections 8.1.1, 8.2.2 and 8.6.1.
    """
    if not isinstance(schedule, Schedule):
        raise InputError("schedule", schedule, "a Schedule, such as simulate() gives")
    place = whole("place", place, at_most=len(schedule.requests) - 1)
    if schedule.last_output_step[place] < 0:
        raise InputError("place", place, "a request that gave an output before its user went away")
    booked: Counter[Account | int] = Counter({Account.QUEUE: int(schedule.queue_ns[place])})
    absences = schedule.absences.get(place, ())
    away = {number for each in absences for number in range(each.first, each.beyond)}
    back_ns = {each.beyond: each.back_ns for each in absences}
    first, now = schedule.started_step[place], int(schedule.started_ns[place])
    for number, step in enumerate(schedule.steps(first, schedule.last_output_step[place] + 1), first):
        if number in away:
            continue
        if between := step.start_ns - now:
            booked[Account.TOOL] += (with_tool := max(0, back_ns.get(number, 0) - now))
            booked[Account.QUEUE] += between - with_tool
        now = step.end_ns
        parts: tuple[Part, ...] = ()
        paid = drafted = 0
        for account, more in _in_turn(step, place):
            parts += more
            drafted += sum(part.new_tokens - 1 for part in more if part in step.decodes)
            plan = step_plan(*((part.new_tokens, part.context) for part in parts))
            price = schedule.step_time(verifying(plan, drafted))
            booked[account] += price - paid
            paid = price
        if drafted:
            booked[Account.DRAFTS] += (drafting := schedule.drafting_ns(step))
            paid += drafting
        assert paid == step.end_ns - step.start_ns
    paid_for = Bill(dict(booked))
    assert paid_for.total_ns == schedule.finish_ns[place] - schedule.arrival_ns[place]
    return paid_for


def _in_turn(step: Step, place: int) -> Iterator[tuple[Account | int, tuple[Part, ...]]]:
    """The parts of a step as they are booked: one's own, the others in decode, each other prompt."""
    for account, parts in ((Account.OWN_PREFILL, step.prompts), (Account.OWN_DECODE, step.decodes)):
        if own := tuple(part for part in parts if part.place == place):
            yield account, own
    if others := tuple(part for part in step.decodes if part.place != place):
        yield Account.OTHERS_DECODE, others
    for part in step.prompts:
        if part.place != place:
            yield part.place, (part,)
