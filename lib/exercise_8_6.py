"""Exercise 8-6: what compressed KV takes, which answers change, what retries cost. Source: sections 8.4.2, 8.4.4."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from lib.checks import InputError, seconds, whole, wholes
from lib.design_problem import LONG_CONTEXT
from lib.exercise_8_1 import MODELS
from lib.exercises import SHARE, ChoicePart, Exercise, Kind, Mistake, NumberPart, Quantity, some_of
from lib.kv_compression import POOL
from lib.memory import MOST_BYTES, pages_for, tokens_stored
from lib.model import kv_bytes_per_token
from lib.quality import COLUMNS, RIGHT, TASKS, Changes, Config, Direction, Grid, Weights, recorded_answers
from lib.quantization import BF16, Q4_0, Q8_0, GroupFormat
from lib.retries import Answer, Documents, TaskRun, last_answer_per_solved_task, recorded_runs, time_per_solved_task
from lib.units import MIB

MOVED, SAME, ONE_WAY = "errors moved", "no answer changed", "all changes one way"
BY_TASK, BY_ANSWER, BY_RUN = "tasks", "answers", "runs"
MOST_GROUP, MOST_CODE_BITS, MOST_SCALE_BYTES, MOST_TASKS = 2**16, 16, 2**10, 1000
WRONG = "x"
# What has been seen of a task that is sometimes wrong: always, or at one of the two numbers of requests at once.
_WRONG_ROWS = (WRONG * 4, RIGHT * 2 + WRONG * 2, WRONG * 2 + RIGHT * 2)
_FORMAT = ("group_values", "scale_bytes")
_GRIDS = ("bf16_kv", "fp8_default", "fp8_kv_bf16_q")


@dataclass(frozen=True)
class Inputs:
    """What the exercise starts from: KV in BF16, two formats, three grids of answers, and a table of retries.

    A grid has a word for each task, in it a letter for each of its runs: o right, x wrong. Raises InputError for values
    that make no sense.
    """

    input_kv_bytes: int
    request_kv_bytes: int
    group_values: int
    code_bits: tuple[int, ...]
    scale_bytes: int
    bf16_kv: tuple[str, ...]
    fp8_default: tuple[str, ...]
    fp8_kv_bf16_q: tuple[str, ...]
    first_s: tuple[float, ...]
    retry_s: tuple[float | None, ...]
    task_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if whole("group_values", self.group_values, at_least=1, at_most=MOST_GROUP) % 8:
            raise InputError("group_values", self.group_values, "a multiple of 8, so that codes fill whole bytes")
        wholes("code_bits", self.code_bits, 1, MOST_CODE_BITS, 2, "a tuple of the bits of two formats")
        whole("scale_bytes", self.scale_bytes, at_most=MOST_SCALE_BYTES)
        for name in ("input_kv_bytes", "request_kv_bytes"):
            size, group = getattr(self, name), BF16.bytes_of(self.group_values)
            if whole(name, size, at_least=1, at_most=MOST_BYTES) % group:
                raise InputError(name, size, f"a multiple of the {group} bytes that a group has in BF16")
        for name in _GRIDS:
            _check_grid(name, getattr(self, name))
        self._check_times()

    def _check_times(self) -> None:
        if not isinstance(self.first_s, tuple) or not 0 < len(self.first_s) <= MOST_TASKS:
            raise InputError("first_s", self.first_s, "a tuple of times, one for each task")
        for name in ("first_s", "retry_s", "task_s"):
            times = getattr(self, name)
            if not isinstance(times, tuple) or len(times) != len(self.first_s):
                raise InputError(name, times, f"a tuple of {len(self.first_s)} times, as many as there are tasks")
            for time in times:
                if time is not None or name != "retry_s":
                    seconds(name, time, above_zero=True)
        for run in _runs(self.first_s, self.retry_s):
            place = int(run.task)
            if self.task_s[place] < run.generation_s:
                raise InputError(
                    "task_s", self.task_s[place], f"at least the answers of the task, {run.generation_s} s"
                )


def _check_grid(name: str, rows: object) -> None:
    allowed = f"a tuple of {len(TASKS)} words of {len(COLUMNS)} letters, {RIGHT} or {WRONG}"
    if not isinstance(rows, tuple) or len(rows) != len(TASKS):
        raise InputError(name, rows, allowed)
    for row in rows:
        if not isinstance(row, str) or len(row) != len(COLUMNS) or set(row) - {RIGHT, WRONG}:
            raise InputError(name, row, allowed)


def _grid(rows: Sequence[str]) -> Grid:
    return Grid("", tuple(tuple(mark == RIGHT for mark in row) for row in rows))


def _marks(config: Config, weights: Weights = Weights.BF16) -> tuple[str, ...]:
    """A recorded grid as the inputs have it."""
    rows = recorded_answers(weights, config).right
    return tuple("".join(RIGHT if right else WRONG for right in row) for row in rows)


def _runs(first_s: Sequence[float], retry_s: Sequence[float | None]) -> list[TaskRun]:
    """The tasks of a table, each called by its place; all were right in the end."""
    found = []
    for place, (first, retry) in enumerate(zip(first_s, retry_s, strict=True)):
        answers = [Answer(first, 1, retry is None)] + ([] if retry is None else [Answer(retry, 1, True)])
        found.append(TaskRun(str(place), 1, tuple(answers), sum(answer.generation_s for answer in answers)))
    return found


def _table(runs: Sequence[TaskRun]) -> dict[str, Any]:
    """The inputs that say how long the answers of these tasks took."""
    return {
        "first_s": tuple(run.answers[0].generation_s for run in runs),
        "retry_s": tuple(run.last_s if len(run.answers) > 1 else None for run in runs),
        "task_s": tuple(run.task_s for run in runs),
    }


BOOK = Inputs(
    input_kv_bytes=POOL.bytes_of(LONG_CONTEXT.input_tokens),
    request_kv_bytes=POOL.private_bytes(LONG_CONTEXT.shape_alone),
    group_values=Q8_0.group_values,
    code_bits=(Q8_0.code_bits, Q4_0.code_bits),
    scale_bytes=Q8_0.metadata_bytes,
    bf16_kv=_marks(Config.BF16_KV),
    fp8_default=_marks(Config.FP8_DEFAULT),
    fp8_kv_bf16_q=_marks(Config.FP8_KV_BF16_Q),
    **_table(recorded_runs(Documents.KNOWN)),
)


def _each_format(inputs: Inputs) -> list[dict[str, int]]:
    return [{"code_bits": bits} | some_of(inputs, _FORMAT) for bits in inputs.code_bits]


def _bits(code_bits: int, group_values: int, scale_bytes: int) -> float:
    return float(GroupFormat("", group_values, code_bits, scale_bytes).bits_per_value)


def _bits_without_scale(code_bits: int, **_: int) -> float:
    return code_bits


def _bits_with_own_scale(code_bits: int, scale_bytes: int, **_: int) -> float:
    return code_bits + 8 * scale_bytes


def _bits_with_scale_in_bits(code_bits: int, group_values: int, scale_bytes: int) -> float:
    return code_bits + scale_bytes / group_values


def _stored_mib(
    bf16_bytes: int, bits: Callable[..., float] = _bits, bits_before: int = BF16.code_bits, **of_format: int
) -> float:
    return bf16_bytes * bits(**of_format) / bits_before / MIB


_NO_SCALE = "the scale is forgotten: each group has one beside its codes"
_OWN_SCALE = "each value is given a scale: a group shares one"
_SCALE_IN_BITS = "the bytes of the scale are taken for bits: a byte has eight"


def _stored_part(name: str, field: str) -> NumberPart:
    return NumberPart(
        name=name,
        asked=(Quantity("KV in the format", "MiB"),),
        cases=lambda inputs: [{"bf16_bytes": getattr(inputs, field)} | case for case in _each_format(inputs)],
        key=_stored_mib,
        mistakes=(
            Mistake(_NO_SCALE, partial(_stored_mib, bits=_bits_without_scale)),
            Mistake(_OWN_SCALE, partial(_stored_mib, bits=_bits_with_own_scale)),
            Mistake(_SCALE_IN_BITS, partial(_stored_mib, bits=_bits_with_scale_in_bits)),
            Mistake(
                "the format is compared with 8 bits a value: KV in BF16 has 16",
                partial(_stored_mib, bits_before=8),
            ),
        ),
        first_step="count the bytes of one group: before with two bytes for each value, after with codes and scale",
        hint="multiply by the bytes of a group after, and divide by those before; then in MiB",
    )


BITS = NumberPart(
    name="c",
    asked=(Quantity("bits of a value", "bit"),),
    cases=_each_format,
    key=_bits,
    mistakes=(
        Mistake(_NO_SCALE, _bits_without_scale),
        Mistake(_OWN_SCALE, _bits_with_own_scale),
        Mistake(_SCALE_IN_BITS, _bits_with_scale_in_bits),
    ),
    first_step="write down the bits of a whole group, its scale among them",
    hint="the scale adds 8 * scale_bytes bits, which all values of a group share",
)

_OPTIONS = tuple(f"{task} {direction}" for task in TASKS for direction in (Direction.BETTER, Direction.WORSE))


def _changed(before: Sequence[str], after: Sequence[str]) -> frozenset[str]:
    """The tasks with a changed answer, each with its direction."""
    return frozenset(f"{task} {direction}" for task, direction in Changes(_grid(before), _grid(after)).tasks.items())


def _going(direction: Direction, changed: frozenset[str]) -> frozenset[str]:
    return frozenset(one for one in changed if one.endswith(direction))


def _changed_part(name: str, before: str, after: str, further: tuple[Mistake, ...], hint: str) -> ChoicePart:
    """A part that asks which tasks changed from one of the grids to another."""

    def changed(inputs: Inputs) -> frozenset[str]:
        return _changed(getattr(inputs, before), getattr(inputs, after))

    return ChoicePart(
        name=name,
        options=lambda _: _OPTIONS,
        key=changed,
        mistakes=(
            Mistake(
                "only totals are compared: they do not say which answers are right",
                lambda _: frozenset[str](),
            ),
            Mistake(
                "the directions are turned round: better is what was wrong before and is right after",
                lambda inputs: _changed(getattr(inputs, after), getattr(inputs, before)),
            ),
            *further,
        ),
        first_step="put the two rows of a task beside each other, run by run",
        hint=hint,
        several=True,
    )


def _kv_changed(inputs: Inputs) -> frozenset[str]:
    return _changed(inputs.bf16_kv, inputs.fp8_kv_bf16_q)


def _with_fp8_weights(inputs: Inputs) -> frozenset[str]:
    """What the runs with FP8 weights would say, where the book's grids are asked about."""
    if _kv_changed(inputs) != _kv_changed(BOOK):
        return _kv_changed(inputs)
    return _changed(*(_marks(config, Weights.FP8) for config in (Config.BF16_KV, Config.FP8_KV_BF16_Q)))


