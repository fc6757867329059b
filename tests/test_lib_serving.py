"""Configurations against a plain version that knows nothing of `lib`, the section's numbers, and what is refused."""

import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from lib.checks import InputError
from lib.quantization import BF16, Q4_0, Q8_0, GroupFormat
from lib.serving import (
    CONFIGURATIONS,
    DFLASH,
    LESS_MEMORY,
    LIMITS,
    SHORT_OUTPUTS,
    Basis,
    Configuration,
    Draft,
    Limit,
    Limits,
    Workload,
    choose,
    judge,
    memory_needed,
    needs,
    rounds_needed,
    verify_time,
)
from lib.units import GIB, MIB

A, B, C, D = CONFIGURATIONS
WEIGHTS, KV, PEAK_FLOP, PEAK_BYTES = 15_136_811_008, 147_456, 503.8e12, 1792e9
OWN = [(15.4388008960e9, 26.26), (16.34477056e9, 26.62), (19.968649216e9, 27.44), (34.46416384e9, 29.63)]
# Of the shared prefix, by the batch: rounds in ms, prefills in s.
SHARED = [(1, 25.83, 0.1265), (4, 27.16, 0.5075), (16, 27.35, 2.0405), (64, 41.22, 9.0501)]


def plain_flop(new: int, cached: int, logits: int) -> int:
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 12288
    pairs = new * cached + new * (new + 1) // 2
    return 2 * new * 36 * layer + 4 * 36 * 32 * 128 * pairs + 2 * logits * 151936 * 4096


def between(points: Sequence[tuple[float, float]], x: float) -> float:
    """A straight line through the two points around x, or through the last two."""
    after = next((place for place in range(1, len(points)) if points[place][0] >= x), len(points) - 1)
    (x0, y0), (x1, y1) = points[after - 1], points[after]
    return y0 + (x - x0) * (y1 - y0) / (x1 - x0)


def plain_memory_mib(one: Configuration, workload: Workload) -> float:
    page = 16
    ratio = one.kv_format.group_bytes * 8 / one.kv_format.group_values / 16
    stored = workload.input_tokens + workload.output_tokens - 1
    common = workload.prefix_tokens // page * page if one.shares_prefix else 0
    pages = common // page + workload.requests * math.ceil((stored - common) / page)
    return pages * page * KV * ratio / MIB + (one.draft.memory_bytes / MIB if one.draft else 0)


def plain_seconds(one: Configuration, workload: Workload) -> float:
    """As section 8.6.3 does it, from numbers typed in; contexts of 8192 tokens of which 6144 are common."""
    requests, context, prefix = workload.requests, 8192, 6144
    ratio = one.kv_format.group_bytes * 8 / one.kv_format.group_values / 16
    draft = one.draft or Draft("none", 1, 1)
    if one.shares_prefix:
        prefill = between([(0, 0), *((batch, s) for batch, _, s in SHARED)], requests)
        if not workload.is_cached:
            prefill += plain_flop(prefix, 0, 1) / (0.622 * PEAK_FLOP)
        read = WEIGHTS + KV * ratio * (prefix + requests * (context - prefix))
        points = [(float(WEIGHTS + KV * (prefix + batch * (context - prefix))), ms) for batch, ms, _ in SHARED]
    else:
        prefill = requests * plain_flop(context, 0, 1) / (0.578 * PEAK_FLOP)
        read = WEIGHTS + KV * ratio * requests * context
        points = list(OWN)
    bound = read / PEAK_BYTES
    compute = requests * plain_flop(draft.positions, context, draft.positions) / (0.578 * PEAK_FLOP)
    recorded = max(between(points, read) / 1e3, bound) - workload.host_removed_s
    each = max(recorded, bound, compute) + draft.round_s
    rounds = math.ceil((workload.output_tokens - 1) / draft.outputs_per_round - 1e-9)
    return prefill * draft.prefill_factor + rounds * each


def random_configuration(draw: Random, name: str = "X") -> Configuration:
    positions = draw.randint(1, 12)
    draft = Draft(
        "some", draw.randint(100, 100 * positions) / 100, positions, draw.randint(0, 5000) * MIB,
        draw.choice([1, 1.2]), draw.choice([0, 0.0001, 0.004]),
    )  # fmt: skip
    return Configuration(name, draw.random() < 0.6, draw.choice([BF16, Q8_0, Q4_0]), draw.choice([None, draft]))


def random_workload(draw: Random) -> Workload:
    removed = draw.choice([0.0, 0.0, draw.uniform(0, 0.03)])
    return Workload(draw.randint(1, 64), 8192, 6144, draw.randint(1, 600), draw.random() < 0.5, removed)


@pytest.mark.parametrize("seed", range(200))
def test_needs_are_those_of_the_plain_version(seed: int) -> None:
    draw = Random(seed)
    one, workload = random_configuration(draw), random_workload(draw)
    found = needs(one, workload)
    assert found.memory_bytes / MIB == pytest.approx(plain_memory_mib(one, workload), rel=1e-12)
    assert found.total_s == pytest.approx(plain_seconds(one, workload), rel=1e-6)
    assert found.total_s == found.prefill_s + found.decode_s


