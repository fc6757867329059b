"""Numbers in columns."""

import pytest

from figures.tables import Table
from lib.checks import InputError
from lib.design_problem import SHORT_CHAT


def test_numbers_lean_right_and_names_left() -> None:
    table = Table(("what", "size", "clock"), [("weights", "15.3 GiB", "none"), ("KV", "4 GiB", "fit")], left=("clock",))
    assert repr(table).splitlines() == [
        "what         size  clock",
        "weights  15.3 GiB  none",
        "KV          4 GiB  fit",
    ]


def test_a_first_column_of_numbers_leans_right() -> None:
    assert repr(Table(("n", "x"), [(1, 2), (16, 3)])).splitlines() == [" n  x", " 1  2", "16  3"]


def test_columns_of_a_record() -> None:
    table = Table.of([{"a": 1, "b": 2.5, "c": 3}], {"second": "b", "first": "a"})
    assert (table.head, table.rows) == (("second", "first"), [["2.5", "1"]])


def test_dataclasses_show_their_fields() -> None:
    table = Table.of([SHORT_CHAT])
    assert table.head == ("name", "input tokens", "output tokens", "shared prefix tokens", "deadline, s")
    assert table.rows == [["short chat", "2048", "256", "0", "7"]]


def test_decimals_by_column() -> None:
    table = Table.of([{"a": 1164.94}, {"a": 29.3}], digits={"a": 1})
    assert table.rows == [["1,164.9"], ["29.3"]]


def test_a_table_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match=r"^records is .*; allowed: at least one$"):
        Table.of([])


def test_html_is_escaped() -> None:
    assert "&lt;b&gt;" in Table(("x",), [("<b>",)])._repr_html_()


def test_a_number_stays_with_its_unit_and_a_phrase_may_wrap() -> None:
    html = Table(("", "now"), [("a step", "−80.9 ms"), ("whose", "r0, because of r2")])._repr_html_()
    wrapped = {cell.partition(">")[2].partition("<")[0]: "nowrap" not in cell for cell in html.split("<td")[1:]}
    assert wrapped == {"a step": True, "−80.9 ms": False, "whose": True, "r0, because of r2": True}
