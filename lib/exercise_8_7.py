"""Exercise 8-7: how long a draft should be, and what one token more takes in groups. Source: section 8.5.4."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from lib import dflash
from lib.checks import InputError, finite, share, whole, wholes
from lib.draft_length import OneMore, RoundTime, best_length, one_more, s_per_output
from lib.draft_sources import pass_time
from lib.exercises import TOKENS, ChoicePart, Exercise, Kind, Mistake, NumberPart, Quantity, some_of
from lib.memory import pages_for
from lib.speculation import (
    ACCEPTS_B,
    PLAIN_S,
    at_every_position,
    expected_outputs,
    output_distribution,
    outputs_at_least,
)

MS = 1e-3  # s
POSITIONS = 12  # of a draft, the longest that is compared
LEAST_ACCEPTANCE, MOST_POSITIONS = 0.01, 2**6
LEAST_MS, MOST_MS = 0.001, 10**6
# By what factor the best of the list is ahead, and one of the two lengths in groups; and the best of all lengths.
_CLEARLY, _BARELY = 1.02, 1.002

Acceptance = tuple[float, ...]
Outputs = Callable[[Acceptance, int], float]
InMs = Callable[..., float]


@dataclass(frozen=True)
class Inputs:
    """What the exercise starts from: acceptance at each position of a draft, lengths, two times in ms, a group.

    Raises InputError for values that make no sense, and for a group that no position follows.
    """

    acceptance: Acceptance
    lengths: tuple[int, ...]
    verify_ms: float
    draft_ms: float
    group: int

    def __post_init__(self) -> None:
        if not isinstance(self.acceptance, tuple) or not 2 <= len(self.acceptance) <= MOST_POSITIONS:
            raise InputError("acceptance", self.acceptance, f"a tuple of 2 to {MOST_POSITIONS} probabilities")
        for each in self.acceptance:
            if share("acceptance", each) < LEAST_ACCEPTANCE:
                raise InputError("acceptance", each, f"probabilities of at least {LEAST_ACCEPTANCE}")
        wholes("lengths", self.lengths, 1, len(self.acceptance))
        for name in ("verify_ms", "draft_ms"):
            allowed = f"a time from {LEAST_MS} to {MOST_MS:,} ms"
            if finite(name, getattr(self, name), LEAST_MS, allowed) > MOST_MS:
                raise InputError(name, getattr(self, name), allowed)
        whole("group", self.group, at_least=1, at_most=len(self.acceptance) - 1)


BOOK = Inputs(
    acceptance=at_every_position(ACCEPTS_B, POSITIONS),
    lengths=(1, 2, 4, 8),
    verify_ms=round(PLAIN_S / MS, 1),
    draft_ms=round(pass_time(dflash.weight_bytes()) / MS, 1),
    group=4,
)


def _each_length(*names: str) -> Callable[[Inputs], list[dict[str, Any]]]:
    """The cases of a part: for each length of the list, the inputs of these names."""
    return lambda inputs: [
        some_of(inputs, ("acceptance",)) | {"draft_tokens": length} | some_of(inputs, names)
        for length in inputs.lengths
    ]


def _round_time(verify_ms: float, draft_ms: float, group: int = 1) -> RoundTime:
    return RoundTime(step_s=verify_ms * MS, per_token_s=draft_ms * MS, group=group)


def _outputs(acceptance: Acceptance, draft_tokens: int) -> float:
    return expected_outputs(acceptance[:draft_tokens])


def _without_extra(acceptance: Acceptance, draft_tokens: int) -> float:
    return _outputs(acceptance, draft_tokens) - 1


def _independent(acceptance: Acceptance, draft_tokens: int) -> float:
    return 1 + sum(acceptance[:draft_tokens])


def _one_short(acceptance: Acceptance, draft_tokens: int) -> float:
    return sum(outputs_at_least(acceptance[:draft_tokens])[:-1])


def _all_accepted(acceptance: Acceptance, draft_tokens: int) -> float:
    return draft_tokens + 1


def _as_the_first(acceptance: Acceptance) -> Acceptance:
    return at_every_position(acceptance[0], len(acceptance))


def _harmonic(acceptance: Acceptance, draft_tokens: int) -> float:
    """What a time is divided by where the mean of T / N is taken."""
    law = output_distribution(acceptance[:draft_tokens])
    return 1 / sum(chance / outputs for outputs, chance in enumerate(law, start=1))


_NO_EXTRA = "the extra token is forgotten: a round outputs one token more than it accepts"
_INDEPENDENT = "each token is counted by itself: it is output only if all before it were accepted, too"
_RATIOS = "the ratios of single rounds are averaged: time and outputs add up first, then one is divided by the other"
_FIRST_FOR_ALL = "the probability of the first position is taken for all: each has its own"
_NO_DRAFTING = "the time to draft is forgotten: a round drafts, and then verifies"
_WHOLE_ROUND = "the time of a round is given: its outputs share it"
_EACH_ITS_TIME = "a group is given the time of its tokens that are drafted: it takes the time of all its positions"

_WRONG_OUTPUTS = (
    Mistake(_NO_EXTRA, _without_extra),
    Mistake(_INDEPENDENT, _independent),
    Mistake("the last token of the draft is left out: it may be accepted like those before it", _one_short),
    Mistake("all is taken for accepted: then each token more would come for certain", _all_accepted),
    Mistake(
        _FIRST_FOR_ALL,
        lambda acceptance, draft_tokens: _outputs(_as_the_first(acceptance), draft_tokens),
        may_coincide=True,  # in a class for which all positions are alike
    ),
)

OUTPUTS = NumberPart(
    name="a",
    asked=(Quantity("outputs of a round", TOKENS, relative=0.005),),
    cases=_each_length(),
    key=_outputs,
    mistakes=_WRONG_OUTPUTS,
    first_step="write down the probability that a round outputs at least 1 token, at least 2, and so on",
    hint="add up those probabilities: 1 for the first output, and for each further one a product with one factor more",
)


def _ms_per_output(acceptance: Acceptance, draft_tokens: int, **times: Any) -> float:
    return s_per_output(acceptance, _round_time(**times), draft_tokens) / MS


def _over(outputs: Outputs) -> InMs:
    """The time of a round over another number of outputs."""
    return lambda acceptance, draft_tokens, **times: (
        _round_time(**times)(draft_tokens) / outputs(acceptance, draft_tokens) / MS
    )


_OVER_WRONG_OUTPUTS = tuple(replace(mistake, formula=_over(mistake.formula)) for mistake in _WRONG_OUTPUTS)


def _no_drafting(acceptance: Acceptance, draft_tokens: int, verify_ms: float, **_: Any) -> float:
    return verify_ms / _outputs(acceptance, draft_tokens)


_WRONG_ROUNDS = (
    Mistake(_NO_DRAFTING, _no_drafting),
    Mistake(_WHOLE_ROUND, _over(lambda *_: 1)),
)


def _one_pass(acceptance: Acceptance, draft_tokens: int, verify_ms: float, draft_ms: float) -> float:
    return (verify_ms + draft_ms) / _outputs(acceptance, draft_tokens)


PER_OUTPUT = NumberPart(
    name="b",
    asked=(Quantity("time of an output", "ms", relative=0.005),),
    cases=_each_length("verify_ms", "draft_ms"),
    key=_ms_per_output,
    mistakes=(
        *_OVER_WRONG_OUTPUTS,
        *_WRONG_ROUNDS,
        Mistake(_RATIOS, _over(_harmonic)),
        Mistake("the draft is given one pass: this network needs one for each of its tokens", _one_pass),
    ),
    first_step="write down the time of a round: it verifies once, and drafts one token after the other",
    hint="divide the time of a round by its outputs, those of a",
)


def _best_by(ms: InMs) -> Callable[..., tuple[int, int]]:
    """Of the list, and of all lengths, the one for which this time is shortest."""

    def best(acceptance: Acceptance, lengths: tuple[int, ...], **times: Any) -> tuple[int, int]:
        def time(length: int) -> float:
            return ms(acceptance, length, **times)

        return min(lengths, key=time), min(range(1, len(acceptance) + 1), key=time)

    return best


def _best(acceptance: Acceptance, lengths: tuple[int, ...], **times: Any) -> tuple[int, int]:
    round_time = _round_time(**times)
    of_list = min(lengths, key=lambda length: s_per_output(acceptance, round_time, length))
    return of_list, best_length(acceptance, round_time)


def _best_of_list_twice(**case: Any) -> tuple[int, int]:
    of_list, _ = _best(**case)
    return of_list, of_list


BEST = NumberPart(
    name="c",
    asked=(Quantity("best of the list"), Quantity("best of all")),
    cases=lambda inputs: [some_of(inputs, ("acceptance", "lengths", "verify_ms", "draft_ms"))],
    key=_best,
    mistakes=(
        Mistake(_NO_EXTRA, _best_by(_over(_without_extra))),
        Mistake(_INDEPENDENT, _best_by(_over(_independent))),
        Mistake(
            "the most outputs of a round are looked for: it takes longer for them, too",
            lambda acceptance, lengths, **_: (max(lengths), len(acceptance)),
        ),
        Mistake(
            "the shortest round is looked for: it outputs little",
            lambda acceptance, lengths, **_: (min(lengths), 1),
        ),
        Mistake(_RATIOS, _best_by(_over(_harmonic))),
        Mistake(
            "only the lengths of the list are compared: the best of all may lie between them",
            _best_of_list_twice,
            may_coincide=True,  # if it lies in the list
        ),
        Mistake(
            _FIRST_FOR_ALL,
            lambda acceptance, **case: _best(_as_the_first(acceptance), **case),
            may_coincide=True,
        ),
    ),
    first_step="compare the times of b, then those of the lengths between and beyond, as far as positions are given",
    hint="the time per output falls up to some length and rises behind it; look on both sides of the best of the list",
)


def _in_groups(inputs: Inputs) -> list[dict[str, Any]]:
    """The cases of a group that is full, and of one token more."""
    return [
        {"acceptance": inputs.acceptance, "draft_tokens": length} | some_of(inputs, ("verify_ms", "draft_ms", "group"))
        for length in (inputs.group, inputs.group + 1)
    ]


def _with_drafted(drafted: Callable[[int, int], int]) -> InMs:
    """The time per output if so many tokens are drafted for a length and a group."""
    return lambda acceptance, draft_tokens, verify_ms, draft_ms, group: (
        (verify_ms + draft_ms * drafted(draft_tokens, group)) / _outputs(acceptance, draft_tokens)
    )


GROUPED = NumberPart(
    name="d",
    asked=(Quantity("time of an output", "ms", relative=0.005),),
    cases=_in_groups,
    key=_ms_per_output,
    mistakes=(
        *_OVER_WRONG_OUTPUTS,
        *_WRONG_ROUNDS,
        Mistake(_EACH_ITS_TIME, _with_drafted(lambda length, _: length)),
        Mistake(
            "a group that is not full is left out: it takes its time like a full one",
            _with_drafted(lambda length, group: length // group * group),
        ),
        Mistake(
            "a group is given the time of one token: it takes the time of all its positions",
            _with_drafted(pages_for),
        ),
    ),
    first_step="count the groups of each of the two lengths: a group that is not full counts whole",
    hint="the outputs are those of the tokens that are wanted, as in a; only the time is rounded up to whole groups",
)


def _next(acceptance: Acceptance, verify_ms: float, draft_ms: float, group: int) -> OneMore:
    """One token more than a full group."""
    return one_more(acceptance, _round_time(verify_ms, draft_ms, group), group)


def _in_ms(more: OneMore) -> tuple[float, float, float, float]:
    return more.extra_s / MS, more.extra_outputs, more.price_s / MS, more.average_s / MS


Changed = Callable[[OneMore, Acceptance, int], OneMore]


def _otherwise(changed: Changed) -> Callable[..., tuple[float, float, float, float]]:
    """The four numbers, with something else in place of what is added or of what was there."""
    return lambda **case: _in_ms(changed(_next(**case), case["acceptance"], case["group"]))


def _for_one_token(more: OneMore, group: int) -> OneMore:
    return more._replace(extra_s=more.extra_s / group)


PRICE = NumberPart(
    name="e",
    asked=(
        Quantity("time added", "ms", relative=0.005),
        Quantity("outputs added", TOKENS, relative=0.005),
        Quantity("time per output added", "ms", relative=0.005),
        Quantity("time per output before", "ms", relative=0.005),
    ),
    cases=lambda inputs: [some_of(inputs, ("acceptance", "verify_ms", "draft_ms", "group"))],
    key=lambda **case: _in_ms(_next(**case)),
    mistakes=(
        Mistake(
            "a factor is missing: the token behind the group needs all of the group, and itself, accepted",
            _otherwise(
                lambda more, acceptance, group: more._replace(extra_outputs=outputs_at_least(acceptance)[group])
            ),
        ),
        Mistake(
            "only the probability of the last position is taken: those before it have to be accepted, too",
            _otherwise(lambda more, acceptance, group: more._replace(extra_outputs=acceptance[group])),
        ),
        Mistake(
            "the average with the token is taken: what is added has to beat the one without it",
            _otherwise(
                lambda more, *_: more._replace(
                    round_s=more.round_s + more.extra_s, outputs=more.outputs + more.extra_outputs
                )
            ),
        ),
        Mistake(
            "the step without a draft is taken: what is added has to beat the draft as it was",
            lambda verify_ms, **case: (*_in_ms(_next(verify_ms=verify_ms, **case))[:3], verify_ms),
        ),
        Mistake(_EACH_ITS_TIME, _otherwise(lambda more, _, group: _for_one_token(more, group))),
        Mistake(_NO_EXTRA, _otherwise(lambda more, *_: more._replace(outputs=more.outputs - 1))),
        Mistake(
            _FIRST_FOR_ALL,
            lambda acceptance, **case: _in_ms(_next(_as_the_first(acceptance), **case)),
            may_coincide=True,
        ),
    ),
    first_step="write down the time of a round with one more group, and what a round then outputs more",
    hint="the added output needs each position up to its own accepted: multiply them all, then divide time by outputs",
)


def _chosen(inputs: Inputs, pays: bool) -> int:
    return inputs.group + 1 if pays else inputs.group


def _next_of(inputs: Inputs) -> OneMore:
    (case,) = PRICE.cases(inputs)
    return _next(**case)


STOP = ChoicePart(
    name="f",
    options=lambda inputs: (inputs.group, inputs.group + 1),
    key=lambda inputs: _chosen(inputs, _next_of(inputs).pays),
    mistakes=(  # of two choices one is right, so each of these is right somewhere
        Mistake(
            "only outputs are compared: a longer draft never outputs less, but it takes longer",
            lambda inputs: _chosen(inputs, True),
            may_coincide=True,
        ),
        Mistake(
            "only the times of a round are compared: a longer one may output enough to make up for it",
            lambda inputs: _chosen(inputs, False),
            may_coincide=True,
        ),
        Mistake(
            _EACH_ITS_TIME,
            lambda inputs: _chosen(inputs, _for_one_token(_next_of(inputs), inputs.group).pays),
            may_coincide=True,
        ),
    ),
    first_step="put the time per output added beside the time per output before",
    hint="the average falls if, and only if, what is added takes less per output than what was there",
)


def _drawn(random: Random) -> Inputs:
    if random.random() < 0.5:
        acceptance = at_every_position(random.randint(50, 90) / 100, POSITIONS)
    else:
        acceptance = tuple(random.randint(50, 90) / 100 for _ in range(POSITIONS))
    verify, draft, group = random.randint(100, 400), random.randint(10, 80), random.randint(2, 8)
    if random.random() < 0.45:  # where one token more may pay: as the best length is short, in groups of two only
        verify, draft, group = random.randint(250, 400), random.randint(10, 20), 2
    return Inputs(acceptance, BOOK.lengths, verify / 10, draft / 10, group)


def _suits(inputs: Inputs) -> bool:
    """Whether the best of the list lies inside it and is clear, as is the choice in groups; whether the best of all
    can be told from the others and is not always the book's; and whether `check` calls each mistake by its name.
    """
    of_list, grouped = ([part.key(**case) for case in part.cases(inputs)] for part in (PER_OUTPUT, GROUPED))
    of_all = [
        _ms_per_output(inputs.acceptance, length, verify_ms=inputs.verify_ms, draft_ms=inputs.draft_ms)
        for length in range(1, len(inputs.acceptance) + 1)
    ]
    return (
        min(of_list) < min(of_list[0], of_list[-1])
        and min(_lead(of_list), _lead(grouped)) >= _CLEARLY
        and _lead(of_all) >= _BARELY
        and _both_best(inputs) != _both_best(BOOK)
        and all(
            part.judge_function(inputs, mistake.formula).kind in {Kind.RIGHT, Kind.MISTAKE}
            for part in PARTS
            for mistake in part.mistakes
        )
    )


def _lead(times: Sequence[float]) -> float:
    """How many times as long as the shortest the next one is."""
    shortest, following, *_ = sorted(times)
    return following / shortest


def _both_best(inputs: Inputs) -> tuple[int, int]:
    (case,) = BEST.cases(inputs)
    return _best(**case)


PARTS = (OUTPUTS, PER_OUTPUT, BEST, GROUPED, PRICE)
EXERCISE = Exercise(number="8-7", parts=(*PARTS, STOP), drawn=_drawn, suits=_suits)
