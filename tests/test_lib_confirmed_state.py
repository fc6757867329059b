"""Sampler and grammar: what goes back to the confirmed position gives the same text, what does not gives another."""

import tracemalloc

import pytest

from lib.checks import InputError
from lib.confirmed_state import CLOSE, OPEN, Brackets, Sampler, State, breaks_at, plain_text, text_through_drafts

TOKENS, SEEDS = 60, range(20)


@pytest.mark.parametrize("draft_tokens", [1, 2, 4, 9])
def test_drafts_change_nothing_where_all_goes_back(draft_tokens: int) -> None:
    for seed in SEEDS:
        assert text_through_drafts(TOKENS, seed, draft_tokens) == plain_text(TOKENS, seed)


@pytest.mark.parametrize("draft_tokens", [1, 2, 4, 9])
def test_a_sampler_left_behind_the_draft_gives_another_text_of_the_same_grammar(draft_tokens: int) -> None:
    texts = [text_through_drafts(TOKENS, seed, draft_tokens, [State.GRAMMAR]) for seed in SEEDS]
    assert all(text != plain_text(TOKENS, seed) for seed, text in zip(SEEDS, texts, strict=True))
    assert all(breaks_at(text) is None for text in texts)


@pytest.mark.parametrize("draft_tokens", [1, 2, 4])
def test_a_grammar_left_behind_the_draft_lets_through_what_it_forbids(draft_tokens: int) -> None:
    texts = [text_through_drafts(TOKENS, seed, draft_tokens, [State.SAMPLER]) for seed in SEEDS]
    assert sum(breaks_at(text) is not None for text in texts) > len(texts) / 2


def test_plain_text_keeps_to_the_grammar() -> None:
    texts = [plain_text(TOKENS, seed) for seed in SEEDS]
    assert all(len(text) == TOKENS and breaks_at(text) is None for text in texts)
    assert len(set(texts)) == len(texts)
    assert any("(((" in text for text in texts)


def test_where_a_text_breaks_the_grammar() -> None:
    assert [breaks_at(text) for text in ("", "()(", ")", "())(", "((((", "((()))")] == [None, None, 0, 2, 3, None]
    with pytest.raises(InputError, match=r"^symbol is 'x'"):
        breaks_at("(x")


def test_a_sampler_draws_a_position_again() -> None:
    sampler = Sampler(8)
    numbers = [sampler.draw() for _ in range(5)]
    sampler.rewind(2)
    assert [sampler.draw() for _ in range(3)] == numbers[2:]
    sampler.rewind(0)
    assert [sampler.draw(), sampler.position] == [numbers[0], 1]
    for position in (2, -1, 1.0, True, None):
        with pytest.raises(InputError, match=r"^position is "):
            sampler.rewind(position)  # type: ignore[arg-type]
    assert sampler.draw() == numbers[1]


def test_a_grammar_goes_back_to_what_was_open() -> None:
    grammar = Brackets(2)
    assert grammar.allowed == (OPEN,)
    grammar.accept(OPEN)
    assert grammar.allowed == (OPEN, CLOSE)
    grammar.accept(OPEN)
    assert grammar.allowed == (CLOSE,)
    with pytest.raises(InputError, match=r"^token is 0; allowed: one of \(1,\), as 2 brackets are open$"):
        grammar.accept(OPEN)
    assert grammar.position == 2
    grammar.rewind(0)
    assert (grammar.position, grammar.allowed) == (0, (OPEN,))
    for token in (2, -1, True, None, "("):
        with pytest.raises(InputError, match=r"^token is "):
            grammar.accept(token)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^position is 1"):
        grammar.rewind(1)
    with pytest.raises(InputError, match=r"^deepest is 0"):
        Brackets(0)


def test_an_unknown_state_is_refused() -> None:
    with pytest.raises(InputError, match=r"^goes_back is 'kv'; allowed: one of 'sampler', 'grammar'$"):
        text_through_drafts(4, 8, 2, ["kv"])  # type: ignore[list-item]


@pytest.mark.parametrize("wrong", [None, 3, 0.5, True], ids=repr)
def test_what_are_no_states_and_no_text_is_refused(wrong: object) -> None:
    with pytest.raises(InputError, match=r"^goes_back is "):
        text_through_drafts(4, 8, 2, wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^text is "):
        breaks_at(wrong)  # type: ignore[arg-type]


def test_a_long_text_takes_little_room() -> None:
    """A generator's state is some thousand bytes, and a sampler may have to go back to any of 2^16 positions."""
    tracemalloc.start()
    plain_text(2**12, 8)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 2**12 * 300
