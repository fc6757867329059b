"""The time of one step of the engine, from what the step holds."""

from dataclasses import dataclass

from lib import records
from lib.checks import whole


@dataclass(frozen=True)
class FitTerms:
    """The three terms of the fitted step time, in ns: per step, per new token, per query-key pair."""

    fixed_ns: int
    per_new_token_ns: int
    per_causal_pair_ns: int


_TERMS = {row["term"]: row["rounded_value_used_in_chapter_ns"] for row in records.record("step_time_fit").rows}
FIT = FitTerms(_TERMS["fixed_per_step"], _TERMS["per_new_token"], _TERMS["per_causal_pair"])


def causal_pairs(new_tokens: int, context: int = 0) -> int:
    """Query-key pairs of new tokens behind a context: each new token sees the context, its predecessors and itself.

    Source: section 8.2.3, `c h + c (c + 1) / 2`.
    """
    c, h = whole("new_tokens", new_tokens), whole("context", context)
    return c * h + c * (c + 1) // 2


def fit_batch1(new_tokens: int, pairs: int) -> int:
    """Time in ns of a step with so many new tokens and causal pairs, fitted to a single request (clock: fit).

    The fixed part is paid once per step, whatever the number of requests in it. Source: section 8.2.2.
    """
    n, q = whole("new_tokens", new_tokens, at_least=1), whole("pairs", pairs)
    return FIT.fixed_ns + FIT.per_new_token_ns * n + FIT.per_causal_pair_ns * q
