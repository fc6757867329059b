"""When the blocks of a cancelled request are free: once no submitted step touches them, not when the call returns.

The recorded run gives the counts and how long the call takes; the times of the steps are a model. The request is in
every step that is submitted before the call returns. Whenever a step is complete, another one is submitted.
"""

from collections import deque
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from lib.checks import InputError, finite, whole
from lib.paging import Findable, Pool, Sequence, Step
from lib.records import record
from lib.step_time import NS

LEAST_STEP_S, MOST_STEP_S = 0.001, 1
MOST_IN_FLIGHT = 2


@dataclass(frozen=True)
class Recorded:
    """The recorded run: when the call returned and when the blocks were free (s, client clock, with an observer).

    `free_before` and `free_after` count free blocks of the pool, `request_blocks` those of the cancelled request.
    """

    returned_s: float
    freed_s: float
    free_before: int
    free_after: int
    request_blocks: int


class Level(NamedTuple):
    """From a time on (ns after the call): free blocks, those that wait for a step, those of the cancelled request."""

    start_ns: int
    free: int
    waiting: int
    held: int


class DeviceStep(NamedTuple):
    """When a step starts and ends on the device (ns after the call), and whether the cancelled request is in it."""

    start_ns: int
    end_ns: int
    has_cancelled: bool


@dataclass(frozen=True)
class Cancellation:
    """What follows a call that cancels a request. Times in seconds after the call.

    `admitted_s` is when the request that waits gets its blocks, 0 if enough were free before; `free_after` counts the
    free blocks at `freed_s`, before they are given to anybody.
    """

    returned_s: float
    freed_s: float
    admitted_s: float
    free_after: int
    levels: tuple[Level, ...]
    steps: tuple[DeviceStep, ...]


@lru_cache(maxsize=1)
def recorded() -> Recorded:
    """The recorded cancellation. Source: section 8.3.2, figure 8-16; record cancel."""
    called, returned, freed = (
        record("cancel").one(event=event) for event in ("abort_called", "abort_call_returned", "blocks_released")
    )
    return Recorded(
        returned["time_after_abort_call_ms"] / 1e3,
        freed["time_after_abort_call_ms"] / 1e3,
        called["free_blocks"],
        freed["free_blocks"],
        called["request_r3_blocks"],
    )


def cancel(phase_percent: int, step_time: float, in_flight: int, needs_blocks: int) -> Cancellation:
    """Cancel r3 of the recorded run when a step has come this far, while a request waits for so many blocks.

    Each step takes `step_time` seconds, and `in_flight` of them are submitted and not complete at any time. Raises
    InputError for a phase beyond 100 %, a step below 1 ms or above 1 s, more than 2 steps in flight, and for more
    blocks than are free in the end. Source: section 8.3.2, figure 8-16.
    """
    phase = whole("phase_percent", phase_percent, at_most=100)
    allowed = f"a time from {LEAST_STEP_S} s to {MOST_STEP_S} s"
    step_s = finite("step_time", step_time, LEAST_STEP_S, allowed)
    if step_s > MOST_STEP_S:
        raise InputError("step_time", step_time, allowed)
    step_ns = round(step_s * NS)
    steps = whole("in_flight", in_flight, at_least=1, at_most=MOST_IN_FLIGHT)
    needed = whole("needs_blocks", needs_blocks, at_least=1, at_most=recorded().free_after)
    return _Run(step_ns, needed).cancelled(step_ns * phase // 100, steps)


class _Run:
    """The recorded run from the call on: its pool, its requests, and the steps that they are in."""

    def __init__(self, step_ns: int, needed: int) -> None:
        seen, run = recorded(), record("preemption").one(run="small_pool_one_cancelled")
        blocks, others = run["pool_blocks"] - run["reserved_blocks"], run["requests"] - 1
        self.pool = Pool(blocks, findable=Findable.NEVER)
        of_each = (blocks - seen.free_before - seen.request_blocks) // others
        self.staying = [self._admit(of_each) for _ in range(others)]
        self.to_cancel: Sequence | None = self._admit(seen.request_blocks)
        self.step_ns, self.needed = step_ns, needed
        self.admitted_ns: int | None = None
        self.submitted = deque[Step]()
        self.steps: list[DeviceStep] = []
        self.levels: list[Level] = []

    def cancelled(self, done_ns: int, in_flight: int) -> Cancellation:
        """What happens until all blocks of the cancelled request are free, when this much of a step was done."""
        returned_ns = round(recorded().returned_s * NS)
        border = self.step_ns - done_ns
        for step in range(in_flight):
            self._submit(border + (step - 1) * self.step_ns)
        self._note(0)
        self._let_in(0)
        while True:
            if self.to_cancel and returned_ns <= border:
                self.pool.release(self.to_cancel)
                self.to_cancel = None
                self._note(returned_ns)
            self.pool.complete(self.submitted.popleft())
            self._note(border)
            is_freed, free = not self.to_cancel and not self.pool.waiting, self.pool.free
            self._let_in(border)
            self._submit(self.steps[-1].end_ns)
            if is_freed:
                break
            border += self.step_ns
        assert self.admitted_ns is not None, "nobody may ask for more blocks than are free now"
        return Cancellation(
            returned_ns / NS, border / NS, self.admitted_ns / NS, free, tuple(self.levels), tuple(self.steps)
        )

    def _admit(self, blocks: int) -> Sequence:
        return self.pool.admit(np.zeros(blocks * self.pool.block_tokens, np.int64))

    def _submit(self, start_ns: int) -> None:
        cancelled = [self.to_cancel] if self.to_cancel else []
        self.submitted.append(self.pool.submit([*self.staying, *cancelled]))
        self.steps.append(DeviceStep(start_ns, start_ns + self.step_ns, bool(cancelled)))

    def _let_in(self, now_ns: int) -> None:
        if self.admitted_ns is None and self.needed <= self.pool.free:
            self.staying.append(self._admit(self.needed))
            self.admitted_ns = now_ns
            self._note(now_ns)

    def _note(self, now_ns: int) -> None:
        held = len(self.to_cancel.table) if self.to_cancel else 0
        level = Level(now_ns, self.pool.free, self.pool.waiting, held)
        if not self.levels or self.levels[-1][1:] != level[1:]:
            self.levels.append(level)