BY_KV = _changed_part(
    "d1",
    "bf16_kv",
    "fp8_kv_bf16_q",
    (
        Mistake(
            "only the tasks are listed that were wrong before: others went wrong instead",
            lambda inputs: _going(Direction.BETTER, _kv_changed(inputs)),
        ),
        Mistake(
            "only the tasks are listed that are wrong after: others were wrong before",
            lambda inputs: _going(Direction.WORSE, _kv_changed(inputs)),
        ),
        Mistake(
            "the runs with FP8 weights are read: here the weights are BF16",
            _with_fp8_weights,
            may_coincide=True,  # the record has those of the book's grids only
        ),
        Mistake(
            "the default FP8 path is compared: it quantises Q too, so two things change at once",
            lambda inputs: _changed(inputs.bf16_kv, inputs.fp8_default),
            may_coincide=True,  # the same tasks change in the book's grids, though not in as many runs
        ),
    ),
    "list a task once, however many of its runs changed: some are wrong in the one grid only, some in the other only",
)
BY_Q = _changed_part(
    "d2",
    "fp8_kv_bf16_q",
    "fp8_default",
    (
        Mistake(
            "the grid with BF16 KV is compared: from it to the default, KV and Q change",
            lambda inputs: _changed(inputs.bf16_kv, inputs.fp8_default),
            may_coincide=True,  # shows only where FP8 KV by itself changes an answer that stays changed
        ),
    ),
    "a task that is wrong in both grids in the same runs has not changed",
)

