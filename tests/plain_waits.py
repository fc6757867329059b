"""A run with waits for tools once more, slow and obvious: decodes first, nothing is found again, one gate of three.

Each request is in one of a few states, and every change of state or of blocks is written down with its time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lib.residency import Gate
from lib.scheduling import Request

QUEUED, WITH_ROW, AT_TOOL, BACK, GONE = "queued", "has a row", "at the tool", "back, without a row", "gone"


@dataclass
class Traveller:
    """One request on its way, its changes of state, and the blocks it holds from each time on."""

    request: Request
    state: str = "not here"
    entry: int = 0
    kv: int = 0
    in_decode: bool = False
    back: int = 0
    rounds: int = 0
    outputs: list[int] = field(default_factory=list)
    states: list[tuple[int, str]] = field(default_factory=list)
    blocks: list[tuple[int, int]] = field(default_factory=list)

    @property
    def known(self) -> int:
        return self.request.prompt + len(self.outputs)

    @property
    def final(self) -> int:
        most = self.request.output if self.request.max_output is None else self.request.max_output
        return self.request.prompt + most - 1

    def goes(self, now: int, state: str) -> None:
        self.state = state
        self.states.append((now, state))

    def next_stop(self) -> int:
        """The output after which it cannot go on: the next tool, or the most it may give."""
        calls = [wait.output for wait in self.request.tool_waits if wait.output > len(self.outputs)]
        return calls[0] if calls else self.final - self.request.prompt + 1


@dataclass
class PlainWaits:
    """The travellers, who was preempted when, and the number of steps."""

    all: list[Traveller]
    preempted: list[tuple[int, int]] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)


def plain_waits(
    load: Sequence[Request],
    rows: int,
    chunk: int,
    budget: int,
    size: int,
    blocks: int,
    gate: Gate,
    draft: int,
    accepted: Callable[[int, int], int],
    step_ns: Callable[[list[tuple[int, int, int]]], int],
    by_groups: bool = False,
) -> PlainWaits:
    """Run requests until all are gone. `step_ns` gets of each in the step tokens known, drafted, and those in KV."""
    run = PlainWaits([Traveller(request) for request in load])
    now, entries, in_front = 0, 0, list[int]()

    def places(*states: str) -> list[int]:
        found = [place for place, one in enumerate(run.all) if one.state in states]
        return sorted(found, key=lambda place: run.all[place].entry)

    def queue() -> list[int]:
        return in_front + [place for place, one in enumerate(run.all) if one.state == QUEUED and place not in in_front]

    def blocks_of(tokens: int) -> int:
        return -(-tokens // size)

    def shares(of: list[int]) -> dict[int, tuple[int, int]]:
        left, given = budget, dict[int, tuple[int, int]]()
        decodes = [place for place in of if run.all[place].in_decode]
        for place in decodes:
            given[place], left = (1, 0), left - 1
        for place in decodes:
            one = run.all[place]
            want = min(draft, one.next_stop() - len(one.outputs) - 1, chunk - 1, left)
            given[place], left = (1, want), left - want
        for place in of:
            one = run.all[place]
            if not one.in_decode and (new := min(one.known - one.kv, chunk, left)):
                given[place], left = (new, 0), left - new
        return given

    def free(given: dict[int, tuple[int, int]]) -> int:
        here = places(WITH_ROW, AT_TOOL, BACK)
        return blocks - sum(blocks_of(run.all[place].kv + sum(given.get(place, (0, 0)))) for place in here)

    def opens(place: int, given: dict[int, tuple[int, int]], entered: dict[int, tuple[int, int]]) -> bool:
        one = run.all[place]
        if gate == Gate.FINAL_SIZE:
            here = places(WITH_ROW, AT_TOOL, BACK)
            return sum(blocks_of(run.all[other].final) for other in here) + blocks_of(one.final) <= blocks
        return blocks_of(entered[place][0] if gate == Gate.FIRST_CHUNK else one.known) <= free(given)

    while any(one.state != GONE for one in run.all):
        for one in run.all:
            if one.state == "not here" and one.request.arrival_ns <= now:
                one.goes(one.request.arrival_ns, QUEUED)
            if one.state == AT_TOOL and one.back <= now:
                one.goes(one.back, BACK)
        for place, one in enumerate(run.all):
            cancel = one.request.cancel_ns
            if one.state not in (GONE, "not here") and cancel is not None and cancel <= now:
                one.goes(now, GONE)
                one.kv = 0
                one.blocks.append((now, 0))
                in_front = [other for other in in_front if other != place]
        for place in sorted(places(BACK), key=lambda place: run.all[place].back):
            if len(places(WITH_ROW)) < rows:
                run.all[place].goes(now, WITH_ROW)
        victims = 0
        while free(shares(places(WITH_ROW))) < 0:
            victim = places(WITH_ROW)[-1]
            one, victims = run.all[victim], victims + 1
            one.goes(now, QUEUED)
            one.kv, one.in_decode = 0, False
            one.blocks.append((now, 0))
            in_front.insert(0, victim)
            run.preempted.append((now, victim))
        is_closed = bool(victims) or (by_groups and bool(places(WITH_ROW, AT_TOOL, BACK)))
        for place in [] if is_closed else queue():
            here = places(WITH_ROW)
            entered = shares([*here, place])
            if len(here) == rows or place not in entered or not opens(place, shares(here), entered):
                break
            one, entries = run.all[place], entries + 1
            one.entry = entries
            one.goes(now, WITH_ROW)
            in_front = [other for other in in_front if other != place]
        given = shares(places(WITH_ROW))
        if not given:
            times = [one.request.arrival_ns for one in run.all if one.state == "not here"]
            times += [one.back for one in run.all if one.state == AT_TOOL]
            times += [
                one.request.cancel_ns for one in run.all if one.state != GONE and one.request.cancel_ns is not None
            ]
            if not places(BACK) and times:
                now = min(time for time in times if time > now)
            continue
        run.rows.append(places(WITH_ROW))
        for place, both in given.items():
            run.all[place].blocks.append((now, blocks_of(run.all[place].kv + sum(both))))
        now += step_ns([(*both, run.all[place].kv) for place, both in given.items()])
        for place, (new, drafted) in given.items():
            one = run.all[place]
            one.kv += new
            if one.kv < one.known:
                continue
            outputs = 1
            if drafted:
                outputs = min(accepted(place, one.rounds), drafted) + 1
                one.rounds += 1
            outputs = min(outputs, one.request.output - len(one.outputs))
            one.kv += outputs - 1
            one.outputs += [now] * outputs
            one.in_decode = True
            one.blocks.append((now, blocks_of(one.kv)))
            calls = [wait for wait in one.request.tool_waits if wait.output == len(one.outputs)]
            if len(one.outputs) == one.request.output:
                one.goes(now, GONE)
                one.blocks.append((now, 0))
            elif calls:
                one.back = now + calls[0].wait_ns
                one.goes(now, AT_TOOL)
    return run
