"""What an edit of a context leaves reusable, and what the turns behind it cost.

The KV of the whole history is kept. Of the next prompt only what lies before the first changed token is found again,
as all behind it has another context, even where the text is the same. A summary has to be written first, by decode
steps that read the history; its own KV is computed anew, as the history is no longer before it. Source: section 8.3.3.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from lib.allotment import shared_blocks
from lib.checks import keep_whole, whole
from lib.fast_forward import simulate
from lib.scheduling import Request, continuous
from lib.step_time import FIT, StepTime, step_plan

# The example of section 8.3.3: a history, what the next turn appends to it, and a summary in its place.
HISTORY_TOKENS, APPENDED_TOKENS, SUMMARY_TOKENS = 8 * 1024, 1024, 2 * 1024
# So many tokens of two prompts are equal before the first that differs. Source: section 8.3.3.
EQUAL_TOKENS = 100

MOST_TOKENS, MOST_TURNS = 2**20, 1000


def reusable_tokens(tokens: int, unchanged: int, block_tokens: int = 1) -> int:
    """Tokens of a prompt whose KV is found, where so many at its beginning are unchanged.

    Whole blocks only, and never the last token, which is always computed. Source: section 8.3.3.
    """
    return shared_blocks(tokens, whole("unchanged", unchanged), block_tokens) * block_tokens


class Turn(NamedTuple):
    """One turn: tokens in KV at its end, tokens of input that it processes, and its time in ns by some model."""

    carried: int
    processed: int
    time_ns: int


@dataclass(frozen=True)
class Edit:
    """A history after an edit: what of it is unchanged in front, and the prompt of the next turn.

    `written` are tokens that decode steps wrote behind the history first, to stand in its place; `appended` are those
    at the end of the prompt, and each further turn appends as many again. Raises InputError for what makes no sense.
    """

    history: int
    unchanged: int
    prompt: int
    appended: int
    written: int = 0
    block_tokens: int = 1

    def __post_init__(self) -> None:
        keep_whole(self, MOST_TOKENS, history=1, prompt=1, block_tokens=1)
        keep_whole(self, self.history, unchanged=0, written=0)
        keep_whole(self, self.prompt, appended=0)

    @property
    def reusable(self) -> int:
        """Tokens of the prompt that are found again."""
        return reusable_tokens(self.prompt, self.unchanged, self.block_tokens)

    @property
    def to_process(self) -> int:
        """Tokens of the prompt that are computed."""
        return self.prompt - self.reusable

    @property
    def history_to_process(self) -> int:
        """Tokens of the history that are computed before the first output of a summary: its last one at least."""
        return self.history - reusable_tokens(self.history, self.history, self.block_tokens)

    @property
    def carried_beside(self) -> int:
        """Tokens in KV once a summary is written, 0 without one: the history still stands, the last output does not."""
        return self.history + self.written - 1 if self.written else 0

    def process_ns(self, step_time: StepTime = FIT) -> int:
        """Time to compute what is not found, as one step."""
        return step_time(step_plan((self.to_process, self.reusable)))

    def write_ns(self, step_time: StepTime = FIT) -> int:
        """Time to write the summary, alone, one step an output: the first takes what is not found of the history."""
        if not self.written:
            return 0
        run = simulate([Request(0, self.history, self.written)], continuous(1), step_time)
        first = step_plan((self.history_to_process, self.history - self.history_to_process))
        return step_time(first) + run.total_ns - int(run.ttft_ns[0])

    def time_ns(self, step_time: StepTime = FIT) -> int:
        """Time until the prompt is processed, with that of writing what stands in it."""
        return self.write_ns(step_time) + self.process_ns(step_time)


def append(appended: int = APPENDED_TOKENS, history: int = HISTORY_TOKENS, block_tokens: int = 1) -> Edit:
    """Append to a history and change nothing of it. Source: section 8.3.3, figure 8-20."""
    return rewrite(history, appended, history, block_tokens)


def rewrite(
    position: int, appended: int = APPENDED_TOKENS, history: int = HISTORY_TOKENS, block_tokens: int = 1
) -> Edit:
    """Write another token at a position, counted from 0, and append; at the end of the history nothing is rewritten.

    Raises InputError for a position beyond the end. Source: section 8.3.3, figure 8-20.
    """
    length = whole("history", history, at_least=1, at_most=MOST_TOKENS)
    new = whole("appended", appended, at_most=MOST_TOKENS - length)
    before = whole("position", position, at_most=length)
    return Edit(length, before, length + new, new, block_tokens=block_tokens)


def summarise(
    summary: int = SUMMARY_TOKENS,
    appended: int = APPENDED_TOKENS,
    history: int = HISTORY_TOKENS,
    block_tokens: int = 1,
) -> Edit:
    """Put a summary in place of the whole history, and append; nothing of the history is found again.

    Raises InputError for a summary longer than the history. Source: section 8.3.3, figure 8-20.
    """
    length = whole("history", history, at_least=1, at_most=MOST_TOKENS)
    written = whole("summary", summary, at_least=1, at_most=length)
    new = whole("appended", appended, at_most=MOST_TOKENS - written)
    return Edit(length, 0, written + new, new, written, block_tokens)


def turns(edit: Edit, further: int, step_time: StepTime = FIT) -> tuple[Turn, ...]:
    """The turns from an edit on: the one that writes a summary, if one is written, the next, and so many further ones.

    What a turn's own outputs cost is left out. Source: section 8.3.3.
    """
    count = whole("further", further, at_most=MOST_TURNS)
    first = list(_first_turns(edit, step_time))
    return (*first, *islice(_further_turns(edit, step_time), count))


def break_even(
    edit: Edit, other: Edit, cost: Callable[[Turn], int], step_time: StepTime = FIT, within: int = MOST_TURNS
) -> int | None:
    """The fewest further turns after which an edit has cost no more than another one, all turns together.

    `cost` is what counts of a turn, such as its time or the tokens it carries. None: not within so many further turns.
    """
    most = whole("within", within, at_most=MOST_TURNS)
    ahead = sum(map(cost, _first_turns(edit, step_time))) - sum(map(cost, _first_turns(other, step_time)))
    pairs = zip(_further_turns(edit, step_time), _further_turns(other, step_time), strict=True)
    for count in range(most + 1):
        if ahead <= 0:
            return count
        mine, theirs = next(pairs)
        ahead += cost(mine) - cost(theirs)
    return None


def _first_turns(edit: Edit, step_time: StepTime) -> Iterator[Turn]:
    if edit.written:
        yield Turn(edit.carried_beside, edit.history_to_process, edit.write_ns(step_time))
    yield Turn(edit.prompt, edit.to_process, edit.process_ns(step_time))


def _further_turns(edit: Edit, step_time: StepTime) -> Iterator[Turn]:
    before = edit.prompt
    while True:
        prompt = before + edit.appended
        found = reusable_tokens(prompt, before, edit.block_tokens)
        yield Turn(prompt, prompt - found, step_time(step_plan((prompt - found, found))))
        before = prompt
