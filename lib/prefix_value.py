"""What keeping a prefix is worth: the time that a hit saves, against the time of moving its KV out and back.

A prefix is recomputed (clock: FLOP rule) or fetched over a link at its nominal bandwidth, a lower bound. Keeping it
costs one write-out, whether or not it is ever used again.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from lib.checks import InputError, keep_whole, seconds, share, whole
from lib.design_problem import LONG_CONTEXT
from lib.hardware import LINKS, RTX_PRO_6000, Card
from lib.model import QWEN3_8B, Transformer, kv_bytes, matrix_flops
from lib.step_time import MFU

# The two kinds of prefix in section 8.3.4, and the probability that one of either kind is used again.
A_TOKENS, B_TOKENS, HIT_PROBABILITY = LONG_CONTEXT.shared_prefix_tokens, 2048, 0.5
# The link of the chapter's card, and the older one it is compared with.
GEN5, GEN4 = LINKS["PCIe 5.0 x16"], LINKS["PCIe 4.0 x16"]
# The chapter prints 62 % and calculates with 62.2 %, the measured share to three digits: 62 % would give 308.9 ms
# where it has 307.9 ms. Source: section 8.3.4, record step_efficiency.
EFFICIENCY = MFU

MOST_TOKENS = 2**24
MOST_BYTES = MOST_BYTES_S = 2**60
# The choice looks at sets of prefixes; so many are chosen from within a moment.
MOST_CANDIDATES, MOST_SETS = 64, 2**16
ROUNDING = 1e-12  # sums of values in another order differ by less


class Never(StrEnum):
    """Why no probability is high enough for a prefix to be worth keeping."""

    SLOW_FETCH = "fetching takes no less than recomputing"
    DEAR_WRITE = "even a certain hit saves less than the write-out costs"


def recompute_time(
    tokens: int, efficiency: float = EFFICIENCY, model: Transformer = QWEN3_8B, card: Card = RTX_PRO_6000
) -> float:
    """T_r = F(L, 0, 1) / (efficiency x peak): seconds to compute a prefix anew (clock: FLOP rule).

    Raises InputError for an efficiency outside 0 ... 1 (0 itself too), for a card without a published peak, and as
    `matrix_flops` does. Source: section 8.3.4.
    """
    flops = matrix_flops(model, whole("tokens", tokens, at_least=1, at_most=MOST_TOKENS), 0)
    reached = share("efficiency", efficiency, above_zero=True)
    if card.bf16_dense_flop_s is None:
        raise InputError("card", card.name, "a card with a published peak of dense BF16")
    return seconds("time to recompute", flops / (reached * card.bf16_dense_flop_s))


def transfer_time(size_bytes: int, link_bytes_s: int) -> float:
    """Seconds in which a link moves so many bytes one way, at its nominal bandwidth. Source: section 8.3.4."""
    size = whole("size_bytes", size_bytes, at_most=MOST_BYTES)
    rate = whole("link_bytes_s", link_bytes_s, at_least=1, at_most=MOST_BYTES_S)
    return seconds("time to transfer", size / rate)


def net_saving(probability: float, recompute_s: float, fetch_s: float, write_s: float) -> float:
    """V = p (T_r - T_f) - T_m: seconds saved on average by keeping a prefix; below 0 where it costs more than it saves.

    Raises InputError for a probability outside 0 ... 1 and for what is no time. Source: section 8.3.4.
    """
    p = share("probability", probability)
    saving_per_hit = seconds("recompute_s", recompute_s) - seconds("fetch_s", fetch_s)
    return p * saving_per_hit - seconds("write_s", write_s)


@dataclass(frozen=True)
class Prefix:
    """A prefix by its tokens, the bytes of its KV, and the seconds to recompute it, to fetch it, to write it out.

    Raises InputError for values that make no sense. Source: section 8.3.4, which calls the times T_r, T_f and T_m.
    """

    tokens: int
    kv_bytes: int
    recompute_s: float
    fetch_s: float
    write_s: float

    def __post_init__(self) -> None:
        keep_whole(self, MOST_TOKENS, tokens=1)
        keep_whole(self, MOST_BYTES, kv_bytes=1)
        seconds("recompute_s", self.recompute_s, above_zero=True)
        seconds("fetch_s", self.fetch_s)
        seconds("write_s", self.write_s)

    @property
    def saving_per_hit_s(self) -> float:
        """T_r - T_f; below 0 where fetching takes longer."""
        return self.recompute_s - self.fetch_s

    @property
    def recompute_bytes_s(self) -> float:
        """Recomputing as a bandwidth: bytes of KV that it makes in a second. A link must at least be faster."""
        return self.kv_bytes / self.recompute_s

    def value_s(self, probability: float) -> float:
        """The net saving of keeping it, in seconds."""
        return net_saving(probability, self.recompute_s, self.fetch_s, self.write_s)

    def value_per_byte(self, probability: float) -> float:
        """The net saving for each byte that it takes, in seconds."""
        return self.value_s(probability) / self.kv_bytes

    @property
    def never(self) -> Never | None:
        """Why it is not worth keeping however probable a hit is; None where some probability is high enough."""
        if self.saving_per_hit_s <= 0:
            return Never.SLOW_FETCH
        return Never.DEAR_WRITE if self.write_s > self.saving_per_hit_s else None

    @property
    def break_even(self) -> float | None:
        """T_m / (T_r - T_f), the probability above which keeping it saves time; None for never. Section 8.3.4."""
        return self.probability_worth(0)

    def probability_worth(self, value_s: float) -> float | None:
        """The probability at which keeping it saves so many seconds; None where even a certain hit saves less."""
        wanted = seconds("value_s", value_s) + self.write_s
        is_reached = self.saving_per_hit_s > 0 and wanted <= self.saving_per_hit_s
        return wanted / self.saving_per_hit_s if is_reached else None


def prefix_of(
    tokens: int,
    link_bytes_s: int = GEN5.bandwidth_bytes_s,
    efficiency: float = EFFICIENCY,
    model: Transformer = QWEN3_8B,
    card: Card = RTX_PRO_6000,
) -> Prefix:
    """A prefix of so many tokens behind a link of so many bytes per second one way; both its ways take the same time.

    A prefix that is in host memory already costs no write-out: `dataclasses.replace(prefix, write_s=0)`. Raises
    InputError as `recompute_time` and `transfer_time` do. Source: section 8.3.4.
    """
    recompute_s = recompute_time(tokens, efficiency, model, card)
    size = kv_bytes(model, tokens)
    one_way = transfer_time(size, link_bytes_s)
    return Prefix(tokens, size, recompute_s, fetch_s=one_way, write_s=one_way)


def break_even_link(prefix: Prefix, probability: float) -> float:
    """The link, in bytes per second one way, that a prefix must be behind at least to be worth keeping.

    (1 + p) / p times the rate at which it is recomputed, as V = 0 for T_f = T_m = p / (1 + p) T_r: every prefix is
    written out, and p of them are fetched. Infinite for a probability of 0: no link is fast enough. It follows from
    section 8.3.4.
    """
    p = share("probability", probability)
    return (1 + p) / p * prefix.recompute_bytes_s if p else math.inf


def switching_probability(a: Prefix, b: Prefix, b_count: int, b_probability: float) -> float | None:
    """(m V_B + T_m,A) / (T_r,A - T_f,A): the probability of A below which m prefixes B save more than one A.

    B's that would cost time are not kept, so they count as 0. None where A loses even if a hit is certain.
    Raises InputError for values that make no sense. Source: exercise 8-4.
    """
    each = b.value_s(share("b_probability", b_probability))
    return a.probability_worth(whole("b_count", b_count, at_most=MOST_CANDIDATES) * max(0, each))


@dataclass(frozen=True)
class Candidate:
    """A prefix that may be kept, and the probability that it is used again before it would go."""

    prefix: Prefix
    probability: float

    def __post_init__(self) -> None:
        share("probability", self.probability)

    @property
    def value_s(self) -> float:
        return self.prefix.value_s(self.probability)

    @property
    def value_per_byte(self) -> float:
        return self.prefix.value_per_byte(self.probability)


@dataclass(frozen=True)
class Kept:
    """The places of the candidates that are kept, in rising order, the bytes they take and the seconds they save."""

    places: tuple[int, ...]
    kv_bytes: int
    value_s: float


def best_choice(candidates: Sequence[Candidate], room_bytes: int) -> Kept:
    """The whole prefixes that save most in so much room: exact, and nothing is kept that would cost time.

    Candidates are taken in one after another, by value per byte. Of the sets so far only those stay that save more
    than every set of no more bytes, as any of the others can be replaced (Nemhauser and Ullmann's way to fill a
    knapsack), and that could still come to what the greedy choice saves. Raises InputError for more than 64
    candidates, and for some that are so much alike that too many sets would stay. Source: section 8.3.4, exercise 8-4.
    """
    room, ranked = whole("room_bytes", room_bytes, at_most=MOST_BYTES), _by_value_per_byte(candidates)
    enough = greedy_choice(candidates, room).value_s * (1 - ROUNDING)
    sets, to_come = [Kept((), 0, 0.0)], [candidates[place] for place in ranked]
    for place in ranked:
        one = to_come.pop(0)
        with_it = [_with(kept, place, one) for kept in sets if kept.kv_bytes + one.prefix.kv_bytes <= room]
        rate = to_come[0].value_per_byte if to_come else 0.0
        rest = sum(other.value_s for other in to_come)
        sets = [
            kept
            for kept in _undominated([*sets, *with_it])
            if kept.value_s + min(rest, rate * (room - kept.kv_bytes)) >= enough
        ]
        if len(sets) > MOST_SETS:
            allowed = f"some of which at most {MOST_SETS:,} sets have to be compared"
            raise InputError("candidates", len(candidates), allowed)
    return sets[-1]


def greedy_choice(candidates: Sequence[Candidate], room_bytes: int) -> Kept:
    """The whole prefixes taken by value per byte, each that still fits: quick, and not always the best.

    Raises InputError as `best_choice` does. Source: section 8.3.4, which sorts by the value of a MiB.
    """
    room, kept = whole("room_bytes", room_bytes, at_most=MOST_BYTES), Kept((), 0, 0.0)
    for place in _by_value_per_byte(candidates):
        if kept.kv_bytes + candidates[place].prefix.kv_bytes <= room:
            kept = _with(kept, place, candidates[place])
    return kept


def _by_value_per_byte(candidates: Sequence[Candidate]) -> list[int]:
    """Those that are worth keeping, the highest value per byte first."""
    whole("number of candidates", len(candidates), at_most=MOST_CANDIDATES)
    places = [place for place, one in enumerate(candidates) if one.value_s > 0]
    return sorted(places, key=lambda place: -candidates[place].value_per_byte)


def _with(kept: Kept, place: int, one: Candidate) -> Kept:
    places = tuple(sorted((*kept.places, place)))
    return Kept(places, kept.kv_bytes + one.prefix.kv_bytes, kept.value_s + one.value_s)


def _undominated(sets: Iterable[Kept]) -> Iterable[Kept]:
    best = -1.0
    for kept in sorted(sets, key=lambda kept: (kept.kv_bytes, -kept.value_s)):
        if kept.value_s > best:
            best = kept.value_s
            yield kept
