"""What a group format costs: values share a scale, so each takes its code and a part of the scale.

A format is described by what one group stores. Source: sections 8.4.1 and 8.4.2, figure 8-23; the layouts of the
public GGML formats.
"""

from dataclasses import dataclass
from fractions import Fraction

from lib.checks import InputError, keep_whole, whole

MOST_GROUP_VALUES, MOST_CODE_BITS, MOST_METADATA_BYTES = 2**16, 64, 2**16


@dataclass(frozen=True)
class GroupFormat:
    """How a group of values is stored: a code of some bits for each, and scales and the like for all of them.

    A group takes whole bytes. Raises InputError for sizes that make no sense. Source: section 8.4.2.
    """

    name: str
    group_values: int
    code_bits: int
    metadata_bytes: int

    def __post_init__(self) -> None:
        keep_whole(self, MOST_GROUP_VALUES, group_values=1)
        keep_whole(self, MOST_CODE_BITS, code_bits=1)
        keep_whole(self, MOST_METADATA_BYTES, metadata_bytes=0)
        if self.group_values * self.code_bits % 8:
            allowed = f"a multiple of 8 values at {self.code_bits} bits each, or what else fills whole bytes"
            raise InputError("group_values", self.group_values, allowed)

    @property
    def code_bytes(self) -> int:
        """Bytes of the codes of one group."""
        return self.group_values * self.code_bits // 8

    @property
    def group_bytes(self) -> int:
        """Bytes of one group, its scales included."""
        return self.code_bytes + self.metadata_bytes

    @property
    def bits_per_value(self) -> Fraction:
        """What one value takes on average, its share of the scales included."""
        return Fraction(8 * self.group_bytes, self.group_values)

    @property
    def bytes_per_value(self) -> Fraction:
        """The same in bytes, as `lib.model` takes the size of an element."""
        return self.bits_per_value / 8

    def ratio_to(self, other: "GroupFormat") -> Fraction:
        """What the same values take in this format, against another: q8_0 to BF16 is 34/64."""
        return self.bits_per_value / other.bits_per_value

    @property
    def metadata_share(self) -> Fraction:
        """The part of the bytes that are no codes."""
        return Fraction(self.metadata_bytes, self.group_bytes)

    def bytes_of(self, values: int) -> int:
        """Bytes of so many values; raises InputError for a number that does not fill whole groups."""
        return self.groups_of(values) * self.group_bytes

    def groups_of(self, values: int) -> int:
        """Groups of so many values; raises InputError for a number that does not fill whole groups."""
        groups, rest = divmod(whole("values", values), self.group_values)
        if rest:
            raise InputError("values", values, f"a multiple of the {self.group_values} values of a group")
        return groups


F32 = GroupFormat("F32", 1, 32, 0)
BF16 = GroupFormat("BF16", 1, 16, 0)
FP8 = GroupFormat("FP8", 1, 8, 0)
Q8_0 = GroupFormat("q8_0", 32, 8, 2)
Q4_0 = GroupFormat("q4_0", 32, 4, 2)
# 16 sub-groups with a scale and a minimum of 4 bits each, and two FP16 numbers that scale those.
Q2_K = GroupFormat("Q2_K", 256, 2, 16 + 4)
Q3_K = GroupFormat("Q3_K", 256, 3, 12 + 2)
Q4_K = GroupFormat("Q4_K", 256, 4, 12 + 4)
Q6_K = GroupFormat("Q6_K", 256, 6, 16 + 2)
