"""The figure of a model with windowed states behind a prefix: three ways of its encoder, one of its decoder."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Any

from matplotlib.collections import Collection, LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.transforms import Affine2D

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.page import new_page, swatch, write
from figures.words import words
from lib.window_state import DEEPSEEK_V41, Lookup, Recovery, RecoveryPath, WindowedModel, recover, window_reach

PAGE_PT = 272
PREFIX_TOKENS, NEW_TOKENS = 8192, 1024
# Of each way: what is found, from the best case to the worst. Without global KV windows do not matter.
WAYS = ((Lookup.HIT, Lookup.HIT), (Lookup.HIT, Lookup.MISS), (Lookup.MISS, Lookup.MISS))
# Left ends and widths of what is found, of the encoder's tokens (schematic: the last of the prefix are few) and of the
# decoder; and the heights of the rows.
FOUND_PT, FOUND_WIDTH_PT, STRIP_PT, STRIP_WIDTH_PT, DECODER_PT, DECODER_WIDTH_PT = 14, 100, 134, 158, 312, 94
EARLIER_PT, PREFIX_PT, FOUND_HEIGHT_PT = 66, 100, 34
ROWS_PT, BAR_PT, LINE_PT, TOLD_PT = (214, 154, 94), 16, 14, 170
DECODER_BOTTOM_PT, DECODER_TOP_PT, DECODE_PT, DECODE_HEIGHT_PT = 62, 234, 28, 18
HEAD_PT, TAKEN_PT, LINE_SPACING = 7, 2, 1.5
_LOOK: dict[str, dict[str, Any]] = {role: style.look(role) for role in ("queue", "foreign", "prefill")} | {
    "plain": {"facecolor": "none", "edgecolor": style.INK, "linewidth": style.THIN_PT},
    "taken": {"facecolor": "none", "edgecolor": style.LIMIT, "linewidth": TAKEN_PT, "zorder": 3},
}
# How the last of the prefix look, by what the encoder does with them.
_END_LOOK = {RecoveryPath.GO_ON: "queue", RecoveryPath.REPLAY: "foreign", RecoveryPath.RECOMPUTE: "prefill"}
Point = tuple[float, float]
Box = tuple[float, float, float, float]  # left, bottom, width and height
Boxes = defaultdict[str, list[Box]]  # by look


def recovery_paths(
    *,
    global_kv: Annotated[Lookup, Choice("global KV", tuple(Lookup))] = Lookup.HIT,
    window_state: Annotated[Lookup, Choice("encoder windows", tuple(Lookup))] = Lookup.MISS,
    prefix_tokens: Annotated[int, Slider("prefix, tokens", 0, 8192, 32)] = PREFIX_TOKENS,
    new_tokens: Annotated[int, Slider("new tokens", 32, 4096, 32)] = NEW_TOKENS,
    window: Annotated[int, Slider("window, tokens", 32, 512, 32)] = DEEPSEEK_V41.window,
    language: str = "en",
) -> Figure:
    """What the encoder runs by what it finds of a prefix, and what the decoder replays in any case.

    The way that is taken is framed. Raises InputError for values that make no sense. Source: figure 8-21.
    """
    model, taken = _recovered(global_kv, window_state, prefix_tokens, new_tokens, window)
    ways = [recover(prefix_tokens, new_tokens, *found, model) for found in WAYS]
    text = words(language, "recovery-paths")
    with style.in_book_style():
        page = new_page(PAGE_PT)
        for left, key in ((FOUND_PT, "found"), (STRIP_PT, "encoder"), (DECODER_PT, "decoder")):
            write(page, left, PAGE_PT - 16, text[key])
        write(page, STRIP_PT, PAGE_PT - 34, text["prefix"].format(tokens=f"{prefix_tokens:,}"))
        write(page, STRIP_PT + STRIP_WIDTH_PT, PAGE_PT - 34, text["new"].format(tokens=f"{new_tokens:,}"), ha="right")
        boxes: Boxes = defaultdict(list)
        for bottom, found, way in zip(ROWS_PT, WAYS, ways, strict=True):
            _place_found(page, bottom, text, found, boxes["taken" if way.path == taken.path else "plain"])
            _place_strip(bottom, way, prefix_tokens, model.window, boxes)
            _tell_way(page, bottom, way, new_tokens, text)
        _place_decoder(page, taken, model, text, boxes)
        _draw_arrows(page, {row: way.path == taken.path for row, way in zip(ROWS_PT, ways, strict=True)})
        for look, placed in boxes.items():
            _add(page, PolyCollection([_corners(*each) for each in placed], **_LOOK[look]))
        for left, bottom, role in ((14, 26, "queue"), (14, 8, "foreign"), (174, 26, "prefill")):
            swatch(page, left, bottom, text[role], role)
    return page


def _recovered(
    global_kv: Lookup, window_state: Lookup, prefix_tokens: int, new_tokens: int, window: int
) -> tuple[WindowedModel, Recovery]:
    model = replace(DEEPSEEK_V41, window=window)
    return model, recover(prefix_tokens, new_tokens, global_kv, window_state, model)


def _place_found(
    page: Figure, bottom: float, text: Mapping[str, str], found: tuple[Lookup, Lookup], boxes: list[Box]
) -> None:
    global_kv, window_state = found
    windows = window_state.name.lower() if global_kv == Lookup.HIT else "any"
    told = text[f"global_{global_kv.name.lower()}"], text[f"windows_{windows}"]
    middle = bottom + BAR_PT - FOUND_HEIGHT_PT / 2
    write(page, FOUND_PT + 5, middle, "\n".join(told), va="center", linespacing=LINE_SPACING)
    boxes.append((FOUND_PT, bottom + BAR_PT - FOUND_HEIGHT_PT, FOUND_WIDTH_PT, FOUND_HEIGHT_PT))


def _place_strip(bottom: float, way: Recovery, prefix: int, window: int, boxes: Boxes) -> None:
    for start, stop, look in _parts(way, prefix, window):
        boxes[look].append((STRIP_PT + start, bottom, stop - start, BAR_PT))


def _parts(way: Recovery, prefix: int, window: int) -> Iterator[tuple[float, float, str]]:
    """From left to right: the earlier prefix, as much of its end as a window sees, and the new tokens."""
    if prefix > window:
        yield 0, EARLIER_PT, "prefill" if way.path is RecoveryPath.RECOMPUTE else "queue"
    if prefix:
        yield (EARLIER_PT if prefix > window else 0), PREFIX_PT, _END_LOOK[way.path]
    yield (PREFIX_PT if prefix else 0), STRIP_WIDTH_PT, "prefill"


def _tell_way(page: Figure, bottom: float, way: Recovery, new: int, text: Mapping[str, str]) -> None:
    tokens = f"{way.rerun_tokens:,} + {new:,}" if way.rerun_tokens else f"{new:,}"
    told = text["runs"].format(tokens=tokens), text["state"].format(state=text[_word(way.encoder_is_exact)])
    write(page, STRIP_PT, bottom - 3, "\n".join(told), va="top", linespacing=LINE_SPACING)


def _word(is_exact: bool) -> str:
    return "exact" if is_exact else "approximate"


def _place_decoder(page: Figure, way: Recovery, model: WindowedModel, text: Mapping[str, str], boxes: Boxes) -> None:
    """One box beside all ways: the decoder does the same in each, and then the first decode step comes."""
    middle = DECODER_PT + DECODER_WIDTH_PT / 2
    boxes["plain"].append((DECODER_PT, DECODER_BOTTOM_PT, DECODER_WIDTH_PT, DECODER_TOP_PT - DECODER_BOTTOM_PT))
    boxes["plain"].append((DECODER_PT, DECODE_PT, DECODER_WIDTH_PT, DECODE_HEIGHT_PT))
    boxes["foreign"].append((DECODER_PT + 8, TOLD_PT + 18, DECODER_WIDTH_PT - 16, BAR_PT))
    told = text["replay"].format(
        tokens=f"{way.decoder_tokens:,}", layers=model.decoder_layers, state=text[_word(way.decoder_is_exact)]
    )
    for line, part in enumerate(told.splitlines()):
        write(page, middle, TOLD_PT - LINE_PT * line, part, ha="center")
    write(page, middle, DECODE_PT + DECODE_HEIGHT_PT / 2, text["decode"], ha="center", va="center")


def _draw_arrows(page: Figure, rows: Mapping[float, bool]) -> None:
    """From what is found to what the encoder runs, and on to the decoder, in each row; the way taken is thicker."""
    lines: list[list[Point]] = []
    taken: list[bool] = []
    for bottom, is_taken in rows.items():
        height = bottom + BAR_PT / 2
        lines += [[(FOUND_PT + FOUND_WIDTH_PT, height), (STRIP_PT, height)]]
        lines += [[(STRIP_PT + STRIP_WIDTH_PT, height), (DECODER_PT, height)]]
        taken += [is_taken, is_taken]
    heads = [[(x, y), (x - HEAD_PT, y + HEAD_PT / 2), (x - HEAD_PT, y - HEAD_PT / 2)] for _, (x, y) in lines]
    middle, top = DECODER_PT + DECODER_WIDTH_PT / 2, DECODE_PT + DECODE_HEIGHT_PT
    lines.append([(middle, DECODER_BOTTOM_PT), (middle, top)])
    heads.append([(middle, top), (middle - HEAD_PT / 2, top + HEAD_PT), (middle + HEAD_PT / 2, top + HEAD_PT)])
    taken.append(True)
    colours = [style.LIMIT if each else style.INK for each in taken]
    widths = [TAKEN_PT if each else style.THIN_PT for each in taken]
    _add(page, LineCollection(lines, colors=colours, linewidths=widths))
    _add(page, PolyCollection(heads, facecolors=colours, edgecolors="none", zorder=2))


def _add(page: Figure, drawn: Collection) -> None:
    """On the page itself, in points: axes would take as long to draw as all that is in them."""
    drawn.set_transform(Affine2D().scale(1 / 72) + page.dpi_scale_trans)
    page.add_artist(drawn)


def _corners(left: float, bottom: float, width: float, height: float) -> list[Point]:
    right, top = left + width, bottom + height
    return [(left, bottom), (right, bottom), (right, top), (left, top)]


def recovery_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What encoder and decoder run, and how good their windows are, at the settings of `recovery_paths`."""
    model, way = _recovered(**settings)
    return (
        Readout("the encoder", way.path.value),
        Readout("encoder runs, tokens", way.encoder_tokens),
        Readout("of these, of the prefix", way.rerun_tokens),
        Readout("encoder windows", _word(way.encoder_is_exact)),
        Readout("decoder replays, tokens", way.decoder_tokens),
        Readout("decoder windows", _word(way.decoder_is_exact)),
        Readout("windows reach back, tokens", window_reach(model.encoder_layers, model.window)),
        Readout("windows held in a turn", model.resident_bytes, "MiB", 2),
    )


