"""The measured numbers and what is said about them."""

import csv
from pathlib import Path
from typing import Any

import pytest

from lib import records
from lib.checks import InputError
from lib.clocks import Clock

KINDS = {"measured", "fitted", "counted", "published"}


def cells(name: str) -> list[list[str]]:
    with (records.FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_each_file_is_a_record_and_each_record_a_file() -> None:
    assert records.names() == tuple(sorted(path.stem for path in records.FOLDER.glob("*.csv")))
    assert records.names()


@pytest.mark.parametrize("name", records.names())
def test_a_record_says_how_to_read_it(name: str) -> None:
    record = records.record(name)
    assert record.name == name
    assert record.kind in KINDS
    assert set(record.clock.split(" + ")) <= {*Clock, "none"}
    assert all(text.strip() == text != "" for text in (record.row_is, record.conditions, record.source))


@pytest.mark.parametrize("name", records.names())
def test_each_row_fills_each_column_once(name: str) -> None:
    head, *rows = cells(name)
    assert len(set(head)) == len(head)
    assert all(head)
    assert {len(row) for row in rows} == {len(head)}
    assert len({tuple(row) for row in rows}) == len(rows)


@pytest.mark.parametrize("name", records.names())
def test_a_cell_is_read_as_what_it_is(name: str) -> None:
    head, *rows = cells(name)
    for row, texts in zip(records.record(name).rows, rows, strict=True):
        assert list(row) == head
        for value, text in zip(row.values(), texts, strict=True):
            if text == "":
                assert value is None
            elif isinstance(value, str):
                assert value == text
            else:
                assert value == float(text)
                assert isinstance(value, int) == text.lstrip("-").isdigit()


@pytest.mark.parametrize("name", records.names())
def test_a_column_holds_numbers_or_text_and_never_both(name: str) -> None:
    rows = records.record(name).rows
    for column in rows[0]:
        kinds = {isinstance(row[column], str) for row in rows if row[column] is not None}
        assert len(kinds) <= 1, column


def test_one_row_is_found_by_its_values() -> None:
    row = records.record("batch_sweep").one(input_kind="2k_independent", batch_requests=1)
    assert (row["ttft_median_ms"], row["mean_output_interval_median_ms"]) == (96.27, 26.53)


def test_all_rows_with_a_value_are_found_in_their_order() -> None:
    record = records.record("batch_sweep")
    assert [row["batch_requests"] for row in record.where(input_kind="2k_independent")] == [1, 4, 16, 64]
    assert record.where() == list(record.rows)
    assert record.where(batch_requests=3) == []


@pytest.mark.parametrize(("batch", "found"), [(3, 0), (1, 2)])
def test_none_or_several_rows_are_not_one(batch: int, found: int) -> None:
    with pytest.raises(InputError, match=rf"^values is .*{batch}.*; {found} have these$"):
        records.record("batch_sweep").one(batch_requests=batch)


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(InputError, match=r"^column is 'colour'; allowed: one of 'input_kind'"):
        records.record("batch_sweep").where(colour="red")
    with pytest.raises(InputError, match=r"^column is 'colour'; allowed: one of 'input_kind'"):
        records.record("batch_sweep").one(colour="red")


def test_an_unknown_record_is_named_and_the_records_are_listed() -> None:
    with pytest.raises(InputError, match=r"^record is 'nope'; allowed: one of .*'batch_sweep', .*'step_time_fit'"):
        records.record("nope")


def test_a_record_with_an_empty_cell_and_commas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "about.toml").write_text(
        '[small]\nrow_is = "one"\nkind = "counted"\nclock = "none"\nconditions = "none"\nsource = "here"\n',
        encoding="utf-8",
    )
    (tmp_path / "small.csv").write_text('a,b,c,d\n1,,"x, 队列",1e3\n', encoding="utf-8", newline="")
    monkeypatch.setattr(records, "FOLDER", tmp_path)
    forget(monkeypatch)
    row: dict[str, Any] = records.record("small").one(a=1)
    assert row == {"a": 1, "b": None, "c": "x, 队列", "d": 1000.0}
    assert isinstance(row["d"], float)


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this test read its own folder and leave nothing of it behind."""
    for cached in ("record", "_about"):
        monkeypatch.setattr(records, cached, getattr(records, cached).__wrapped__)


def test_a_row_of_another_length_is_refused_by_line_and_column(tmp_path: Path) -> None:
    file = tmp_path / "short.csv"
    file.write_text("a,b\n1,2\n3\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"^short.csv, line 3, column 2 is '1 cells'; allowed: 2 cells"):
        list(records._rows(file))


def test_a_record_cannot_be_changed_by_a_reader() -> None:
    with pytest.raises(TypeError):
        records.record("hardware").rows[0]["name"] = "changed"  # type: ignore[index]
