"""Grids of answers: what they count, what changes between two, and what eight tasks can tell, against plain ways."""

from itertools import product
from math import sqrt
from random import Random
from statistics import NormalDist
from typing import Any

import pytest

from lib.checks import InputError
from lib.quality import (
    COLUMNS,
    CONCURRENCIES,
    CONFIDENCE,
    TASKS,
    Changes,
    Config,
    Direction,
    Grid,
    Run,
    Weights,
    formats_changed,
    recorded_answers,
    share_interval,
    sign_test,
    time_ratio,
)
from lib.records import record

ALL_RIGHT = ((True,) * len(COLUMNS),) * len(TASKS)


def drawn(random: Random, tasks: int = 5, name: str = "drawn") -> Grid:
    columns = tuple(Run(concurrency, number) for concurrency in (1, 2, 7) for number in range(random.randint(1, 3)))
    right = tuple(tuple(random.random() < 0.7 for _ in columns) for _ in range(tasks))
    return Grid(name, right, tuple(f"task {place}" for place in range(tasks)), columns)


def again(grid: Grid, random: Random) -> Grid:
    """The same tasks and columns, some answers turned."""
    right = tuple(tuple(one != (random.random() < 0.3) for one in row) for row in grid.right)
    return Grid("again", right, grid.tasks, grid.columns)


@pytest.mark.parametrize("config", Config)
@pytest.mark.parametrize("weights", Weights)
def test_the_grid_is_the_record_mark_by_mark(weights: Weights, config: Config) -> None:
    row, grid = record("answers").one(weights=weights, config=config), recorded_answers(weights, config)
    marks = ["".join("ox"[not one] for one in answers) for answers in grid.right]
    assert marks == [row[task] for task in TASKS]
    assert list(row) == ["weights", "config", *TASKS]
    assert grid.right_answers == "".join(marks).count("o")


def test_the_record_has_each_grid_once_and_no_other_marks() -> None:
    rows = record("answers").rows
    assert [(row["weights"], row["config"]) for row in rows] == list(product(Weights, Config))
    assert {mark for row in rows for task in TASKS for mark in row[task]} == {"o", "x"}


@pytest.mark.parametrize("seed", range(40))
def test_what_a_grid_says_of_itself(seed: int) -> None:
    grid = drawn(Random(seed))
    cells = {
        (task, run): grid.right[row][column]
        for row, task in enumerate(grid.tasks)
        for column, run in enumerate(grid.columns)
    }
    assert (grid.answers, grid.right_answers) == (len(cells), sum(cells.values()))
    assert grid.share_right == sum(cells.values()) / len(cells)
    wrong = [task for (task, _), right in cells.items() if not right]
    assert grid.wrong_by_task == {task: wrong.count(task) for task in grid.tasks if task in wrong}
    seen = {
        task: {
            at: {right for (one, run), right in cells.items() if one == task and run.concurrency == at}
            for at in (1, 2, 7)
        }
        for task in grid.tasks
    }
    mixed = [task for task in grid.tasks if any(len(ends) == 2 for ends in seen[task].values())]
    assert list(grid.runs_disagree) == mixed
    turned = [task for task in grid.tasks if task not in mixed and {True} in seen[task].values()]
    assert list(grid.concurrency_matters) == [task for task in turned if {False} in seen[task].values()]
    for at in (1, 2, 7):
        part = grid.at(at)
        assert part.tasks == grid.tasks
        assert [run for run in grid.columns if run.concurrency == at] == list(part.columns)
        assert all(
            cells[task, run] == part.right[row][column]
            for row, task in enumerate(part.tasks)
            for column, run in enumerate(part.columns)
        )


@pytest.mark.parametrize("seed", range(40))
def test_what_changed_between_two_grids(seed: int) -> None:
    random = Random(seed)
    before = drawn(random)
    changes = Changes(before, after := again(before, random))
    better, worse = set[tuple[int, int]](), set[tuple[int, int]]()
    for row, column in product(range(len(before.tasks)), range(len(before.columns))):
        old, new = before.right[row][column], after.right[row][column]
        if new and not old:
            better.add((row, column))
        if old and not new:
            worse.add((row, column))
        assert changes.cells[row][column] == ((row, column) in better) - ((row, column) in worse)
    assert (changes.better_cells, changes.worse_cells) == (len(better), len(worse))
    assert changes.changed_cells == len(better | worse)
    for row, task in enumerate(before.tasks):
        ways = any(place == row for place, _ in better), any(place == row for place, _ in worse)
        named = {(True, False): Direction.BETTER, (False, True): Direction.WORSE, (True, True): Direction.BOTH}
        assert changes.tasks.get(task) == named.get(ways)
    back = Changes(after, before)
    assert (back.better_cells, back.worse_cells) == (changes.worse_cells, changes.better_cells)
    kinds = list(changes.tasks.values())
    assert changes.chance == sign_test(kinds.count(Direction.BETTER), kinds.count(Direction.WORSE))


def test_equal_totals_with_other_errors() -> None:
    bf16, mixed = (recorded_answers(Weights.BF16, config) for config in (Config.BF16_KV, Config.FP8_KV_BF16_Q))
    assert bf16.right_answers == mixed.right_answers
    assert Changes(bf16, mixed).tasks == {"n512-r0": Direction.BETTER, "n512-r1": Direction.WORSE}
    assert Changes(bf16, mixed).chance == 1


