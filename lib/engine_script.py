"""A script of events for a small engine: who enters, grows, branches and leaves, and what the device does meanwhile.

One event a line, such as `admit A ab`. Sequences are named by a capital letter, tokens are small letters.
"""

import string
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from lib.checks import InputError

NAMES, TOKENS = string.ascii_uppercase, string.ascii_lowercase
MOST_EVENTS, LONGEST_PROMPT = 100, 32


class Verb(StrEnum):
    """What an event does; each stands first in its line."""

    ADMIT = "admit"
    APPEND = "append"
    FORK = "fork"
    RELEASE = "release"
    STEP = "step"
    SUBMIT = "submit"
    COMPLETE = "complete"


HOW = {
    Verb.ADMIT: "admit A ab",
    Verb.APPEND: "append A c",
    Verb.FORK: "fork A B",
    Verb.RELEASE: "release A",
    Verb.STEP: "step",
    Verb.SUBMIT: "submit",
    Verb.COMPLETE: "complete",
}


class Event(NamedTuple):
    """One event: a verb, the sequence it is about, and its tokens or, of a fork, the name of the branch."""

    verb: Verb
    name: str = ""
    more: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, self))


Script = tuple[Event, ...]


def read_script(script: str | Sequence[Event]) -> Script:
    """The events of a text, a line each; blank lines do not count, and events are taken as they are.

    Raises InputError, which names the line and what is allowed there. Source: section 8.3.2.
    """
    if isinstance(script, str):
        lines = [(f"line {number}", line.split()) for number, line in enumerate(script.splitlines(), 1) if line.strip()]
    elif isinstance(script, Sequence) and all(isinstance(event, Event) for event in script):
        lines = [(f"event {number}", str(event).split()) for number, event in enumerate(script, 1)]
    else:
        raise InputError("script", script, "a text with one event a line, or a list of events")
    if not 0 < len(lines) <= MOST_EVENTS:
        raise InputError("script", script, f"from 1 to {MOST_EVENTS} events, such as {HOW[Verb.ADMIT]!r}")
    return tuple(_event(where, words) for where, words in lines)


def _event(where: str, words: list[str]) -> Event:
    if words[0] not in HOW:
        raise InputError(where, " ".join(words), "one of " + ", ".join(map(repr, HOW.values())))
    verb, rest = Verb(words[0]), words[1:]
    if len(rest) != len(HOW[verb].split()) - 1:
        raise InputError(where, " ".join(words), f"such as {HOW[verb]!r}")
    if rest and not _is_name(rest[0]):
        raise InputError(where, rest[0], "a capital letter that names a sequence")
    if verb == Verb.FORK and not _is_name(rest[1]):
        raise InputError(where, rest[1], "a capital letter that names the branch")
    if verb == Verb.APPEND and not (len(rest[1]) == 1 and rest[1] in TOKENS):
        raise InputError(where, rest[1], "one small letter, the token")
    if verb == Verb.ADMIT and not (len(rest[1]) <= LONGEST_PROMPT and set(rest[1]) <= set(TOKENS)):
        raise InputError(where, rest[1], f"from 1 to {LONGEST_PROMPT} small letters, a token each")
    return Event(verb, *rest)


def _is_name(word: str) -> bool:
    return len(word) == 1 and word in NAMES
