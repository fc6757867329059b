"""What a file of quantised weights takes, and what is left beside it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from lib.checks import InputError
from lib.file_budget import (
    CONTEXTS,
    FILE_BYTES,
    LARGER_MACHINE_BYTES,
    MODEL,
    Q2_K_TYPES,
    FileBudget,
    StoredType,
    bits_per_weight,
    file_budget,
    file_parts,
    stored_types,
)
from lib.model import QWEN3_8B, parameters, preset, tensors
from lib.quantization import BF16, Q2_K, Q4_0, Q8_0
from lib.records import record


def test_each_type_is_the_recorded_one() -> None:
    table = record("q2k_bytes")
    derived = [
        {
            "storage_type": one.stored_as.name,
            "tensors": one.tensors,
            "values": one.values,
            "code_or_float_bytes": one.code_bytes,
            "scale_bytes": one.metadata_bytes,
        }
        for one in stored_types()
    ]
    assert len(derived) == len(table.rows)
    for one in derived:
        assert one == table.one(storage_type=one["storage_type"])


def test_the_whole_file_comes_out_to_the_byte() -> None:
    parts = file_parts(stored_types())
    assert (parts.code_bytes, parts.metadata_bytes, parts.other_bytes) == (69_178_275_840, 16_506_720_256, 6_006_016)
    assert parts.total_bytes == FILE_BYTES["Q2_K"]
    assert sum(one.values for one in stored_types()) == parameters(MODEL)


def assignments(
    open_tensors: Sequence[tuple[str, int, int]], room: dict[str, tuple[int, int]]
) -> Iterator[dict[str, str]]:
    """Every choice of a type for each tensor (name, how many, values) that fills the counts of each type exactly."""
    if not open_tensors:
        yield {}
        return
    (name, count, values), *others = open_tensors
    for stored_as, (count_left, values_left) in room.items():
        if count <= count_left and values <= values_left:
            smaller = room | {stored_as: (count_left - count, values_left - values)}
            yield from ({name: stored_as} | rest for rest in assignments(others, smaller))


def test_the_counts_leave_open_only_which_of_equal_tensors_has_which_type() -> None:
    in_file = [
        (
            one.name,
            one.layers * (1 if one.name.startswith("expert") else one.each),
            one.layers * one.each * one.elements,
        )
        for one in tensors(MODEL)
    ]
    room = {row["storage_type"]: (row["tensors"], row["values"]) for row in record("q2k_bytes").rows}
    found = list(assignments(in_file, room))
    assert {name: one.name for name, one in Q2_K_TYPES.items()} in found
    equal = [
        {"key", "value"}, {"query", "attention output"}, {"expert gate", "expert up", "expert down"},
        {"embedding", "output head"},
    ]  # fmt: skip
    assert len(found) == math.prod(map(len, equal))
    for one in found:
        assert all(one[name] == Q2_K_TYPES[name].name for name in one if not any(name in some for some in equal))


def test_other_models_are_counted_where_their_tensors_have_these_names() -> None:
    with pytest.raises(InputError, match=r"^tensor is 'gate'; allowed: one of 'embedding', 'query'"):
        stored_types(QWEN3_8B)
    with pytest.raises(InputError, match=r"^first_k_dense_replace is "):
        stored_types(preset("DeepSeek-V3"))


def test_values_that_fill_no_groups_are_refused() -> None:
    with pytest.raises(InputError, match=r"^values is 255; "):
        StoredType(Q2_K, 1, 255)


def test_what_is_left_and_who_fits_as_recorded_for_both_machines() -> None:
    """On the M2 Max with and without a reserve, and on the larger machine; the numbers of the published study."""
    short, long = CONTEXTS
    assert [file_budget(name, short).left_bytes for name in ("Q2_K", "UD-Q2_K_XL")] == [1_719_063_296, -604_753_152]
    assert [file_budget(name, short).requests_that_fit for name in FILE_BYTES] == [1, 0, 0, 0, 0, 0]
    assert [file_budget(name, long).requests_that_fit for name in FILE_BYTES] == [0] * 6
    without = [replace(file_budget(name, short), reserved_bytes=0) for name in FILE_BYTES]
    assert [one.requests_that_fit for one in without] == [6, 5, 0, 0, 0, 0]
    larger = [replace(file_budget(name, long), memory_bytes=LARGER_MACHINE_BYTES) for name in FILE_BYTES]
    assert [one.requests_that_fit for one in larger] == [15, 15, 12, 6, 0, 0]


def test_kv_in_fewer_bits_lets_more_in_until_its_context_is_too_long() -> None:
    assert [file_budget("Q2_K", 8192, one).requests_that_fit for one in (BF16, Q8_0, Q4_0)] == [1, 2, 3]
    assert [file_budget("Q2_K", 32768, one).requests_that_fit for one in (BF16, Q8_0, Q4_0)] == [0, 0, 0]


def test_a_request_more_would_not_fit() -> None:
    for left in range(1, 40):
        budget = FileBudget(100, 7, memory_bytes=100 + left + 5, reserved_bytes=5)
        assert budget.requests_that_fit * 7 <= budget.left_bytes < (budget.requests_that_fit + 1) * 7


def test_files_come_in_the_order_of_their_bits() -> None:
    bits = [bits_per_weight(size) for size in FILE_BYTES.values()]
    assert bits == sorted(bits)
    assert bits[0] > float(Q2_K.bits_per_value)
    assert 16 < bits[-1] < 16.01


@pytest.mark.parametrize("name", ["file_bytes", "kv_bytes_per_request", "memory_bytes", "reserved_bytes"])
@pytest.mark.parametrize("wrong", [-1, 2.5, "2", True, None, 10**400], ids=lambda value: repr(value)[:9])
def test_sizes_that_make_no_sense_are_refused(name: str, wrong: object) -> None:
    sizes: dict[str, object] = {
        "file_bytes": 5,
        "kv_bytes_per_request": 1,
        "memory_bytes": 9,
        "reserved_bytes": 1,
        name: wrong,
    }
    with pytest.raises(InputError) as refusal:
        FileBudget(**sizes)  # type: ignore[arg-type]
    assert refusal.value.parameter == name


def test_a_reserve_of_all_memory_is_refused() -> None:
    with pytest.raises(InputError, match=r"^reserved_bytes is 9; allowed: less than the memory, 9$"):
        FileBudget(5, 1, memory_bytes=9, reserved_bytes=9)


def test_an_unknown_file_is_refused() -> None:
    with pytest.raises(InputError, match=r"^variant is 'Q1'; allowed: one of 'Q2_K', 'UD-Q2_K_XL'"):
        file_budget("Q1", 8192)
