"""Cards and links: what their makers publish, in bytes, bytes per second and FLOP per second."""

from dataclasses import dataclass
from decimal import Decimal

from lib import records
from lib.units import GB, shown


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

    @property
    def both_ways_bytes_s(self) -> int:
        """What is moved there and back at the same time, which a maker likes to print."""
        return 2 * self.bandwidth_bytes_s


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


def published(card: Card) -> list[tuple[str, str]]:
    """What is published of a card, as names and amounts to be shown; what is not published is left out."""
    amounts = {
        "memory": (card.memory_bytes, "GB", 0),
        "bandwidth": (card.bandwidth_bytes_s, "GB/s", 0),
        "peak compute": (card.bf16_dense_flop_s, "TFLOP/s", 1),
        "power limit": (card.power_limit_w, "W", 0),
    }
    return [
        (name, shown(amount, unit, digits)) for name, (amount, unit, digits) in amounts.items() if amount is not None
    ]
