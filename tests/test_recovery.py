"""The recovery explorer: the way that is framed is the one taken, and the counts in the picture are those of `lib`."""

from itertools import product
from typing import Any

import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from figures import style
from figures.explorer import explore
from figures.guard import guard, visible_texts
from figures.recovery import ROWS_PT
from figures.registry import entry
from figures.words import LANGUAGES
from lib.window_state import Lookup, RecoveryPath, recover

RECOVERY = entry("recovery-paths")
HIT, MISS = Lookup.HIT, Lookup.MISS
ROWS = dict(zip(RecoveryPath, ROWS_PT, strict=True))
CASES: tuple[dict[str, Any], ...] = (
    {},
    {"prefix_tokens": 0, "new_tokens": 4096, "window": 512},
    {"prefix_tokens": 64, "new_tokens": 32},
    {"prefix_tokens": 128, "window": 128},
    {"global_kv": MISS, "window": 32},
)


def told(figure: Figure) -> list[str]:
    return [text.get_text() for text in visible_texts(figure)]


@pytest.mark.parametrize(("global_kv", "window_state"), list(product(Lookup, repeat=2)))
def test_the_way_taken_is_framed_and_no_other(global_kv: Lookup, window_state: Lookup) -> None:
    figure = RECOVERY.figure(global_kv=global_kv, window_state=window_state)
    boxes = [each for each in figure.artists if isinstance(each, PolyCollection)]
    ((path,),) = (each.get_paths() for each in boxes if to_rgba(style.LIMIT) in map(tuple, each.get_edgecolor()))
    bottom, top = path.vertices[:, 1].min(), path.vertices[:, 1].max()
    taken = recover(8192, 1024, global_kv, window_state).path
    assert [way for way, row in ROWS.items() if bottom <= row <= top] == [taken]


@pytest.mark.parametrize("settings", CASES, ids=repr)
def test_each_row_tells_what_its_way_runs(settings: dict[str, Any]) -> None:
    values = {"prefix_tokens": 8192, "new_tokens": 1024} | settings
    figure, explorer = RECOVERY.figure(**settings), explore("recovery-paths", **settings)
    rows = [text for text in told(figure) if text.startswith("runs ")]
    counts = [[int(part.replace(",", "")) for part in row.split("\n")[0].split()[1::2]] for row in rows]
    window = settings.get("window", 128)
    again = (0, min(window, values["prefix_tokens"]), values["prefix_tokens"])
    assert [sum(count) for count in counts] == [tokens + values["new_tokens"] for tokens in again]
    replayed = min(window, values["prefix_tokens"] + values["new_tokens"])
    assert f"last {replayed}" in told(figure)
    readouts = {readout.label: str(readout) for readout in explorer.readouts}
    assert readouts["decoder replays, tokens"] == f"{replayed:,}"
    assert readouts["decoder windows"] in told(figure)


def test_the_readouts_at_the_book_values() -> None:
    assert {readout.label: str(readout) for readout in explore("recovery-paths").readouts} == {
        "the encoder": "replays",
        "encoder runs, tokens": "1,152",
        "of these, of the prefix": "128",
        "encoder windows": "approximate",
        "decoder replays, tokens": "128",
        "decoder windows": "approximate",
        "windows reach back, tokens": "2,540",
        "windows held in a turn": "2.58 MiB",
    }


def test_the_decoder_replays_after_a_full_hit_too() -> None:
    explorer = explore("recovery-paths")
    assert explorer.question.choices == ("none", "128", "1,024", "9,216")
    assert explorer.question.answer == "128"
    assert "1,024 tokens instead of 1,152 or 9,216" in explorer.predict("none")
    assert [str(readout) for readout in explorer.readouts[:2]] == ["goes on", "1,024"]
    assert str(explorer.readouts[4]) == "128"


def test_kept_windows_are_of_no_use_without_global_kv() -> None:
    explorer = explore("recovery-paths", global_kv=MISS)
    explorer.widgets["window_state"].value = HIT
    assert explorer.line.startswith("Without global KV the prefix is computed anew")


@pytest.mark.parametrize("settings", CASES, ids=repr)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_text_is_hidden_or_cut_off(settings: dict[str, Any], language: str) -> None:
    guard(RECOVERY.figure(language=language, **settings), RECOVERY.slug)
