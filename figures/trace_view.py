"""A plane of limits over a trace, to be read by hovering: the one plotly view of its notebook, outside the registry.

It is drawn by JupyterLab and by VS Code from the notebook itself, without a network; a page that only shows stored
pictures, such as a code forge, leaves its place empty, so the cell after it prints the same numbers.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import plotly.graph_objects as go

from figures import style
from lib.checks import InputError
from lib.slo import Served, Slo
from lib.units import shown

HEIGHT_PX = 400
# Up to the limit it grows blue, beyond it orange, from twice the limit on no further.
_COLOURS = [[0, style.PAPER], [0.5, "#c3d6ee"], [0.5, "#fbe6cf"], [1, style.FILL["foreign"]]]
# The view is read by hovering; a button that drags or zooms would only be in the way.
_BUTTONS = ["zoom", "pan", "select", "lasso", "zoomin", "zoomout", "autoscale", "resetscale", "toimage"]
_PANELS = ([0, 0.485], [0.515, 1])


def goodput_plane(grid: Sequence[Served], slo: Slo) -> go.Figure:
    """Percentiles of first-token wait and of longest interval over token budget and chunk, by `lib.slo.trace_grid`.

    The pairs of limits that keep the promise are framed; a pair is pale if it repeats another, since the budget cuts
    its chunk; hovering tells all numbers of a pair. Raises InputError for a grid with a pair missing. Source: sections
    8.2.4 and 8.6.2.
    """
    budgets = sorted({one.token_budget for one in grid})
    chunks = sorted({one.chunk for one in grid})
    cells = {(one.token_budget, one.chunk): one for one in grid}
    if not grid or len(cells) != len(grid) or len(grid) != len(budgets) * len(chunks):
        raise InputError("grid", grid, "each pair of its token budgets and chunks once, as trace_grid gives them")
    rows = [[cells[budget, chunk] for budget in budgets] for chunk in chunks]
    frame = _frame([[one.keeps(slo) for one in row] for row in rows])
    pale = [(x, y) for y, row in enumerate(rows) for x, one in enumerate(row) if _repeats(one, chunks)]
    panels = (
        ("first token", lambda one: one.ttft_s, slo.ttft_s, "s", 2),
        ("longest interval", lambda one: one.interval_s, slo.interval_s, "ms", 0),
    )
    figure = go.Figure(layout=_layout(budgets, chunks, slo) | {"shapes": list(_veils(pale))})
    for number, (name, wait, limit, unit, digits) in enumerate(panels, start=1):
        axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        figure.add_trace(_heat(rows, wait, limit, unit, digits, slo) | axes)
        line = {"color": style.INK, "width": 3}
        figure.add_trace({"type": "scatter", "mode": "lines", "line": line, "hoverinfo": "skip", **frame, **axes})
        title = f"{name} (limit {shown(limit, unit, digits)})"
        place = {"x": _PANELS[number - 1][0], "y": 1.02, "xref": "paper", "yref": "paper", "xanchor": "left"}
        figure.add_annotation(text=title, yanchor="bottom", showarrow=False, **place)
    return figure


def _repeats(one: Served, chunks: Sequence[int]) -> bool:
    """Whether a smaller chunk is no smaller than the budget already, so that both are served alike."""
    return any(one.token_budget <= chunk < one.chunk for chunk in chunks)


def _veils(cells: Sequence[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """What makes these cells pale in both panels, but for the rim, where the frame may run."""
    for axes, (x, y) in product(({"xref": "x", "yref": "y"}, {"xref": "x2", "yref": "y2"}), cells):
        corners = {"x0": x - 0.47, "x1": x + 0.47, "y0": y - 0.47, "y1": y + 0.47}
        yield {"type": "rect", "fillcolor": style.PAPER, "opacity": 0.7, "line": {"width": 0}, **corners, **axes}


def _heat(
    rows: Sequence[Sequence[Served]], wait: Callable[[Served], float], limit: float, unit: str, digits: int, slo: Slo
) -> dict[str, Any]:
    """One panel: each cell coloured by its share of the limit, with its wait in it and all numbers on hovering."""
    return {
        "type": "heatmap",
        "z": [[round(wait(one) / limit, 3) for one in row] for row in rows],
        "text": [[f"{shown(wait(one), unit, digits)}<br>{one.good_requests:,}" for one in row] for row in rows],
        "hovertext": [[_all_numbers(one, slo) for one in row] for row in rows],
        "texttemplate": "%{text}",
        "hoverinfo": "text",
        "colorscale": _COLOURS,
        "zmin": 0,
        "zmax": 2,
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }


def _all_numbers(one: Served, slo: Slo) -> str:
    within = "keeps the promise" if one.keeps(slo) else "breaks the promise"
    if one.chunk > one.token_budget:
        within += "<br>the budget cuts the chunk"
    return "<br>".join(
        (
            f"token budget {one.token_budget}, chunk {one.chunk}: {within}",
            f"first token of {slo.percent:g} % within {shown(one.ttft_s, 's', 4)}",
            f"longest interval of {slo.percent:g} % within {shown(one.interval_s, 'ms', 1)}",
            f"{one.good_requests} requests keep both limits, {one.goodput_per_s:.2f} a second",
        )
    )


def _frame(kept: Sequence[Sequence[bool]]) -> dict[str, list[float | None]]:
    """The border of the cells that keep the promise, as lines with breaks between them."""
    x: list[float | None] = []
    y: list[float | None] = []
    for (left, bottom), (right, top) in _edges(kept):
        x += [left, right, None]
        y += [bottom, top, None]
    return {"x": x, "y": y}


def _edges(kept: Sequence[Sequence[bool]]) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    inside = {(column, row) for row, cells in enumerate(kept) for column, keeps in enumerate(cells) if keeps}
    for column, row in sorted(inside):
        left, right, bottom, top = column - 0.5, column + 0.5, row - 0.5, row + 0.5
        sides = {
            (column - 1, row): ((left, bottom), (left, top)),
            (column + 1, row): ((right, bottom), (right, top)),
            (column, row - 1): ((left, bottom), (right, bottom)),
            (column, row + 1): ((left, top), (right, top)),
        }
        yield from (edge for neighbour, edge in sides.items() if neighbour not in inside)


def _all_share(slo: Slo) -> str:
    return (
        f"{slo.percent:g} % of requests: wait at most; below, how many keep both limits"
        "<br>pale: the budget cuts the chunk, so the pair repeats another"
    )


def _layout(budgets: Sequence[int], chunks: Sequence[int], slo: Slo) -> dict[str, Any]:
    across = {**_axis(budgets), "title": {"text": "token budget"}}
    up = _axis(chunks)
    return {
        "template": "none",  # plotly's own would be stored with each figure
        "autosize": True,
        "height": HEIGHT_PX,
        # Room above the panels' titles for what all share, and for the buttons that show while the mouse is there.
        "margin": {"l": 60, "r": 10, "t": 76, "b": 50},
        "title": {"text": _all_share(slo), "x": 0, "xref": "paper", "y": 0.96, "yanchor": "top", "font": {"size": 12}},
        "modebar": {"remove": _BUTTONS},
        "font": {"color": style.INK, "size": 12},
        "showlegend": False,
        "xaxis": {**across, "domain": _PANELS[0], "anchor": "y"},
        "xaxis2": {**across, "domain": _PANELS[1], "anchor": "y2"},
        "yaxis": {**up, "title": {"text": "chunk"}, "anchor": "x"},
        "yaxis2": {**up, "anchor": "x2", "showticklabels": False},
    }


def _axis(values: Sequence[int]) -> dict[str, Any]:
    """An axis with one place for each value: neighbours are equally far apart, whatever their ratio."""
    places = list(range(len(values)))
    return {
        "tickvals": places,
        "ticktext": [str(value) for value in values],
        "range": [-0.6, len(values) - 0.4],
        "zeroline": False,
        "showgrid": False,
    }