@pytest.mark.parametrize("seed", range(60))
def test_a_choice_is_the_cheapest_within_the_limits(seed: int) -> None:
    draw = Random(seed)
    several = [random_configuration(draw, name) for name in "PQRST"[: draw.randint(1, 5)]]
    workload = random_workload(draw)
    limits = Limits(draw.randint(1, 40) * GIB, draw.uniform(1, 30))
    choice = choose(several, workload, limits)
    fits = [one for one in several if plain_memory_mib(one, workload) <= limits.memory_bytes / MIB]
    timely = [one for one in fits if needs(one, workload).total_s <= limits.deadline_s]
    assert choice.within_limits == tuple(one.name for one in timely)
    broken = {each.name: each.broken for each in choice.judged}
    assert broken == {
        one.name: Limit.MEMORY if one not in fits else None if one in timely else Limit.DEADLINE for one in several
    }
    assert (choice.chosen is None) == (not timely)
    for each in choice.judged:
        assert (each.gpu_s_per_result is None) == (each.broken is not None) == (each.qualified == 0)
        if choice.chosen and each.gpu_s_per_result:
            assert choice.chosen.gpu_s_per_result <= each.gpu_s_per_result  # type: ignore[operator]
            assert each.gpu_s_per_result * workload.requests == pytest.approx(each.needs.total_s)
            assert each.most_joules_per_result == 600 * each.gpu_s_per_result


