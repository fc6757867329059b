"""What is left beside a file of quantised weights in the memory of a machine, counted from the shape of the model.

A file of 2-bit weights takes more than 2 bits a value: groups have scales, and some tensors keep wider types.
Source: section 8.4.1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

from lib.checks import InputError, keep_whole, one_of, whole
from lib.hardware import CARDS
from lib.kv_compression import element_bytes
from lib.memory import MOST_BYTES, MOST_TOKENS
from lib.model import Transformer, kv_bytes, parameters, preset, tensors
from lib.quantization import BF16, F32, Q2_K, Q3_K, Q4_K, Q6_K, GroupFormat
from lib.records import record
from lib.units import GB, GIB

MODEL = preset("Qwen3-235B-A22B")
M2_MAX = CARDS["Apple M2 Max (38-core GPU)"]
# The same file is asked about on a larger machine of the same kind. Source: the file records of the book's repository.
LARGER_MACHINE_BYTES = 192 * GB
# For the system and workspaces. Memory is sold in GB and this is meant in GiB. Source: section 8.4.1.
RESERVED_BYTES = 8 * GIB
# Published sizes of the files of this model; Q2_K and UD-Q2_K_XL are those of section 8.4.1.
FILE_BYTES = MappingProxyType({row["variant"]: int(row["file_bytes"]) for row in record("qwen235_files").rows})
# The two contexts that are asked about.
CONTEXTS = (8192, 32768)

# The type of each tensor in the Q2_K file. Its header gives only how many tensors and values have a type; which ones
# is inferred: with this choice tensors, values and bytes of each type come out exactly (record q2k_bytes).
Q2_K_TYPES = MappingProxyType({
    "embedding": Q2_K, "query": Q2_K, "key": Q2_K, "expert gate": Q2_K, "expert up": Q2_K,
    "expert down": Q3_K, "attention output": Q3_K,
    "value": Q4_K,
    "output head": Q6_K,
    "router": F32, "norm": F32, "head norm": F32, "last norm": F32,
})  # fmt: skip
# What else is in the file. Source: section 8.4.1, footnote 27.
HEADER_AND_PADDING_BYTES = 6_006_016


@dataclass(frozen=True)
class StoredType:
    """The tensors of one type in a file: how many there are, and their values together."""

    stored_as: GroupFormat
    tensors: int
    values: int

    def __post_init__(self) -> None:
        keep_whole(self, MOST_BYTES, tensors=0)
        self.stored_as.groups_of(self.values)

    @property
    def code_bytes(self) -> int:
        """Bytes of the codes; of a type without groups, of its numbers."""
        return self.stored_as.groups_of(self.values) * self.stored_as.code_bytes

    @property
    def metadata_bytes(self) -> int:
        """Bytes of scales and minima."""
        return self.stored_as.groups_of(self.values) * self.stored_as.metadata_bytes


def stored_types(model: Transformer = MODEL) -> tuple[StoredType, ...]:
    """The types of a file that stores each tensor of a model as the Q2_K file does. The types of tensors are inferred.

    A file has the experts of a layer in one tensor. Raises InputError for a model with tensors of other names, and as
    `lib.model.tensors` does. Source: section 8.4.1, footnote 27.
    """
    counts = dict.fromkeys(Q2_K_TYPES.values(), (0, 0))
    for tensor in tensors(model):
        stored_as = Q2_K_TYPES[one_of("tensor", tensor.name, Q2_K_TYPES)]
        in_file = tensor.layers if tensor.name.startswith("expert ") else tensor.layers * tensor.each
        count, values = counts[stored_as]
        counts[stored_as] = count + in_file, values + tensor.layers * tensor.each * tensor.elements
    return tuple(StoredType(stored_as, *each) for stored_as, each in counts.items())


@dataclass(frozen=True)
class FileParts:
    """The bytes of a file by what they are: codes and plain numbers, scales and minima, header and padding."""

    code_bytes: int
    metadata_bytes: int
    other_bytes: int

    @property
    def total_bytes(self) -> int:
        return self.code_bytes + self.metadata_bytes + self.other_bytes


def file_parts(types: Iterable[StoredType], other_bytes: int = HEADER_AND_PADDING_BYTES) -> FileParts:
    """The parts of a file with these types; what else is in it cannot be derived. Source: section 8.4.1."""
    stored = tuple(types)
    codes = sum(one.code_bytes for one in stored)
    return FileParts(
        codes, sum(one.metadata_bytes for one in stored), whole("other_bytes", other_bytes, at_most=MOST_BYTES)
    )


def bits_per_weight(file_bytes: int, model: Transformer = MODEL) -> float:
    """What one weight of a model takes on average in a file of so many bytes, all that is in it included."""
    return 8 * whole("file_bytes", file_bytes, at_most=MOST_BYTES) / parameters(model)


@dataclass(frozen=True)
class FileBudget:
    """Weights in memory, and KV of independent requests beside them; all in bytes.

    The file counts in full: so much is resident once all of it has been touched. Raises InputError for sizes that make
    no sense. Source: section 8.4.1.
    """

    file_bytes: int
    kv_bytes_per_request: int
    memory_bytes: int = M2_MAX.memory_bytes
    reserved_bytes: int = RESERVED_BYTES

    def __post_init__(self) -> None:
        keep_whole(self, MOST_BYTES, file_bytes=0, kv_bytes_per_request=1, memory_bytes=1, reserved_bytes=0)
        if self.reserved_bytes >= self.memory_bytes:
            raise InputError("reserved_bytes", self.reserved_bytes, f"less than the memory, {self.memory_bytes}")

    @property
    def usable_bytes(self) -> int:
        """For weights and KV together."""
        return self.memory_bytes - self.reserved_bytes

    @property
    def left_bytes(self) -> int:
        """Left beside the file; below 0, by how much it is too large."""
        return self.usable_bytes - self.file_bytes

    @property
    def requests_that_fit(self) -> int:
        """Whole requests beside the file."""
        return max(0, self.left_bytes) // self.kv_bytes_per_request


def file_budget(variant: str, context: int, kv_format: GroupFormat = BF16) -> FileBudget:
    """A published file on the M2 Max, and requests of so many tokens with KV in a format. Source: section 8.4.1.

    Raises InputError for an unknown variant and for a format whose groups the KV does not fill.
    """
    kv = kv_bytes(MODEL, whole("context", context, at_least=1, at_most=MOST_TOKENS), element_bytes(MODEL, kv_format))
    return FileBudget(FILE_BYTES[one_of("variant", variant, FILE_BYTES)], kv)
