"""For which machine the explorers speak: the book's, or a reader's own, by the three terms of a fit of its steps.

A figure asks `fit()` where a time is by the fit of section 8.2.2. That is the book's, but for what an explorer draws
after `recalibrate`: print figures never change, nor do the column "book" and the question of an explorer. The model
max(host, device) counts FLOP and bytes of the book's card, which no benchmark file tells, so it stays what it is.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Protocol
from weakref import WeakSet

from lib.checks import InputError
from lib.step_time import FIT, NS, Fit
from lib.units import shown

_SERVICE = "its step time is fitted to the recorded service of section 8.6.2, beside which it stands"
# The explorers with times by a fit that stay the book's, and why.
STAYS: Mapping[str, str] = {
    "request-timeline": "its prefill and its intervals were measured on the book's card",
    "chunk-times": "it compares the fit with chunks that were measured on the book's card",
    "admission": _SERVICE,
    "atlas": "it compares models, the fit among them, with what was measured on the book's card",
    "completion-throughput": _SERVICE,
    "goodput": _SERVICE,
    "load-curve": _SERVICE,
    "your-engine": "it has the fit of the file that it shows",
}
# The control that starts at the machine's own value, in seconds.
_FIXED_TERM = "fixed_term"

_drawn: ContextVar[Fit] = ContextVar("the fit of the machine that is drawn", default=FIT)


class Redrawn(Protocol):
    """What is drawn anew when the machine changes."""

    def redraw(self) -> None: ...


class _Reader:
    """The reader's machine, the same in all threads of a kernel, and the explorers that are open there."""

    fit: Fit = FIT
    open: ClassVar["WeakSet[Redrawn]"] = WeakSet()


def fit() -> Fit:
    """The fit of the machine that is drawn: the book's, outside of `drawn_for`."""
    return _drawn.get()


@contextmanager
def drawn_for(machine: Fit) -> Iterator[None]:
    """Let `fit` be that of another machine, in this thread, for as long as the block runs."""
    token = _drawn.set(_checked(machine))
    try:
        yield
    finally:
        _drawn.reset(token)


def recalibrate(machine: Fit) -> None:
    """Let all explorers, open ones too, speak for a machine of this fit, until `back_to_the_book`.

    Raises InputError for what is no `Fit`, such as `lib.recalibration.fitted` gives in its field `fit`.
    """
    _Reader.fit = _checked(machine)
    for each in list(_Reader.open):
        each.redraw()


def back_to_the_book() -> None:
    """Let all explorers speak for the book's machine again."""
    recalibrate(FIT)


def readers(slug: str) -> Fit:
    """The fit for which the explorer of this figure draws: the reader's, or the book's where it stays with the book."""
    return FIT if slug in STAYS else _Reader.fit


def is_books(slug: str) -> bool:
    """Whether the explorer of this figure draws for the book's machine."""
    return readers(slug) == FIT


def starts_of(book: Mapping[str, Any], slug: str) -> dict[str, Any]:
    """Where the controls of an explorer start: at the book's values, a fixed term at that of the machine."""
    own = {_FIXED_TERM: readers(slug).fixed_ns / NS}
    return {name: own.get(name, value) for name, value in book.items()}


def watch(explorer: Redrawn) -> None:
    """Draw this anew whenever the machine changes, as long as it lives."""
    _Reader.open.add(explorer)


def line(slug: str) -> str:
    """For which machine an explorer speaks, in a sentence; nothing as long as it is the book's for all."""
    machine = _Reader.fit
    if machine == FIT:
        return ""
    if slug in STAYS:
        return f"This one stays with the book's machine: {STAYS[slug]}."
    step, token = shown(machine.fixed_ns / NS, "ms", 2), shown(machine.per_new_token_ns / NS, "us", 1)
    return (
        f"Where a time is by the fit, it is by yours: {step} a step, {token} a new token, "
        f"{machine.per_causal_pair_ns} ns a pair. The question and the column “book” are still the book's."
    )


def clock_of(clock: str, slug: str) -> str:
    """The clock of a read-out as it is shown: the fit is the reader's where the machine is."""
    return clock if is_books(slug) else " + ".join(_YOURS.get(each, each) for each in clock.split(" + "))


_YOURS = {"fit": "your fit"}


def _checked(machine: object) -> Fit:
    if not isinstance(machine, Fit):
        raise InputError("machine", machine, "a Fit: the three terms of a step's time, in ns")
    return machine
