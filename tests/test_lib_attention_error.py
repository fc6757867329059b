"""The error of attention: what loses nothing has none, keys suffer from large channels, and values do not."""

import math
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

from lib.attention_error import HEAD_DIM, HEADS, TOKENS, Array, Data, attention_error, exact
from lib.checks import InputError
from lib.codecs import BF16, FLOAT64, Q4_0, Q8_0, Codec, fp8
from lib.group_rounding import as_read_in
from lib.paged_attention import attend
from lib.quantization import GroupFormat

NORMAL, LARGE = Data
each_data = pytest.mark.parametrize("data", Data)
LOSSY = (BF16, fp8(), Q8_0, Q4_0)


@each_data
def test_what_loses_nothing_has_no_error(data: Data) -> None:
    assert attention_error(data) == attention_error(data, exact, exact, exact) == 0
    same = FLOAT64.as_read
    assert attention_error(data, same, same, same) == 0


@each_data
def test_it_is_the_relative_error_of_the_output(data: Data) -> None:
    seen: list[Array] = []

    def noted(numbers: Array) -> Array:
        seen.append(numbers.astype(np.float64))
        return numbers

    attention_error(data, noted, noted, noted)
    queries, keys, values = (part.reshape(len(part), HEADS, HEAD_DIM) for part in seen)
    assert keys.shape == values.shape == (TOKENS, HEADS, HEAD_DIM)
    right = attend(queries, keys, values)
    for parts in ({0}, {1}, {2}, {1, 2}, {0, 1, 2}):
        stored = [Q4_0.as_read(part) if place in parts else part for place, part in enumerate((queries, keys, values))]
        off = math.sqrt(np.square(attend(*stored) - right).mean() / np.square(right).mean())
        formats = [Q4_0.as_read if place in parts else exact for place in range(3)]
        assert attention_error(data, *formats) == pytest.approx(off, rel=1e-9)


def test_both_data_have_the_same_output() -> None:
    outputs = []
    for data in Data:
        seen: list[Array] = []

        def noted(numbers: Array, seen: list[Array] = seen) -> Array:
            seen.append(numbers.astype(np.float64).reshape(len(numbers), HEADS, HEAD_DIM))
            return numbers

        attention_error(data, noted, noted, noted)
        outputs.append(attend(*seen))
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("codec", LOSSY, ids=lambda codec: codec.name)
def test_large_channels_make_keys_worse_and_leave_the_rest(codec: Codec) -> None:
    part = codec.as_read
    assert attention_error(LARGE, key=part) > 2 * attention_error(NORMAL, key=part)
    for other in ({"query": part}, {"value": part}):
        assert attention_error(LARGE, **other) == pytest.approx(attention_error(NORMAL, **other), rel=1e-3)
    together = attention_error(LARGE, part, part, part)
    assert together > attention_error(LARGE, key=part, value=part) > attention_error(LARGE, key=part)


def test_on_plain_data_each_part_suffers_alike() -> None:
    for codec, most in zip(LOSSY, (0.002, 0.03, 0.006, 0.1), strict=True):
        errors = [attention_error(NORMAL, **{part: codec.as_read}) for part in ("query", "key", "value")]
        assert max(errors) < most and max(errors) < 1.15 * min(errors)


@each_data
@pytest.mark.parametrize("bits", range(2, 9))
def test_a_larger_group_is_smaller_and_worse(data: Data, bits: int) -> None:
    layouts = [GroupFormat("some", group, bits, 2) for group in (16, 32, 64, 128, 256)]
    sizes = [layout.bytes_of(256) for layout in layouts]
    assert sizes == sorted(set(sizes), reverse=True)
    for part in ("key", "value"):
        errors = [attention_error(data, **{part: partial(as_read_in, layout)}) for layout in layouts]
        # Where every group has large channels already, a larger one is hardly any worse.
        assert all(wider > 0.98 * narrower for narrower, wider in pairwise(errors)) and errors[-1] > 1.2 * errors[0]


@pytest.mark.parametrize("data", ["plain", None, [], math.nan, 0])
def test_unknown_data_are_refused(data: Data) -> None:
    with pytest.raises(InputError, match="data is "):
        attention_error(data)
