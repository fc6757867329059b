"""The plane of limits: what is in its cells, what is framed, and what it leaves in a notebook."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest

from figures.trace_view import goodput_plane
from lib.checks import InputError
from lib.four_requests import four_requests
from lib.slo import Served, Slo, trace_grid

BUDGETS, CHUNKS = (512, 2048, 8192), (256, 1024, 4096, 8192)
SLO = Slo(ttft_s=0.83, interval_s=0.135)
GRID = trace_grid(four_requests(), BUDGETS, CHUNKS, 2, SLO)
STORED_AT_MOST = 200_000


def panels() -> list[dict]:
    return [trace for trace in json.loads(goodput_plane(GRID, SLO).to_json())["data"] if trace["type"] == "heatmap"]


def frames() -> list[dict]:
    return [trace for trace in json.loads(goodput_plane(GRID, SLO).to_json())["data"] if trace["type"] == "scatter"]


def test_some_pairs_keep_the_promise_and_some_break_it() -> None:
    assert 0 < sum(one.keeps(SLO) for one in GRID) < len(GRID)


def test_each_cell_has_its_pair() -> None:
    first, interval = panels()
    for row, chunk in enumerate(CHUNKS):
        for column, budget in enumerate(BUDGETS):
            one = next(one for one in GRID if (one.token_budget, one.chunk) == (budget, chunk))
            assert first["z"][row][column] == round(one.ttft_s / SLO.ttft_s, 3)
            assert interval["z"][row][column] == round(one.interval_s / SLO.interval_s, 3)
            assert interval["text"][row][column] == f"{one.interval_s * 1e3:,.0f} ms<br>{one.good_requests}"
            told = first["hovertext"][row][column]
            assert told == interval["hovertext"][row][column]
            for word in (f"budget {budget}, chunk {chunk}:", f"{one.interval_s * 1e3:,.1f} ms", str(one.good_requests)):
                assert word in told
            assert ("keeps" in told) == one.keeps(SLO)


def test_cells_that_repeat_another_are_pale_in_both_panels() -> None:
    served = {(one.token_budget, one.chunk): one for one in GRID}
    layout = json.loads(goodput_plane(GRID, SLO).to_json())["layout"]
    veiled = [(shape["xref"], round(shape["x0"]), round(shape["y0"])) for shape in layout["shapes"]]
    pairs = {(BUDGETS[column], CHUNKS[row]) for _, column, row in veiled}
    assert pairs == {(512, 4096), (512, 8192), (2048, 8192)}
    assert sorted(veiled) == sorted((axis, x, y) for axis in ("x", "x2") for _, x, y in set(veiled[: len(pairs)]))
    for budget, chunk in pairs:
        smaller = max(known for known in CHUNKS if known < chunk)
        assert replace(served[budget, chunk], chunk=smaller) == served[budget, smaller]


def test_the_width_is_that_of_its_place() -> None:
    layout = json.loads(goodput_plane(GRID, SLO).to_json())["layout"]
    assert layout["autosize"]
    assert "width" not in layout


def test_the_frame_goes_between_pairs_that_keep_the_promise_and_pairs_that_do_not() -> None:
    kept = {(BUDGETS.index(one.token_budget), CHUNKS.index(one.chunk)) for one in GRID if one.keeps(SLO)}
    expected = set()
    for column, row in kept:
        for far in ((column - 1, row), (column + 1, row), (column, row - 1), (column, row + 1)):
            if far not in kept:
                expected.add(((column + far[0]) / 2, (row + far[1]) / 2))
    for frame in frames():
        points = list(zip(frame["x"], frame["y"], strict=True))
        middles = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in pairwise(points) if None not in (*a, *b)]
        assert set(middles) == expected
        assert len(middles) == len(expected)


@pytest.mark.parametrize("slo", [Slo(1e-3, 1e-3), Slo(1e3, 1e3)], ids=["none", "all"])
def test_a_promise_kept_nowhere_or_everywhere_has_a_picture_too(slo: Slo) -> None:
    data = json.loads(goodput_plane(GRID, slo).to_json())["data"]
    lines = [trace["x"] for trace in data if trace["type"] == "scatter"]
    around = 2 * (len(BUDGETS) + len(CHUNKS)) * 3
    assert [len(line) for line in lines] == ([0, 0] if slo.ttft_s < 1 else [around, around])


def test_a_grid_with_a_hole_is_refused() -> None:
    for wrong in ((), GRID[1:], (*GRID, GRID[0])):
        with pytest.raises(InputError, match=r"^grid is "):
            goodput_plane(wrong, SLO)


def test_what_is_stored_is_small_plain_and_always_the_same() -> None:
    requests = four_requests(r0_outputs=9)
    big = trace_grid(requests, tuple(range(64, 64 * 9, 64)), tuple(range(64, 64 * 9, 64)), 2, SLO)
    stored = goodput_plane(big, SLO).to_json()
    assert stored == goodput_plane(big, SLO).to_json()
    assert len(stored) < STORED_AT_MOST
    assert "bdata" not in stored, "numbers as another processor's bits"
    assert "http" not in stored


def test_a_single_pair_is_a_plane_as_well() -> None:
    one = Served(4096, 2048, 0.5, 0.1, 3, 1.0)
    assert goodput_plane((one,), SLO)


def test_nobody_loads_plotly_who_does_not_ask_for_the_view() -> None:
    asked = "import sys, figures.registry, figures.explorer; print('plotly' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", asked], env=os.environ, capture_output=True, encoding="utf-8", check=True
    )
    assert found.stdout.strip() == "False"
