"""Offload: what is gained, what is copied, and when a compressed transfer is faster."""

import math
import random
from fractions import Fraction
from typing import Any

import pytest

from lib.checks import InputError
from lib.design_problem import SHORT_CHAT
from lib.model import QWEN3_8B, preset, weight_bytes, weight_bytes_per_layer
from lib.offload import (
    NVLINK,
    PCIE,
    Offload,
    Part,
    break_even_decompression,
    bytes_of_set,
    compressed_transfer_time,
    decode_steps,
    every_nth,
    least_step_time,
    lowest_link,
)
from lib.prefix_value import transfer_time
from lib.units import GB, MIB

RIGHT: dict[str, Any] = {"layers": 6, "offloaded": (1, 3, 5), "set_bytes": 100, "buffers": 1}


def test_every_nth_is_the_last_of_each_n() -> None:
    assert every_nth(36, 4) == (3, 7, 11, 15, 19, 23, 27, 31, 35)
    assert every_nth(36, 5) == (4, 9, 14, 19, 24, 29, 34)
    assert every_nth(3, 1) == (0, 1, 2)
    assert every_nth(3, 3) == (2,)


@pytest.mark.parametrize("wrong", [0, 4, -1, 1.5, True])
def test_no_more_than_the_layers_there_are(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^every is .*; allowed: a whole number from 1 to 3$"):
        every_nth(3, wrong)


def test_a_whole_layer_is_more_than_its_ffn() -> None:
    assert bytes_of_set(QWEN3_8B, Part.FFN) == 3 * 4096 * 12288 * 2
    whole_layer = bytes_of_set(QWEN3_8B, Part.LAYER)
    assert whole_layer == weight_bytes_per_layer(QWEN3_8B)
    outside = 2 * QWEN3_8B.vocabulary * 4096 + 4096 if QWEN3_8B.vocabulary else 0
    assert 36 * whole_layer == weight_bytes(QWEN3_8B) - 2 * outside
    with pytest.raises(InputError, match=r"^model is .*; allowed: a model whose layers are all the same$"):
        weight_bytes_per_layer(preset("gpt-oss-20b"))


def test_room_in_whole_requests() -> None:
    draw = random.Random(8)
    for _ in range(200):
        layers = draw.randint(3, 90)
        sets = tuple(sorted(draw.sample(range(layers), draw.randint(2, layers))))
        offload = Offload(layers, sets, draw.randint(1, 10**9), draw.randint(1, len(sets) - 1))
        assert offload.net_bytes == (len(sets) - offload.buffers) * offload.set_bytes > 0
        assert offload.released_bytes == offload.net_bytes + offload.buffer_bytes
        request = draw.randint(1, 10**10)
        fit = offload.extra_requests(request)
        assert fit * request <= offload.net_bytes < (fit + 1) * request


@pytest.mark.parametrize(
    "wrong",
    [
        {"layers": 5}, {"layers": 0}, {"offloaded": (3, 1)}, {"offloaded": (1, 1)}, {"offloaded": (1,)},
        {"offloaded": ()}, {"offloaded": (1, 6)}, {"offloaded": (-1, 3)}, {"offloaded": (1, math.nan)},
        {"offloaded": [1, 3]}, {"offloaded": None}, {"set_bytes": 0}, {"set_bytes": math.inf}, {"buffers": 0},
        {"buffers": 3}, {"buffers": 1.0}, {"buffers": "1"},
    ],
    ids=repr,
)  # fmt: skip
def test_an_offload_that_makes_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Offload(**RIGHT | wrong)


def test_as_many_buffers_as_sets_gain_nothing_and_are_refused() -> None:
    with pytest.raises(InputError, match=r"^buffers is 3; allowed: a whole number from 1 to 2$"):
        Offload(**RIGHT | {"buffers": 3})


def test_a_step_is_no_shorter_than_its_copies_nor_than_its_compute() -> None:
    offload = Offload(36, every_nth(36, 4), bytes_of_set(QWEN3_8B), 2)
    for link in (PCIE.bandwidth_bytes_s, NVLINK.bandwidth_bytes_s):
        copies = transfer_time(offload.released_bytes, link)
        assert least_step_time(offload, 0, link) == copies
        assert least_step_time(offload, copies / 2, link) == copies
        assert least_step_time(offload, 2 * copies, link) == 2 * copies


def test_the_lowest_link_just_does_it() -> None:
    offload = Offload(36, every_nth(36, 4), bytes_of_set(QWEN3_8B), 1)
    steps = decode_steps(SHORT_CHAT.output_tokens)
    link = lowest_link(offload, steps, 7)
    assert steps * transfer_time(offload.released_bytes, math.ceil(link)) <= 7
    assert steps * transfer_time(offload.released_bytes, math.floor(link)) > 7


def test_steps_behind_the_first_output() -> None:
    assert [decode_steps(outputs) for outputs in (1, 2, 256)] == [0, 1, 255]
    assert [decode_steps(256, each) for each in (2, 3, 4, 255, 300)] == [128, 85, 64, 1, 1]


def test_compression_saves_time_above_the_break_even_and_only_there() -> None:
    draw = random.Random(8)
    for _ in range(200):
        size, link, ratio = draw.randint(1, 10**10), draw.randint(10, 900) * GB, draw.uniform(0.01, 0.99)
        plain, least = transfer_time(size, link), break_even_decompression(link, ratio)
        assert compressed_transfer_time(size, ratio, link, math.ceil(least * 1.001)) < plain
        assert compressed_transfer_time(size, ratio, link, math.floor(least * 0.999)) > plain


def test_a_compressed_transfer_is_two_times_one_after_the_other() -> None:
    taken = compressed_transfer_time(96 * MIB, 0.25, 64 * GB, 128 * GB)
    assert taken == pytest.approx(float(Fraction(96 * MIB, 4 * 64 * GB) + Fraction(96 * MIB, 128 * GB)))


@pytest.mark.parametrize("wrong", [1, 1.0, 0, -0.1, 1.5, math.nan, "1/4", True])
def test_a_share_at_which_nothing_is_saved(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^compressed_to is "):
        break_even_decompression(64 * GB, wrong)
