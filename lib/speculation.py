"""What speculative decoding gains: a round takes about as long as a step and outputs several tokens, on average.

A draft of m tokens is accepted up to its first wrong one; `acceptance` has, for each position, the probability that its
token is accepted if all before it were. Times are seconds. Source: section 8.5.2.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import mul

from lib.checks import InputError, seconds, share, whole
from lib.design_problem import SHORT_CHAT
from lib.model import QWEN3_8B, Transformer, matrix_flops
from lib.records import record
from lib.rejection_sampling import ALWAYS_A, ALWAYS_B, TARGET, A, B, acceptance_probability
from lib.speculation_setup import MOST_DRAFT
from lib.step_time import device

# The example of section 8.5.2: drafts of one token repeated, looked up in so many seconds, from an index that takes so
# many to build, for an answer of so many tokens. Plain decode and its conditions are those of record step_efficiency.
DRAFT_TOKENS, QUERY_S, INDEX_S, OUTPUTS = 4, 0.0001, 2, SHORT_CHAT.output_tokens
ACCEPTS_A = float(acceptance_probability(TARGET, ALWAYS_A, A))
ACCEPTS_B = float(acceptance_probability(TARGET, ALWAYS_B, B))
BASELINE = record("step_efficiency").one(input_kind="2k_independent", batch_requests=1)
PLAIN_S = BASELINE["decode_step_median_ms"] / 1e3
# Two rounds that take the same time and output a different number of tokens.
TWO_ROUNDS = ((0.0015, 1), (0.0015, 5))

MOST_OUTPUTS, MOST_TOKENS = 2**16, 2**40


def per_position(acceptance: Sequence[float]) -> tuple[float, ...]:
    """The probabilities that a draft's tokens are accepted, checked: one for each token.

    Raises InputError for no draft, one of more than 1024 tokens, and for what is no probability.
    """
    if not isinstance(acceptance, tuple | list) or not 0 < len(acceptance) <= MOST_DRAFT:
        raise InputError("acceptance", acceptance, f"a tuple of 1 to {MOST_DRAFT} probabilities, one a draft token")
    return tuple(share("acceptance", each) for each in acceptance)


def at_every_position(acceptance: float, draft_tokens: int) -> tuple[float, ...]:
    """The same probability at each position of a draft of so many tokens."""
    length = whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)
    return (share("acceptance", acceptance),) * length


def outputs_at_least(acceptance: Sequence[float]) -> tuple[float, ...]:
    """P(N >= 1), P(N >= 2), ..., P(N >= m + 1): 1, a_1, a_1 a_2, ... Each further output needs one more accepted."""
    return tuple(accumulate(per_position(acceptance), mul, initial=1.0))


def expected_outputs(acceptance: Sequence[float]) -> float:
    """E[N] = 1 + a_1 + a_1 a_2 + ..., tokens that a round outputs on average. Source: sections 8.5.2 and 8.5.4."""
    return sum(outputs_at_least(acceptance))


def output_distribution(acceptance: Sequence[float]) -> tuple[float, ...]:
    """P(N = 1), P(N = 2), ..., P(N = m + 1)."""
    return tuple(reached - further for reached, further in pairwise((*outputs_at_least(acceptance), 0.0)))


def expected_rounds(acceptance: Sequence[float], outputs: int) -> float:
    """R(n) = 1 + sum P(N = k) R(n - k): whole rounds that so many tokens take on average; R is 0 from 0 tokens down.

    More than n / E[N], as the last round may output more than is wanted. Source: section 8.5.2, footnote 22.
    """
    chances = output_distribution(acceptance)
    rounds = [0.0]
    for _ in range(whole("outputs", outputs, at_least=1, at_most=MOST_OUTPUTS)):
        left_over = reversed(rounds[-len(chances) :])  # R(n - 1), R(n - 2), ...
        rounds.append(1 + sum(map(mul, chances, left_over)))
    return rounds[-1]


def time_per_output(rounds: Sequence[tuple[float, int]]) -> float:
    """Sum of T over sum of N: seconds per token, from the seconds and outputs of each round. Section 8.5.2."""
    known = _rounds(rounds)
    return sum(time for time, _ in known) / sum(count for _, count in known)


def mean_of_ratios(rounds: Sequence[tuple[float, int]]) -> float:
    """The mean of T / N, in which a round of one token counts as much as one of five: not the time per token."""
    known = _rounds(rounds)
    return sum(time / count for time, count in known) / len(known)


def _rounds(rounds: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    if not isinstance(rounds, tuple | list) or not rounds:
        raise InputError("rounds", rounds, "the seconds and outputs of at least one round")
    if not all(isinstance(each, tuple) and len(each) == 2 for each in rounds):
        raise InputError("rounds", rounds, "pairs of seconds and outputs")
    return [(seconds("seconds", time), whole("outputs", count, 1, MOST_OUTPUTS)) for time, count in rounds]


@dataclass(frozen=True)
class Speculation:
    """Rounds beside plain decode: acceptance at each position, seconds to draft, to verify, and of a plain step.

    Raises InputError for values that make no sense. Source: section 8.5.2, figure 8-32.
    """

    acceptance: tuple[float, ...]
    draft_s: float
    verify_s: float = PLAIN_S
    plain_s: float = PLAIN_S

    def __post_init__(self) -> None:
        object.__setattr__(self, "acceptance", per_position(self.acceptance))
        seconds("draft_s", self.draft_s)
        seconds("verify_s", self.verify_s, above_zero=True)
        seconds("plain_s", self.plain_s, above_zero=True)

    @property
    def round_s(self) -> float:
        return self.draft_s + self.verify_s

    @property
    def outputs_per_round(self) -> float:
        return expected_outputs(self.acceptance)

    @property
    def s_per_output(self) -> float:
        """Over many rounds: the time of one over its mean number of outputs."""
        return self.round_s / self.outputs_per_round

    @property
    def saved_s_per_output(self) -> float:
        """What an output takes less than a plain step; below 0 where it takes more."""
        return self.plain_s - self.s_per_output

    @property
    def break_even_draft_s(self) -> float:
        """The drafting time at which an output takes a plain step; below 0 where no draft is quick enough."""
        return self.plain_s * self.outputs_per_round - self.verify_s

    def outputs_to_repay(self, preparation_s: float) -> int | None:
        """Outputs after which so many seconds of preparation are won back; None where nothing is saved."""
        prepared = seconds("preparation_s", preparation_s)
        return math.ceil(prepared / self.saved_s_per_output) if self.saved_s_per_output > 0 else None

    def time_of(self, outputs: int, preparation_s: float = 0) -> float:
        """Seconds that so many outputs take on average, in whole rounds behind the preparation."""
        return seconds("preparation_s", preparation_s) + expected_rounds(self.acceptance, outputs) * self.round_s


def plain_time(outputs: int, plain_s: float = PLAIN_S) -> float:
    """Seconds of plain decode, a step for each output. Section 8.5.2 counts so.

    Where the first token comes from prefill it is a step less: sections 8.1.1 and 8.6.3 count that way.
    """
    return whole("outputs", outputs, at_least=1, at_most=MOST_OUTPUTS) * seconds("plain_s", plain_s)


def extra_verify_flops(draft_tokens: int, context: int, model: Transformer = QWEN3_8B) -> int:
    """FLOP that verifying a draft adds to a plain step: so many rows more, each with its logits. Section 8.5.2."""
    drafted = whole("draft_tokens", draft_tokens, at_least=1, at_most=MOST_DRAFT)
    context = whole("context", context, at_most=MOST_TOKENS)
    return matrix_flops(model, drafted + 1, context, drafted + 1) - matrix_flops(model, 1, context)


def extra_verify_s(draft_tokens: int, context: int, model: Transformer = QWEN3_8B) -> float:
    """The time to compute them at the share of the card's peak that prefill reached (clock: FLOP rule).

    Little beside a step that mostly waits, so the chapter takes a round of verification for a plain step.
    """
    return extra_verify_flops(draft_tokens, context, model) / device(model).flop_s
