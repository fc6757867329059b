"""A file of weights that is mapped into memory: pages are read when they are touched, and leave when room is short.

Of the pages that may leave, the one that was touched longest ago goes first. A step that touches all of a file a little
too large finds none of it: each page has left just before it is needed again. Source: section 8.4.1.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from lib.checks import InputError, keep_whole, whole
from lib.memory import MOST_BYTES
from lib.prefix_value import transfer_time
from lib.units import GB, KIB

PAGE_BYTES = 16 * KIB  # of Apple's processors
DISK_BYTES_S = 5 * GB  # assumed, to have something to count with
MOST_STEPS = 2**20


def pages_read(steps: Iterable[Iterable[int]], room_pages: int, pinned_pages: int = 0) -> tuple[int, ...]:
    """How many pages each step has to read, given the pages that it touches, in order; at the start none is resident.

    So many of the first pages stay once they were read; the others share the rest of the room, at least one page.
    """
    room = whole("room_pages", room_pages, at_least=1)
    pinned = whole("pinned_pages", pinned_pages, at_most=room - 1)
    kept = set[int]()
    recent = OrderedDict[int, None]()

    def is_read(page: int) -> bool:
        if whole("page", page) < pinned:
            missing = page not in kept
            kept.add(page)
            return missing
        missing = page not in recent
        recent[page] = None
        recent.move_to_end(page)
        if len(recent) > room - pinned:
            recent.popitem(last=False)
        return missing

    try:
        return tuple(sum(map(is_read, step)) for step in steps)
    except TypeError:
        raise InputError("steps", steps, "the pages of each step, whole numbers in their order") from None


@dataclass(frozen=True)
class MappedFile:
    """A file of which each step touches every page in the same order, and the room that its pages have; in bytes.

    So much of its beginning may be pinned, all of the room but one page: the rest streams through what is left. Of a
    model with experts this is a step of many tokens; one of few touches only the pages of the experts that they chose.
    Raises InputError for sizes that make no sense, and for a room without a page that is not pinned.
    """

    file_bytes: int
    room_bytes: int
    pinned_bytes: int = 0
    page_bytes: int = PAGE_BYTES

    def __post_init__(self) -> None:
        keep_whole(self, MOST_BYTES, file_bytes=1, page_bytes=1)
        keep_whole(self, MOST_BYTES, room_bytes=self.page_bytes)
        keep_whole(self, self.room_bytes - self.page_bytes, pinned_bytes=0)

    @property
    def pages(self) -> int:
        """Pages of the file, the last one perhaps in part."""
        return -(-self.file_bytes // self.page_bytes)

    @property
    def room_pages(self) -> int:
        """Whole pages that can be resident."""
        return self.room_bytes // self.page_bytes

    @property
    def pinned_pages(self) -> int:
        """Whole pages that stay once they were read."""
        return self.pinned_bytes // self.page_bytes

    def pages_read(self, step: int) -> int:
        """Pages that a step reads from the disk: all in step 0; later none where all fit, else all that are not pinned.

        In closed form what `pages_read` of this module counts page by page.
        """
        if whole("step", step, at_most=MOST_STEPS) == 0:
            return self.pages
        return 0 if self.pages <= self.room_pages else self.pages - self.pinned_pages

    def read_time(self, step: int, disk_bytes_s: int = DISK_BYTES_S) -> float:
        """Seconds in which a disk of this bandwidth reads the pages of a step, a lower bound for the step."""
        return transfer_time(self.pages_read(step) * self.page_bytes, disk_bytes_s)
