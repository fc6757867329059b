"""The prefix tree of a recorded agent's first rounds, as a live cache builds it, and what whole blocks find of it.

The tree is that of the text: its edges are tokens, as in a cache with blocks of one token. A cache with larger blocks
forks at their borders only, so a little of what is equal is computed again. Source: section 8.3.3, figure 8-17.
"""

from array import array
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from lib.agent_replay import BLOCK_TOKENS, prompts
from lib.block_content import Ids
from lib.checks import whole
from lib.paging import MOST_BLOCK_TOKENS
from lib.prefix_cache import Lock, PrefixCache, Run, path_to

ROUNDS = 4  # in figure 8-17
MOST_ROUNDS, MOST_TOKENS = len(prompts()), max(map(len, prompts()))
_TIMESTAMPS = 2**41  # ids of timestamps begin here, one for each round


class Node(NamedTuple):
    """The end of an edge: its parent by place (None for the root), tokens from the root, tokens on the edge, rounds.

    `rounds` are the numbers of those whose input goes through it, in order; the first of them stored it.
    """

    parent: int | None
    depth: int
    added: int
    rounds: tuple[int, ...]


class Found(NamedTuple):
    """A round: tokens of its input, those that earlier rounds begin with, too, and those found in whole blocks."""

    number: int
    tokens: int
    same: int
    found: int


@dataclass(frozen=True)
class PrefixTree:
    """The nodes, each behind its parent, children in the order of their rounds; and what each round finds."""

    nodes: tuple[Node, ...]
    rounds: tuple[Found, ...]

    @property
    def read(self) -> int:
        """Tokens of all inputs."""
        return sum(each.tokens for each in self.rounds)

    @property
    def stored(self) -> int:
        """Tokens of the tree: equal beginnings once."""
        return sum(node.added for node in self.nodes)

    @property
    def reusable(self) -> int:
        """Tokens that the rounds find in whole blocks."""
        return sum(each.found for each in self.rounds)

    @property
    def lost(self) -> int:
        """Tokens that are equal and fill no block."""
        return sum(each.same - each.found for each in self.rounds)

    @property
    def first_fork(self) -> int | None:
        """Tokens from the root to where the first inputs part; None if there is one input only."""
        return self.nodes[0].depth if len(self.rounds) > 1 else None


def prefix_tree(rounds: int = ROUNDS, block_tokens: int = BLOCK_TOKENS, timestamp: int | None = None) -> PrefixTree:
    """The tree of the first rounds, each looked up and inserted in its turn, and what they find in blocks of a size.

    With a `timestamp`, each round has a token of its own at that position, as far as its input goes. Raises InputError
    for rounds that are not on record and for a position beyond the end of the longest. Source: figure 8-17.
    """
    count = whole("rounds", rounds, at_least=1, at_most=MOST_ROUNDS)
    size = whole("block_tokens", block_tokens, at_least=1, at_most=MOST_BLOCK_TOKENS)
    place = MOST_TOKENS if timestamp is None else whole("timestamp", timestamp, at_most=MOST_TOKENS)
    return _built(count, size, place)


@lru_cache(256)
def _built(count: int, size: int, place: int) -> PrefixTree:
    inputs = [_stamped(ids, place, number) for number, ids in enumerate(prompts()[:count], start=1)]
    same, locks = _insert_in_turn(inputs, 1)
    found, _ = _insert_in_turn(inputs, size)
    lengths = map(len, inputs)
    return PrefixTree(
        _nodes([_path(lock.run) for lock in locks]),
        tuple(map(Found, range(1, count + 1), lengths, same, found)),
    )


def _stamped(ids: Ids, place: int, number: int) -> Ids:
    if place >= len(ids):
        return ids
    return ids[:place] + array("q", [_TIMESTAMPS + number]) + ids[place + 1 :]


def _insert_in_turn(inputs: list[Ids], block_tokens: int) -> tuple[list[int], list[Lock]]:
    """What each finds of those before, and its lock, in a cache that holds them all."""
    found, locks = list[int](), list[Lock]()
    cache = PrefixCache(-(-sum(map(len, inputs)) // block_tokens) + len(inputs), block_tokens)
    for ids in inputs:
        match, lock = cache.keep(ids)
        found.append(match.tokens)
        locks.append(lock)
    return found, locks


def _path(run: Run | None) -> list[Run]:
    """The runs from the root to this one. A lock's run stays the last of its input: a split puts others before it."""
    return [each for each in reversed(list(path_to(run))) if each.parent]


def _nodes(paths: list[list[Run]]) -> tuple[Node, ...]:
    nodes = list[Node]()

    def grow(parent: int | None, depth: int, through: list[int], at: int) -> None:
        """Add what begins at a depth, one node for each run, with all that goes on from it."""
        for run in dict.fromkeys(paths[each][at] for each in through if at < len(paths[each])):
            those = [each for each in through if at < len(paths[each]) and paths[each][at] is run]
            nodes.append(Node(parent, run.end, run.end - depth, tuple(each + 1 for each in those)))
            grow(len(nodes) - 1, run.end, those, at + 1)

    everybody = list(range(len(paths)))
    if len({path[0] for path in paths}) == 1:
        grow(None, 0, everybody, 0)
    else:
        nodes.append(Node(None, 0, 0, tuple(each + 1 for each in everybody)))
        grow(0, 0, everybody, 0)
    return tuple(nodes)
