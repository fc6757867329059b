"""Attempts to break the paged pool and what stands beside it: interfering callers, odd values, equal contents."""

import copy
import gc
import pickle
from array import array
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any
from unittest.mock import ANY

import numpy as np
import pytest

from lib.blocks import PagingError, State
from lib.checks import InputError
from lib.contiguous import Contiguous, ContiguousError
from lib.paged_attention import KvBlocks
from lib.paging import Copy, Findable, Pool, Sequence
from tests.test_lib_paging import check, everything, is_refused

# Callers who interfere


def test_a_sequence_released_while_the_others_of_its_step_are_found_is_refused() -> None:
    pool = Pool(4, 2)
    one, other = pool.admit([1, 2, 3]), pool.admit([7, 8])

    def found_late() -> Iterator[Sequence]:
        yield one
        pool.release(one)
        yield other

    with pytest.raises(PagingError, match="no sequence of the pool"):
        pool.submit(found_late())
    assert not other.steps and not other.computed
    check(pool, [other])


def test_a_sequence_that_grows_while_the_others_of_its_step_are_found_is_touched_as_a_whole() -> None:
    pool = Pool(8, 2)
    one, other = pool.admit([1, 2, 3]), pool.admit([7, 8])

    def found_late() -> Iterator[Sequence]:
        yield one
        pool.extend(one, [4, 5, 6])
        yield other

    step, table = pool.submit(found_late()), one.table
    pool.release(one)
    assert [pool.state(block) for block in table] == [State.WAITING] * 3
    pool.complete(step)
    assert [pool.state(block) for block in table] == [State.IDLE] * 3


def test_an_exception_on_the_way_to_the_sequences_of_a_step_leaves_all_as_it_was() -> None:
    pool = Pool(4, 2)
    one = pool.admit([1, 2, 3])

    def fails() -> Iterator[Sequence]:
        yield one
        raise KeyError

    before = everything(pool, [one])
    with pytest.raises(KeyError):
        pool.submit(fails())
    assert everything(pool, [one]) == before


@pytest.mark.parametrize("sequences", [None, 3, "itself"])
def test_the_sequences_of_a_step_can_be_gone_through(sequences: Any) -> None:
    pool = Pool(4, 2)
    one = pool.admit([1, 2, 3])
    wrong = one if sequences == "itself" else sequences
    assert is_refused(pool, [one], pool.submit, wrong).startswith("sequences is ")


@pytest.mark.parametrize("view", [memoryview, np.asarray])
def test_a_view_of_the_tokens_stops_a_verb_before_it_changes_anything(view: Callable[[object], object]) -> None:
    pool = Pool(8, 2)
    one = pool.admit([1, 2, 3])
    child = pool.fork(one)
    seen = view(one.tokens)
    before = everything(pool, [one, child])
    for verb, value in ((pool.append, 4), (pool.extend, [4, 5, 6]), (pool.truncate, 1)):
        with pytest.raises(BufferError):
            verb(one, value)  # type: ignore[operator]
        assert everything(pool, [one, child]) == before
    del seen
    assert pool.extend(one, [4, 5, 6]) == Copy(1, 2)
    check(pool, [one, child])


def test_a_sequence_is_not_copied_but_forked() -> None:
    pool = Pool(4, 2)
    one = pool.admit([1, 2, 3])
    assert "fork" in is_refused(pool, [one], copy.copy, one)


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_pool_and_its_sequences_copied_together_go_their_own_way(twin: Callable[[Any], Any]) -> None:
    pool = Pool(8, 2)
    one, gone = pool.admit([1, 2, 3]), pool.admit([5, 6])
    step = pool.submit([one, gone])
    pool.release(gone)
    before = everything(pool, [one])
    its_pool, its_one, its_step = twin((pool, one, step))
    its_pool.append(its_one, 4)
    its_pool.release(its_one)
    its_pool.complete(its_step)
    assert its_pool.free == 8 and its_pool.cached_tokens([1, 2, 3, 4, 5]) == 4
    assert everything(pool, [one]) == before
    assert "no sequence of the pool" in is_refused(its_pool, [], its_pool.release, one)


def meddling(value: int, deed: Callable[[], object]) -> Any:
    """A number that does something when it is asked for."""

    class Number:
        def __index__(self) -> int:
            deed()
            return value

    return Number()


def test_a_number_that_releases_the_sequence_it_is_for_comes_too_late() -> None:
    for verb in ("append", "extend", "grow", "can_grow"):
        pool = Pool(8, 2)
        one, other = pool.admit([1, 2, 3]), pool.admit([1, 2, 4])
        number = meddling(1, lambda pool=pool, one=one: pool.release(one))  # type: ignore[misc]
        with pytest.raises(PagingError, match="no sequence of the pool"):
            getattr(pool, verb)(one, [number] if verb == "extend" else number)
        check(pool, [other])


def test_tokens_that_are_admitted_while_they_are_read_are_found() -> None:
    pool = Pool(8, 2)
    admitted = list[Sequence]()
    last = meddling(3, lambda: admitted.append(pool.admit([1, 2, 3])))
    one = pool.admit([1, 2, last])
    assert one.cached == 2 and one.table[0] == admitted[0].table[0]
    check(pool, [one, *admitted])


