"""The prefix cache once more, slow and obvious: each block's content is the whole text up to its end.

Who may be evicted is looked up anew each time, block by block.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any

Text = tuple[Any, ...]


@dataclass
class Kept:
    """What is known of one block's content."""

    since: int
    locks: int = 0
    used: int = 0
    hits: int = 0


class PlainPrefixCache:
    """The same verbs on texts: a text that is found or locked is a tag and the tokens behind it."""

    def __init__(self, blocks: int, size: int, order: str, worth: Callable[[int, int], float] | None) -> None:
        self.blocks, self.size, self.order, self.worth = blocks, size, order, worth
        self.kept: dict[Text, Kept] = {}
        self.taken, self.clock = 0, count(1)

    @property
    def protected(self) -> int:
        return sum(kept.locks > 0 for kept in self.kept.values())

    @property
    def evictable(self) -> int:
        return sum(kept.locks == 0 for kept in self.kept.values())

    @property
    def empty(self) -> int:
        return self.blocks - self.taken - len(self.kept)

    def texts(self, text: Text) -> list[Text]:
        """The contents of the full blocks of a text, the first first."""
        return [text[: 1 + end] for end in range(self.size, len(text), self.size)]

    def found(self, text: Text) -> Text:
        longest = text[:1]
        for content in self.texts(text[:-1]):
            if content not in self.kept:
                break
            longest = content
        return longest

    def lock(self, text: Text) -> None:
        for content in self.texts(text):
            self.kept[content].locks += 1
            self.kept[content].hits += 1

    def unlock(self, text: Text) -> None:
        now = next(self.clock)
        for content in self.texts(text):
            self.kept[content].locks -= 1
            self.kept[content].used = now

    def insert(self, locked: Text, text: Text, taken: int) -> Text:
        """Gives what is locked now."""
        now = next(self.clock)
        self.taken -= taken
        for content in self.texts(text)[len(self.texts(locked)) :]:
            kept = self.kept.setdefault(content, Kept(now))
            kept.locks += 1
        return text[: 1 + (len(text) - 1) // self.size * self.size]

    def evict(self, blocks: int) -> int:
        gone = 0
        while gone < blocks:
            leaves = [text for text, kept in self.kept.items() if not kept.locks and not self.goes_on(text)]
            first = min(leaves, key=self.priority)
            doomed = [first]
            if self.order == "head first":
                head = next(text for text in self.texts(first) if self.goes_with(self.kept[text], self.kept[first]))
                doomed = [text for text in self.kept if text[: len(head)] == head]
            for text in doomed:
                del self.kept[text]
            gone += len(doomed)
        return gone

    def goes_with(self, kept: Kept, first: Kept) -> bool:
        return not kept.locks and kept.used == first.used

    def goes_on(self, text: Text) -> bool:
        return any(len(other) > len(text) and other[: len(text)] == text for other in self.kept)

    def priority(self, text: Text) -> tuple[float, int]:
        kept = self.kept[text]
        if self.worth:
            return kept.hits * self.worth(len(text) - 1 - self.size, len(text) - 1), kept.used
        return 0, kept.since if self.order == "first in" else kept.used

    def contents(self) -> Iterable[Text]:
        return self.kept.keys()
