"""The numbers of section 8.4.4 and of footnotes 19 and 20."""

from collections.abc import Callable
from itertools import product
from typing import Any

from lib import quality
from lib.design_problem import INSTANCE, LONG_CONTEXT, LONG_REQUESTS_AT_ONCE
from lib.memory import KvPool
from lib.quality import COLUMNS, CONCURRENCIES, DOCUMENT_RECORDS, TASKS, Changes, Config, Grid, Weights
from lib.quantization import Q8_0
from lib.retries import (
    Documents,
    TaskRun,
    added_by_retries,
    last_answer_per_solved_task,
    recorded_runs,
    time_per_solved_task,
)
from lib.units import GIB
from tests.claims.claim import Claim

FIRST_LONG = f"n{DOCUMENT_RECORDS[1]}-r0"
KNOWN, NEW = recorded_runs(Documents.KNOWN), recorded_runs(Documents.NEW)


def grid(config: Config, weights: Weights = Weights.BF16) -> Grid:
    return quality.recorded_answers(weights, config)


def changes(before: Config, after: Config, weights: Weights = Weights.BF16) -> Changes:
    return Changes(grid(before, weights), grid(after, weights))


def number(task: str) -> int:
    return TASKS.index(task) + 1


def wrong_of(task: str, config: Config) -> int:
    return grid(config).wrong_by_task.get(task, 0)


def opposite() -> str:
    """The task that is right with BF16 KV and wrong with FP8 KV and BF16 Q."""
    (task,) = (
        task
        for task, way in changes(Config.BF16_KV, Config.FP8_KV_BF16_Q).tasks.items()
        if way is quality.Direction.WORSE
    )
    return task


def held_gib(sharing: bool, bytes_per_element: Any = INSTANCE.bytes_per_element) -> float:
    pool = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes, bytes_per_element=bytes_per_element)
    shape = LONG_CONTEXT.shape if sharing else LONG_CONTEXT.shape_alone
    return pool.held_bytes(shape, LONG_REQUESTS_AT_ONCE) / GIB


def generation_s(runs: tuple[TaskRun, ...]) -> float:
    return sum(run.generation_s for run in runs)


def failed_s() -> float:
    return sum(answer.generation_s for run in KNOWN for answer in run.answers[:-1])


def same(value: Callable[[], float], what: str, printed: str, unit: str, *ids: str, kind: Any = "computed") -> Claim:
    """A claim that holds exactly; without an id the book prints it not."""
    return Claim(tuple(f"8.4.4{name}" for name in ids or [""]), what, kind, (printed,), unit, 0, value)


def right(config: Config, printed: str, *ids: str, weights: Weights = Weights.BF16) -> Claim:
    found = lambda: grid(config, weights)  # noqa: E731
    if "/" in printed:
        return Claim(ids, f"share right, {config}", "measured", (printed,), "", 0, lambda: found().share_right)
    return Claim(ids, f"right, {config}", "measured", (printed,), "answers", 0, lambda: found().right_answers)


def about(
    value: Callable[[], float], what: str, printed: str, unit: str, tolerance: float, *ids: str, kind: Any = "computed"
) -> Claim:
    """A claim to the last printed digit; without an id the book prints it not."""
    return Claim(tuple(f"8.4.4{name}" for name in ids or [""]), what, kind, (printed,), unit, tolerance, value)


