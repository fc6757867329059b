"""Whether answers stay right when numbers are stored or multiplied in another format: the same tasks, one by one.

A grid has a row for each task and a column for each run of it. Two grids of the same tasks are compared cell by cell:
equal totals can hide other errors. Cells of one task are no independent trials. Source: section 8.4.4.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from math import comb, sqrt
from statistics import NormalDist
from types import MappingProxyType
from typing import NamedTuple

from lib.checks import InputError, one_of, share, whole
from lib.quantization import BF16, FP8, GroupFormat
from lib.records import record

# The documents: so many records of one six-digit number each, and so many documents of either length.
DOCUMENT_RECORDS, DOCUMENTS_OF_A_LENGTH, RECORD_DIGITS = (128, 512), 4, 6
CONCURRENCIES, RUNS = (1, 4), 2
RIGHT = "o"  # in the record
CONFIDENCE = 0.95
MOST_TRIALS = 1000


class Run(NamedTuple):
    """A column of a grid: requests that are served at once, and which run of the task at that number."""

    concurrency: int
    number: int


# A task asks about one document and is called after it. In figures 8-26 to 8-28 their numbers are 1 to 8.
TASKS = tuple(f"n{records}-r{place}" for records in DOCUMENT_RECORDS for place in range(DOCUMENTS_OF_A_LENGTH))
COLUMNS = tuple(Run(concurrency, number) for concurrency in CONCURRENCIES for number in range(1, RUNS + 1))


class Weights(StrEnum):
    """The two groups of runs, by the format of the weights: what they have in common is the tasks."""

    BF16 = "BF16"
    FP8 = "FP8"


class Config(StrEnum):
    """What the attention works on. The default of the engine's FP8 option quantises Q as well as KV."""

    BF16_KV = "BF16 KV"
    FP8_DEFAULT = "FP8 default"
    FP8_KV_BF16_Q = "FP8 KV with BF16 Q"


class Formats(NamedTuple):
    """What KV is stored in, and what Q is brought to before the two are multiplied."""

    kv: GroupFormat
    q: GroupFormat


FORMATS: Mapping[Config, Formats] = MappingProxyType(
    {
        Config.BF16_KV: Formats(BF16, BF16),
        Config.FP8_DEFAULT: Formats(FP8, FP8),
        Config.FP8_KV_BF16_Q: Formats(FP8, BF16),
    }
)


def formats_changed(before: Config, after: Config) -> tuple[str, ...]:
    """Which of "kv" and "q" have another format: a difference in answers has a single cause only if it is one.

    Conversions and the precision of sums are chosen by the kernel and may change along; they are not on record.
    Source: section 8.4.4.
    """
    old, new = FORMATS[one_of("before", before, Config)], FORMATS[one_of("after", after, Config)]
    return tuple(name for name in Formats._fields if getattr(old, name) != getattr(new, name))


@dataclass(frozen=True)
class Grid:
    """Which answers were right: a row of `right` for each task, in it an answer for each column.

    Raises InputError for no or equal names of tasks, for columns that are no runs or equal, and for other shapes.
    """

    name: str
    right: tuple[tuple[bool, ...], ...]
    tasks: tuple[str, ...] = TASKS
    columns: tuple[Run, ...] = COLUMNS

    def __post_init__(self) -> None:
        _check_names("tasks", self.tasks, str, "a tuple of names, each once")
        _check_names("columns", self.columns, Run, "a tuple of runs, each once")
        for run in self.columns:
            whole("concurrency", run.concurrency, at_least=1)
            whole("number", run.number)
        shape = f"{len(self.tasks)} rows of {len(self.columns)} answers, each True or False"
        if not isinstance(self.right, tuple) or len(self.right) != len(self.tasks):
            raise InputError("right", self.right, shape)
        for row in self.right:
            if not isinstance(row, tuple) or len(row) != len(self.columns) or {*map(type, row)} != {bool}:
                raise InputError("right", row, shape)

    @property
    def answers(self) -> int:
        return len(self.tasks) * len(self.columns)

    @property
    def right_answers(self) -> int:
        return sum(map(sum, self.right))

    @property
    def share_right(self) -> float:
        return self.right_answers / self.answers

    @property
    def wrong_by_task(self) -> dict[str, int]:
        """Wrong answers of each task that has any."""
        wrong = {task: len(row) - sum(row) for task, row in zip(self.tasks, self.right, strict=True)}
        return {task: count for task, count in wrong.items() if count}

    @property
    def runs_disagree(self) -> tuple[str, ...]:
        """Tasks whose runs at one and the same concurrency did not all end alike."""
        parts = [self.at(concurrency).right for concurrency in dict(self.columns)]
        return tuple(
            task for task, *rows in zip(self.tasks, *parts, strict=True) if any(len(set(row)) > 1 for row in rows)
        )

    @property
    def concurrency_matters(self) -> tuple[str, ...]:
        """Tasks whose runs agree at each concurrency but not at all: who else is served changes the answer."""
        rows = zip(self.tasks, self.right, strict=True)
        return tuple(task for task, row in rows if len(set(row)) > 1 and task not in self.runs_disagree)

    def at(self, concurrency: int) -> "Grid":
        """The columns of one concurrency; raises InputError for one at which nothing was run."""
        chosen = one_of("concurrency", whole("concurrency", concurrency), dict(self.columns))
        places = [place for place, run in enumerate(self.columns) if run.concurrency == chosen]
        right = tuple(tuple(row[place] for place in places) for row in self.right)
        return Grid(self.name, right, self.tasks, tuple(self.columns[place] for place in places))