def test_a_task_that_depends_on_who_else_is_served() -> None:
    grid = recorded_answers(Weights.BF16, Config.FP8_DEFAULT)
    assert grid.concurrency_matters == ("n512-r0",)
    assert [grid.at(concurrency).wrong_by_task.get("n512-r0", 0) for concurrency in CONCURRENCIES] == [0, 2]
    assert [recorded_answers(*of).runs_disagree for of in product(Weights, Config)] == [()] * 6


def test_one_change_at_a_time() -> None:
    assert formats_changed(Config.BF16_KV, Config.FP8_DEFAULT) == ("kv", "q")
    assert formats_changed(Config.FP8_DEFAULT, Config.FP8_KV_BF16_Q) == ("q",)
    assert formats_changed(Config.FP8_KV_BF16_Q, Config.BF16_KV) == ("kv",)
    assert formats_changed(Config.BF16_KV, Config.BF16_KV) == ()


@pytest.mark.parametrize("better, worse", [(0, 0), (1, 0), (1, 1), (0, 5), (6, 0), (2, 7), (5, 4), (6, 3)])
def test_the_sign_test_is_a_count_of_coins(better: int, worse: int) -> None:
    uneven = abs(better - worse)
    throws = [sum(coins) for coins in product((1, -1), repeat=better + worse)]
    assert sign_test(better, worse) == sum(abs(throw) >= uneven for throw in throws) / len(throws)


def test_the_largest_sign_test_is_still_a_share() -> None:
    assert 0 < sign_test(480, 520) < 1 == sign_test(1000, 1000)
    assert sign_test(0, 1000) == 2 / 2**1000


@pytest.mark.parametrize("share, trials", [(0, 8), (1, 8), (0.875, 8), (0.875, 32), (0.8125, 8), (0.5, 1), (0.3, 1000)])
def test_the_ends_of_the_interval_are_as_far_off_as_allowed(share: float, trials: int) -> None:
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    low, high = share_interval(share, trials)
    assert 0 <= low < high <= 1
    assert low <= share <= high
    for end in (low, high):
        assert abs(share - end) == pytest.approx(z * sqrt(end * (1 - end) / trials), abs=1e-9)


def test_eight_tasks_leave_more_open_than_32_answers() -> None:
    grid = recorded_answers(Weights.BF16, Config.BF16_KV)
    tasks, answers = (share_interval(grid.share_right, count) for count in (len(grid.tasks), grid.answers))
    assert tasks.low < answers.low < grid.share_right < answers.high < tasks.high


def test_times_are_compared_inside_a_group() -> None:
    rows = record("answer_times")
    for weights, records, concurrency in product(Weights, (128, 512), CONCURRENCIES):
        condition = {"weights": weights, "document_records": records, "concurrency": concurrency}
        before = rows.one(config=Config.BF16_KV, **condition)["median_s"]
        after = rows.one(config=Config.FP8_DEFAULT, **condition)["median_s"]
        assert time_ratio(weights, records, concurrency) * before == pytest.approx(after)
    assert len(rows.rows) == 16


@pytest.mark.parametrize(
    "wrong, named",
    [
        ({"tasks": ()}, "tasks"),
        ({"tasks": ("a",) * 8}, "tasks"),
        ({"tasks": list(TASKS)}, "tasks"),
        ({"tasks": tuple(range(8))}, "tasks"),
        ({"columns": ()}, "columns"),
        ({"columns": COLUMNS[:1] * 4}, "columns"),
        ({"columns": ((1, 1), (1, 2), (4, 1), (4, 2))}, "columns"),
        ({"columns": (Run(0, 1), *COLUMNS[1:])}, "concurrency"),
        ({"columns": (Run(True, 1), *COLUMNS[1:])}, "concurrency"),
        ({"columns": (*COLUMNS[:3], Run(4, float("nan")))}, "number"),  # type: ignore[arg-type]
        ({"columns": COLUMNS[:3]}, "right"),
        ({"tasks": TASKS[:7]}, "right"),
        ({"right": None}, "right"),
        ({"right": ALL_RIGHT[1:]}, "right"),
        ({"right": (*ALL_RIGHT[1:], (True,) * 3)}, "right"),
        ({"right": (*ALL_RIGHT[1:], (1, 1, 1, 1))}, "right"),
        ({"right": (*ALL_RIGHT[1:], ("o", "x", "o", "x"))}, "right"),
    ],
    ids=repr,
)
def test_a_grid_that_is_none_is_refused(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError) as refusal:
        Grid(**{"name": "g", "right": ALL_RIGHT} | wrong)
    assert refusal.value.parameter == named


def test_grids_of_other_tasks_or_runs_are_not_compared() -> None:
    grid = recorded_answers(Weights.BF16, Config.BF16_KV)
    with pytest.raises(InputError, match=r"^tasks is \('a', .*; allowed: those of the other grid, n128-r0, n128-r1"):
        Changes(grid, Grid("other", ALL_RIGHT, tuple("abcdefgh")))
    with pytest.raises(InputError, match=r"^columns is .*; allowed: those of the other grid"):
        Changes(grid, grid.at(1))


@pytest.mark.parametrize("concurrency", [2, True, 1.0, "4", None, 10**400])
def test_a_concurrency_at_which_nothing_was_run_is_refused(concurrency: Any) -> None:
    with pytest.raises(InputError, match=r"^concurrency is "):
        recorded_answers(Weights.BF16, Config.BF16_KV).at(concurrency)
