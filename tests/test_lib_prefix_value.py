"""What keeping a prefix is worth: the chapter's numbers, the point of break-even, and the best choice for some room."""

import math
import random
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lib.checks import InputError
from lib.hardware import CARDS
from lib.model import QWEN3_8B, matrix_flops, preset
from lib.prefix_value import (
    A_TOKENS,
    B_TOKENS,
    EFFICIENCY,
    GEN4,
    HIT_PROBABILITY,
    Candidate,
    Kept,
    Never,
    Prefix,
    best_choice,
    break_even_link,
    greedy_choice,
    net_saving,
    prefix_of,
    recompute_time,
    switching_probability,
    transfer_time,
)
from lib.step_time import NS, device, step_plan
from lib.units import GB, MIB

A, B = prefix_of(A_TOKENS), prefix_of(B_TOKENS)
MS = 1e-3
shares = st.floats(0, 1)
prefixes = st.builds(prefix_of, st.integers(1, 16384), st.integers(GB, 450 * GB), st.floats(0.35, 0.7))
candidates = st.lists(st.builds(Candidate, prefixes, shares), max_size=8)
room = st.integers(0, 4096 * MIB)


def of(size_mib: int, saving_per_hit_s: float, probability: float = 1.0) -> Candidate:
    """A candidate of this size that is fetched and written out in no time."""
    return Candidate(Prefix(1, size_mib * MIB, saving_per_hit_s, 0, 0), probability)


def brute_force(offered: list[Candidate], room_bytes: int) -> float:
    """The most that any set within the room saves."""
    sets = (some for count in range(len(offered) + 1) for some in combinations(offered, count))
    fitting = (some for some in sets if sum(one.prefix.kv_bytes for one in some) <= room_bytes)
    return max(math.fsum(one.value_s for one in some) for some in fitting)


def check_kept(kept: Kept, offered: list[Candidate], room_bytes: int) -> None:
    """What is said to be kept adds up, fits, and holds nothing that would cost time."""
    chosen = [offered[place] for place in kept.places]
    assert list(kept.places) == sorted(set(kept.places))
    assert kept.kv_bytes == sum(one.prefix.kv_bytes for one in chosen) <= room_bytes
    assert kept.value_s == pytest.approx(math.fsum(one.value_s for one in chosen), abs=1e-12)
    assert all(one.value_s > 0 for one in chosen)


