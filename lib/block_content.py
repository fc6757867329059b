"""What stands in a block of KV: its tokens behind all tokens before them, under a tag; named in full, never by a hash.

Contents form a tree whose first step is a tag and every further one the tokens of one block.
"""

from array import array
from collections import abc
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from lib.checks import InputError, whole

MOST_TOKEN_ID = 2**63 - 1
FEW = 64  # numbers that Python goes through sooner than numpy is asked
if TYPE_CHECKING:
    Ids = array[int]  # Python before 3.12 knows no array of something
else:
    Ids = array
Tokens = abc.Sequence[int] | np.ndarray[Any, Any]


@dataclass(frozen=True)
class Tag:
    """What beside the tokens decides their KV; under another tag equal tokens are other content. Section 8.3.3."""

    model: str = ""
    position_rule: str = ""
    adapter: str = ""
    state_format: str = ""
    salt: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            if not isinstance(value := getattr(self, each.name), str):
                raise InputError(each.name, value, "a text")


NO_TAG = Tag()


class Content:
    """One block's worth of tokens behind those of its parent, and the blocks in which their KV stands, oldest first."""

    __slots__ = ("blocks", "children", "key", "parent")

    def __init__(self, parent: "Content | None" = None, key: Tag | bytes = b"") -> None:
        self.parent, self.key = parent, key
        self.children: dict[Tag | bytes, Content] = {}
        self.blocks: dict[int, None] = {}  # loses any of them equally soon, a list the newest late

    def child(self, key: Tag | bytes) -> "Content":
        """The content that goes on with this key, made if there is none yet."""
        return self.children.get(key) or self._new_child(key)

    def _new_child(self, key: Tag | bytes) -> "Content":
        child = self.children[key] = Content(self, key)
        return child

    def fill(self, blocks: abc.Iterable[int], keys: abc.Iterable[bytes], contents: "list[Content | None]") -> None:
        """Note that these blocks hold what goes on from here with these keys, where it is not noted yet."""
        content = self
        for block, key in zip(blocks, keys, strict=True):
            content = content.children.get(key) or content._new_child(key)
            if contents[block] is None:
                contents[block] = content
                content.blocks[block] = None
            assert contents[block] is content

    def find(self, tag: Tag, keys: abc.Iterable[bytes]) -> list[int]:
        """From the root: a block for each key in turn, up to the first that stands nowhere."""
        found = list[int]()
        content = self.children.get(tag)
        for key in keys:
            content = content and content.children.get(key)
            if not content or not content.blocks:
                break
            found.append(next(iter(content.blocks)))
        return found

    def leave(self, block: int) -> None:
        """It stands in this block no longer; a content that stands nowhere and that nothing goes on from is dropped."""
        del self.blocks[block]
        content = self
        while not content.blocks and not content.children and (parent := content.parent):
            del parent.children[content.key]
            content = parent


def token_ids(tokens: Tokens, at_most: int) -> Ids:
    """Token ids as 64-bit integers, from 1 to `at_most` of them; arrays of integers are the quick way in.

    Raises InputError for anything else: no tokens, too many, negative or broken numbers, truth values.
    """
    if type(tokens) is array and tokens.typecode == "q" and 0 < len(tokens) <= at_most and _least(tokens) >= 0:
        return tokens[:]
    is_row = tokens.ndim == 1 if isinstance(tokens, np.ndarray) else isinstance(tokens, array | abc.Sequence)
    if not is_row or not 0 < len(tokens) <= whole("at_most", at_most):
        raise InputError("tokens", tokens, f"from 1 to {at_most:,} token ids")
    if not isinstance(tokens, array | np.ndarray):
        return array("q", [whole("tokens", token, at_most=MOST_TOKEN_ID) for token in tokens])
    given = np.asarray(tokens)
    ids = given.astype(np.int64) if given.dtype.kind in "iu" else np.array([-1])
    if ids.min() < 0:  # where an unsigned number of 2^63 or more lands, too
        raise InputError("tokens", tokens, "whole numbers of at least 0")
    return array("q", ids.tobytes())


def _least(ids: Ids) -> int:
    return min(ids) if len(ids) <= FEW else int(np.frombuffer(ids, np.int64).min())