CLAIMS: tuple[Claim, ...] = (
    same(lambda: len(TASKS), "tasks", "8", "tasks", "-01"),
    same(lambda: len(DOCUMENT_RECORDS), "lengths of documents", "2", "", "-02", kind="input"),
    same(lambda: DOCUMENT_RECORDS[0], "records of a short document", "128", "records", "-03", kind="input"),
    same(lambda: DOCUMENT_RECORDS[1], "records of a long document", "512", "records", "-04", kind="input"),
    same(lambda: quality.RECORD_DIGITS, "digits of a record", "6", "digits", "-05", kind="input"),
    same(lambda: quality.DOCUMENTS_OF_A_LENGTH, "documents of a length", "4", "documents", "-06", kind="input"),
    same(lambda: number(TASKS[0]), "number of the first task", "1", "", "-07", kind="input"),
    same(lambda: number(TASKS[-1]), "number of the last task", "8", "", "-08", kind="input"),
    same(lambda: len(CONCURRENCIES), "concurrencies of a task", "2", "", "-09", kind="input"),
    same(lambda: quality.RUNS, "runs at each concurrency", "2", "runs", "-10", kind="input"),
    same(lambda: grid(Config.BF16_KV).answers, "answers of a configuration", "32", "answers", "-11"),
    right(Config.BF16_KV, "28", "8.4.4-12"),
    right(Config.BF16_KV, "28/32", "8.4.4-18"),
    right(Config.FP8_DEFAULT, "26", "8.4.4-13"),
    right(Config.FP8_DEFAULT, "26/32", "8.4.4-19"),
    right(Config.FP8_KV_BF16_Q, "28", "8.4.4-14"),
    right(Config.FP8_KV_BF16_Q, "28/32", "8.4.4-20"),
    right(Config.BF16_KV, "28/32", "8.4.4", weights=Weights.FP8),
    right(Config.FP8_DEFAULT, "28/32", "fn19-02", weights=Weights.FP8),
    right(Config.FP8_KV_BF16_Q, "32/32", "fn19-01", weights=Weights.FP8),
    same(lambda: CONCURRENCIES[0], "lower concurrency", "1", "requests", "-15", kind="input"),
    same(lambda: CONCURRENCIES[1], "higher concurrency", "4", "requests", "-16", kind="input"),
    same(lambda: len(COLUMNS), "columns of a grid", "4", "columns", "-17"),
    same(lambda: number(FIRST_LONG), "number of the first long document", "5", "", "-21", kind="input"),
    same(lambda: wrong_of(FIRST_LONG, Config.BF16_KV), "its wrong answers, BF16 KV", "4", "answers", "-22"),
    same(
        lambda: len(COLUMNS) - wrong_of(FIRST_LONG, Config.FP8_KV_BF16_Q), "its right ones, FP8 KV with BF16 Q", "4",
        "answers", "-23",
    ),
    same(lambda: number(opposite()), "number of the task that is the other way round", "6", "", "-24", kind="input"),
    same(lambda: wrong_of(opposite(), Config.BF16_KV), "its wrong answers, BF16 KV", "0", "answers"),
    same(lambda: wrong_of(opposite(), Config.FP8_KV_BF16_Q), "the same, FP8 KV with BF16 Q", "4", "answers"),
    same(lambda: wrong_of(opposite(), Config.FP8_DEFAULT), "the same, FP8 default", "4", "answers"),
    same(lambda: wrong_of(FIRST_LONG, Config.FP8_DEFAULT), "task 5 wrong, FP8 default", "2", "answers"),
    same(
        lambda: grid(Config.FP8_DEFAULT).at(CONCURRENCIES[1]).wrong_by_task[FIRST_LONG], "the same at concurrency 4",
        "2", "answers",
    ),
    *(
        same(lambda config=config: len(grid(config).wrong_by_task), f"tasks with an error, {config}", printed, "tasks")
        for config, printed in zip(Config, ("1", "2", "1"), strict=True)
    ),
    *(
        same(
            lambda before=before, after=after, weights=weights: changes(before, after, weights).changed_cells,
            f"answers changed from {before} to {after}, {weights} weights", printed, "answers",
        )
        for (weights, (before, after)), printed in zip(
            product(
                Weights,
                (
                    (Config.BF16_KV, Config.FP8_DEFAULT),
                    (Config.BF16_KV, Config.FP8_KV_BF16_Q),
                    (Config.FP8_DEFAULT, Config.FP8_KV_BF16_Q),
                ),
            ),
            ("6", "8", "2", "8", "4", "4"),
            strict=True,
        )
    ),
    same(lambda: len(changes(Config.BF16_KV, Config.FP8_KV_BF16_Q).tasks), "tasks changed, BF16 KV", "2", "tasks"),
    same(lambda: changes(Config.BF16_KV, Config.FP8_KV_BF16_Q).chance, "their sign test", "1", ""),
    about(lambda: 100 * quality.sign_test(0, 5), "sign test of five tasks one way", "6.3", "%", 0.05),
    about(lambda: 100 * quality.sign_test(0, 6), "sign test of six tasks one way", "3.1", "%", 0.05),
    *(
        about(
            lambda trials=trials, end=end: 100 * quality.share_interval(grid(Config.BF16_KV).share_right, trials)[end],
            f"{('low', 'high')[end]} end of the share right, {trials} trials", printed, "%", 0.5,
        )
        for (trials, end), printed in zip(
            product((len(COLUMNS) * len(TASKS), len(TASKS)), (0, 1)), ("72", "95", "53", "98"), strict=True
        )
    ),
    *(
        about(
            lambda of=of: 100 * quality.time_ratio(*of),
            f"time with FP8 KV of that with BF16 KV, {of[0]} weights, {of[1]} records, {of[2]} at once", printed, "%",
            0.05, kind="measured",
        )
        for of, printed in zip(
            product(Weights, DOCUMENT_RECORDS, CONCURRENCIES),
            ("90.5", "96.2", "101.9", "92.1", "100.5", "120.9", "104.9", "94.1"),
            strict=True,
        )
    ),
    same(lambda: added_by_retries(KNOWN).corrected, "retries that were right", "2", "retries", "-25", kind="measured"),
    same(lambda: added_by_retries(KNOWN).retries, "retries", "2", "retries", kind="measured"),
    about(
        lambda: added_by_retries(KNOWN).generation_s, "time of the retries", "2.0", "s", 0.05, "-26", kind="measured"
    ),
    about(lambda: added_by_retries(KNOWN).generation_s, "the same", "2.04", "s", 0.005, kind="measured"),
    about(failed_s, "time of the answers that failed", "1.98", "s", 0.005, kind="measured"),
    same(lambda: added_by_retries(KNOWN).tokens, "tokens of the retries", "92", "token", "-27", kind="measured"),
    same(lambda: KNOWN[0].answers[0].tokens, "tokens of an answer", "46", "token", kind="measured"),
    same(lambda: len(KNOWN), "known tasks", "8", "tasks", kind="measured"),
    same(lambda: len(NEW), "tasks over new documents", "32", "tasks", kind="measured"),
    same(lambda: added_by_retries(NEW).retries, "retries over new documents", "0", "retries", kind="measured"),
    about(lambda: time_per_solved_task(KNOWN), "time per solved task", "1.249", "s", 0.0005, kind="measured"),
    about(lambda: last_answer_per_solved_task(KNOWN), "without what failed", "1.001", "s", 0.0005, kind="measured"),
    about(
        lambda: 100 * (time_per_solved_task(KNOWN) / last_answer_per_solved_task(KNOWN) - 1), "what that leaves out",
        "24.8", "%", 0.05,
    ),
    about(lambda: generation_s(KNOWN), "generation of all known tasks", "9.989", "s", 0.0005, kind="measured"),
    about(lambda: generation_s(NEW), "generation of all new ones", "32.935", "s", 0.0005, kind="measured"),
    about(lambda: time_per_solved_task(NEW), "time per solved new one", "1.029", "s", 0.0005, kind="measured"),
    same(lambda: sum(run.tokens for run in KNOWN), "tokens of all known tasks", "460", "token", kind="measured"),
    same(lambda: sum(run.tokens for run in NEW), "tokens of all new ones", "1472", "token", kind="measured"),
    about(
        lambda: sum(run.task_s for run in KNOWN), "all known tasks with checks and switches", "10.005", "s", 0.0005,
        kind="measured",
    ),
    about(lambda: sum(run.task_s for run in NEW), "all new ones", "32.988", "s", 0.0005, kind="measured"),
    about(
        lambda: 1e3 * sum(run.beside_s for run in KNOWN), "checks and switches of all known tasks", "16.4", "ms", 0.05,
        kind="measured",
    ),
    same(lambda: LONG_REQUESTS_AT_ONCE, "long requests at once", "16", "requests", "-28", kind="input"),
    about(
        lambda: held_gib(False, Q8_0.bits_per_value / 8), "independent requests in q8_0", "9.86", "GiB", 0.005, "-29"
    ),
    about(lambda: held_gib(True), "with a shared prefix in BF16", "5.91", "GiB", 0.005, "-30"),
)  # fmt: skip