def _check_names(parameter: str, names: object, kind: type, allowed: str) -> None:
    if not isinstance(names, tuple) or not names or not all(isinstance(name, kind) for name in names):
        raise InputError(parameter, names, allowed)
    if any(name in names[:place] for place, name in enumerate(names)):
        raise InputError(parameter, names, allowed)


def recorded_answers(weights: Weights, config: Config) -> Grid:
    """The answers of one group of runs under one configuration. Source: figures 8-26 to 8-28, record answers."""
    return _recorded(one_of("weights", weights, Weights), one_of("config", config, Config))


@cache
def _recorded(weights: Weights, config: Config) -> Grid:
    row = record("answers").one(weights=weights, config=config)
    return Grid(config, tuple(tuple(mark == RIGHT for mark in row[task]) for task in TASKS))


class Direction(StrEnum):
    """How the answers of a task changed: all changed cells one way, or some each way."""

    BETTER = "better"
    WORSE = "worse"
    BOTH = "both ways"


@dataclass(frozen=True)
class Changes:
    """What became of the same tasks in the same runs; raises InputError for grids whose tasks or columns differ."""

    before: Grid
    after: Grid

    def __post_init__(self) -> None:
        if self.after.tasks != self.before.tasks:
            raise InputError("tasks", self.after.tasks, f"those of the other grid, {', '.join(self.before.tasks)}")
        if self.after.columns != self.before.columns:
            raise InputError("columns", self.after.columns, f"those of the other grid, {self.before.columns}")

    @property
    def cells(self) -> tuple[tuple[int, ...], ...]:
        """1 where a wrong answer became right, -1 where a right one became wrong, 0 elsewhere; as the grids' rows."""
        rows = zip(self.before.right, self.after.right, strict=True)
        return tuple(tuple(new - old for old, new in zip(*both, strict=True)) for both in rows)

    @property
    def better_cells(self) -> int:
        return sum(row.count(1) for row in self.cells)

    @property
    def worse_cells(self) -> int:
        return sum(row.count(-1) for row in self.cells)

    @property
    def changed_cells(self) -> int:
        return self.better_cells + self.worse_cells

    @property
    def tasks(self) -> dict[str, Direction]:
        """The tasks with a changed answer, in their order, and the direction of each."""
        named = zip(self.before.tasks, self.cells, strict=True)
        return {task: _direction(row) for task, row in named if any(row)}

    @property
    def chance(self) -> float:
        """The sign test over tasks; one that changed both ways speaks for neither."""
        directions = list(self.tasks.values())
        return sign_test(directions.count(Direction.BETTER), directions.count(Direction.WORSE))


def _direction(cells: tuple[int, ...]) -> Direction:
    if 1 in cells and -1 in cells:
        return Direction.BOTH
    return Direction.BETTER if 1 in cells else Direction.WORSE


def sign_test(better: int, worse: int) -> float:
    """How often a fair coin, thrown once for each changed task, would part them at least as unevenly (two-sided).

    A share near 1 means that the changes say nothing about which side is better. Source: section 8.4.4, where one task
    got better and one worse.
    """
    fewer, more = sorted((whole("better", better, 0, MOST_TRIALS), whole("worse", worse, 0, MOST_TRIALS)))
    trials = fewer + more
    ways: int = 2**trials
    return min(1.0, 2 * sum(comb(trials, count) for count in range(fewer + 1)) / ways)


class Interval(NamedTuple):
    """Two ends of a range of shares."""

    low: float
    high: float


def share_interval(share_right: float, trials: int) -> Interval:
    """The range of true shares that so many independent trials leave open at 95 % (Wilson's interval).

    Runs of one task are no independent trials. Where tasks are, `trials` is their number and the share the mean of
    theirs: it varies no more than a mean of as many answers, so the interval errs on the wide side.
    """
    p, n = share("share_right", share_right), whole("trials", trials, 1, MOST_TRIALS)
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * sqrt(p * (1 - p) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def time_ratio(weights: Weights, document_records: int, concurrency: int) -> float:
    """How the median time of an answer changed from BF16 KV to the default of FP8 (clock: measured).

    Both times are of one group of runs: the groups had other KV pools and ran apart, so times are never compared across
    them. Source: footnote 19, record answer_times.
    """
    condition = {
        "weights": one_of("weights", weights, Weights),
        "document_records": one_of("document_records", whole("document_records", document_records), DOCUMENT_RECORDS),
        "concurrency": one_of("concurrency", whole("concurrency", concurrency), CONCURRENCIES),
    }
    return _median_s(Config.FP8_DEFAULT, condition) / _median_s(Config.BF16_KV, condition)


def _median_s(config: Config, condition: dict[str, object]) -> float:
    return float(record("answer_times").one(config=config, **condition)["median_s"])