def _ask_whether_the_decoder_replays() -> Question:
    all_hit, replayed, anew = (recover(PREFIX_TOKENS, NEW_TOKENS, *found) for found in WAYS)
    model = DEEPSEEK_V41
    answer = f"{all_hit.decoder_tokens:,}"
    return Question(
        text=f"A prefix of {PREFIX_TOKENS:,} tokens, {NEW_TOKENS:,} new ones, and everything hits: global KV and the "
        f"windows of the encoder. How many tokens still run through the {model.decoder_layers} layers of the decoder "
        "before the first decode step?",
        choices=("none", answer, f"{NEW_TOKENS:,}", f"{PREFIX_TOKENS + NEW_TOKENS:,}"),
        answer=answer,
        reveals={"window_state": Lookup.HIT},
        because=f"The windows of the decoder are kept for one turn only, so each prefill replays the last {answer} "
        f"outputs of the encoder, whatever is found. A hit shortens the way of the encoder: {all_hit.encoder_tokens:,} "
        f"tokens instead of {replayed.encoder_tokens:,} or {anew.encoder_tokens:,}. And {answer} tokens restore the "
        f"windows only nearly, as those of {model.decoder_layers} layers reach "
        f"{window_reach(model.decoder_layers, model.window):,} tokens back.",
    )


def _why_recovery_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "window_state" and settings["global_kv"] == Lookup.MISS:
        return "Without global KV the prefix is computed anew, and the windows with it: kept ones are of no use."
    return ""


RECOVERY_EXPLORATION = Exploration(
    question=_ask_whether_the_decoder_replays,
    in_view=("global_kv", "window_state", "prefix_tokens", "new_tokens"),
    settings={
        "everything hits": {"window_state": Lookup.HIT},
        "nothing hits": {"global_kv": Lookup.MISS},
        "a prefix shorter than the window": {"prefix_tokens": 64, "new_tokens": 32},
    },
    readouts=recovery_readouts,
    why_still=_why_recovery_still,
)