# Odd values


@pytest.mark.parametrize("wrong", [np.array([1, 2]), np.array([]), ANY])
def test_what_equals_everything_or_nothing_is_no_step_and_no_region(wrong: Any) -> None:
    pool, memory = Pool(4, 2), Contiguous(8)
    one, region = pool.admit([1, 2, 3]), memory.admit(2, 4)
    pool.submit([one])
    assert "not in flight" in is_refused(pool, [one], pool.complete, wrong)
    with pytest.raises(ContiguousError):
        memory.release(wrong)
    memory.release(region)
    assert memory.free == 8


@pytest.mark.parametrize("slot", [0.7, True, "1", None, [1], 2**70, np.uint64(2**63), -1, 8])
def test_a_slot_is_a_whole_number(slot: Any) -> None:
    kv = KvBlocks(4, 2, 1, 2)
    with pytest.raises(InputError, match="slots is "):
        kv.write([slot], np.ones((1, 1, 2)), np.ones((1, 1, 2)))
    assert np.isnan(kv.keys[:]).all() and np.isnan(kv.values[:]).all()


@pytest.mark.parametrize("wrong", [np.full((1, 1, 2), "x"), np.full((1, 1, 2), 1j), np.full((1, 1, 2), None)])
def test_kv_is_written_as_a_whole_or_not_at_all(wrong: Any) -> None:
    kv, right = KvBlocks(4, 2, 1, 2), np.ones((1, 1, 2))
    for name, keys, values in (("keys", wrong, right), ("values", right, wrong)):
        with pytest.raises(InputError, match=f"{name} is "):
            kv.write([0], keys, values)
        assert np.isnan(kv.keys[:]).all() and np.isnan(kv.values[:]).all()


@pytest.mark.parametrize("wrong", [(0, -1), (-1, 0), (0, 4), (4, 0), (0, 1.0), (True, 2), ([0], [1])])
def test_a_copy_is_from_block_to_block(wrong: Any) -> None:
    kv = KvBlocks(4, 2, 1, 2)
    kv.write(range(8), np.arange(16).reshape(8, 1, 2), np.arange(16).reshape(8, 1, 2))
    before = kv.keys[:]
    with pytest.raises(InputError, match="copy is "):
        kv.copy(Copy(*wrong))
    assert np.array_equal(kv.keys[:], before) and np.array_equal(kv.values[:], before)


def test_slots_of_a_position_are_those_of_the_whole_table() -> None:
    pool = Pool(400, 3)
    for number in range(60):
        pool.admit([number])
    one = pool.admit(range(1000))
    whole = pool.slots(one, 0, 1000)
    assert whole.tolist() == [one.table[at // 3] * 3 + at % 3 for at in range(1000)]
    for first, beyond in ((0, 0), (0, 1), (2, 4), (299, 301), (999, 1000), (1000, 1000), (1, 999)):
        assert pool.slots(one, first, beyond).tolist() == whole[first:beyond].tolist()
    assert pool.slots(one, np.uint8(255), np.int16(999)).tolist() == whole[255:999].tolist()


# A pool of one block, and blocks of one token


@pytest.mark.parametrize("findable", list(Findable))
def test_a_pool_of_one_block_serves_one_after_the_other(findable: Findable) -> None:
    pool = Pool(1, 4, findable)
    for prompt in ([1, 2, 3, 4], [1, 2, 3, 4], [5], [1, 2, 3]):
        one = pool.admit(prompt)
        assert one.cached == 0 and not pool.can_admit([9])
        step = pool.submit([one])
        pool.release(one)
        assert "0" in is_refused(pool, [], pool.admit, [9])
        pool.complete(step)
        assert pool.free == 1


def test_blocks_of_one_token_are_found_but_for_the_last() -> None:
    pool = Pool(6, 1)
    one = pool.admit([7, 7, 7])
    twin = pool.admit([7, 7, 7])
    assert twin.table[:2] == one.table[:2] and twin.table[2] != one.table[2]
    assert pool.append(twin, 7) is None
    child = pool.fork(twin)
    assert pool.append(child, 8) is None  # no block of one token is ever filled in part
    check(pool, [one, twin, child])
    assert "free blocks" in is_refused(pool, [one, twin, child], pool.append, one, 1)
    pool.release(one)
    assert pool.free == 1 and pool.cached_tokens([7, 7, 7, 7, 7]) == 4


# Time


def seconds_to_forget(equal: int, order: int) -> float:
    """To take so many blocks of equal content, which were let go from the oldest on (1) or from the newest (-1)."""
    pool = Pool(equal, 1, Findable.ONCE_DONE)
    twins = [pool.admit([5], max_tokens=1) for _ in range(equal)]
    pool.complete(pool.submit(twins))
    for one in twins[::order]:
        pool.release(one)
    assert pool.idle == equal
    gc.disable()  # what other tests have left behind is not to be looked through here
    start = perf_counter()
    pool.admit(array("q", range(10, 10 + equal)))
    gc.enable()
    return perf_counter() - start


def test_equal_contents_are_forgotten_equally_soon_in_either_order() -> None:
    oldest, newest = (min(seconds_to_forget(4000, order) for _ in range(5)) for order in (1, -1))
    assert newest < 10 * oldest
