"""Figures of the tree that a prefix cache makes of inputs which begin alike."""

from collections.abc import Mapping
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import FINER, round_above, round_ticks, ticks_below, ticks_left
from figures.page import box, new_page, swatch
from figures.words import words
from lib.agent_replay import BLOCK_TOKENS
from lib.checks import one_of, whole
from lib.prefix_tree import MOST_ROUNDS, MOST_TOKENS, ROUNDS, Found, Node, PrefixTree, prefix_tree

BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PAGE_PT, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT, STRIP_PT = 298, 14, 78, 300, 206, 4
BAR_PT, PITCH_PT_AT_MOST = 12, 50
# Room that a digit needs, and a sum's sign, so that a number stands in its bar or not at all.
DIGIT_PT, SIGN_PT = 6, 8
_LOOK = {"common": "prefill", "own": "decode", "lost": "foreign"}
_ON_BAR = {"common": style.PAPER, "own": style.INK}
_OVER_LINES = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 0.5}
Corners = list[list[tuple[float, float]]]


def agent_prefix_tree(
    *,
    rounds: Annotated[int, Slider("rounds", 1, MOST_ROUNDS, 1)] = ROUNDS,
    block_tokens: Annotated[int, Choice("block, tokens", BLOCKS)] = BLOCK_TOKENS,
    timestamp: Annotated[int, Slider("timestamp at", 0, MOST_TOKENS, 4)] = MOST_TOKENS,
    language: str = "en",
) -> Figure:
    """The inputs of the first rounds over each other, each token of the tree once, and what whole blocks do not find.

    At `timestamp` each round has a token of its own, if its input is that long. Raises InputError for values that make
    no sense. Source: figure 8-17.
    """
    tree = tree_of(rounds, block_tokens, timestamp)
    text = words(language, "prefix-tree")
    end = round_above(1.02 * max(each.tokens for each in tree.rounds), FINER)
    pitch = min(PITCH_PT_AT_MOST, (HEIGHT_PT - STRIP_PT) / len(tree.rounds))
    lines = [HEIGHT_PT - STRIP_PT - (place + 0.5) * pitch for place in range(len(tree.rounds))]
    with style.in_book_style():
        page = new_page(PAGE_PT)
        axes = box(page, LEFT_PT, BOTTOM_PT, WIDTH_PT, HEIGHT_PT)
        axes.set(xlim=(0, end), ylim=(0, HEIGHT_PT))
        ticks_left(axes, {})
        ticks_below(axes, {tick: f"{tick:,.0f}" for tick in round_ticks(end)}, text["tokens"])
        _draw_forks(axes, tree, lines)
        _draw_edges(axes, tree, lines, end)
        for each, line in zip(tree.rounds, lines, strict=True):
            added = _narrow_end(tree, each, end)
            told = text["ends_narrow" if added else "ends"].format(
                round=each.number, tokens=f"{each.tokens:,}", added=added
            )
            axes.annotate(
                told, (each.tokens, line), (5, 0), textcoords="offset points", va="center_baseline", bbox=_OVER_LINES,
                zorder=5,
            )  # fmt: skip
        if timestamp < max(each.tokens for each in tree.rounds):
            _draw_timestamp(axes, timestamp, end, text["timestamp"])
        for place, role in enumerate(_LOOK):
            swatch(page, LEFT_PT + 200 * (place % 2), 28 - 18 * (place // 2), text[role], _LOOK[role])
    return page


def tree_of(rounds: int, block_tokens: int, timestamp: int) -> PrefixTree:
    """The tree that the figure's parameters describe."""
    place = whole("timestamp", timestamp, at_most=MOST_TOKENS)
    return prefix_tree(rounds, one_of("block_tokens", block_tokens, BLOCKS), place)


def _role(tree: PrefixTree, place: int) -> str:
    return "common" if len(tree.nodes[place].rounds) > 1 else "own"


def _told_of(node: Node) -> str:
    """The number on an edge: at the root tokens, further on tokens added."""
    return f"+{node.added:,}" if node.parent is not None else f"{node.added:,}"


def _fits(node: Node, end: float) -> bool:
    return node.added * WIDTH_PT / end >= DIGIT_PT * len(f"{node.added:,}") + SIGN_PT


def _narrow_end(tree: PrefixTree, each: Found, end: float) -> int:
    """Tokens of the edge on which a round's input ends, where the bar has no room for them; 0 where it has."""
    last = max((node for node in tree.nodes if each.number in node.rounds), key=lambda node: node.depth)
    return 0 if _fits(last, end) or last.rounds[0] != each.number else last.added


def _draw_edges(axes: Axes, tree: PrefixTree, lines: list[float], end: float) -> None:
    """Each edge as a bar in the line of the round that stored it, and what a later one computes again, in its own."""
    corners: dict[str, Corners] = {role: [] for role in _LOOK}
    for place, node in enumerate(tree.nodes):
        line, role = lines[node.rounds[0] - 1], _role(tree, place)
        if node.added:
            corners[role].append(_bar(node.depth - node.added, node.depth, line))
        if node.added and _fits(node, end):
            middle = node.depth - node.added / 2
            axes.text(middle, line, _told_of(node), color=_ON_BAR[role], ha="center", va="center_baseline")
    for each, line in zip(tree.rounds, lines, strict=True):
        if each.found < each.same:
            corners["lost"].append(_bar(each.found, each.same, line))
    for role, bars in corners.items():
        if bars:
            axes.add_collection(PolyCollection(bars, clip_on=False, **style.look(_LOOK[role])), autolim=False)


def _bar(left: float, right: float, line: float) -> list[tuple[float, float]]:
    low, top = line - BAR_PT / 2, line + BAR_PT / 2
    return [(left, low), (right, low), (right, top), (left, top)]


def _draw_forks(axes: Axes, tree: PrefixTree, lines: list[float]) -> None:
    """A line down from where an edge goes on to where each other begins behind it."""
    forks = [
        [(start, lines[tree.nodes[node.parent].rounds[0] - 1]), (start, lines[node.rounds[0] - 1])]
        for node in tree.nodes
        if node.parent is not None
        for start in [node.depth - node.added]
    ]
    axes.add_collection(LineCollection(forks, colors=style.INK, linewidths=style.LINE_PT, zorder=0), autolim=False)


def _draw_timestamp(axes: Axes, timestamp: int, end: float, name: str) -> None:
    axes.plot([timestamp] * 2, [0, HEIGHT_PT - STRIP_PT], color=style.LIMIT, linestyle=(0, (4, 2)), zorder=4)
    side = "right" if timestamp > end / 2 else "left"
    axes.text(timestamp, HEIGHT_PT - STRIP_PT + 2, name, ha=side, va="bottom", color=style.LIMIT)


def tree_readouts(**settings: Any) -> tuple[Readout, ...]:
    """What the rounds read, what is stored of it, and what they find, at the settings of `agent_prefix_tree`."""
    tree = tree_of(**settings)
    last = tree.rounds[-1]
    return (
        Readout("tokens read by all rounds", tree.read),
        Readout("tokens stored in the tree", tree.stored),
        Readout("reusable, whole blocks", tree.reusable),
        Readout("lost to rounding", tree.lost),
        Readout("first fork at token", "no fork" if tree.first_fork is None else tree.first_fork),
        Readout("last round repeats", last.same),
        Readout("and finds", last.found),
    )


def _ask_what_blocks_find() -> Question:
    tree, stamped = prefix_tree(2), prefix_tree(2, timestamp=0)
    _, second = tree.rounds
    rounded_up = second.found + BLOCK_TOKENS
    return Question(
        text=f"Round 2 of the agent has {second.tokens} tokens and begins with the same {second.same} as round 1. The "
        f"cache has blocks of {BLOCK_TOKENS} tokens. How many of these {second.same} are reusable?",
        choices=(f"{second.same}", f"{rounded_up}", f"{second.found}", f"{second.found - BLOCK_TOKENS}"),
        answer=f"{second.found}",
        reveals={"rounds": 2},
        because=f"Only whole blocks are found, {second.found // BLOCK_TOKENS} of them; the last {tree.lost} equal "
        f"tokens are in a block that ends otherwise. Where they part decides the rest: with a timestamp as the first "
        f"token round 2 finds {stamped.reusable}, although all its other text is the same.",
    )


def _why_tree_still(moved: str, settings: Mapping[str, Any]) -> str:
    tree = tree_of(**settings)
    if moved == "timestamp" and settings["timestamp"] >= max(each.tokens for each in tree.rounds):
        if len(tree.rounds) == 1:
            return "The only input is not that long, so no timestamp is in it."
        return f"None of the {len(tree.rounds)} inputs is that long, so no timestamp is in them."
    if moved == "timestamp":
        return "Only the longest input has a token there, behind all that it shares with others."
    if moved == "block_tokens" and len(tree.rounds) == 1:
        return "There is one input only: nothing is found in blocks of any size."
    if moved == "block_tokens" and not any(each.same for each in tree.rounds):
        return "No input begins like an earlier one: nothing is found in blocks of any size."
    if moved == "block_tokens":
        return "What is equal ends at the border of a block of either size."
    return ""


TREE_EXPLORATION = Exploration(
    question=_ask_what_blocks_find,
    in_view=("rounds", "block_tokens", "timestamp"),
    settings={
        "a timestamp as token 0": {"timestamp": 0},
        "all rounds": {"rounds": MOST_ROUNDS},
        "blocks of 256": {"block_tokens": BLOCKS[-1]},
    },
    readouts=tree_readouts,
    why_still=_why_tree_still,
)
