"""The paged pool once more, slow and obvious: every answer is worked out anew from who uses what.

A block's content is the whole text up to its end, as a tuple; nothing is counted, and what is free or where a block
rests follows from the users and the steps in flight.
"""

from collections.abc import Iterable
from itertools import count
from typing import Any


class PlainPool:
    """The same verbs on names: a sequence and a step are whole numbers, in order of their making."""

    def __init__(self, blocks: int, block_tokens: int, findable: str) -> None:
        self.size, self.findable, self.names, self.clock = block_tokens, findable, count(), count()
        self.users: dict[int, set[int]] = {block: set() for block in range(blocks)}
        self.content: dict[int, tuple[Any, ...]] = {}
        self.where: dict[tuple[Any, ...], list[int]] = {}
        self.since = {block: -1 - block for block in range(blocks)}
        self.text: dict[int, list[int]] = {}
        self.tag: dict[int, Any] = {}
        self.table: dict[int, list[int]] = {}
        self.computed: dict[int, int] = {}
        self.waits_for: dict[int, dict[int, int]] = {}
        self.steps: dict[int, dict[int, set[int]]] = {}

    def state(self, block: int) -> str:
        if self.users[block]:
            return "held"
        if any(block in touched for step in self.steps.values() for touched in step.values()):
            return "waiting"
        return "idle" if block in self.content else "empty"

    def states(self) -> dict[str, int]:
        found = [self.state(block) for block in self.users]
        return {state: found.count(state) for state in ("held", "waiting", "idle", "empty")}

    def free(self) -> list[int]:
        """The free blocks in the order in which they are taken: last emptied first, then least recently used."""
        empty = [block for block in self.users if self.state(block) == "empty"]
        idle = [block for block in self.users if self.state(block) == "idle"]
        return sorted(empty, key=lambda block: -self.since[block]) + sorted(idle, key=self.since.__getitem__)

    def found(self, text: Iterable[int], tag: Any) -> list[int]:
        text, blocks = tuple(text), []
        for end in range(self.size, len(text), self.size):
            if not (holders := self.where.get((tag, *text[:end]))):
                break
            blocks.append(holders[0])
        return blocks

    def admit(self, text: Iterable[int], tag: Any) -> int:
        name, text = next(self.names), list(text)
        self.text[name], self.tag[name], self.table[name] = text, tag, self.found(text, tag)
        self.computed[name], self.waits_for[name] = len(self.table[name]) * self.size, {}
        for block in self.table[name]:
            self.users[block].add(name)
        self.enlarge(name, 0)
        self.name_blocks(name)
        return name

    def enlarge(self, name: int, tokens: int) -> None:
        while len(self.table[name]) * self.size < len(self.text[name]) + tokens:
            self.table[name].append(self.take(name))

    def take(self, name: int) -> int:
        block = self.free()[0]
        self.forget(block)
        self.users[block] = {name}
        return block

    def forget(self, block: int) -> None:
        if block in self.content:
            self.where[self.content.pop(block)].remove(block)

    def must_copy(self, name: int) -> bool:
        tail = self.tail(name)
        if tail is None:
            return False
        ended = [touched for step in self.steps.values() for who, touched in step.items() if not self.holds(who, tail)]
        return self.users[tail] != {name} or tail in self.content or any(tail in touched for touched in ended)

    def holds(self, name: int, block: int) -> bool:
        return name in self.users[block]

    def tail(self, name: int) -> int | None:
        length = len(self.text[name])
        return self.table[name][length // self.size] if length % self.size else None

    def grow(self, name: int, tokens: int) -> tuple[int, int] | None:
        tail, copy = self.tail(name), None
        if self.must_copy(name):
            assert tail is not None
            own = self.take(name)
            self.table[name][self.table[name].index(tail)] = own
            self.let_go(name, [tail])
            copy = (tail, own)
        self.enlarge(name, tokens)
        return copy

    def extend(self, name: int, tokens: Iterable[int]) -> tuple[int, int] | None:
        tokens = list(tokens)
        copy = self.grow(name, len(tokens))
        self.text[name] += tokens
        self.name_blocks(name)
        return copy

    def name_blocks(self, name: int) -> None:
        """Give each full block whose time has come its content."""
        text = self.text[name]
        ready = {
            "from admission on": len(text),
            "once the step that computes it is done": min([self.computed[name], *self.waits_for[name].values()]),
            "never": 0,
        }[self.findable]
        for place in range(ready // self.size):
            block = self.table[name][place]
            if block not in self.content:
                self.content[block] = (self.tag[name], *text[: (place + 1) * self.size])
                self.where.setdefault(self.content[block], []).append(block)

    def let_go(self, name: int, blocks: list[int]) -> None:
        for block in reversed(blocks):
            self.users[block].remove(name)
            self.since[block] = next(self.clock)

    def fork(self, parent: int) -> int:
        name = next(self.names)
        self.text[name], self.tag[name] = self.text[parent][:], self.tag[parent]
        self.table[name] = self.table[parent][: -(-len(self.text[parent]) // self.size)]
        self.computed[name], self.waits_for[name] = self.computed[parent], dict(self.waits_for[parent])
        for block in self.table[name]:
            self.users[block].add(name)
        return name

    def truncate(self, name: int, length: int) -> None:
        kept = -(-length // self.size)
        self.let_go(name, self.table[name][kept:])
        del self.table[name][kept:], self.text[name][length:]
        self.computed[name] = min(self.computed[name], length)

    def release(self, name: int) -> None:
        self.let_go(name, self.table[name])
        for facts in (self.text, self.table, self.tag, self.computed, self.waits_for):
            del facts[name]  # type: ignore[attr-defined]

    def submit(self, names: Iterable[int]) -> int:
        step = next(self.names)
        self.steps[step] = {}
        for name in names:
            self.steps[step][name] = set(self.table[name])
            self.waits_for[name][step] = self.computed[name]
            self.computed[name] = len(self.text[name])
        return step

    def complete(self, step: int) -> None:
        members = self.steps.pop(step)
        for name, waits in self.waits_for.items():
            if waits.pop(step, None) is not None:
                self.name_blocks(name)
        let_go = [block for block in self.since if any(block in touched for touched in members.values())]
        for block in sorted(let_go, key=self.since.__getitem__):
            if self.state(block) in ("idle", "empty"):
                self.since[block] = next(self.clock)
