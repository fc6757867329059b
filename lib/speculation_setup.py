"""Speculation in a run of many requests: how long drafts are, how much of each is accepted, what it takes to make them.

A run computes no text, so an `Acceptance` says what the target would accept. Source: sections 8.5.1, 8.5.3 and 8.5.4.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from operator import lt
from random import Random

from lib.checks import InputError, keep_whole, share, whole, wholes
from lib.memory import MOST_BYTES
from lib.paging import MOST_BLOCK_TOKENS
from lib.step_time import StepPlan, StepTime, step_plan, verifying

MOST_DRAFT, MOST_SEED, MOST_PLACE, MOST_ROUNDS = 2**10, 2**32, 2**40, 2**40


class Acceptance(ABC):
    """How many tokens of each draft are accepted.

    It depends on the request and on the number of its round alone, so that whatever runs beside it changes nothing.
    """

    @property
    @abstractmethod
    def draft_tokens(self) -> int:
        """The tokens of a draft that is not cut short."""

    @abstractmethod
    def accepted(self, place: int, number: int) -> int:
        """Tokens accepted of the draft of a request in its round of this number, from 0, if it is not cut short.

        Raises InputError for what is no place and no number.
        """


@dataclass(frozen=True)
class GivenAcceptance(Acceptance):
    """Drafts of one length, and the accepted tokens of round after round, a row of them for each request.

    Rows, and the rounds of each, come round again. Raises InputError for no row, an empty one, and for more accepted
    tokens than drafted ones.
    """

    length: int
    rounds: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        keep_whole(self, MOST_DRAFT, length=0)
        if not isinstance(self.rounds, tuple) or not self.rounds:
            raise InputError("rounds", self.rounds, "a tuple of accepted tokens for each request, at least one")
        for row in self.rounds:
            wholes("rounds", row, at_most=self.length)

    @property
    def draft_tokens(self) -> int:
        return self.length

    def accepted(self, place: int, number: int) -> int:
        """As the rows say, from their beginning again where they end."""
        row = self.rounds[whole("place", place, at_most=MOST_PLACE - 1) % len(self.rounds)]
        return row[whole("number", number, at_most=MOST_ROUNDS - 1) % len(row)]


@dataclass(frozen=True)
class DrawnAcceptance(Acceptance):
    """Acceptance drawn by chance: at each position the probability for its token if all before it were accepted.

    Equal seeds give equal draws. Raises InputError for what is no probability. Source: sections 8.5.2 and 8.5.4.
    """

    probabilities: tuple[float, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.probabilities, tuple) or len(self.probabilities) > MOST_DRAFT:
            allowed = f"a tuple of at most {MOST_DRAFT} probabilities, one for each token of a draft"
            raise InputError("probabilities", self.probabilities, allowed)
        kept = tuple(share("probabilities", each) for each in self.probabilities)
        object.__setattr__(self, "probabilities", kept)
        keep_whole(self, MOST_SEED, seed=0)

    @property
    def draft_tokens(self) -> int:
        return len(self.probabilities)

    def accepted(self, place: int, number: int) -> int:
        """Drawn from a generator of this round's own."""
        of_one = self.seed * MOST_PLACE + whole("place", place, at_most=MOST_PLACE - 1)
        random = Random(of_one * MOST_ROUNDS + whole("number", number, at_most=MOST_ROUNDS - 1)).random
        drawn = (random() for _ in self.probabilities)
        return sum(takewhile(bool, map(lt, drawn, self.probabilities)))


@dataclass(frozen=True)
class Drafter:
    """What makes the drafts of a step, those of all its requests together, before the target verifies them.

    `step_time` is the time of a pass: one makes the whole of each draft or, where tokens come `one_by_one`, one token
    of each. A look-up is a pass of a fixed time. To read the prompt is not charged. Source: section 8.5.3.
    """

    step_time: StepTime
    one_by_one: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.step_time, StepTime):
            raise InputError("step_time", self.step_time, "a model of the time of a pass, such as a Fit")
        if not isinstance(self.one_by_one, bool):
            raise InputError("one_by_one", self.one_by_one, "True or False")

    def passes(self, drafts: Sequence[tuple[int, int]]) -> list[StepPlan]:
        """The passes for drafts, each as (new tokens of the step, context): the first of them is known already."""
        if not drafts:
            return []
        if not self.one_by_one:
            return [verifying(step_plan(*drafts), sum(new - 1 for new, _ in drafts))]
        longest = max(new - 1 for new, _ in drafts)
        passes = ([(1, context + done) for new, context in drafts if new - 1 > done] for done in range(longest))
        return [step_plan(*each) for each in passes]

    def time_ns(self, drafts: Sequence[tuple[int, int]]) -> int:
        """The time that all passes for these drafts take."""
        return sum(map(self.step_time, self.passes(drafts)))


@dataclass(frozen=True)
class SpeculationSetup:
    """How a run speculates: what is accepted of its drafts, and what makes them; None is a draft that takes no time.

    Raises InputError for anything else.
    """

    acceptance: Acceptance
    drafter: Drafter | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.acceptance, Acceptance):
            raise InputError("acceptance", self.acceptance, "an Acceptance, such as DrawnAcceptance((0.75,) * 4)")
        if self.drafter is not None and not isinstance(self.drafter, Drafter):
            raise InputError("drafter", self.drafter, "a Drafter, or None where drafts take no time")

    @property
    def draft_tokens(self) -> int:
        return self.acceptance.draft_tokens

    def drafting_ns(self, drafts: Sequence[tuple[int, int]]) -> int:
        """The time in which the drafts of a step are made, as `Drafter.time_ns` counts them."""
        return self.drafter.time_ns(drafts) if self.drafter else 0


# No drafts: a step gives each request in decode one output.
PLAIN = SpeculationSetup(GivenAcceptance(0, ((0,),)))


def blocks_beside_draft(
    memory_bytes: int,
    draft_weight_bytes: int,
    kv_bytes_per_token: int,
    draft_kv_bytes_per_token: int,
    block_tokens: int = 16,
) -> int:
    """Whole blocks of a pool in memory that also has to hold a draft network; a token takes KV of both models.

    Raises InputError for weights beyond the memory. Source: section 8.5.4.
    """
    memory = whole("memory_bytes", memory_bytes, at_least=1, at_most=MOST_BYTES)
    left = memory - whole("draft_weight_bytes", draft_weight_bytes, at_most=memory)
    of_both = whole("kv_bytes_per_token", kv_bytes_per_token, at_least=1, at_most=MOST_BYTES)
    of_both += whole("draft_kv_bytes_per_token", draft_kv_bytes_per_token, at_most=MOST_BYTES)
    return left // (of_both * whole("block_tokens", block_tokens, at_least=1, at_most=MOST_BLOCK_TOKENS))
