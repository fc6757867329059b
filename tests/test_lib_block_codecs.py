"""The fast block formats give the bytes of the plain ones, whatever the values, and refuse what has no bytes."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from lib import block_codecs
from lib.block_codecs import SCALE_BEYOND_FP16, Array, decode_q4_0, decode_q8_0, encode_q4_0, encode_q8_0
from lib.checks import InputError
from lib.quantization import Q4_0, Q8_0, GroupFormat
from tests import plain_blocks

LEAST, LARGEST = np.float32(1e-45), np.finfo(np.float32).max
ALMOST_HALF = np.float32(0.49999997)
GOLDEN = tomllib.loads(Path(__file__).with_name("golden_blocks.toml").read_text(encoding="utf-8"))


class Kind(NamedTuple):
    layout: GroupFormat
    encode: Callable[..., Array]
    decode: Callable[..., Array]
    encode_plainly: Callable[[list[float]], bytes]
    decode_plainly: Callable[[bytes], list[float]]
    divisor: int


KINDS = {
    "q8_0": Kind(Q8_0, encode_q8_0, decode_q8_0, plain_blocks.encode_q8_0, plain_blocks.decode_q8_0, 127),
    "q4_0": Kind(Q4_0, encode_q4_0, decode_q4_0, plain_blocks.encode_q4_0, plain_blocks.decode_q4_0, 8),
}
both = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def drawn(seed: int, groups: int = 40) -> Array:
    return np.random.default_rng(seed).normal(size=32 * groups).astype(np.float32)


def adversarial() -> dict[str, Array]:
    """Values at which a shortcut goes wrong: ties, halves, zeros of both signs, tiny and large scales."""
    draw = np.random.default_rng(8)
    whole = draw.integers(-127, 128, (60, 32)).astype(np.float32)
    whole[:, 0] = 127
    halves = whole.copy()
    halves[:, 1:] = (np.floor(halves[:, 1:]) + np.float32(0.5)) * draw.choice([1, 1 - 2**-23, 1 + 2**-23], (60, 31))
    halves[::3, 5], halves[1::3, 5], halves[2::3, 7] = ALMOST_HALF, -ALMOST_HALF, 0.5
    sixteenths = draw.integers(-16, 17, (200, 32)).astype(np.float32)
    sixteenths[:100, 3] = 16
    sizes = np.float32(2.0) ** draw.integers(-149, 17, (300, 1))
    zeros = draw.choice([0.0, -0.0], (20, 32))
    zeros[10:, 30] = draw.choice(np.array([LEAST, -LEAST, 0]), 10)
    return {
        "any": drawn(1),
        "whole": whole,
        "halves": np.clip(halves, -127, 127),
        "ties": draw.choice([-3, 3, 1, 0], (90, 32)),
        "sixteenths": sixteenths * draw.choice([1, 3, 0.7, 1e-3], (200, 1)),
        "all sizes": drawn(2, 300).reshape(-1, 32) * sizes,
        "least": draw.integers(-300, 301, (50, 32)) * LEAST,
        "around an infinite inverse": draw.normal(size=(90, 32)) * np.geomspace(1e-39, 1e-36, 90)[:, None],
        "around the least FP16": draw.normal(size=(90, 32)) * np.geomspace(1e-8, 1e-3, 90)[:, None],
        "large": np.clip(draw.normal(size=(90, 32)) * 2e5, -5.24e5, 5.24e5),
        "negative": -np.abs(drawn(3)),
        "zeros": zeros,
    }


@both
@pytest.mark.parametrize("name", adversarial())
def test_the_bytes_are_those_of_the_plain_version(kind: Kind, name: str) -> None:
    values = adversarial()[name].astype(np.float32).reshape(-1)
    blocks = kind.encode(values)
    assert blocks.tobytes() == kind.encode_plainly(values.tolist())
    read = kind.decode(blocks)
    assert read.tobytes() == np.array(kind.decode_plainly(blocks.tobytes()), np.float32).tobytes()


@both
def test_any_bytes_are_read_as_by_the_plain_version(kind: Kind) -> None:
    blocks = np.random.default_rng(4).integers(0, 256, 400 * kind.layout.group_bytes).astype(np.uint8)
    read = kind.decode(blocks)
    np.testing.assert_array_equal(read, np.array(kind.decode_plainly(blocks.tobytes()), np.float32))
    assert np.isnan(read).any()
    assert np.isnan(kind.decode(np.full(kind.layout.group_bytes, 0xFF, np.uint8))).all()


@pytest.mark.parametrize("name", KINDS)
def test_known_blocks_come_out(name: str) -> None:
    assert len(GOLDEN[name]) == 3
    for known in GOLDEN[name]:
        values, block = floats(known["values"]), bytes.fromhex(known["block"])
        assert KINDS[name].encode(values).tobytes() == block, known["what"]
        read = KINDS[name].decode(np.frombuffer(block, np.uint8))
        assert read.tobytes() == floats(known["read"]).tobytes(), known["what"]


def floats(text: str) -> Array:
    return np.frombuffer(bytes.fromhex(text), "<f4")


@both
def test_pieces_of_any_number_of_groups_are_the_same(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    values = drawn(5, 17)
    values[64:96], values[3] = np.where(np.arange(32) % 2, 3, -3), -9
    blocks, read = kind.encode(values), kind.decode(kind.encode(values))
    for groups in (1, 2, 16, 17, 18):
        monkeypatch.setattr(block_codecs, "_PIECE", groups)
        assert kind.encode(values).tobytes() == blocks.tobytes()
        assert kind.decode(blocks).tobytes() == read.tobytes()


@both
def test_shapes_are_kept_and_given_room_is_used(kind: Kind) -> None:
    values = drawn(6, 24).reshape(2, 3, 128)
    blocks = kind.encode(values)
    assert blocks.shape == (2, 3, kind.layout.bytes_of(128))
    assert kind.decode(blocks).shape == values.shape
    swapped = np.ascontiguousarray(values.swapaxes(0, 1)).swapaxes(0, 1)
    assert np.array_equal(kind.encode(swapped), blocks)
    assert np.array_equal(kind.decode(np.asfortranarray(blocks)), kind.decode(blocks))
    room, read = np.empty_like(blocks), np.empty_like(values)
    assert kind.encode(values, out=room) is room and np.array_equal(room, blocks)
    assert kind.decode(blocks, out=read) is read and np.array_equal(read, kind.decode(blocks))


@both
def test_room_in_what_is_read_is_refused_and_nothing_changes(kind: Kind) -> None:
    values = drawn(9, 8)
    blocks = kind.encode(values)
    shared = values.copy()
    with pytest.raises(InputError, match=r"^out is .*shares no memory"):
        kind.encode(shared, out=shared.view(np.uint8).reshape(-1)[: blocks.size].reshape(blocks.shape))
    assert np.array_equal(shared, values)
    room = np.zeros_like(values)
    inside = room.view(np.uint8).reshape(-1)[: blocks.size].reshape(blocks.shape)
    inside[...] = blocks
    with pytest.raises(InputError, match=r"^out is .*shares no memory"):
        kind.decode(inside, out=room)
    assert np.array_equal(inside, blocks)


@both
def test_nothing_is_stored_as_nothing(kind: Kind) -> None:
    for shape in ((0,), (0, 64), (3, 0)):
        blocks = kind.encode(np.empty(shape, np.float32))
        assert blocks.shape == (*shape[:-1], kind.layout.bytes_of(shape[-1]))
        assert kind.decode(blocks).shape == shape


@both
@pytest.mark.parametrize("wrong", [np.nan, -np.nan, np.inf, -np.inf, LARGEST, -LARGEST])
@pytest.mark.parametrize("at", [0, 31, 32 * 5000 - 1])
def test_values_without_a_scale_are_refused_before_anything_is_written(kind: Kind, wrong: float, at: int) -> None:
    values, room = np.zeros(32 * 5000, np.float32), np.full(kind.layout.bytes_of(32 * 5000), 7, np.uint8)
    values[at] = wrong
    with pytest.raises(InputError, match=r"values is .*whose scale FP16 can hold"):
        kind.encode(values, out=room)
    assert (room == 7).all()


@both
def test_the_largest_scale_is_the_last_before_fp16_is_infinite(kind: Kind) -> None:
    most = np.float32(SCALE_BEYOND_FP16 * kind.divisor)
    for sign in (1, -1):
        values = np.zeros(32, np.float32)
        values[9] = sign * np.nextafter(most, np.float32(0))
        with np.errstate(all="raise"):
            assert np.isfinite(kind.decode(kind.encode(values))).all()
        values[9] = sign * most
        with pytest.raises(InputError, match="values is"):
            kind.encode(values)


@both
def test_other_shapes_and_types_are_refused(kind: Kind) -> None:
    values, blocks = drawn(7, 2), kind.encode(drawn(7, 2))
    read_only = np.empty_like(blocks)
    read_only.flags.writeable = False
    wrong: tuple[tuple[str, Callable[[], Any]], ...] = (
        *(("values", lambda bad=bad: kind.encode(bad)) for bad in other_arrays(values)),
        *(("blocks", lambda bad=bad: kind.decode(bad)) for bad in other_arrays(blocks)),
        *(
            ("out", lambda bad=bad: kind.encode(values, out=bad))
            for bad in (blocks[1:], blocks.astype(np.int8), np.empty((len(blocks), 2), np.uint8)[:, 0], read_only, 7)
        ),
        ("out", lambda: kind.decode(blocks, out=np.empty(64))),
    )
    for parameter, call in wrong:
        with pytest.raises(InputError) as refusal:
            call()
        assert refusal.value.parameter == parameter


def other_arrays(right: Array) -> list[Any]:
    return [
        right[1:],
        right.astype(np.float64),
        right.astype(np.int8),
        right.tolist(),
        right[0],
        None,
        "x",
        1,
    ]


def test_codes_come_from_the_scale_before_it_is_rounded_to_fp16() -> None:
    values = np.full(32, 1.2345, np.float32)
    values[0] = 2.0
    block = encode_q8_0(values)
    stored = float(block[:2].view(np.float16)[0])
    assert stored != np.float32(2 / 127)
    assert block[2:].view(np.int8)[0] == 127 and abs(decode_q8_0(block)[0] - 2) > 1e-5
