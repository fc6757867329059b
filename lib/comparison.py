"""A measured number beside what a model says of it: the rows of `lib.atlas`.

A model is whatever predicts: a step time run through the engine, recorded parts added up, a count. Times and counts are
kept apart, as a count can be exact and a time cannot.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import NamedTuple

from lib.checks import InputError, finite, one_of
from lib.clocks import Clock

ROUNDING = 1e-12  # sums in floating point differ by less


class Group(StrEnum):
    """What was measured together: times first, then counts."""

    DECODE = "decode steps"
    PREFILL = "prefills of a batch"
    CHUNKS = "chunks of a prompt"
    BATCHES = "whole batches"
    SIX = "six requests"
    AGENT = "agent rounds"
    DRAFTS = "requests with drafts"
    RETRIES = "tasks with retries"
    SERVICE = "service under load"
    OUTPUTS = "outputs of a round"
    PREEMPTION = "preemption"
    SHARING = "shared blocks"
    HITS = "prefix hits"
    CAPACITY = "what fits"
    BYTES = "bytes"


class Model(StrEnum):
    """What predicts: models of a time first, then those that count or expect."""

    FIT = "fit"
    DEVICE = "device"
    HOST = "max(host, device)"
    OWN_HOST = "max(its own host, device)"
    RECORDED_STEPS = "recorded decode steps"
    BOUND = "lower bound"
    READ_ONCE = "lower bound, prefix read once"
    ADDED = "recorded parts added"
    RETRY_RULE = "first + p x retry"
    CALIBRATED = "calibrated on requests alone"
    COUNT = "count"
    BY_POSITION = "acceptance by position"
    ONE_RATE = "one acceptance rate"


# The clock of what a model says of a time.
CLOCKS = {
    Model.FIT: Clock.FIT,
    Model.DEVICE: Clock.FLOP_RULE,
    Model.HOST: Clock.FLOP_RULE,
    Model.OWN_HOST: Clock.FLOP_RULE,
    Model.RECORDED_STEPS: Clock.ENGINE,
    Model.BOUND: Clock.FLOP_RULE,
    Model.READ_ONCE: Clock.FLOP_RULE,
    Model.ADDED: Clock.ENGINE,
    Model.RETRY_RULE: Clock.MEASURED,
    Model.CALIBRATED: Clock.FIT,
}


class Seen(NamedTuple):
    """A number of a record, in `unit`; its clock, or None where it counts something."""

    group: Group
    what: str
    record: str
    value: float
    unit: str
    clock: Clock | None = None


@dataclass(frozen=True)
class Comparison:
    """A number that was seen, and what a model says of it in the same unit.

    `is_fitted` where a constant of the model was taken from this very number: it agrees by making and not by merit.
    Raises InputError for what is no number and for an unknown model.
    """

    seen: Seen
    model: Model
    predicted: float
    is_fitted: bool = False

    def __post_init__(self) -> None:
        finite("seen", self.seen.value, 0, "a number from 0")
        finite("predicted", self.predicted, 0, "a number from 0")
        one_of("model", self.model, Model)

    @property
    def error(self) -> float:
        """(predicted - measured) / measured, 0 where they agree; infinite where only something was predicted."""
        if math.isclose(self.predicted, self.seen.value, rel_tol=ROUNDING):
            return 0.0
        return self.predicted / self.seen.value - 1 if self.seen.value else math.inf

    @property
    def clock(self) -> Clock | None:
        """The clock of what the model says; None for a count."""
        return CLOCKS[self.model] if self.seen.clock else None


class Score(NamedTuple):
    """How one model did: comparisons, and the least, the middle and the largest of its errors, without their sign."""

    model: Model
    comparisons: int
    best: float
    middle: float
    worst: float


def score(compared: Iterable[Comparison], model: Model) -> Score:
    """The score of a model on those of the comparisons that are its own; raises InputError if none is."""
    errors = sorted(abs(one.error) for one in compared if one.model == model)
    if not errors:
        raise InputError("model", model, "a model of at least one of the comparisons")
    return Score(model, len(errors), errors[0], median(errors), errors[-1])


def scores(compared: Iterable[Comparison]) -> tuple[Score, ...]:
    """The scores of all models of these comparisons, the smallest middle error first."""
    found = tuple(compared)
    return tuple(sorted((score(found, model) for model in {one.model for one in found}), key=lambda one: one.middle))
