"""Pages of a mapped file, read when touched."""

import math
from random import Random

import pytest

from lib.checks import InputError
from lib.mapped_pages import MOST_STEPS, MappedFile, pages_read
from lib.units import GIB


def plain_pages_read(steps: list[list[int]], room: int, pinned: int) -> tuple[int, ...]:
    """The same from the last time of each touch, without an order that is kept up to date."""
    now, touched, counts = 0, dict[int, int](), []
    for step in steps:
        read = 0
        for page in step:
            now += 1
            read += page not in touched
            touched[page] = now
            others = [each for each in touched if each >= pinned]
            if len(others) > room - pinned:
                del touched[min(others, key=lambda each: touched[each])]
        counts.append(read)
    return tuple(counts)


def test_the_pages_that_leave_are_those_touched_longest_ago() -> None:
    random = Random(841)
    for _ in range(200):
        room = random.randint(1, 8)
        pinned = random.randint(0, room - 1)
        steps = [[random.randrange(12) for _ in range(random.randint(0, 15))] for _ in range(6)]
        assert pages_read(steps, room, pinned) == plain_pages_read(steps, room, pinned)


def test_the_closed_form_is_the_count() -> None:
    for pages in range(1, 9):
        for room in range(1, 10):
            for pinned in range(room):
                file = MappedFile(10 * pages, 10 * room, 10 * pinned, page_bytes=10)
                counted = pages_read([range(pages)] * 4, room, pinned)
                assert counted == tuple(file.pages_read(step) for step in range(4))


def test_one_page_too_many_reads_them_all_again() -> None:
    assert pages_read([range(8)] * 3, 8) == (8, 0, 0)
    assert pages_read([range(9)] * 3, 8) == (9, 9, 9)
    assert pages_read([range(9)] * 3, 8, pinned_pages=7) == (9, 2, 2)


def test_a_last_page_in_part_takes_a_page_and_room_in_part_holds_none() -> None:
    file = MappedFile(21, 29, page_bytes=10)
    assert (file.pages, file.room_pages, file.pages_read(1)) == (3, 2, 3)


def test_reading_takes_its_pages_over_the_bandwidth() -> None:
    file = MappedFile(4 * GIB, 3 * GIB, 2 * GIB)
    assert file.read_time(0, GIB) == 4
    assert file.read_time(1, GIB) == 2
    assert MappedFile(4 * GIB, 4 * GIB).read_time(1, GIB) == 0


@pytest.mark.parametrize("wrong", [-1, 2.5, math.nan, "2", True, None, 10**400], ids=lambda value: repr(value)[:9])
@pytest.mark.parametrize("name", ["file_bytes", "room_bytes", "pinned_bytes", "page_bytes"])
def test_sizes_that_make_no_sense_are_refused(name: str, wrong: object) -> None:
    sizes: dict[str, object] = {"file_bytes": 8, "room_bytes": 4, "pinned_bytes": 0, "page_bytes": 1, name: wrong}
    with pytest.raises(InputError) as refusal:
        MappedFile(**sizes)  # type: ignore[arg-type]
    assert refusal.value.parameter == name


def test_a_room_without_a_page_that_can_leave_is_refused() -> None:
    with pytest.raises(InputError, match=r"^pinned_bytes is 40; allowed: a whole number from 0 to 30$"):
        MappedFile(100, 40, 40, page_bytes=10)
    with pytest.raises(InputError, match=r"^room_bytes is 9; "):
        MappedFile(100, 9, page_bytes=10)
    with pytest.raises(InputError, match=r"^pinned_pages is 4; "):
        pages_read([], 4, 4)


@pytest.mark.parametrize("step", [-1, 2.0, MOST_STEPS + 1, None])
def test_a_step_that_is_none_is_refused(step: object) -> None:
    with pytest.raises(InputError, match=r"^step is "):
        MappedFile(8, 4, page_bytes=1).pages_read(step)  # type: ignore[arg-type]


@pytest.mark.parametrize("page", [-1, 0.5, "0", True])
def test_a_page_that_is_none_is_refused(page: object) -> None:
    with pytest.raises(InputError, match=r"^page is "):
        pages_read([[page]], 4)  # type: ignore[list-item]


@pytest.mark.parametrize("steps", [None, 3, [None], [3]])
def test_steps_that_are_none_are_refused(steps: object) -> None:
    with pytest.raises(InputError, match=r"^steps is "):
        pages_read(steps, 4)  # type: ignore[arg-type]
