"""Cards and links as their makers publish them."""

import pytest

from lib import hardware, records
from lib.hardware import CARDS, LINKS, Card, Link

ROWS = {row["name"]: row for row in records.record("hardware").rows}


def test_each_row_of_the_record_is_a_card_or_a_link() -> None:
    assert CARDS.keys() | LINKS.keys() == ROWS.keys()
    assert not CARDS.keys() & LINKS.keys()
    assert len(ROWS) == len(records.record("hardware").rows)


def test_the_card_of_the_design_problem() -> None:
    card = hardware.RTX_PRO_6000
    assert card.memory_bytes == 96 * 10**9
    assert card.bandwidth_bytes_s == 1_792 * 10**9
    assert card.bf16_dense_flop_s == 503_800_000_000_000
    assert card.power_limit_w == 600


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.name)
def test_a_card_is_given_in_whole_base_units(card: Card) -> None:
    row = ROWS[card.name]
    assert type(card.memory_bytes) is type(card.bandwidth_bytes_s) is int
    assert card.memory_bytes == row["memory_gb"] * 10**9 > 0
    assert card.bandwidth_bytes_s == row["bandwidth_gb_s"] * 10**9 > 0
    assert card.source == row["source"] != ""


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.name)
def test_what_is_not_published_is_none_and_never_zero(card: Card) -> None:
    row = ROWS[card.name]
    assert card.power_limit_w == row["power_w"] != 0
    if row["bf16_dense_tflop_s"] is None:
        assert card.bf16_dense_flop_s is None
    else:
        assert type(card.bf16_dense_flop_s) is int
        assert card.bf16_dense_flop_s == round(row["bf16_dense_tflop_s"] * 10) * 10**11 > 0


@pytest.mark.parametrize("link", LINKS.values(), ids=lambda link: link.name)
def test_a_link_is_given_in_whole_bytes_per_second(link: Link) -> None:
    assert type(link.bandwidth_bytes_s) is int
    assert link.bandwidth_bytes_s == ROWS[link.name]["bandwidth_gb_s"] * 10**9 > 0
    assert link.source