def test_the_four_of_the_section() -> None:
    found = {one.name: needs(one) for one in CONFIGURATIONS}
    assert [found[name].memory_bytes // MIB for name in "ABCD"] == [19008, 6048, 10098, 9236]
    assert [found[name].rounds for name in "ABCD"] == [255, 255, 255, 85]
    assert [round(found[name].total_s, 2) for name in "ABCD"] == [14.90, 9.01, 14.55, 4.56]
    choice = choose()
    assert [choice.of(name).broken for name in "ABCD"] == [Limit.MEMORY, Limit.DEADLINE, Limit.DEADLINE, None]
    assert choice.name == "D"


def test_what_each_time_comes_from_is_said() -> None:
    a, b, c, d = (needs(one) for one in CONFIGURATIONS)
    assert [each.prefill_basis for each in (a, b, c, d)] == [
        Basis.FLOP_RULE, Basis.RECORDED, Basis.FLOP_RULE, Basis.CARRIED_OVER,
    ]  # fmt: skip
    assert [each.round_basis for each in (a, b, c, d)] == [
        Basis.RECORDED, Basis.RECORDED, Basis.INTERPOLATED, Basis.RECORDED,
    ]  # fmt: skip
    assert needs(B, Workload(requests=20)).prefill_basis is Basis.INTERPOLATED
    assert needs(B, Workload(requests=65)).round_basis is Basis.BEYOND
    assert needs(B, Workload(requests=65)).prefill_basis is Basis.BEYOND
    assert needs(B, Workload(host_removed_s=0.001)).round_basis is Basis.CARRIED_OVER
    assert needs(B, Workload(host_removed_s=0.02)).round_basis is Basis.DEVICE
    assert needs(B, Workload(is_cached=False)).prefill_basis is Basis.FLOP_RULE


def test_with_less_memory_none_is_left_and_with_short_outputs_d_is_hardly_better() -> None:
    less = choose(limits=LESS_MEMORY)
    assert [less.of(name).broken for name in "ABCD"] == [Limit.MEMORY, Limit.DEADLINE, Limit.MEMORY, Limit.MEMORY]
    assert less.chosen is None and less.name is None
    short = choose(workload=SHORT_OUTPUTS)
    assert short.within_limits == ("B", "D") and short.name == "D"
    assert 0 < short.of("B").needs.total_s - short.of("D").needs.total_s < 0.1


def test_a_further_configuration_is_three_lines() -> None:
    """Drafts of a head trained with the model, say: little memory, one position more."""
    head = Draft("head", outputs_per_round=1.8, positions=2, memory_bytes=400 * MIB, round_s=0.0007)
    one = Configuration("H", shares_prefix=True, draft=head)
    found = judge(one)
    assert found.needs.memory_bytes == needs(B).memory_bytes + 400 * MIB
    assert found.needs.rounds == math.ceil(255 / 1.8)
    assert found.needs.prefill_s == needs(B).prefill_s
    assert choose((*CONFIGURATIONS, one)).name == "D"


def test_the_longest_round_and_the_fewest_outputs_are_edges() -> None:
    for one in (B, D):
        found = judge(one)
        edge = found.longest_round_s
        assert edge is not None
        assert found.needs.prefill_s + found.needs.rounds * edge == pytest.approx(LIMITS.deadline_s)
    least = judge(D).fewest_outputs_per_round
    assert least is not None
    enough, too_few = (replace(D, draft=replace(DFLASH, outputs_per_round=least * by)) for by in (1.0001, 0.9999))
    assert judge(enough).broken is None and judge(too_few).broken is Limit.DEADLINE
    assert judge(C).longest_round_s is None and judge(C).fewest_outputs_per_round is None
    assert judge(B, Workload(output_tokens=1)).longest_round_s is None
    assert judge(B, Workload(output_tokens=1)).fewest_outputs_per_round == 1


@pytest.mark.parametrize(
    ("outputs", "each", "rounds"),
    [(1, 3, 0), (2, 3, 1), (4, 3, 1), (5, 3, 2), (256, 3, 85), (256, 1.7, 150), (13, 1.2, 10), (256, 2, 128)],
)
def test_rounds_are_whole(outputs: int, each: float, rounds: int) -> None:
    assert rounds_needed(outputs, each) == rounds


@pytest.mark.parametrize("seed", range(20))
def test_more_work_never_takes_less(seed: int) -> None:
    draw = Random(seed)
    one, workload = random_configuration(draw), random_workload(draw)
    base = needs(one, workload)
    more = [
        needs(one, replace(workload, requests=workload.requests + 1)),
        needs(one, replace(workload, output_tokens=workload.output_tokens + draw.randint(1, 99))),
        needs(one, replace(workload, host_removed_s=workload.host_removed_s / 2)),
        needs(one, replace(workload, is_cached=False)),
    ]
    for other in more:
        assert other.memory_bytes >= base.memory_bytes and other.total_s >= base.total_s - 1e-12


def test_a_short_prefix_that_fills_no_page_is_not_shared() -> None:
    workload = Workload(input_tokens=100, prefix_tokens=15, output_tokens=2)
    assert memory_needed(B, workload) == memory_needed(A, workload)
    assert needs(B, workload).prefill_s == needs(A, workload).prefill_s


def test_verification_computes_logits_of_every_position() -> None:
    assert verify_time(16, 8, 8192, 1.0) == pytest.approx(16 * plain_flop(8, 8192, 8) / PEAK_FLOP)


WRONG: list[tuple[Any, str]] = [
    (lambda: Configuration("", True), "name"),
    (lambda: Configuration("X", 1), "shares_prefix"),  # type: ignore[arg-type]
    (lambda: Configuration("X", True, "q8_0"), "kv_format"),  # type: ignore[arg-type]
    (lambda: Configuration("X", True, GroupFormat("odd", 48, 8, 2)), "kv_format"),
    (lambda: Configuration("X", True, BF16, "DFlash"), "draft"),  # type: ignore[arg-type]
    (lambda: Draft("X", 0.9, 8), "outputs_per_round"),
    (lambda: Draft("X", 8.1, 8), "outputs_per_round"),
    (lambda: Draft("X", math.nan, 8), "outputs_per_round"),
    (lambda: Draft("X", True, 8), "outputs_per_round"),
    (lambda: Draft("X", 1, 0), "positions"),
    (lambda: Draft("X", 1, 8, memory_bytes=-1), "memory_bytes"),
    (lambda: Draft("X", 1, 8, memory_bytes=1.5), "memory_bytes"),  # type: ignore[arg-type]
    (lambda: Draft("X", 1, 8, prefill_factor=0.9), "prefill_factor"),
    (lambda: Draft("X", 1, 8, prefill_factor=1e9), "prefill_factor"),
    (lambda: Draft("X", 1, 8, round_s=-0.1), "round_s"),
    (lambda: Workload(requests=0), "requests"),
    (lambda: Workload(requests=True), "requests"),
    (lambda: Workload(output_tokens=0), "output_tokens"),
    (lambda: Workload(input_tokens=0), "input_tokens"),
    (lambda: Workload(prefix_tokens=8192), "shared_prefix_tokens"),
    (lambda: Workload(is_cached=None), "is_cached"),  # type: ignore[arg-type]
    (lambda: Workload(host_removed_s=math.inf), "host_removed_s"),
    (lambda: Limits(memory_bytes=0), "memory_bytes"),
    (lambda: Limits(deadline_s=0), "deadline_s"),
    (lambda: Limits(deadline_s=math.nan), "deadline_s"),
    (lambda: needs("B"), "configuration"),  # type: ignore[arg-type]
    (lambda: needs(B, LIMITS), "workload"),  # type: ignore[arg-type]
    (lambda: needs([]), "configuration"),  # type: ignore[arg-type]
    (lambda: memory_needed(None), "configuration"),  # type: ignore[arg-type]
    (lambda: memory_needed(B, None), "workload"),  # type: ignore[arg-type]
    (lambda: judge(B, limits=7), "limits"),  # type: ignore[arg-type]
    (lambda: choose([]), "configurations"),
    (lambda: choose([B, B]), "configurations"),
    (lambda: choose(B), "configurations"),  # type: ignore[arg-type]
    (lambda: choose().of("E"), "name"),
    (lambda: rounds_needed(256, 1e300), "outputs_per_round"),
    (lambda: verify_time(16, 8, 8192, 1.5), "mfu"),
]


@pytest.mark.parametrize(("call", "parameter"), WRONG, ids=[str(place) for place in range(len(WRONG))])
def test_what_makes_no_sense_is_refused_by_name(call: Any, parameter: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.parameter == parameter
