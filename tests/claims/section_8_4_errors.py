"""The errors of attention that section 8.4.2 states of formats: the chapter prints none, the data are our own."""

from functools import partial

from lib import codecs
from lib.attention_error import Data, Format, attention_error
from lib.group_rounding import as_read_in
from lib.quantization import Q4_0, GroupFormat
from tests.claims.claim import Claim

NORMAL, LARGE = Data
Printed = tuple[str, str, str, str]
# In percent: from queries, keys and values of plain data, and from keys with large channels.
OF_FORMATS: dict[codecs.Codec, Printed] = {
    codecs.BF16: ("0.17", "0.18", "0.17", "0.37"),
    codecs.fp8(): ("2.74", "2.58", "2.68", "5.89"),
    codecs.Q8_0: ("0.54", "0.52", "0.52", "2.70"),
    codecs.Q4_0: ("8.76", "8.36", "8.50", "42.50"),
}
OF_GROUPS = {16: ("7.58", "29.54"), 64: ("9.56", "44.11"), 256: ("11.47", "65.91")}


def percent(data: Data, part: str, read: Format) -> float:
    return 100 * attention_error(data, **{part: read})


def in_groups_of(values: int) -> Format:
    return partial(as_read_in, GroupFormat("4-bit codes", values, Q4_0.code_bits, Q4_0.metadata_bytes))


CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(
            ("8.4.2",), f"error from {part} in {codec.name}, {data}", "computed", (printed,), "%", 0.005,
            partial(percent, data, part, codec.as_read),
        )
        for codec, row in OF_FORMATS.items()
        for (data, part), printed in zip(
            ((NORMAL, "query"), (NORMAL, "key"), (NORMAL, "value"), (LARGE, "key")), row, strict=True
        )
    ),
    *(
        Claim(
            ("8.4.2",), f"from keys, 4-bit codes in groups of {group}, {data}", "computed", (printed,), "%", 0.005,
            partial(percent, data, "key", in_groups_of(group)),
        )
        for group, row in OF_GROUPS.items()
        for data, printed in zip(Data, row, strict=True)
    ),
)  # fmt: skip
