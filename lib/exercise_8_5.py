"""Exercise 8-5: what offloaded weights leave room for, and what copying them in each step takes. Source: 8.4.3."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from random import Random
from typing import Any

from lib.checks import InputError, seconds, whole, wholes
from lib.design_problem import INSTANCE, LONG_CONTEXT, SHORT_CHAT
from lib.exercises import Exercise, Kind, Mistake, NumberPart, Quantity, some_of
from lib.memory import KvPool, paged_bytes, tokens_stored
from lib.model import QWEN3_8B, Transformer, ffn_bytes_per_layer, kv_bytes_per_token, preset
from lib.offload import EVERY, MOST_LAYERS, NVLINK, PCIE, Offload, bytes_of_set, decode_steps, every_nth, lowest_link
from lib.prefetch import StepKind, plain_step_ns
from lib.prefix_value import MOST_BYTES_S, transfer_time
from lib.step_time import NS
from lib.units import GB, MB, MIB

# Dense models of one kind of layer, without windows; at 16 bits.
MODELS = (QWEN3_8B, preset("Llama-3.1-8B"), preset("Mistral-7B-v0.1"), preset("Qwen3-32B"))
LINKS = tuple(rate * GB for rate in (32, 64, 128, 450))
MS = 1e-3  # s
MOST_SET_BYTES, MOST_REQUEST_BYTES, MOST_OUTPUTS = 2**36, 2**50, 2**20
PAGE_TOKENS = 16  # of drawn requests
FEWEST_LAYERS, MOST_DRAWN_LAYERS = 24, 80

_SETS = ("layers", "every", "set_bytes")


@dataclass(frozen=True)
class Inputs:
    """What the exercise starts from: which layers give away a set of weights, buffers, KV of a request, links, a limit.

    Sizes in bytes, links in bytes per second one way, the limit in seconds. Raises InputError for values that make no
    sense, and for buffers that would hold all sets.
    """

    layers: int
    every: int
    set_bytes: int
    buffers: tuple[int, ...]
    input_state_bytes: int
    request_bytes: int
    links_bytes_s: tuple[int, ...]
    output_tokens: int
    limit_s: float

    def __post_init__(self) -> None:
        whole("layers", self.layers, at_least=4, at_most=MOST_LAYERS)
        whole("every", self.every, at_least=1, at_most=self.layers // 2)
        whole("set_bytes", self.set_bytes, at_least=1, at_most=MOST_SET_BYTES)
        wholes("buffers", self.buffers, 1, self.layers // self.every - 1)
        for name in ("input_state_bytes", "request_bytes"):
            whole(name, getattr(self, name), at_least=1, at_most=MOST_REQUEST_BYTES)
        wholes("links_bytes_s", self.links_bytes_s, MB, MOST_BYTES_S, 2, "a tuple of two links, each at least 1 MB/s")
        whole("output_tokens", self.output_tokens, at_least=2, at_most=MOST_OUTPUTS)
        if seconds("limit_s", self.limit_s, above_zero=True) < MS:
            raise InputError("limit_s", self.limit_s, "at least 1 ms")


BOOK = Inputs(
    layers=INSTANCE.model.layer_count,
    every=EVERY,
    set_bytes=bytes_of_set(INSTANCE.model),
    buffers=(1, 2),
    input_state_bytes=KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes).private_bytes(LONG_CONTEXT.shape_alone, False),
    request_bytes=KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes).private_bytes(LONG_CONTEXT.shape_alone),
    links_bytes_s=(PCIE.bandwidth_bytes_s, NVLINK.bandwidth_bytes_s),
    output_tokens=SHORT_CHAT.output_tokens,
    limit_s=1,
)


def _with_each_buffer(*names: str) -> Callable[[Inputs], list[dict[str, Any]]]:
    """The cases of a part: for each number of buffers, the inputs of these names."""
    return lambda inputs: [some_of(inputs, (*_SETS, *names)) | {"buffers": buffers} for buffers in inputs.buffers]


def _over_each_link(*names: str) -> Callable[[Inputs], list[dict[str, Any]]]:
    """The cases of a part: for each link, the inputs of these names."""
    return lambda inputs: [some_of(inputs, (*_SETS, *names)) | {"link_bytes_s": link} for link in inputs.links_bytes_s]


def _offload(layers: int, every: int, set_bytes: int, buffers: int = 1) -> Offload:
    return Offload(layers, every_nth(layers, every), set_bytes, buffers)


_FORGOTTEN = "the buffers are forgotten: each takes as much memory on the card as a set"
_ALL_LAYERS = "the sets of all layers are counted: only one layer in so many gives its set away"
_NEAREST = "the quotient is rounded to the nearest number: a part of a request does not fit"
_UP = "the quotient is rounded up: a part of a request does not fit"

NET = NumberPart(
    name="a",
    asked=(Quantity("memory gained", "MiB"),),
    cases=_with_each_buffer(),
    key=lambda **case: _offload(**case).net_bytes / MIB,
    mistakes=(
        Mistake(_FORGOTTEN, lambda **case: _offload(**case).released_bytes / MIB),
        Mistake(_ALL_LAYERS, lambda **case: _offload(**case | {"every": 1}).net_bytes / MIB),
    ),
    first_step="count the sets that are offloaded, and how many of them the buffers could hold",
    hint="what is gained are the sets offloaded less one set for each buffer, in units of 1024² bytes",
)


def _extra_part(name: str, what: str, size: str, first_step: str, hint: str) -> NumberPart:
    """How many more fit in what is gained, of the KV that the input of this name gives."""

    def split(case: dict[str, int]) -> tuple[Offload, int]:
        return _offload(**{one: value for one, value in case.items() if one != size}), case[size]

    def fitting(**case: int) -> int:
        offload, request_bytes = split(case)
        return offload.extra_requests(request_bytes)

    def forgotten(**case: int) -> int:
        offload, request_bytes = split(case)
        return offload.released_bytes // request_bytes

    def nearest(**case: int) -> int:
        offload, request_bytes = split(case)
        return (2 * offload.net_bytes + request_bytes) // (2 * request_bytes)

    def rounded_up(**case: int) -> int:
        offload, request_bytes = split(case)
        return -(-offload.net_bytes // request_bytes)

    return NumberPart(
        name=name,
        asked=(Quantity(what),),
        cases=_with_each_buffer(size),
        key=fitting,
        mistakes=(Mistake(_FORGOTTEN, forgotten), Mistake(_NEAREST, nearest), Mistake(_UP, rounded_up)),
        first_step=first_step,
        hint=hint,
    )


EXTRA_INPUTS = _extra_part(
    "b",
    "more input states",
    "input_state_bytes",
    "begin with the memory of a, and ask how often the KV of one input goes into it",
    "divide the memory of a by the bytes of one, and drop what is behind the decimal point",
)
EXTRA_REQUESTS = _extra_part(
    "c",
    "more complete requests",
    "request_bytes",
    "begin with the memory of a again: a complete request has the KV of its outputs as well",
    "ask whether the memory of a was divided by the size of a complete request, not by that of an input as in b",
)

_MIB_AS_MB = "MiB are taken for MB: the GB of a link are powers of 1000"
_NOT_ALL = "the set in the buffer is left out: the next step needs another one there first, so each step copies all"
_ONE_STEP = "only one step is counted: every step copies all sets anew"
_EACH_OUTPUT = "a step is counted for each output: the first one comes from prefill"
Key = Callable[..., float]


def _copies_s(link_bytes_s: int, **sets: int) -> float:
    return transfer_time(_offload(**sets).released_bytes, link_bytes_s)


def _copy_ms(**case: int) -> float:
    return _copies_s(**case) / MS


def _all_copies_s(output_tokens: int, **case: int) -> float:
    return decode_steps(output_tokens) * _copies_s(**case)


def _lowest_gb_s(output_tokens: int, limit_s: float, **sets: int) -> float:
    return lowest_link(_offload(**sets), decode_steps(output_tokens), limit_s) / GB


def _times(factor: float, key: Key) -> Key:
    return lambda **case: factor * key(**case)


def _of_too_many_or_few_sets(key: Key) -> tuple[Mistake, ...]:
    def without_one(**case: Any) -> float:
        sets = len(every_nth(case["layers"], case["every"]))
        return key(**case) * (sets - 1) / sets

    return Mistake(_NOT_ALL, without_one), Mistake(_ALL_LAYERS, lambda **case: key(**case | {"every": 1}))


def _of_time(key: Key) -> tuple[Mistake, ...]:
    """What else the copies over a link are taken for."""
    return (
        Mistake(_MIB_AS_MB, _times(MB / MIB, key)),
        Mistake("the weights go back as well: the host has kept them, nothing has changed in them", _times(2, key)),
        Mistake("both directions of the link are added up: copies go one way", _times(1 / 2, key)),
        *_of_too_many_or_few_sets(key),
    )


COPY = NumberPart(
    name="d",
    asked=(Quantity("copies of a step", "ms", relative=0.005),),
    cases=_over_each_link(),
    key=_copy_ms,
    mistakes=_of_time(_copy_ms),
    first_step="write down the bytes that one step copies: every offloaded set is needed in it",
    hint="divide those bytes by the bytes that the link moves in a second; its GB are powers of 1000",
)

ALL_STEPS = NumberPart(
    name="e",
    asked=(Quantity("copies of all steps", "s", relative=0.001),),
    cases=_over_each_link("output_tokens"),
    key=_all_copies_s,
    mistakes=(
        *_of_time(_all_copies_s),
        Mistake(_ONE_STEP, lambda output_tokens, **case: _copies_s(**case)),
        Mistake(_EACH_OUTPUT, lambda output_tokens, **case: output_tokens * _copies_s(**case)),
    ),
    first_step="ask how many decode steps there are, if prefill gives the first output",
    hint="multiply the time of d, in seconds, by one less than the outputs",
)

LOWEST_LINK = NumberPart(
    name="f",
    asked=(Quantity("lowest bandwidth", "GB/s", relative=0.001),),
    cases=lambda inputs: [some_of(inputs, (*_SETS, "output_tokens", "limit_s"))],
    key=_lowest_gb_s,
    mistakes=(
        Mistake(_ONE_STEP, lambda output_tokens, **case: _lowest_gb_s(output_tokens=2, **case)),
        Mistake(_EACH_OUTPUT, lambda output_tokens, **case: _lowest_gb_s(output_tokens=output_tokens + 1, **case)),
        Mistake("both directions are given: asked is the bandwidth of the one that is used", _times(2, _lowest_gb_s)),
        Mistake("half is given, as if both directions helped: copies go one way", _times(1 / 2, _lowest_gb_s)),
        *_of_too_many_or_few_sets(_lowest_gb_s),
    ),
    first_step="add up the bytes that all decode steps copy: they have to pass within the limit",
    hint="divide the bytes of all steps by the seconds of the limit, then by 1000³",
)


def _drawn(random: Random) -> Inputs:
    model: Transformer = random.choice(MODELS)
    every = random.randint(2, 6)
    sets = random.randint(ceil(FEWEST_LAYERS / every), MOST_DRAWN_LAYERS // every)
    layers, set_bytes = every * sets, ffn_bytes_per_layer(model)
    kv = layers * kv_bytes_per_token(model) // model.layer_count
    output_tokens = random.randint(64, 512)
    # Whether the second buffer costs an input state: drawn less often, as more of those suit.
    is_dear = random.random() < 0.15
    lengths = [
        length
        for length in range(4096, 16_385, 256)
        if ((sets - 1) * set_bytes // (length * kv) > (sets - 2) * set_bytes // (length * kv)) is is_dear
    ]
    if not lengths:
        return _drawn(random)
    length = random.choice(lengths)
    return Inputs(
        layers=layers,
        every=every,
        set_bytes=set_bytes,
        buffers=BOOK.buffers,
        input_state_bytes=length * kv,
        request_bytes=paged_bytes(tokens_stored(length, output_tokens), PAGE_TOKENS, kv),
        links_bytes_s=tuple(sorted(random.sample(LINKS, 2))),
        output_tokens=output_tokens,
        limit_s=random.randint(5, 40) / 20,
    )


def _suits(inputs: Inputs) -> bool:
    """Whether copies hide behind a decode step over the faster link only, no number of input states fits just so, the
    book's answers are wrong, and `check` calls each mistake by its name.

    A decode step takes as long for each layer as that of the chapter's model.
    """
    step_s = inputs.layers * plain_step_ns(StepKind.DECODE) / NS / BOOK.layers
    slow_s, fast_s = (_copies_s(**case) for case in COPY.cases(inputs))
    return (
        slow_s > step_s > fast_s
        and all(gained * MIB % inputs.input_state_bytes for gained in _answers(NET, inputs))
        and all(set(_answers(part, inputs)) != {_answers(part, BOOK)[0]} for part in (EXTRA_INPUTS, EXTRA_REQUESTS))
        and all(
            part.judge_function(inputs, mistake.formula).kind is Kind.MISTAKE
            for part in PARTS
            for mistake in part.mistakes
        )
    )


def _answers(part: NumberPart, inputs: Inputs) -> list[Any]:
    return [part.key(**case) for case in part.cases(inputs)]


PARTS = (NET, EXTRA_INPUTS, EXTRA_REQUESTS, COPY, ALL_STEPS, LOWEST_LINK)
EXERCISE = Exercise(number="8-5", parts=PARTS, drawn=_drawn, suits=_suits)
