"""The blocks of a KV pool: who holds each, which submitted step still touches it, and what can be found in it.

A block is held, waiting, idle or empty, and the four always make up the pool. Only idle and empty blocks are free; to
take an idle one is to forget what stands in it, in the same call.
"""

from collections import OrderedDict
from enum import StrEnum

from lib.block_content import Content
from lib.checks import whole

MOST_BLOCKS = 2**20


class PagingError(ValueError):
    """A verb that the pool cannot follow: too few free blocks, or misuse. The pool is as it was before."""


class State(StrEnum):
    """What a block is: only idle and empty blocks are free."""

    HELD = "some table refers to it"
    WAITING = "no table refers to it, but a submitted step still touches it"
    IDLE = "its content can still be found"
    EMPTY = "nothing in it can be found"


class Blocks:
    """So many blocks, all empty; what `lib.paging` does with sequences comes down to what is done here.

    Raises InputError for values that make no sense, PagingError for too few free blocks. Source: section 8.3.2,
    figure 8-14.
    """

    def __init__(self, blocks: int) -> None:
        self.blocks = whole("blocks", blocks, at_least=1, at_most=MOST_BLOCKS)
        self._references = [0] * self.blocks
        self._touched = [0] * self.blocks  # steps in flight that touch a block for somebody who let it go
        self._contents: list[Content | None] = [None] * self.blocks
        self._empty = list(reversed(range(self.blocks)))
        self._idle: OrderedDict[int, None] = OrderedDict()  # the least recently used first
        self._waiting: dict[int, None] = {}

    @property
    def empty(self) -> int:
        return len(self._empty)

    @property
    def idle(self) -> int:
        return len(self._idle)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def free(self) -> int:
        """Blocks that can be taken: the empty ones and the idle ones."""
        return len(self._empty) + len(self._idle)

    @property
    def held(self) -> int:
        return self.blocks - self.free - self.waiting

    def references(self, block: int) -> int:
        """Entries of block tables that point at a block."""
        return self._references[whole("block", block, at_most=self.blocks - 1)]

    def state(self, block: int) -> State:
        """What a block is; the four states together always make up the pool."""
        if self.references(block):
            return State.HELD
        if self._touched[block]:
            return State.WAITING
        return State.IDLE if self._contents[block] else State.EMPTY

    def _ask_for(self, blocks: int) -> None:
        if blocks > self.free:
            raise PagingError(f"{blocks} free blocks are needed and there are {self.free}")

    def _hold(self, blocks: list[int]) -> None:
        for block in blocks:
            if not self._references[block]:
                del (self._waiting if self._touched[block] else self._idle)[block]
            self._references[block] += 1

    def _take(self, blocks: int) -> list[int]:
        """Blocks of one reference each: empty ones, then the least recently used idle ones, whose content is lost."""
        taken = [self._empty.pop() for _ in range(min(blocks, len(self._empty)))]
        taken += [self._forget_oldest() for _ in range(blocks - len(taken))]
        for block in taken:
            self._references[block] = 1
        return taken

    def _rest(self, blocks: list[int]) -> None:
        for block in blocks:
            if self._touched[block]:
                self._waiting[block] = None
            elif self._contents[block]:
                self._idle[block] = None
            else:
                self._empty.append(block)

    def _forget_oldest(self) -> int:
        block, _ = self._idle.popitem(last=False)
        content = self._contents[block]
        assert content is not None
        self._contents[block] = None
        content.leave(block)
        return block
