"""What a faster part makes of a whole task: the other parts set a ceiling, and preparation may eat up the gain.

Times inside one instance are not those of a task: tools run, somebody waits. Source: section 8.6.3.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from lib.checks import InputError, finite, seconds, share, whole
from lib.records import record

# The agent task of section 8.6.3: its whole time, decode in it in two cases, and by how much decode gets faster.
TASK_S, DECODE_S, LESS_DECODE_S = 100, 50, 20
DECODE_SPEEDUP = 4
DECODE_SHARES = (0.2, 0.5, 0.8)  # the curves of figure 8-36

MOST = 10**9  # times faster, or times the task's own time
MOST_ROUNDS = 10**6
ROUNDING = 1e-9  # sums of recorded times differ by less


def task_speedup(part: float, speedup: float, preparation: float = 0.0) -> float:
    """S = 1 / ((1 - f) + f / s), Amdahl's law; what is prepared for it, as a share of the old time, comes on top.

    The part is the share f of the task's time and gets s times as fast; nothing else changes. Below 1 the task takes
    longer than before. Raises InputError for a share outside 0 ... 1 and for a part that gets slower.
    Source: section 8.6.3.
    """
    f, s = share("part", part), _times_as_fast(speedup)
    return 1 / ((1 - f) + f / s + _preparation(preparation))


def ceiling(part: float, preparation: float = 0.0) -> float:
    """1 / (1 - f): what the task's speed-up never exceeds, however fast the part gets; preparation lowers it.

    Infinite if the part is the whole task and nothing is prepared. Raises InputError as `task_speedup` does.
    Source: section 8.6.3, figure 8-36.
    """
    left = (1 - share("part", part)) + _preparation(preparation)
    return 1 / left if left else math.inf


def _times_as_fast(speedup: float) -> float:
    return _up_to_most("speedup", speedup, 1, f"a factor from 1 to {MOST:,}")


def _preparation(preparation: float) -> float:
    return _up_to_most("preparation", preparation, 0, f"a share of the task's time from 0 to {MOST:,}")


def _up_to_most(parameter: str, value: float, at_least: float, allowed: str) -> float:
    number = finite(parameter, value, at_least, allowed)
    if number > MOST:
        raise InputError(parameter, value, allowed)
    return number


@dataclass(frozen=True)
class FasterPart:
    """A task of which one part gets so many times as fast, once something was prepared for it; times in seconds.

    Raises InputError for values that make no sense, and for a part longer than its task. Source: section 8.6.3.
    """

    task_s: float
    part_s: float
    speedup: float
    preparation_s: float = 0.0

    def __post_init__(self) -> None:
        seconds("task_s", self.task_s, above_zero=True)
        if seconds("part_s", self.part_s) > self.task_s:
            raise InputError("part_s", self.part_s, f"a time from 0 s to that of the task, {self.task_s} s")
        _times_as_fast(self.speedup)
        _preparation(seconds("preparation_s", self.preparation_s) / self.task_s)

    @property
    def part(self) -> float:
        """The part as a share of the task as it was."""
        return self.part_s / self.task_s

    @property
    def new_part_s(self) -> float:
        return self.part_s / self.speedup

    @property
    def new_task_s(self) -> float:
        return (self.task_s - self.part_s) + self.new_part_s + self.preparation_s

    @property
    def net_speedup(self) -> float:
        """How many times as fast the whole task gets; below 1 it takes longer than before."""
        return task_speedup(self.part, self.speedup, self.preparation_s / self.task_s)

    @property
    def ceiling(self) -> float:
        """What the net speed-up stays below, however fast the part gets; infinite where nothing else is left."""
        return ceiling(self.part, self.preparation_s / self.task_s)

    @property
    def break_even_s(self) -> float:
        """The preparation at which nothing is gained: all that the part saves."""
        return self.part_s - self.new_part_s

    @property
    def new_share(self) -> float:
        """The part as a share of the task as it is now."""
        return self.new_part_s / self.new_task_s


@dataclass(frozen=True)
class AgentTask:
    """One run of a whole agent task: calls of the model, whether the check was passed, and where its time went.

    Times in seconds (clock: client). Those of the model's calls are of whole HTTP requests: they hold queue, prefill,
    decode and transport, and no stream tells these apart. Raises InputError for parts longer than the run.
    """

    rounds: int
    is_fixed: bool
    model_s: float
    tool_s: float
    span_s: float

    def __post_init__(self) -> None:
        whole("rounds", self.rounds, at_least=1, at_most=MOST_ROUNDS)
        if not isinstance(self.is_fixed, bool):
            raise InputError("is_fixed", self.is_fixed, "True or False")
        parts_s = seconds("model_s", self.model_s) + seconds("tool_s", self.tool_s)
        if seconds("span_s", self.span_s, above_zero=True) + ROUNDING < parts_s:
            raise InputError("span_s", self.span_s, f"at least the time of model and tools, {parts_s} s")

    @property
    def rest_s(self) -> float:
        """Neither model nor tool: the agent's own program, and whatever nobody timed."""
        return max(0.0, self.span_s - self.model_s - self.tool_s)

    @property
    def model_share(self) -> float:
        return min(1.0, self.model_s / self.span_s)

    @property
    def tool_share(self) -> float:
        return min(1.0, self.tool_s / self.span_s)

    def most_from_decode(self, speedup: float) -> float:
        """What decode that gets so many times as fast brings at most: as if the model's calls were decode throughout.

        How much of a call is decode was not recorded, so the true gain is smaller by an unknown amount.
        """
        return task_speedup(self.model_share, speedup)


@cache
def agent_tasks() -> tuple[AgentTask, ...]:
    """The recorded runs of one repair task, in their order. Source: record agent_task_times, footnote 26."""
    return tuple(
        AgentTask(row["rounds"], row["fixed"] == 1, row["model_http_s"], row["tool_s"], row["span_s"])
        for row in record("agent_task_times").rows
    )


def span_per_fixed(tasks: Sequence[AgentTask]) -> float | None:
    """Seconds of all runs for each that fixed what it should; a run that failed took its time too. None if none did.

    Raises InputError for what are no runs. Source: section 8.6.3, which counts time and energy per qualified result so.
    """
    if not tasks or not all(isinstance(task, AgentTask) for task in tasks):
        raise InputError("tasks", tasks, "at least one AgentTask, such as agent_tasks()")
    fixed = sum(task.is_fixed for task in tasks)
    return math.fsum(task.span_s for task in tasks) / fixed if fixed else None
