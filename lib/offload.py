"""Weights that wait in host memory and are copied to the card before their layer computes: room gained, bytes moved.

Every step copies every offloaded set anew. What a link takes for it at its nominal bandwidth is a lower bound; how
copies and compute lie beside each other is told by `lib.prefetch`.
"""

from dataclasses import dataclass
from enum import StrEnum

from lib.checks import InputError, keep_whole, one_of, seconds, share, whole, wholes
from lib.hardware import LINKS
from lib.memory import MOST_BYTES, MOST_TOKENS
from lib.model import Transformer, ffn_bytes_per_layer, weight_bytes_per_layer
from lib.prefix_value import MOST_BYTES_S, transfer_time
from lib.units import MIB

# The example of section 8.4.3: the FFN of every fourth layer, two links, four requests in a step.
EVERY, REQUESTS_TOGETHER = 4, 4
PCIE, NVLINK = LINKS["PCIe 5.0 x16"], LINKS["NVLink-C2C (GH200)"]
# And its example of a compressed transfer.
COMPRESSED_EXAMPLE_BYTES, COMPRESSED_TO = 96 * MIB, 1 / 4

MOST_LAYERS = 1024


class Part(StrEnum):
    """Which weights of a layer are offloaded together, as one set."""

    FFN = "FFN"
    LAYER = "whole layer"


def bytes_of_set(model: Transformer, part: Part = Part.FFN, bytes_per_element: int = 2) -> int:
    """Bytes of the weights that one layer gives away. Source: section 8.4.3.

    Raises InputError for a model whose layers differ in them.
    """
    of_layer = ffn_bytes_per_layer if one_of("part", part, Part) is Part.FFN else weight_bytes_per_layer
    return of_layer(model, bytes_per_element)


def every_nth(layers: int, every: int) -> tuple[int, ...]:
    """The last of each `every` layers, counted from 0: `every_nth(36, 4)` is 3, 7, ... 35. Source: section 8.4.3."""
    count = whole("layers", layers, at_least=1, at_most=MOST_LAYERS)
    return tuple(range(whole("every", every, at_least=1, at_most=count) - 1, count, every))


@dataclass(frozen=True)
class Offload:
    """A model of so many layers, those whose set of weights is offloaded, bytes of a set, and buffers that hold a set.

    Layers are counted from 0, in rising order. There are fewer buffers than sets: as many would hold them all, and
    nothing would be gained. Raises InputError for anything else. Source: section 8.4.3.
    """

    layers: int
    offloaded: tuple[int, ...]
    set_bytes: int
    buffers: int

    def __post_init__(self) -> None:
        keep_whole(self, MOST_LAYERS, layers=1)
        allowed = f"a tuple of at least two of the layers 0 to {self.layers - 1}, in rising order"
        wholes("offloaded", self.offloaded, 0, self.layers - 1, allowed=allowed)
        if list(self.offloaded) != sorted(set(self.offloaded)) or self.sets < 2:
            raise InputError("offloaded", self.offloaded, allowed)
        keep_whole(self, MOST_BYTES, set_bytes=1)
        keep_whole(self, self.sets - 1, buffers=1)

    @property
    def sets(self) -> int:
        """How many sets are offloaded."""
        return len(self.offloaded)

    @property
    def released_bytes(self) -> int:
        """Bytes that no longer stay on the card; each step copies as many."""
        return self.sets * self.set_bytes

    @property
    def buffer_bytes(self) -> int:
        """Bytes of the buffers."""
        return self.buffers * self.set_bytes

    @property
    def net_bytes(self) -> int:
        """Bytes gained: (n - buffers) S. Source: section 8.4.3, figure 8-24."""
        return self.released_bytes - self.buffer_bytes

    def extra_requests(self, request_bytes: int) -> int:
        """How many requests of so many bytes of KV fit in what is gained. Source: section 8.4.3."""
        return self.net_bytes // whole("request_bytes", request_bytes, at_least=1)


def least_step_time(offload: Offload, compute_s: float, link_bytes_s: int) -> float:
    """max(T_compute, bytes / link): seconds that a step takes at least, however well copies hide. Section 8.4.3."""
    return max(seconds("compute_s", compute_s), transfer_time(offload.released_bytes, link_bytes_s))


def decode_steps(outputs: int, tokens_per_step: int = 1) -> int:
    """Steps that a request decodes in: the first of its outputs comes from prefill. Source: section 8.4.3."""
    behind_first = whole("outputs", outputs, at_least=1, at_most=MOST_TOKENS) - 1
    return -(-behind_first // whole("tokens_per_step", tokens_per_step, at_least=1, at_most=MOST_TOKENS))


def lowest_link(offload: Offload, steps: int, limit_s: float) -> float:
    """The bandwidth, in bytes per second one way, at which the copies of so many steps take no longer than a limit.

    Source: section 8.4.3, exercise 8-5.
    """
    return whole("steps", steps, at_most=MOST_TOKENS) * offload.released_bytes / seconds("limit_s", limit_s, True)


def compressed_transfer_time(
    size_bytes: int, compressed_to: float, link_bytes_s: int, decompress_bytes_s: int
) -> float:
    """r S / B + S / R: seconds to transfer S bytes as r S, and to decompress them then, R bytes put out per second.

    Nothing overlaps. Raises InputError for a share r outside 0 ... 1 (0 itself too). Source: section 8.4.3.
    """
    plain_s = transfer_time(size_bytes, link_bytes_s)
    rate = whole("decompress_bytes_s", decompress_bytes_s, at_least=1, at_most=MOST_BYTES_S)
    return share("compressed_to", compressed_to, above_zero=True) * plain_s + size_bytes / rate


def break_even_decompression(link_bytes_s: int, compressed_to: float) -> float:
    """B / (1 - r): bytes that must be put out per second for compression to save time; a faster link asks for more.

    Raises InputError for a share r outside 0 ... 1, both ends too: without compression nothing is saved.
    Source: section 8.4.3.
    """
    link = whole("link_bytes_s", link_bytes_s, at_least=1, at_most=MOST_BYTES_S)
    ratio = share("compressed_to", compressed_to, above_zero=True)
    if ratio == 1:
        raise InputError("compressed_to", compressed_to, "a share above 0 and below 1")
    return link / (1 - ratio)