Counts = tuple[int, int, int]


def _counts(before: Sequence[str], after: Sequence[str]) -> Counts:
    changes = Changes(_grid(before), _grid(after))
    return changes.changed_cells, changes.before.right_answers, changes.after.right_answers


def _other_counts(count: Callable[[Changes], int]) -> Callable[..., Counts]:
    """The right totals, and another count in place of that of the changed answers."""

    def counts(before: Sequence[str], after: Sequence[str]) -> Counts:
        _, first, second = _counts(before, after)
        return count(Changes(_grid(before), _grid(after))), first, second

    return counts


def _wrong_totals(before: Sequence[str], after: Sequence[str]) -> Counts:
    changed, first, second = _counts(before, after)
    answers = len(TASKS) * len(COLUMNS)
    return changed, answers - first, answers - second


CELLS = NumberPart(
    name="e",
    asked=(Quantity("answers changed"), Quantity("right before"), Quantity("right after")),
    cases=lambda inputs: [{"before": inputs.bf16_kv, "after": inputs.fp8_kv_bf16_q}],
    key=_counts,
    mistakes=(
        Mistake(
            "the totals are subtracted: what got better and what got worse cancel there",
            _other_counts(lambda changes: abs(changes.better_cells - changes.worse_cells)),
        ),
        Mistake("tasks are counted: asked is in how many answers", _other_counts(lambda changes: len(changes.tasks))),
        Mistake(
            "only answers that got better are counted: those that got worse changed too",
            _other_counts(lambda changes: changes.better_cells),
        ),
        Mistake(
            "only answers that got worse are counted: those that got better changed too",
            _other_counts(lambda changes: changes.worse_cells),
        ),
        Mistake(
            "wrong answers of both grids are added up: one that is wrong in both has not changed",
            lambda before, after: (
                sum("".join(rows).count(WRONG) for rows in (before, after)),
                *_counts(before, after)[1:],
            ),
            may_coincide=True,  # shows only where an answer is wrong in both
        ),
        Mistake("wrong answers are counted: the totals are those of right ones", _wrong_totals),
    ),
    first_step="compare the grids letter by letter",
    hint="count the places at which the letters differ, and in each grid the letters o",
)


