"""A run with drafts once more, slow and obvious: decodes first, nothing is found again, nobody goes away.

Tokens in KV are counted one by one, blocks follow from them, and a draft is a list of right and wrong tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class PlainRun:
    """When each request gave its outputs, who lost its KV in which step, and what was thrown away."""

    output_times: list[list[int]] = field(default_factory=list)
    preempted: list[tuple[int, int]] = field(default_factory=list)
    thrown_away: int = 0
    peak_blocks: int = 0


def plain_run(
    load: Sequence[tuple[int, int, int, int]],
    rows: int,
    chunk: int,
    budget: int,
    size: int,
    blocks: int,
    draft: int,
    accepted: Callable[[int, int], int],
    step_ns: Callable[[list[tuple[int, int, int]]], int],
) -> PlainRun:
    """Run requests, each as (arrival, prompt, outputs, most outputs), behind a gate on the whole sequence.

    `step_ns` gets of each in the step its tokens known and drafted, and those in KV.
    """
    run = PlainRun([[] for _ in load])
    kv = [0] * len(load)
    rounds = [0] * len(load)
    in_decode = [False] * len(load)
    waiting, running, now, number = list(range(len(load))), list[int](), 0, 0

    def known(one: int) -> int:
        return load[one][1] + len(run.output_times[one])

    def shares(of: list[int]) -> dict[int, tuple[int, int]]:
        left, given = budget, dict[int, tuple[int, int]]()
        for one in (one for one in of if in_decode[one]):
            given[one], left = (1, 0), left - 1
        for one in given:
            could_use = load[one][3] - len(run.output_times[one]) - 1
            while given[one][1] < min(draft, could_use, chunk - 1) and left:
                given[one], left = (1, given[one][1] + 1), left - 1
        for one in (one for one in of if not in_decode[one]):
            if new := min(known(one) - kv[one], chunk, left):
                given[one], left = (new, 0), left - new
        return given

    def blocks_of(tokens: int) -> int:
        return len(range(0, tokens, size))

    def held(of: list[int], given: dict[int, tuple[int, int]]) -> int:
        return sum(blocks_of(kv[one] + sum(given.get(one, (0, 0)))) for one in of)

    while waiting or running:
        if not running:
            now = max(now, load[waiting[0]][0])
        given, is_full = shares(running), False
        while held(running, given) > blocks:
            victim = running.pop()
            kv[victim], in_decode[victim], is_full = 0, False, True
            waiting.insert(0, victim)
            run.preempted.append((number, victim))
            given = shares(running)
        while not is_full and waiting and len(running) < rows and load[waiting[0]][0] <= now:
            one = waiting[0]
            entered = shares([*running, one])
            room = blocks - held(running, given)
            if one not in entered or blocks_of(known(one)) > room:
                break
            running.append(waiting.pop(0))
            given[one] = entered[one]
        run.peak_blocks = max(run.peak_blocks, held(running, given))
        now += step_ns([(*given[one], kv[one]) for one in given])
        for one, (new, drafted) in given.items():
            kv[one] += new
            if kv[one] < known(one):
                continue
            outputs = 1
            if drafted:
                right = [place < accepted(one, rounds[one]) for place in range(drafted)] + [False]
                outputs = min(right.index(False) + 1, load[one][2] - len(run.output_times[one]))
                rounds[one] += 1
                run.thrown_away += 1 + drafted - outputs
            kv[one] += outputs - 1
            run.output_times[one] += [now] * outputs
            in_decode[one] = True
        running = [one for one in running if len(run.output_times[one]) < load[one][2]]
        number += 1
    return run
