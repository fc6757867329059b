"""What group formats take."""

import math
from fractions import Fraction
from random import Random

import pytest

from lib import quantization
from lib.checks import InputError
from lib.model import QWEN3_8B, kv_bytes
from lib.quantization import BF16, Q2_K, Q4_0, Q4_K, Q8_0, GroupFormat

FORMATS = [each for each in vars(quantization).values() if isinstance(each, GroupFormat)]


LAYOUTS = (
    ("F32", 32, 128, 0, 32), ("BF16", 32, 64, 0, 16), ("FP8", 32, 32, 0, 8), ("q8_0", 32, 32, 2, 8.5),
    ("q4_0", 32, 16, 2, 4.5), ("Q2_K", 256, 64, 20, 2.625), ("Q3_K", 256, 96, 14, 3.4375),
    ("Q4_K", 256, 128, 16, 4.5), ("Q6_K", 256, 192, 18, 6.5625),
)  # fmt: skip


@pytest.mark.parametrize(("name", "values", "codes", "metadata", "bits"), LAYOUTS)
def test_the_public_layouts(name: str, values: int, codes: int, metadata: int, bits: float) -> None:
    (found,) = (each for each in FORMATS if each.name == name)
    assert found.groups_of(values) * found.code_bytes == codes
    assert found.groups_of(values) * found.metadata_bytes == metadata
    assert found.bytes_of(values) == codes + metadata
    assert found.bits_per_value == Fraction(bits)


def test_sums_follow_from_a_group() -> None:
    random = Random(23)
    for _ in range(200):
        one = GroupFormat("any", 8 * random.randint(1, 40), random.randint(1, 16), random.randint(0, 40))
        groups = random.randint(0, 50)
        values = groups * one.group_values
        assert 8 * one.bytes_of(values) == values * one.code_bits + groups * 8 * one.metadata_bytes
        assert one.bytes_per_value * values == one.bytes_of(values)
        assert one.bits_per_value == one.code_bits + Fraction(8 * one.metadata_bytes, one.group_values)
        assert one.metadata_share * one.group_bytes == one.metadata_bytes


def test_ratios_say_what_the_same_values_take() -> None:
    assert Q8_0.ratio_to(BF16) == Fraction(34, 64)
    assert Q4_0.ratio_to(Q8_0) == Fraction(18, 34)
    assert Q4_0.ratio_to(Q4_K) == 1


def test_the_size_of_a_value_is_one_that_a_model_takes() -> None:
    values = kv_bytes(QWEN3_8B, 100, 1)
    assert kv_bytes(QWEN3_8B, 100, Q4_0.bytes_per_value) == Q4_0.bytes_of(values)


@pytest.mark.parametrize("values", [-32, 31, 33, 32.0, math.nan, math.inf, "32", True, None, 10**400 + 1])
def test_values_that_fill_no_whole_groups_are_refused(values: object) -> None:
    with pytest.raises(InputError, match=r"^values is .*; allowed: ") as refusal:
        Q8_0.bytes_of(values)  # type: ignore[arg-type]
    assert refusal.value.value is values


def test_no_values_take_no_bytes() -> None:
    assert Q2_K.bytes_of(0) == 0


@pytest.mark.parametrize("wrong", [-1, 2.5, math.nan, math.inf, "2", True, None, 10**400])
@pytest.mark.parametrize("name", ["group_values", "code_bits", "metadata_bytes"])
def test_sizes_that_make_no_sense_are_refused(name: str, wrong: object) -> None:
    sizes: dict[str, object] = {"group_values": 32, "code_bits": 8, "metadata_bytes": 2, name: wrong}
    with pytest.raises(InputError) as refusal:
        GroupFormat("wrong", **sizes)  # type: ignore[arg-type]
    assert refusal.value.parameter == name


def test_a_group_has_values_and_codes_but_need_not_have_scales() -> None:
    with pytest.raises(InputError, match=r"^group_values is 0; "):
        GroupFormat("empty", 0, 8, 2)
    with pytest.raises(InputError, match=r"^code_bits is 0; "):
        GroupFormat("empty", 32, 0, 2)
    assert GroupFormat("plain", 32, 8, 0).metadata_share == 0


def test_a_group_fills_whole_bytes() -> None:
    assert GroupFormat("fits", 8, 3, 0).group_bytes == 3
    with pytest.raises(InputError, match=r"^group_values is 4; allowed: a multiple of 8 values at 3 bits"):
        GroupFormat("does not", 4, 3, 0)
