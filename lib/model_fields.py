"""The fields of a model's config, read so that a wrong, missing or misunderstood one is noticed."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from lib.checks import InputError, whole
from lib.model_shape import Unknown
from lib.records import FOLDER

with (FOLDER / "config_fields.toml").open("rb") as _file:
    _KNOWN = tomllib.load(_file)
SIZE_WORDS = frozenset(_KNOWN["size_words"])
WITHOUT_SIZE = frozenset(name for names in _KNOWN["without_size"].values() for name in names)
WITHOUT_EFFECT: Mapping[str, object] = _KNOWN["without_effect"]
WEIGHTS_ONLY = tuple(name for names in _KNOWN["weights_only"].values() for name in names)


def read_object(path: str | PathLike[str]) -> dict[str, Any]:
    """The JSON object in a file; raises InputError with line and column where the file is none."""
    if Path(path).is_dir():
        raise InputError("config", str(path), "a file; this is a directory, give the config.json in it")
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"), object_pairs_hook=_without_repeats)
    except OSError as error:
        raise InputError("config", str(path), f"a file that can be read ({error.strerror})") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}: {error.msg}"
        raise InputError("config", str(path), f"a file of JSON ({where})") from None
    except InputError as error:
        raise InputError("config", str(path), f"a JSON object ({error})") from None
    except (ValueError, RecursionError) as error:
        raise InputError("config", str(path), f"a file of JSON in UTF-8 ({error})") from None
    if not isinstance(value, dict):
        raise InputError("config", str(path), f"a JSON object; the file holds a {type(value).__name__}")
    return value


def as_object(parameter: str, value: object, also: str = "") -> dict[str, Any]:
    """A mapping from names to values as a dict; raises InputError for anything else."""
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InputError(parameter, value, f"a mapping from names to values{also}")
    return dict(value)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise InputError(name, [values[name], value], "one value")
        values[name] = value
    return values


class Fields:
    """The fields of one config under the names of its layout; they remember which were asked for.

    `aliases` gives the layout's name of a field for another one, `defaults` the values of missing fields.
    """

    def __init__(self, config: Mapping[str, Any], aliases: Mapping[str, str], defaults: Mapping[str, Any]) -> None:
        self._said = {name: alias for alias, name in aliases.items()}
        self._values = dict(defaults)
        self._asked: set[str] = set()
        self.lacking: list[Unknown] = []
        here: dict[str, str] = {}
        for said, value in config.items():
            name = aliases.get(said, said)
            if config[here.setdefault(name, said)] != value:
                raise InputError(said, value, f"the same as {here[name]}, which is {config[here[name]]!r}")
            self._values[name] = value
        self._said |= here

    def said(self, name: str) -> str:
        """What this config calls a field."""
        return self._said.get(name, name)

    def has(self, name: str) -> bool:
        """Whether the config has the field at all, be it null."""
        return name in self._values

    def is_null(self, name: str) -> bool:
        """Whether the config has the field, as null."""
        self._asked.add(name)
        return self.has(name) and self._values[name] is None

    def get(self, *names: str) -> Any:
        """The value of a field, the first that is neither null nor missing; else None. All count as asked for."""
        self._asked.update(names)
        return next((self._values[name] for name in names if self._values.get(name) is not None), None)

    def size(self, name: str, at_least: int = 1, at_most: int | None = None) -> int:
        """A size that must be there."""
        value = self.get(name)
        if value is None:
            raise InputError(self.said(name), None, f"a whole number of at least {at_least}; the config gives none")
        return whole(self.said(name), value, at_least, at_most)

    def size_or(self, name: str, otherwise: int) -> int:
        """A size, or what stands for a null or missing one."""
        return otherwise if self.get(name) is None else self.size(name)

    def weight_size(self, name: str, at_least: int = 1, at_most: int | None = None) -> int | None:
        """A size that bears on weights only: None if it is missing, and weights cannot be counted."""
        if self.get(name) is not None:
            return self.size(name, at_least, at_most)
        allowed = f"a whole number of at least {at_least}; without it weights cannot be counted, only KV"
        self.lacking.append(Unknown(self.said(name), None, allowed))
        return None

    def flag(self, name: str, otherwise: object = None) -> bool:
        """True or false, or what stands for a null or missing one, if anything does."""
        value = otherwise if self.get(name) is None else self.get(name)
        if not isinstance(value, bool):
            raise InputError(self.said(name), value, "true or false")
        return value

    def numbers(self, name: str, least: int, most: int) -> list[int]:
        """Different whole numbers between these bounds."""
        value = self.get(name)
        if not isinstance(value, list) or len({whole(name, each, least, most) for each in value}) != len(value):
            raise InputError(name, value, f"a list of different whole numbers from {least} to {most}")
        return value

    def words(self, name: str, length: int, choices: Iterable[str]) -> list[str]:
        """So many words out of these."""
        value, choices = self.get(name), tuple(choices)
        if not isinstance(value, list) or len(value) != length:
            raise InputError(name, value, f"a list of {length} words, one for each layer")
        for place, word in enumerate(value):
            if word not in choices:
                raise InputError(f"{name}[{place}]", word, f"one of {', '.join(map(repr, choices))}")
        return value

    def part(self, name: str) -> "Fields":
        """The fields inside a field."""
        return Fields(as_object(name, self.get(name)), {}, {})

    def refuse_what_is_left(self, understood: Iterable[str]) -> None:
        """Raise InputError for a field that nobody asked for and that may bear on sizes, as its name or value says."""
        passed = self._asked | set(understood) | WITHOUT_SIZE
        for name, value in self._values.items():
            if name in passed or value is None:
                continue
            if name in WITHOUT_EFFECT:
                if value != WITHOUT_EFFECT[name]:
                    raise InputError(self.said(name), value, f"{WITHOUT_EFFECT[name]}: no other value is known here")
            elif SIZE_WORDS & set(name.lower().split("_")) and not name.startswith("rope_"):
                raise InputError(self.said(name), value, "no such field: what it means for sizes is not known here")
