"""The fitted time of one step, and the pairs it counts."""

from hypothesis import given
from hypothesis import strategies as st

from lib.step_time import FIT, FitTerms, causal_pairs, fit_batch1

FEW = st.integers(0, 60)
MANY = st.integers(0, 10**9)


@given(FEW, FEW)
def test_pairs_are_those_that_a_loop_counts(new: int, context: int) -> None:
    counted = sum(1 for query in range(context, context + new) for key in range(context + new) if key <= query)
    assert causal_pairs(new, context) == counted


@given(MANY, MANY, MANY)
def test_cutting_a_prompt_into_two_chunks_changes_no_pair(first: int, second: int, context: int) -> None:
    in_chunks = causal_pairs(first, context) + causal_pairs(second, context + first)
    assert in_chunks == causal_pairs(first + second, context)


@given(MANY)
def test_pairs_are_exact_whole_numbers(new: int) -> None:
    assert type(causal_pairs(new)) is int
    assert 2 * causal_pairs(new) == new * new + new


def test_the_terms_are_those_that_the_chapter_rounds() -> None:
    assert FitTerms(fixed_ns=26_220_000, per_new_token_ns=30_400, per_causal_pair_ns=3) == FIT


@given(st.integers(1, 10**6), MANY)
def test_a_step_takes_its_three_terms(new: int, pairs: int) -> None:
    time = fit_batch1(new, pairs)
    assert type(time) is int
    assert time == 26_220_000 + 30_400 * new + 3 * pairs


@given(st.integers(1, 10**6), st.integers(1, 10**6), MANY, MANY)
def test_one_step_for_two_saves_exactly_one_fixed_part(new: int, more: int, pairs: int, others: int) -> None:
    apart = fit_batch1(new, pairs) + fit_batch1(more, others)
    assert apart - fit_batch1(new + more, pairs + others) == FIT.fixed_ns
