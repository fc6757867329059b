"""The numbers of sections 8.4.1 and 8.4.2, of the footnotes that belong to them, and of exercise 8-6."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from lib.design_problem import INSTANCE, LONG_CONTEXT, LONG_REQUESTS_AT_ONCE
from lib.exercise_8_6 import BOOK as EXERCISE
from lib.file_budget import (
    CONTEXTS,
    FILE_BYTES,
    HEADER_AND_PADDING_BYTES,
    LARGER_MACHINE_BYTES,
    M2_MAX,
    MODEL,
    RESERVED_BYTES,
    FileBudget,
    FileParts,
    StoredType,
    bits_per_weight,
    file_budget,
    file_parts,
    stored_types,
)
from lib.kv_compression import (
    CONTEXT,
    CONVERSIONS_S,
    H100_CONTEXTS,
    H100_FITS,
    POOL,
    READ_BYTES_S,
    RECORDED_POOL,
    RECORDED_REQUEST,
    Compression,
    LinearTime,
    TwoPartState,
    compression,
    compression_of_fits,
    deepseek_state,
    read_time,
    stored_in,
)
from lib.mapped_pages import DISK_BYTES_S, PAGE_BYTES, MappedFile
from lib.memory import KvPool
from lib.model import QWEN3_8B, kv_bytes, kv_elements, preset
from lib.quantization import BF16, FP8, Q2_K, Q3_K, Q4_0, Q4_K, Q6_K, Q8_0, GroupFormat
from lib.records import record
from lib.units import GB, GIB, KIB, MIB
from lib.window_state import recorded_shrink
from tests.claims.claim import Claim
from tests.claims.section_8_3 import same

SHORT, LONG = CONTEXTS
ALONE, SHARING = LONG_CONTEXT.shape_alone, LONG_CONTEXT.shape
TYPES = {one.stored_as: one for one in stored_types()}


def near(
    value: Callable[[], float], what: str, printed: str, unit: str, tolerance: float, *ids: str, kind: Any = "computed"
) -> Claim:
    """A claim that holds to the last printed digit."""
    return Claim(ids, what, kind, (printed,), unit, tolerance, value)


def parts() -> FileParts:
    return file_parts(stored_types())


def beside(variant: str = "Q2_K", context: int = SHORT, kv_format: GroupFormat = BF16) -> FileBudget:
    return file_budget(variant, context, kv_format)


def left_after_requests() -> int:
    return beside().left_bytes - beside().requests_that_fit * beside().kv_bytes_per_request


def on_larger_machine(variant: str) -> FileBudget:
    return replace(beside(variant, LONG), memory_bytes=LARGER_MACHINE_BYTES)


def of_type(stored_as: GroupFormat) -> StoredType:
    return TYPES[stored_as]


def stored(storage_type: str) -> dict[str, Any]:
    return dict(record("q2k_bytes").one(storage_type=storage_type))


def mapped(pinned_bytes: int = 0) -> MappedFile:
    """The file that is a little too large, in all the memory that is not kept back."""
    budget = beside("UD-Q2_K_XL")
    return MappedFile(budget.file_bytes, budget.usable_bytes, pinned_bytes)


def mapped_and_pinned() -> MappedFile:
    return mapped(mapped().room_bytes - mapped().page_bytes)


def run_of(context: int, slots: int, repeat: int = 1) -> dict[str, Any]:
    return dict(record("m2max").one(context_tokens=context, slots=slots, repeat=repeat))


def beside_kv_gib(context: int, slots: int, repeat: int) -> float:
    row = run_of(context, slots, repeat)
    return float(row["active_gib"] - row["kv_gib"])


def prompt(number: int) -> dict[str, Any]:
    return dict(record("m2max_short_prompts").one(prompt_number=number))


def of_context(kv_format: GroupFormat) -> float:
    """MiB of one long input."""
    return stored_in(POOL, kv_format).bytes_of(CONTEXT) / MIB


def saved(kv_format: GroupFormat) -> float:
    return of_context(BF16) - of_context(kv_format)


def saved_bytes() -> int:
    return POOL.bytes_of(CONTEXT) - stored_in(POOL, Q8_0).bytes_of(CONTEXT)


def finished(kv_format: GroupFormat) -> float:
    """MiB of one long request at its end."""
    return stored_in(POOL, kv_format).private_bytes(ALONE) / MIB


def of_sixteen(kv_format: GroupFormat) -> float:
    return stored_in(POOL, kv_format).held_bytes(ALONE, LONG_REQUESTS_AT_ONCE) / GIB


def pool_of_record(kv_format: GroupFormat) -> KvPool:
    return stored_in(RECORDED_POOL, kv_format)


def converting(seconds: float) -> Compression:
    return compression(Q8_0, LinearTime(seconds))


def break_even(one: Compression) -> float:
    assert one.break_even_tokens is not None
    return one.break_even_tokens


def read_row() -> dict[str, Any]:
    return dict(record("step_efficiency").one(input_kind="2k_independent", batch_requests=64))


def fit(kv_format: str) -> dict[str, Any]:
    return dict(record("kv_format_h100").one(kv_format=kv_format))


def interval(kv_format: str, tokens: int) -> float:
    return H100_FITS[kv_format].at(tokens) * 1e3


def state(version: str = ".1") -> TwoPartState:
    return deepseek_state(f"deepseek_v4{version}")


def counted(column: str, version: str = ".1") -> int:
    return int(record("deepseek_state").one(context_tokens=CONTEXT, model=f"deepseek_v4{version}")[column])


def total_ratio(tokens: int) -> float:
    return float(state("").bytes_at(tokens) / state().bytes_at(tokens))


def kernel(kv_format: str) -> dict[str, Any]:
    return dict(record("decode_attention_traffic").one(kv_format=kv_format))


def of_kernels(column: str) -> float:
    return float(kernel("fp8_kv_default")[column] / kernel("bf16_kv")[column])


def layer_bytes(kv_format: GroupFormat) -> int:
    return kv_format.bytes_of(kv_elements(QWEN3_8B, kernel("bf16_kv")["context_tokens"]) // QWEN3_8B.layer_count)


def first_preempted(kv_format: str) -> int:
    """The fewest requests submitted together of which one was preempted, as recorded."""
    return min(
        row["requests"] for row in record("kv_format_concurrency").where(kv_format=kv_format) if row["preemptions"]
    )


def right_answers(kv_format: str) -> int:
    return sum(row["correct"] for row in record("kv_format_concurrency").where(kv_format=kv_format))


def answers(kv_format: str) -> int:
    return sum(2 * row["requests"] for row in record("kv_format_concurrency").where(kv_format=kv_format))


GROUPS = (
    same(lambda: Q2_K.code_bits, "codes of Q2_K", "2", "bit", "8.4.1-01", kind="input"),
    same(lambda: Q2_K.group_values, "group of Q2_K", "256", "values", "8.4.1-02", kind="input"),
    same(lambda: Q2_K.code_bytes, "codes of its group", "64", "bytes", "8.4.1-03"),
    same(lambda: Q2_K.metadata_bytes, "scales and minima of its group", "20", "bytes", "8.4.1-04", kind="input"),
    same(lambda: Q2_K.group_bytes, "its group", "84", "bytes", "8.4.1-05"),
    same(lambda: float(Q2_K.bits_per_value), "a value of Q2_K", "2.625", "bit", "8.4.1-06"),
    near(lambda: 100 * float(Q2_K.metadata_share), "scales and minima in Q2_K", "24", "%", 0.5, "8.4.1-07"),
    same(lambda: float(Q3_K.bits_per_value), "a value of Q3_K", "3.4375", "bit", "8.4.1"),
    same(lambda: float(Q4_K.bits_per_value), "a value of Q4_K", "4.5", "bit", "8.4.1"),
    same(lambda: float(Q6_K.bits_per_value), "a value of Q6_K", "6.5625", "bit", "8.4.1"),
)
FILES = (
    near(lambda: parts().code_bytes / GIB, "codes and plain numbers of the file", "64.43", "GiB", 0.005, "8.4.1-08"),
    same(lambda: parts().code_bytes, "the same", "69,178,275,840", "bytes", "fn27-04"),
    near(lambda: parts().metadata_bytes / GIB, "scales and minima of the file", "15.37", "GiB", 0.005, "8.4.1-09"),
    same(lambda: parts().metadata_bytes, "the same", "16,506,720,256", "bytes", "fn27-05"),
    same(lambda: HEADER_AND_PADDING_BYTES, "its header and padding", "6,006,016", "bytes", "fn27-06", kind="input"),
    near(lambda: parts().total_bytes / GIB, "the file", "79.81", "GiB", 0.005, "8.4.1-10"),
    same(lambda: parts().total_bytes, "the same", "85,691,002,112", "bytes", "fn27-03"),
    near(
        lambda: FILE_BYTES["UD-Q2_K_XL"] / GIB, "the other file", "81.97", "GiB", 0.005, "8.4.1-11", kind="input"
    ),
    *(
        same(lambda name=name: FILE_BYTES[name], f"file {name}", printed, "bytes", "8.4.1", kind="input")
        for name, printed in {
            "Q2_K": "85,691,002,112", "UD-Q2_K_XL": "88,014,818,560", "Q3_K_S": "101,444,705,664",
            "Q4_K_M": "142,154,075,488", "Q8_0": "249,940,107,008", "BF16": "470,293,438,336",
        }.items()
    ),
    *(
        near(lambda name=name: bits_per_weight(FILE_BYTES[name]), f"a weight of {name}", printed, "bit", 0.005, "8.4.1")
        for name, printed in {
            "Q2_K": "2.92", "UD-Q2_K_XL": "3.00", "Q3_K_S": "3.45", "Q4_K_M": "4.84", "Q8_0": "8.51", "BF16": "16.00",
        }.items()
    ),
    near(
        lambda: 100 * parts().metadata_bytes / parts().total_bytes, "scales and minima in the file", "19.3", "%", 0.05,
        "8.4.1",
    ),
    *(
        same(
            lambda one=one, column=column: stored(one)[column], f"{one}: {column}", printed, "", "8.4.1",
            kind="measured",
        )
        for one, row in {
            "Q2_K": ("377", "155,371,175,936", "38,842,793,984", "12,138,373,120"),
            "Q3_K": ("188", "78,852,915,200", "29,569,843,200", "4,312,268,800"),
            "Q4_K": ("94", "197,132,288", "98,566,144", "12,320,768"),
            "Q6_K": ("1", "622,329,856", "466,747,392", "43,757,568"),
            "F32": ("471", "50,081,280", "200,325,120", "0"),
        }.items()
        for column, printed in zip(
            ("tensors", "values", "code_or_float_bytes", "scale_bytes"), row, strict=True
        )
    ),
    same(lambda: of_type(Q2_K).tensors, "tensors of Q2_K, derived", "377", "tensors", "8.4.1"),
    same(lambda: of_type(Q3_K).tensors, "tensors of Q3_K, derived", "188", "tensors", "8.4.1"),
    near(
        lambda: 100 * of_type(Q2_K).values / sum(one.values for one in stored_types()), "weights in Q2_K", "66", "%",
        0.5, "8.4.1",
    ),
    near(
        lambda: 100 * of_type(Q3_K).values / sum(one.values for one in stored_types()), "weights in Q3_K", "34", "%",
        0.5, "8.4.1",
    ),
)  # fmt: skip
BUDGET = (
    same(lambda: M2_MAX.memory_bytes / GB, "memory of the M2 Max", "96", "GB", "8.4.1-12", kind="input"),
    near(lambda: M2_MAX.memory_bytes / GIB, "memory of the M2 Max", "89.4", "GiB", 0.05, "8.4.1"),
    same(lambda: RESERVED_BYTES / GIB, "kept back of it", "8", "GiB", "8.4.1-13", kind="input"),
    near(lambda: beside().usable_bytes / GIB, "for weights and KV", "81.41", "GiB", 0.005, "8.4.1-14"),
    near(lambda: beside().left_bytes / GIB, "beside the file", "1.60", "GiB", 0.005, "8.4.1-15"),
    near(lambda: -beside("UD-Q2_K_XL").left_bytes / GIB, "the other is over by", "0.56", "GiB", 0.005, "8.4.1-16"),
    same(lambda: SHORT, "the first context", "8K", "token", "8.4.1-17", "fn27-01", kind="input"),
    near(lambda: beside().kv_bytes_per_request / GIB, "its KV", "1.47", "GiB", 0.005, "8.4.1-18"),
    same(lambda: beside().kv_bytes_per_request / GIB, "its KV", "1.46875", "GiB", "8.4.1"),
    same(lambda: kv_bytes(MODEL, 1), "KV of a token", "192,512", "bytes", "8.4.1"),
    same(lambda: beside().requests_that_fit, "requests beside the file", "1", "request", "8.4.1-19"),
    near(lambda: left_after_requests() / GIB, "left beside file and request", "0.13", "GiB", 0.005, "8.4.1-20"),
    same(lambda: LONG, "the longer context", "32K", "token", "8.4.1-21", "fn27-02", kind="input"),
    near(lambda: beside("Q2_K", LONG).kv_bytes_per_request / GIB, "its KV", "5.88", "GiB", 0.005, "8.4.1-22"),
    same(lambda: beside("Q2_K", LONG).kv_bytes_per_request / GIB, "its KV", "5.875", "GiB", "8.4.1"),
    same(lambda: beside("Q2_K", LONG).requests_that_fit, "requests of 32K beside the file", "0", "requests", "8.4.1"),
    near(
        lambda: (FILE_BYTES["UD-Q2_K_XL"] - FILE_BYTES["Q2_K"]) / GIB, "between the two files", "2.16", "GiB", 0.005,
        "8.4.1-23",
    ),
    same(lambda: beside("Q2_K", SHORT, Q8_0).requests_that_fit, "with KV in q8_0", "2", "requests", "8.4.1"),
    same(lambda: beside("Q2_K", SHORT, Q4_0).requests_that_fit, "with KV in q4_0", "3", "requests", "8.4.1"),
    near(
        lambda: beside("Q2_K", LONG, Q4_0).kv_bytes_per_request / GIB, "32K in q4_0", "1.65", "GiB", 0.005, "8.4.1"
    ),
    same(lambda: LARGER_MACHINE_BYTES / GB, "memory of a larger machine", "192", "GB", "8.4.1", kind="input"),
    *(
        same(
            lambda name=name: on_larger_machine(name).requests_that_fit, f"requests of 32K beside {name} on it",
            printed, "requests", "8.4.1",
        )
        for name, printed in {"Q2_K": "15", "Q3_K_S": "12", "Q4_K_M": "6", "Q8_0": "0"}.items()
    ),
    near(
        lambda: mapped().pages_read(1) * mapped().page_bytes / GIB, "the other file mapped: read again each step",
        "81.97", "GiB", 0.005, "8.4.1",
    ),
    near(
        lambda: mapped_and_pinned().pages_read(1) * mapped().page_bytes / GIB, "with all that has room pinned", "0.56",
        "GiB", 0.005, "8.4.1",
    ),
    same(lambda: PAGE_BYTES / KIB, "a page", "16", "KiB", "8.4.1", kind="input"),
    same(lambda: DISK_BYTES_S / GB, "bandwidth of a disk", "5", "GB/s", "8.4.1", kind="input"),
    near(lambda: mapped().read_time(1), "reading it again", "17.6", "s", 0.05, "8.4.1"),
    near(lambda: mapped_and_pinned().read_time(1), "with all that has room pinned", "0.12", "s", 0.005, "8.4.1"),
)  # fmt: skip
M2_MAX_RUNS = (
    same(lambda: run_of(LONG, 1)["context_tokens"], "longer runs", "32K", "token", "fn18-01", kind="input"),
    *(
        same(
            lambda key=key, column=column: run_of(*key)[column], f"M2 Max, context, slots, run {key}: {column}",
            printed, unit, "8.4.1", kind="measured",
        )
        for key, row in {
            (SHORT, 1, 1): ("1.125", "5.323", "20.856", "1", "1"),
            (SHORT, 1, 2): ("1.125", "5.323", "22.021", "1", "1"),
            (SHORT, 4, 1): ("4.5", "8.698", "85.397", "3", "4"),
            (SHORT, 4, 2): ("4.5", "8.698", "84.718", "3", "4"),
            (LONG, 1, 1): ("4.5", "8.698", "299.42", "1", "2"),
            (LONG, 1, 2): ("4.5", "8.698", "287.697", "1", "2"),
            (LONG, 2, 1): ("9.0", "13.198", "290.467", "1", "2"),
            (LONG, 2, 2): ("9.0", "13.198", "246.729", "1", "2"),
        }.items()
        for (column, unit), printed in zip(
            {"kv_gib": "GiB", "active_gib": "GiB", "prefill_s": "s", "correct": "tasks", "tasks": "tasks"}.items(),
            row, strict=True,
        )
    ),
    *(
        same(
            lambda key=key: kv_bytes(QWEN3_8B, key[0]) * key[1] / GIB, f"KV of context, slots {key}, counted", printed,
            "GiB", "8.4.1",
        )
        for key, printed in {(SHORT, 1): "1.125", (SHORT, 4): "4.5", (LONG, 1): "4.5", (LONG, 2): "9.0"}.items()
    ),
    *(
        near(lambda key=key: beside_kv_gib(*key), f"beside the KV, {key}", "4.198", "GiB", 0.0005, "8.4.1")
        for key in ((SHORT, 1, 1), (SHORT, 4, 1), (LONG, 1, 1), (LONG, 2, 1))
    ),
    *(
        same(
            lambda number=number: prompt(number)["ttft_s"], f"first token of short prompt {number}", printed, "s",
            "8.4.1", kind="measured",
        )
        for number, printed in {1: "1.414", 2: "0.24", 3: "0.182", 4: "0.176"}.items()
    ),
)  # fmt: skip
KV_BYTES = (
    same(lambda: of_context(BF16), "KV of a long input", "1152", "MiB", "8.4.2-01"),
    same(lambda: kv_bytes(preset("DeepSeek-V3"), CONTEXT) / MIB, "the same as latents", "549", "MiB", "8.4.2-02"),
    same(lambda: kv_elements(QWEN3_8B, 1), "values of a token", "73,728", "values", "8.4.2"),
    same(lambda: kv_elements(preset("DeepSeek-V3"), 1), "values of a token as latents", "35,136", "values", "8.4.2"),
    near(
        lambda: kv_bytes(preset("DeepSeek-V3"), CONTEXT, Q8_0.bytes_per_value) / MIB, "latents in q8_0", "291.66",
        "MiB", 0.005, "8.4.2",
    ),
    same(lambda: Q8_0.group_values, "group of q8_0", "32", "values", "8.4.2-03", "8.4.2-23", kind="input"),
    same(lambda: Q4_0.group_values, "group of q4_0", "32", "values", "8.4.2", kind="input"),
    same(lambda: BF16.bytes_of(Q8_0.group_values), "the same in BF16", "64", "bytes", "8.4.2-04"),
    same(lambda: Q8_0.code_bits, "codes of q8_0", "8", "bit", "8.4.2-05", kind="input"),
    same(lambda: Q8_0.code_bytes, "codes of its group", "32", "bytes", "8.4.2-06", "8.4.2-21"),
    same(lambda: Q8_0.metadata_bytes, "scale of its group", "2", "bytes", "8.4.2-07", "8.4.2-24", kind="input"),
    same(lambda: float(Q8_0.ratio_to(BF16)), "q8_0 against BF16", "34/64", "", "8.4.2-08"),
    same(lambda: Q4_0.code_bits, "codes of q4_0", "4", "bit", "8.4.2-09", kind="input"),
    same(lambda: Q4_0.code_bytes, "codes of its group", "16", "bytes", "8.4.2-10", "8.4.2-22"),
    same(lambda: Q4_0.metadata_bytes, "scale of its group", "2", "bytes", "8.4.2-11", kind="input"),
    same(lambda: float(Q4_0.ratio_to(BF16)), "q4_0 against BF16", "18/64", "", "8.4.2-12"),
    same(lambda: of_context(Q8_0), "the long input in q8_0", "612", "MiB", "8.4.2-13"),
    same(lambda: of_context(Q4_0), "the long input in q4_0", "324", "MiB", "8.4.2-14"),
    same(lambda: saved(Q8_0), "saved by q8_0", "540", "MiB", "8.4.2-15", "8.4.2-31"),
    same(lambda: saved(Q4_0), "saved by q4_0", "828", "MiB", "8.4.2-16"),
    same(lambda: float(Q8_0.bits_per_value), "a value of q8_0", "8.5", "bit", "8.4.2-17"),
    same(lambda: float(Q4_0.bits_per_value), "a value of q4_0", "4.5", "bit", "8.4.2-18"),
    same(lambda: Q8_0.group_bytes, "group of q8_0", "34", "bytes", "8.4.2-19"),
    same(lambda: Q4_0.group_bytes, "group of q4_0", "18", "bytes", "8.4.2-20"),
    same(lambda: finished(BF16), "a finished request", "1188", "MiB", "8.4.2-25"),
    same(lambda: finished(Q8_0), "the same in q8_0", "631.125", "MiB", "8.4.2-26"),
    same(lambda: finished(Q4_0), "the same in q4_0", "334.125", "MiB", "8.4.2"),
    same(lambda: LONG_REQUESTS_AT_ONCE, "long requests", "16", "requests", "8.4.2-27", kind="input"),
    near(lambda: of_sixteen(Q8_0), "all of them in q8_0", "9.86", "GiB", 0.005, "8.4.2-28"),
    near(lambda: of_sixteen(BF16), "all of them in BF16", "18.56", "GiB", 0.005, "8.4.2"),
    same(lambda: INSTANCE.kv_pool_bytes / GIB, "the pool", "12", "GiB", "8.4.2-29", kind="input"),
    *(
        same(
            lambda one=one, shape=shape: stored_in(POOL, one).requests_that_fit(shape), f"{what} that fit, {one.name}",
            printed, "requests", "8.4.2",
        )
        for what, shape, row in (
            ("alone", ALONE, ("10", "20", "19", "36")), ("sharing", SHARING, ("35", "73", "68", "132")),
        )
        for one, printed in zip((BF16, FP8, Q8_0, Q4_0), row, strict=True)
    ),
)  # fmt: skip
READING = (
    same(lambda: CONTEXT, "context that is read", "8K", "token", "8.4.2-30", "8.4.2-53", kind="input"),
    same(
        lambda: read_row()["nominal_read_bytes_per_step"], "read by a step of 64 requests", "34,464,163,840", "bytes",
        "8.4.2", kind="measured",
    ),
    same(lambda: read_row()["decode_step_median_ms"], "its time", "29.63", "ms", "8.4.2", kind="measured"),
    near(lambda: READ_BYTES_S / 1e12, "bandwidth of reading", "1.16", "TB/s", 0.005, "8.4.2-32"),
    near(lambda: READ_BYTES_S / 1e12, "the same", "1.163", "TB/s", 0.0005, "8.4.2"),
    same(lambda: INSTANCE.card.bandwidth_bytes_s / GB, "peak of the card", "1792", "GB/s", "8.4.2-33", kind="input"),
    near(
        lambda: 100 * READ_BYTES_S / INSTANCE.card.bandwidth_bytes_s, "reading against the peak", "65", "%", 0.5,
        "8.4.2-34",
    ),
    near(
        lambda: 100 * READ_BYTES_S / INSTANCE.card.bandwidth_bytes_s, "reading against the peak", "64.9", "%", 0.05,
        "8.4.2",
    ),
    near(
        lambda: read_time(saved_bytes(), READ_BYTES_S) * 1e3, "reading saved by q8_0", "0.487", "ms", 0.0005,
        "8.4.2-35",
    ),
    near(lambda: read_time(saved_bytes(), 1.16e12) * 1e3, "with 1.16 TB/s", "0.488", "ms", 0.0005, "8.4.2"),
    same(lambda: CONVERSIONS_S[0] * 1e3, "converting", "0.2", "ms", "8.4.2-36", kind="input"),
    near(lambda: converting(CONVERSIONS_S[0]).net_saving(CONTEXT) * 1e3, "saved", "0.287", "ms", 0.0005, "8.4.2-37"),
    same(lambda: CONVERSIONS_S[1] * 1e3, "slower converting", "0.8", "ms", "8.4.2-38", kind="input"),
    near(lambda: -converting(CONVERSIONS_S[1]).net_saving(CONTEXT) * 1e3, "lost", "0.313", "ms", 0.0005, "8.4.2-39"),
    near(lambda: break_even(converting(CONVERSIONS_S[0])), "0.2 ms pay from", "3366", "token", 0.5, "8.4.2"),
    near(lambda: break_even(converting(CONVERSIONS_S[1])), "0.8 ms pay from", "13,462", "token", 0.5, "8.4.2"),
)  # fmt: skip
FITS = (
    same(lambda: fit("bf16")["fixed_ms"], "H100, BF16: fixed", "6.44", "ms", "8.4.2-40", kind="input"),
    same(
        lambda: fit("bf16")["slope_ms_per_context_token"], "H100, BF16: per token", "4.37e-5", "ms/token", "8.4.2-41",
        kind="input",
    ),
    same(lambda: fit("fp8")["fixed_ms"], "H100, FP8: fixed", "6.58", "ms", "8.4.2-42", kind="input"),
    same(
        lambda: fit("fp8")["slope_ms_per_context_token"], "H100, FP8: per token", "2.37e-5", "ms/token", "8.4.2-43",
        kind="input",
    ),
    same(
        lambda: compression_of_fits().conversion.fixed_s * 1e3, "FP8 costs each step", "0.14", "ms", "8.4.2-44"
    ),
    same(
        lambda: (H100_FITS["bf16"].per_token_s - H100_FITS["fp8"].per_token_s) * 1e3, "FP8 saves each token", "2e-5",
        "ms/token", "8.4.2-45",
    ),
    near(lambda: break_even(compression_of_fits()), "FP8 pays from", "7000", "token", 0.5, "8.4.2-46"),
    same(lambda: H100_CONTEXTS[0], "shorter context", "2K", "token", "8.4.2-47", kind="input"),
    near(lambda: interval("bf16", H100_CONTEXTS[0]), "BF16 at 2K", "6.53", "ms", 0.005, "8.4.2-48"),
    near(lambda: interval("fp8", H100_CONTEXTS[0]), "FP8 at 2K", "6.63", "ms", 0.005, "8.4.2-49"),
    same(lambda: H100_CONTEXTS[1], "longer context", "16K", "token", "8.4.2-50", kind="input"),
    near(lambda: interval("bf16", H100_CONTEXTS[1]), "BF16 at 16K", "7.16", "ms", 0.005, "8.4.2-51"),
    near(lambda: interval("fp8", H100_CONTEXTS[1]), "FP8 at 16K", "6.97", "ms", 0.005, "8.4.2-52"),
    same(lambda: H100_FITS["bf16"].per_token_s * 1e9, "BF16 per token", "43.7", "ns/token", "8.4.2"),
    same(lambda: H100_FITS["fp8"].per_token_s * 1e9, "FP8 per token", "23.7", "ns/token", "8.4.2"),
    near(
        lambda: H100_FITS["bf16"].per_token_s / 2 * 1e9, "half of BF16 per token", "21.85", "ns/token", 0.005, "8.4.2"
    ),
    near(
        lambda: compression_of_fits().conversion.per_token_s * 1e9, "converting per token", "1.85", "ns/token", 0.005,
        "8.4.2",
    ),
    same(lambda: compression_of_fits().saved_bytes_per_token, "FP8 saves per token", "65,536", "bytes", "8.4.2"),
    near(
        lambda: compression_of_fits().bandwidth_bytes_s / 1e12, "bandwidth by the slope of BF16", "3.00", "TB/s", 0.005,
        "8.4.2",
    ),
)  # fmt: skip
TWO_PARTS = (
    near(
        lambda: state().global_bytes(CONTEXT) / MIB, "V4.1: whole text", "6.953", "MiB", 0.0005, "8.4.2-54",
        kind="input",
    ),
    near(lambda: state().window_bytes / MIB, "V4.1: windows", "2.578", "MiB", 0.0005, "8.4.2-55", kind="input"),
    near(lambda: state().bytes_at(CONTEXT) / MIB, "V4.1: both", "9.531", "MiB", 0.0005, "8.4.2-56"),
    near(lambda: state("").bytes_at(CONTEXT) / MIB, "V4: both", "30.521", "MiB", 0.0005, "8.4.2-57", kind="input"),
    near(lambda: total_ratio(CONTEXT), "V4 against V4.1", "3.20", "times", 0.005, "8.4.2-58"),
    near(lambda: recorded_shrink(CONTEXT), "the whole text alone", "3.95", "times", 0.005, "8.4.2-59", kind="input"),
    *(
        same(
            lambda column=column, version=version: counted(column, version), f"V4{version}: {column}", printed,
            "bytes", "8.4.2", kind="measured",
        )
        for version, row in {"": ("28,788,736", "3,214,336"), ".1": ("7,290,880", "2,703,360")}.items()
        for column, printed in zip(("global_history_bytes", "local_window_bytes"), row, strict=True)
    ),
    same(lambda: float(state().global_bytes_per_token), "V4.1: of a token", "890", "bytes", "8.4.2"),
    same(lambda: float(state("").global_bytes_per_token), "V4: of a token, on average", "3514.25", "bytes", "8.4.2"),
    near(lambda: total_ratio(131072), "V4 against V4.1 at 128K", "3.89", "times", 0.005, "8.4.2"),
    near(lambda: total_ratio(2**20), "V4 against V4.1 at 1024K", "3.94", "times", 0.005, "8.4.2"),
)  # fmt: skip
RUNS = (
    same(lambda: RECORDED_POOL.pool_bytes / GIB, "pool of the runs", "8", "GiB", "8.4.2", kind="input"),
    same(lambda: RECORDED_REQUEST.input_tokens, "input of a request", "7239", "token", "8.4.2", kind="input"),
    same(lambda: RECORDED_REQUEST.output_tokens, "its answer", "46", "token", "8.4.2", kind="input"),
    same(lambda: pool_of_record(BF16).requests_that_fit(RECORDED_REQUEST), "fit in BF16", "7", "requests", "8.4.2"),
    same(lambda: pool_of_record(FP8).requests_that_fit(RECORDED_REQUEST), "fit in FP8", "15", "requests", "8.4.2"),
    same(lambda: first_preempted("bf16_kv"), "preempted from, BF16", "8", "requests", "8.4.2", kind="measured"),
    same(lambda: first_preempted("fp8_kv_default"), "preempted from, FP8", "16", "requests", "8.4.2", kind="measured"),
    same(lambda: answers("bf16_kv"), "answers in each format", "132", "answers", "8.4.2", kind="measured"),
    same(lambda: answers("fp8_kv_default"), "answers in each format", "132", "answers", "8.4.2", kind="measured"),
    same(lambda: right_answers("bf16_kv"), "right answers, BF16", "98", "answers", "8.4.2", kind="measured"),
    same(lambda: right_answers("fp8_kv_default"), "right answers, FP8", "90", "answers", "8.4.2", kind="measured"),
    *(
        same(
            lambda name=name, column=column: kernel(name)[column], f"{name}: {column}", printed, "", "8.4.2",
            kind="measured",
        )
        for name, row in {
            "bf16_kv": ("7239", "29,667,840", "31,904"), "fp8_kv_default": ("7239", "14,845,184", "21,152"),
        }.items()
        for column, printed in zip(("context_tokens", "dram_read_bytes", "kernel_ns"), row, strict=True)
    ),
    same(lambda: layer_bytes(BF16), "KV of a layer, BF16", "29,650,944", "bytes", "8.4.2"),
    same(lambda: layer_bytes(FP8), "KV of a layer, FP8", "14,825,472", "bytes", "8.4.2"),
    near(lambda: 100 * of_kernels("dram_read_bytes"), "read under FP8", "50", "%", 0.5, "8.4.2", kind="measured"),
    near(lambda: 100 * of_kernels("kernel_ns"), "time under FP8", "66", "%", 0.5, "8.4.2", kind="measured"),
)  # fmt: skip
COMPRESSED = (
    same(lambda: EXERCISE.group_values, "group of the exercise", "32", "values", "8.4.4-31", kind="input"),
    same(lambda: EXERCISE.scale_bytes, "its scale", "2", "bytes", "8.4.4-32", kind="input"),
    same(
        lambda: len({EXERCISE.bf16_kv, EXERCISE.fp8_default, EXERCISE.fp8_kv_bf16_q}), "configurations compared", "3",
        "configurations", "8.4.4-33", kind="input",
    ),
)  # fmt: skip
CLAIMS: tuple[Claim, ...] = (
    *GROUPS, *FILES, *BUDGET, *M2_MAX_RUNS, *KV_BYTES, *READING, *FITS, *TWO_PARTS, *RUNS, *COMPRESSED,
)  # fmt: skip
