"""Cards and links: what their makers publish, in bytes, bytes per second and FLOP per second."""

from dataclasses import dataclass
from decimal import Decimal

from lib import records
from lib.units import GB


@dataclass(frozen=True)
class Card:
    """An accelerator by its published peaks; None where none is published. Source: section 8.0, record hardware."""

    name: str
    memory_bytes: int
    bandwidth_bytes_s: int
    bf16_dense_flop_s: int | None
    power_limit_w: int | None
    source: str


@dataclass(frozen=True)
class Link:
    """A link by its nominal bandwidth in one direction. Source: section 8.4.3, record hardware."""

    name: str
    bandwidth_bytes_s: int
    source: str


def _per_second(number: float | None, size: int) -> int | None:
    return None if number is None else int(Decimal(str(number)) * size)


CARDS = {
    row["name"]: Card(
        name=row["name"],
        memory_bytes=row["memory_gb"] * GB,
        bandwidth_bytes_s=row["bandwidth_gb_s"] * GB,
        bf16_dense_flop_s=_per_second(row["bf16_dense_tflop_s"], 10**12),
        power_limit_w=row["power_w"],
        source=row["source"],
    )
    for row in records.record("hardware").rows
    if row["kind"] != "link"
}
LINKS = {
    row["name"]: Link(row["name"], row["bandwidth_gb_s"] * GB, row["source"])
    for row in records.record("hardware").rows
    if row["kind"] == "link"
}
RTX_PRO_6000 = CARDS["RTX PRO 6000 Blackwell Workstation"]