def _all_answers(first_s: Sequence[float], retry_s: Sequence[float | None], **_: Any) -> tuple[float, float]:
    runs = _runs(first_s, retry_s)
    each = time_per_solved_task(runs)
    return each * len(runs), each


def _both(total: float, tasks: int) -> tuple[float, float]:
    return total, total / max(1, tasks)


def _retries_alone(retry_s: Sequence[float | None]) -> list[float]:
    return [time for time in retry_s if time is not None]


def _retried_s(first_s: Sequence[float], retry_s: Sequence[float | None]) -> list[float]:
    """All answers of each task that was asked again."""
    return [run.generation_s for run in _runs(first_s, retry_s) if len(run.answers) > 1]


def _per_answer(first_s: Sequence[float], retry_s: Sequence[float | None], **_: Any) -> tuple[float, float]:
    return _both(_all_answers(first_s, retry_s)[0], len(first_s) + len(_retries_alone(retry_s)))


def _last_answers_s(first_s: Sequence[float], retry_s: Sequence[float | None]) -> float:
    return last_answer_per_solved_task(_runs(first_s, retry_s)) * len(first_s)


ALL_ANSWERS = NumberPart(
    name="f",
    asked=(
        Quantity("time of all answers", "s", relative=0.0005),
        Quantity("time of a solved task", "s", relative=0.0005),
    ),
    cases=lambda inputs: [some_of(inputs, ("first_s", "retry_s", "task_s"))],
    key=_all_answers,
    mistakes=(
        Mistake(
            "for whole tasks, with checks and switches; generation alone takes a little less",
            lambda task_s, **_: _both(sum(task_s), len(task_s)),
            accepted=True,
        ),
        Mistake(
            "only the last answer of each task is counted: the failed one before it took its time too",
            lambda first_s, retry_s, **_: _both(_last_answers_s(first_s, retry_s), len(first_s)),
        ),
        Mistake(
            "only first answers are counted: a task that failed is solved by its retry",
            lambda first_s, **_: _both(sum(first_s), len(first_s)),
        ),
        Mistake(
            "only retries are counted: they come on top of the first answers",
            lambda first_s, retry_s, **_: _both(sum(_retries_alone(retry_s)), len(first_s)),
        ),
        Mistake(
            "only the tasks with a retry are averaged: those that were right at once are solved tasks too",
            lambda first_s, retry_s, **_: (
                _all_answers(first_s, retry_s)[0],
                _both(sum(_retried_s(first_s, retry_s)), len(_retries_alone(retry_s)))[1],
            ),
        ),
        Mistake("it is divided by the answers: a task with a retry has two, and is solved once", _per_answer),
    ),
    first_step="write down for each task its first answer, and beside it its retry if it had one",
    hint="add up both columns, then divide by the number of tasks, which were all right in the end",
)

