"""Drafts looked up in the text: against a search from the end, and never ahead of what is written."""

import random
from typing import Any

import pytest

from lib.acceptance import Verified
from lib.checks import InputError
from lib.ngram_draft import FrozenText, NgramIndex, serving_text, tokenize, write


def searched(tokens: list[int], last: int, length: int) -> tuple[int, ...]:
    """The same by going back from the end, place by place."""
    wanted = tokens[len(tokens) - last :]
    for start in range(len(tokens) - last - 1, -1, -1):
        if tokens[start : start + last] == wanted:
            return tuple(tokens[start + last : start + last + length])
    return ()


@pytest.mark.parametrize("seed", range(30))
def test_the_index_finds_what_a_search_finds(seed: int) -> None:
    draw = random.Random(seed)
    last, length, vocabulary, written = draw.randint(1, 4), draw.randint(1, 9), draw.randint(1, 4), list[int]()
    index = NgramIndex(last)
    for _ in range(80):
        assert index.draft(length) == (searched(written, last, length) if len(written) > last else ())
        written.append(draw.randrange(vocabulary))
        index.append(written[-1])


@pytest.mark.parametrize("last", [1, 2, 3])
@pytest.mark.parametrize("draft_tokens", [1, 4, 16])
def test_rounds_write_the_text_and_nothing_else(last: int, draft_tokens: int) -> None:
    text, at = serving_text(), 20
    for each in write(text, last, draft_tokens, known=20):
        draft = searched(list(text.tokens[:at]), last, draft_tokens)[: len(text.tokens) - at - 1]
        assert each.known == at
        assert (each.check.draft if each.check else ()) == draft
        right = next((n for n, token in enumerate(draft) if token != text.tokens[at + n]), len(draft))
        assert each.verified == Verified(len(draft), right)
        if each.check:
            assert each.check.outputs == text.tokens[at : at + right + 1]
        at += each.verified.outputs
    assert at == len(text.tokens)


def test_nothing_ahead_is_ever_proposed() -> None:
    """Two texts that part: up to there both give the same drafts."""
    text = serving_text()
    parting = 300
    draw = random.Random(8)
    other = FrozenText(text.vocabulary, (*text.tokens[:parting], *draw.choices(text.tokens, k=279)))
    pairs = zip(write(text), write(other), strict=False)
    same = [(a, b) for a, b in pairs if max(a.known, b.known) + 9 <= parting]
    assert len(same) > 100
    assert all(a == b for a, b in same)


def test_a_text_that_repeats_itself_is_written_in_long_strides() -> None:
    song = tokenize("la li lu " * 30)
    assert song.vocabulary == ("la", "li", "lu")
    rounds = write(song, last=2, draft_tokens=2, known=6)
    assert [each.verified.outputs for each in rounds] == [3] * 28
    assert not any(each.check for each in write(tokenize(" ".join(map(str, range(30)))), known=4))


def test_words_and_marks_are_tokens_by_their_first_appearance() -> None:
    text = tokenize("To be, or not to be: be.")
    assert text.vocabulary == ("To", "be", ",", "or", "not", "to", ":", ".")
    assert text.tokens == (0, 1, 2, 3, 4, 5, 1, 6, 1, 7)
    assert text.spelled((0, 1)) == "To be"


@pytest.mark.parametrize(
    "wrong", ["", "  \n", None, 3, b"words", "a " * (2**14 + 1)], ids=lambda value: repr(value)[:12]
)
def test_no_text_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^text is "):
        tokenize(wrong)


def test_a_text_that_is_known_whole_is_refused() -> None:
    text = tokenize("one two three")
    assert [each.known for each in write(text, known=2)] == [2]
    with pytest.raises(InputError, match=r"^known is 3; allowed: a whole number from 1 to 2$"):
        write(text, known=3)
    with pytest.raises(InputError, match=r"^known tokens is 3"):
        text.choose((0, 1, 2))
    with pytest.raises(InputError, match=r"^token is 3"):
        text.spelled((3,))
    for wrong in (0, -1, 2.5, True, None, 10**30):
        with pytest.raises(InputError, match=r"^last is "):
            NgramIndex(wrong)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"^draft_tokens is "):
            NgramIndex().draft(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^token is -1"):
        NgramIndex().append(-1)


@pytest.mark.parametrize("wrong", [None, 3, "a text", (1, 2)], ids=repr)
def test_what_is_no_frozen_text_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"^text is "):
        write(wrong)