def test_the_long_prefix_of_the_chapter() -> None:
    assert (A.kv_bytes, A.kv_bytes // MIB) == (905969664, 864)
    assert A.recompute_s == pytest.approx(307.9018 * MS, rel=1e-6)
    assert A.fetch_s == A.write_s == 905969664 / (64 * GB)
    assert A.saving_per_hit_s == pytest.approx(293.746 * MS, rel=1e-6)
    assert A.value_s(0.5) == pytest.approx(132.717 * MS, rel=1e-5)
    assert A.break_even == pytest.approx(0.04819, rel=1e-3)
    assert A.recompute_bytes_s == pytest.approx(2.9424 * GB, rel=1e-4)


def test_the_short_ones() -> None:
    assert B.kv_bytes == 288 * MIB
    assert B.recompute_s == pytest.approx(94.7419 * MS, rel=1e-6)
    assert B.value_s(0.5) == pytest.approx(40.293 * MS, rel=1e-5)
    assert 3 * B.value_s(0.5) == pytest.approx(120.879 * MS, rel=1e-5)
    assert A.value_per_byte(0.5) > B.value_per_byte(0.5)


def test_the_older_link() -> None:
    slower = prefix_of(A_TOKENS, GEN4.bandwidth_bytes_s)
    assert slower.fetch_s == pytest.approx(28.3116 * MS, rel=1e-5)
    assert slower.saving_per_hit_s == pytest.approx(279.590 * MS, rel=1e-5)
    assert slower.break_even == pytest.approx(0.10126, rel=1e-4)


def test_the_share_is_used_with_three_digits() -> None:
    assert EFFICIENCY == 0.622
    assert recompute_time(A_TOKENS, 0.62) == pytest.approx(308.895 * MS, rel=1e-5)


def test_the_time_is_that_of_the_device_model() -> None:
    """The device model of the steps counts the same FLOP; only whole nanoseconds are rounded up there."""
    for tokens in (1, 2048, 6144):
        assert device().compute_ns(step_plan((tokens, 0))) == pytest.approx(recompute_time(tokens) * NS, abs=1)


def test_a_switches_places_with_three_b() -> None:
    switch = switching_probability(A, B, 3, HIT_PROBABILITY)
    assert switch == pytest.approx(0.4597, rel=1e-4)
    assert switch is not None and A.value_s(switch) == pytest.approx(3 * B.value_s(HIT_PROBABILITY))
    assert switching_probability(A, B, 0, 1) == A.break_even
    assert switching_probability(A, B, 3, 0) == A.break_even, "B's that cost time are not kept"
    assert switching_probability(A, B, 60, 1) is None


def test_never_says_why() -> None:
    """Below the rate of recomputing no hit saves anything; up to twice that rate not even a certain one is enough."""
    slow, dear, just = (prefix_of(A_TOKENS, rate * GB) for rate in (2, 4, 6))
    assert (slow.never, dear.never, just.never) == (Never.SLOW_FETCH, Never.DEAR_WRITE, None)
    assert (slow.break_even, dear.break_even) == (None, None)
    assert just.break_even is not None and 0.9 < just.break_even <= 1
    assert Prefix(1, 1, 2, 1, 1).break_even == 1
    assert Prefix(1, 1, 1, 1, 0).never is Never.SLOW_FETCH


def test_what_is_in_host_memory_already_pays_from_the_first_hit_on() -> None:
    assert replace(A, write_s=0).break_even == 0


def test_a_model_whose_weights_are_not_known_has_no_time() -> None:
    with pytest.raises(InputError, match="without it weights cannot be counted"):
        prefix_of(2048, model=preset("DeepSeek-V3"))


@given(prefixes, shares, shares)
def test_a_likelier_prefix_is_worth_more_where_a_hit_saves_time(prefix: Prefix, one: float, other: float) -> None:
    low, high = sorted((one, other))
    sign = 1 if prefix.saving_per_hit_s >= 0 else -1
    assert sign * (prefix.value_s(high) - prefix.value_s(low)) >= 0


@given(st.integers(1, 16384), st.lists(st.integers(GB, 450 * GB), min_size=2, max_size=6), shares)
def test_a_faster_link_is_never_worse(tokens: int, links: list[int], probability: float) -> None:
    values = [prefix_of(tokens, link).value_s(probability) for link in sorted(links)]
    assert all(slower <= faster for slower, faster in pairwise(values))


@given(prefixes)
def test_at_break_even_nothing_is_saved(prefix: Prefix) -> None:
    assert (prefix.break_even is None) == (prefix.never is not None)
    if prefix.break_even is None:
        assert prefix.value_s(1) < 1e-12
    else:
        assert prefix.value_s(prefix.break_even) == pytest.approx(0, abs=1e-12)


@given(st.integers(1, 16384), st.floats(0.01, 1))
def test_the_link_of_break_even(tokens: int, probability: float) -> None:
    link = break_even_link(prefix_of(tokens), probability)
    below, above = (prefix_of(tokens, round(link * by)).value_s(probability) for by in (0.999, 1.001))
    assert below < 0 < above


def test_no_link_helps_what_is_never_used() -> None:
    assert break_even_link(A, 0) == math.inf


@given(st.lists(st.integers(1, 16384), min_size=2, max_size=6, unique=True))
def test_a_longer_prefix_is_worth_more_per_byte(lengths: list[int]) -> None:
    """Each further token costs more to compute and as much to move; one row of logits is paid by every prefix."""
    logits = matrix_flops(QWEN3_8B, 1, 0, 1) - matrix_flops(QWEN3_8B, 1, 0, 0)
    logits_s = recompute_time(1) * logits / matrix_flops(QWEN3_8B, 1, 0)
    per_byte = [(recompute_time(tokens) - logits_s) / prefix_of(tokens).kv_bytes for tokens in sorted(lengths)]
    assert all(shorter < longer for shorter, longer in pairwise(per_byte))


@given(candidates, room)
def test_the_best_choice_is_that_of_brute_force(offered: list[Candidate], room_bytes: int) -> None:
    best = best_choice(offered, room_bytes)
    check_kept(best, offered, room_bytes)
    assert best.value_s == pytest.approx(brute_force(offered, room_bytes), abs=1e-12)


@given(candidates, room)
def test_greedy_is_never_better(offered: list[Candidate], room_bytes: int) -> None:
    greedy = greedy_choice(offered, room_bytes)
    check_kept(greedy, offered, room_bytes)
    assert greedy.value_s <= best_choice(offered, room_bytes).value_s + 1e-12


@given(candidates, room, room)
def test_more_room_is_never_worse(offered: list[Candidate], one: int, other: int) -> None:
    less, more = sorted((one, other))
    assert best_choice(offered, less).value_s <= best_choice(offered, more).value_s + 1e-12


def test_greedy_can_lose() -> None:
    """A small prefix that is nearly sure to be hit has most value per byte, and its 72 MiB leave no room for A.

    Room for one A: greedy keeps the 512 tokens (p = 0.9) and fills up with two B; keeping A alone saves more.
    """
    small = Candidate(prefix_of(512), 0.9)
    offered = [Candidate(A, 0.5), small, Candidate(B, 0.5), Candidate(B, 0.5)]
    greedy, best = greedy_choice(offered, A.kv_bytes), best_choice(offered, A.kv_bytes)
    assert small.value_per_byte > offered[0].value_per_byte > offered[2].value_per_byte
    assert (greedy.places, best.places) == ((1, 2, 3), (0,))
    assert greedy.value_s < best.value_s
    alone = greedy_choice(offered[:2], A.kv_bytes)
    assert alone.places == (1,) and alone.value_s < best.value_s / 6


def test_the_choices_of_the_chapter() -> None:
    both = [Candidate(A, 0.5), *[Candidate(B, 0.5)] * 3]
    assert best_choice(both, A.kv_bytes).places == greedy_choice(both, A.kv_bytes).places == (0,)
    seldom = [Candidate(A, 0.45), *both[1:]]
    assert best_choice(seldom, A.kv_bytes).places == (1, 2, 3)
    assert best_choice(both, A.kv_bytes - 1).places == (1, 2)
    assert best_choice(both, B.kv_bytes - 1) == best_choice([], A.kv_bytes) == Kept((), 0, 0.0)


def test_what_costs_time_is_never_kept() -> None:
    offered = [Candidate(A, 0.01), Candidate(B, 0.0)]
    assert all(choice(offered, 10 * A.kv_bytes).places == () for choice in (best_choice, greedy_choice))


def test_two_of_three_beat_the_densest() -> None:
    offered = [of(5, 10.1), of(4, 8), of(4, 8)]
    assert greedy_choice(offered, 8 * MIB).places == (0,)
    assert best_choice(offered, 8 * MIB).places == (1, 2)


@pytest.mark.parametrize("probability", [1.2, -0.1, math.nan, math.inf, "0.5", None, True])
def test_a_probability_lies_between_0_and_1(probability: Any) -> None:
    for asked in (A.value_s, lambda p: Candidate(A, p), lambda p: break_even_link(A, p)):
        with pytest.raises(InputError, match=r"^probability is .*; allowed: a share from 0 to 1$"):
            asked(probability)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (lambda: prefix_of(0), "tokens"),
        (lambda: prefix_of(2**24 + 1), "tokens"),
        (lambda: prefix_of(8, 0), "link_bytes_s"),
        (lambda: prefix_of(8, 64e9), "link_bytes_s"),  # type: ignore[arg-type]
        (lambda: prefix_of(8, efficiency=0), "efficiency"),
        (lambda: prefix_of(8, efficiency=1.01), "efficiency"),
        (lambda: prefix_of(8, efficiency=math.nan), "efficiency"),
        (lambda: prefix_of(8, card=CARDS["Apple M2 Max (38-core GPU)"]), "card"),
        (lambda: prefix_of(8, efficiency=5e-324), "time to recompute"),
        (lambda: prefix_of(2**24, 1), "time to transfer"),
        (lambda: transfer_time(-1, 1), "size_bytes"),
        (lambda: net_saving(0.5, 1, -1, 1), "fetch_s"),
        (lambda: Prefix(1, 0, 1, 1, 1), "kv_bytes"),
        (lambda: Prefix(1, 1, 0, 1, 1), "recompute_s"),
        (lambda: Prefix(1, 1, 1, math.nan, 1), "fetch_s"),
        (lambda: A.probability_worth(-1), "value_s"),
        (lambda: switching_probability(A, B, -1, 0.5), "b_count"),
        (lambda: switching_probability(A, B, 1, 1.5), "b_probability"),
        (lambda: best_choice([], -1), "room_bytes"),
        (lambda: greedy_choice([], 1.5), "room_bytes"),  # type: ignore[arg-type]
        (lambda: best_choice([Candidate(B, 0.5)] * 65, 1), "number of candidates"),
        (lambda: greedy_choice([Candidate(B, 0.5)] * 65, 1), "number of candidates"),
    ],
)
def test_what_makes_no_sense_is_named(wrong: Any, named: str) -> None:
    with pytest.raises(InputError, match=f"^{named} is "):
        wrong()


def test_the_choice_among_many_takes_no_long_time() -> None:
    alike = [Candidate(Prefix(1, 2**place // 2 + 1, 2.0**place / 2**40, 0, 0), 1) for place in range(40)]
    assert best_choice(alike, 2**60).places == tuple(range(40))
    some = [Candidate(prefix_of(37 * place + 1000), 0.5) for place in range(64)]
    room = sum(one.prefix.kv_bytes for one in some) // 2
    assert greedy_choice(some, room).value_s <= best_choice(some, room).value_s


def test_a_choice_among_too_many_sets_is_refused() -> None:
    draw = random.Random(0)
    sizes = [draw.randint(2**50, 2**52) for _ in range(64)]
    alike = [Candidate(Prefix(1, size, size / 2**40, 0, 0), 1) for size in sizes]
    with pytest.raises(InputError, match="candidates is 64; allowed: some of which at most 65,536 sets"):
        best_choice(alike, sum(sizes) // 2)