Three = tuple[float, float, float]


def _last_only(first_s: Sequence[float], retry_s: Sequence[float | None]) -> Three:
    total, last = _all_answers(first_s, retry_s)[0], _last_answers_s(first_s, retry_s)
    return last, total - last, (total - last) / total


def _with_left(left: float, total: float) -> Three:
    return left, total - left, (total - left) / total


def _share_of_last(first_s: Sequence[float], retry_s: Sequence[float | None]) -> Three:
    last, difference, _ = _last_only(first_s, retry_s)
    return last, difference, difference / last


LAST_ONLY = NumberPart(
    name="g",
    asked=(
        Quantity("time of the last answers", "s", relative=0.0005),
        Quantity("time left out", "s", relative=0.001),
        Quantity("its share of all answers", SHARE, absolute=0.0005),
    ),
    cases=lambda inputs: [some_of(inputs, ("first_s", "retry_s"))],
    key=_last_only,
    mistakes=(
        Mistake(
            "the retries are left out: what failed are the first answers of these tasks",
            lambda first_s, retry_s: _with_left(sum(first_s), _all_answers(first_s, retry_s)[0]),
        ),
        Mistake(
            "the tasks with a retry are left out: their retry is right and counts",
            lambda first_s, retry_s: _with_left(
                _all_answers(first_s, retry_s)[0] - sum(_retried_s(first_s, retry_s)), _all_answers(first_s, retry_s)[0]
            ),
        ),
        Mistake(
            "it is divided by the time of the last answers: asked is the share of all that was generated",
            _share_of_last,
        ),
    ),
    first_step="take for each task the answer that was right: the retry where there was one, else the first",
    hint="subtract their sum from the time of f; divide what is left by the time of f",
)

MEANING = ChoicePart(
    name="h1",
    options=lambda _: (MOVED, SAME, ONE_WAY),
    key=lambda _: MOVED,
    mistakes=(
        Mistake("totals are taken for answers: d1 lists tasks that changed", lambda _: SAME),
        Mistake("one direction is overlooked: d1 has tasks of both", lambda _: ONE_WAY),
    ),
    first_step="look at the directions of the tasks in d1",
    hint="a total is the same if as many answers get better as get worse",
)
INDEPENDENT = ChoicePart(
    name="h2",
    options=lambda _: (BY_TASK, BY_ANSWER, BY_RUN),
    key=lambda _: BY_TASK,
    mistakes=(
        Mistake("each answer is taken for a trial: the runs of a task ask about one document", lambda _: BY_ANSWER),
        Mistake("the runs are taken for trials: each of them has the same documents", lambda _: BY_RUN),
    ),
    first_step="ask what is drawn anew from one row of the grid to the next, and what from one column to the next",
    hint="in most rows all letters are the same: knowing one of them, you know the others",
)


def _drawn_grid(random: Random) -> tuple[str, ...]:
    """Answers with up to three tasks that are not always right."""
    wrong = {place: random.choice(_WRONG_ROWS) for place in random.sample(range(len(TASKS)), random.randint(1, 3))}
    return tuple(wrong.get(place, RIGHT * len(COLUMNS)) for place in range(len(TASKS)))


def _drawn_grids(random: Random) -> dict[str, Any]:
    """Three grids; from the first to the last tasks change both ways, with equal totals in two draws of three."""
    is_equal = random.randrange(3) > 0
    while True:
        grids = {name: _drawn_grid(random) for name in _GRIDS}
        bf16, default, bf16_q = (grids[name] for name in _GRIDS)
        by_kv, by_q, by_two = _changed(bf16, bf16_q), _changed(bf16_q, default), _changed(bf16, default)
        both_ways = all(_going(direction, by_kv) for direction in (Direction.BETTER, Direction.WORSE))
        can_be_said = by_q and by_kv | by_q | by_two <= set(_OPTIONS)
        counts = _counts(bf16, bf16_q)
        is_another = counts != _counts(BOOK.bf16_kv, BOOK.fp8_kv_bf16_q)
        if both_ways and can_be_said and is_another and (counts[1] == counts[2]) == is_equal:
            return grids


def _drawn_table(random: Random) -> dict[str, Any]:
    """Tasks of the record, on known documents or new ones, of which one to four had a retry like a recorded one."""
    retried = [run for run in recorded_runs(Documents.KNOWN) if len(run.answers) > 1]
    at_once = [run for run in recorded_runs(random.choice(tuple(Documents))) if len(run.answers) == 1]
    runs = random.choices(at_once, k=random.randint(6, 9))
    for place in range(random.randint(1, 4)):
        first, like = runs[place].answers[0], random.choice(retried)
        answers = (first._replace(right=False), like.answers[1])
        task_s = sum(answer.generation_s for answer in answers) + like.beside_s
        runs[place] = TaskRun(runs[place].task, runs[place].run, answers, round(task_s, 6))
    random.shuffle(runs)
    return _table(runs)


def _drawn(random: Random) -> Inputs:
    kv, block_tokens = kv_bytes_per_token(random.choice(MODELS)), 16
    tokens, outputs = 256 * random.randint(8, 64), random.randint(64, 1024)
    wide, narrow = random.sample(range(3, 9), 2)
    return Inputs(
        input_kv_bytes=tokens * kv,
        request_kv_bytes=pages_for(tokens_stored(tokens, outputs), block_tokens) * block_tokens * kv,
        group_values=random.choice((16, 32, 64, 128)),
        code_bits=(max(wide, narrow), min(wide, narrow)),
        scale_bytes=random.randint(1, 4),
        **_drawn_grids(random),
        **_drawn_table(random),
    )


def _suits(inputs: Inputs) -> bool:
    """Whether `check` calls each mistake by its name: none is the key in another unit, another order, or rounded."""
    return all(
        part.judge_function(inputs, mistake.formula).kind in {Kind.RIGHT, Kind.MISTAKE}
        for part in EXERCISE.parts
        if isinstance(part, NumberPart)
        for mistake in part.mistakes
    )


EXERCISE = Exercise(
    number="8-6",
    parts=(
        _stored_part("a", "input_kv_bytes"),
        _stored_part("b", "request_kv_bytes"),
        BITS,
        BY_KV,
        BY_Q,
        CELLS,
        ALL_ANSWERS,
        LAST_ONLY,
        MEANING,
        INDEPENDENT,
    ),
    drawn=_drawn,
    suits=_suits,
)
