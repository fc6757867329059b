"""Exercise 8-3: what block size and a shared prefix do to the KV that is held. Source: sections 8.3.1 and 8.3.2."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from lib.allotment import LENGTHS, MAX_TOKENS, wasted_slots
from lib.checks import whole, wholes
from lib.design_problem import INSTANCE, LONG_CONTEXT
from lib.exercise_8_1 import MODELS, POOL_GRAIN, drawn_outputs
from lib.exercises import ChoicePart, Exercise, Kind, Mistake, NumberPart, Quantity, some_of
from lib.memory import MOST_BYTES, MOST_TOKENS, RequestShape, paged_bytes, pages_for, tokens_stored
from lib.model import kv_bytes_per_token
from lib.units import MIB

BOTH, SHARED_ONLY, NEITHER = "both", "shared only", "neither"

_REQUEST = ("input_tokens", "output_tokens", "block_tokens", "kv_bytes_per_token")


@dataclass(frozen=True)
class Inputs:
    """What the exercise starts from: tokens of sequences and blocks; a kind of request, three batches of it, a pool."""

    lengths: tuple[int, ...]
    block_sizes: tuple[int, ...]
    input_tokens: int
    shared_prefix_tokens: int
    output_tokens: int
    batches: tuple[int, ...]
    block_tokens: int
    kv_bytes_per_token: int
    pool_bytes: int

    def __post_init__(self) -> None:
        for name in ("lengths", "block_sizes"):
            wholes(name, getattr(self, name), 1, MOST_TOKENS)
        wholes("batches", self.batches, 1, MOST_TOKENS, count=3, allowed="a tuple of three batches")
        RequestShape(self.input_tokens, self.output_tokens, self.shared_prefix_tokens)  # refuses what is no request
        whole("block_tokens", self.block_tokens, at_least=1, at_most=MOST_TOKENS)
        for name in ("kv_bytes_per_token", "pool_bytes"):
            whole(name, getattr(self, name), at_least=1, at_most=MOST_BYTES)


BOOK = Inputs(
    lengths=LENGTHS,
    block_sizes=(2, 4, 8),
    input_tokens=LONG_CONTEXT.input_tokens,
    shared_prefix_tokens=LONG_CONTEXT.shared_prefix_tokens,
    output_tokens=LONG_CONTEXT.output_tokens,
    batches=(8, 16, 32),
    block_tokens=16,
    kv_bytes_per_token=kv_bytes_per_token(INSTANCE.model),
    pool_bytes=INSTANCE.kv_pool_bytes,
)


def _used_in_last(length: int, block_tokens: int) -> int:
    """Tokens in the last block, where a full one is taken for empty."""
    return length % block_tokens


def _unused_if_never_full(length: int, block_tokens: int) -> int:
    return block_tokens - _used_in_last(length, block_tokens)


def _sums(unused: Callable[[int, int], int], blocks: Callable[[int, int], int]) -> Callable[..., tuple[int, int]]:
    """Unused slots and table entries of all sequences together, from those of one."""

    def sums(lengths: tuple[int, ...], block_tokens: int) -> tuple[int, int]:
        found = [(unused(length, block_tokens), blocks(length, block_tokens)) for length in lengths]
        return sum(slots for slots, _ in found), sum(entries for _, entries in found)

    return sums


UNUSED = NumberPart(
    name="a",
    asked=(Quantity("unused slots"),),
    cases=lambda inputs: [
        {"block_tokens": block_tokens, "length": length}
        for block_tokens in inputs.block_sizes
        for length in inputs.lengths
    ],
    key=lambda length, block_tokens: wasted_slots(length, block_tokens),
    mistakes=(
        Mistake(
            "a full last block is taken for an empty one: where the block size divides the length, nothing is unused",
            _unused_if_never_full,
        ),
        Mistake(
            "the used slots of the last block are counted: asked is how many of it stay free",
            _used_in_last,
        ),
        Mistake(
            "the bound is taken for each sequence: p - 1 is the most that can be unused, the length decides how many",
            lambda block_tokens, **_: block_tokens - 1,
        ),
        Mistake(
            "the maximum of the example in section 8.3.1 is reserved: here a sequence gets the blocks that it needs",
            lambda length, **_: MAX_TOKENS - length,
        ),
    ),
    first_step="count how many blocks the sequence needs: its last block counts whole, however little is in it",
    hint="take the slots of all its blocks and subtract its tokens; all blocks but the last are full",
)

TOTALS = NumberPart(
    name="b",
    asked=(Quantity("unused slots"), Quantity("table entries")),
    cases=lambda inputs: [
        {"lengths": inputs.lengths, "block_tokens": block_tokens} for block_tokens in inputs.block_sizes
    ],
    key=_sums(wasted_slots, pages_for),
    mistakes=(
        Mistake(
            "the lengths are added up and paged as one sequence: no block holds two sequences, each has its own tail",
            lambda lengths, block_tokens: (
                wasted_slots(sum(lengths), block_tokens),
                pages_for(sum(lengths), block_tokens),
            ),
        ),
        Mistake(
            "a sequence whose last block is full is given one more: a new block is taken only for a token to put in it",
            _sums(_unused_if_never_full, lambda length, block_tokens: length // block_tokens + 1),
        ),
        Mistake(
            "only full blocks are counted: the tokens behind them need a block, and an entry, too",
            _sums(_used_in_last, operator.floordiv),
        ),
        Mistake(
            "the bound is taken for each sequence: p - 1 is the most that can be unused, the length decides how many",
            _sums(lambda _, block_tokens: block_tokens - 1, pages_for),
        ),
        Mistake(
            "all slots of the blocks are counted: asked is how many of them stay free",
            _sums(lambda length, block_tokens: pages_for(length, block_tokens) * block_tokens, pages_for),
        ),
        Mistake(
            "each token is given an entry: an entry points at a block, which holds several",
            _sums(wasted_slots, lambda length, _: length),
        ),
    ),
    first_step="write down how many blocks each sequence has: its table has an entry for each of them",
    hint="add up the numbers of a for this block size, and beside them the blocks of each sequence",
)


def _each_batch(*names: str) -> Callable[[Inputs], list[dict[str, int]]]:
    """The cases of a part: for each batch, the inputs of these names."""

    def cases(inputs: Inputs) -> list[dict[str, int]]:
        return [{"requests": requests} | some_of(inputs, names) for requests in inputs.batches]

    return cases


def _kv_mib(
    requests: int, private_tokens: int, block_tokens: int, kv_bytes_per_token: int, common_blocks: int = 0
) -> float:
    common = common_blocks * block_tokens * kv_bytes_per_token
    return (common + requests * paged_bytes(private_tokens, block_tokens, kv_bytes_per_token)) / MIB


def _independent(requests: int, input_tokens: int, output_tokens: int, **blocks: int) -> float:
    return _kv_mib(requests, tokens_stored(input_tokens, output_tokens), **blocks)


def _with_common(
    common_blocks: int, requests: int, input_tokens: int, output_tokens: int, block_tokens: int, kv_bytes_per_token: int
) -> float:
    private_tokens = tokens_stored(input_tokens, output_tokens) - common_blocks * block_tokens
    return _kv_mib(requests, max(0, private_tokens), block_tokens, kv_bytes_per_token, common_blocks)


def _shared(shared_prefix_tokens: int, block_tokens: int, **batch: int) -> float:
    return _with_common(shared_prefix_tokens // block_tokens, block_tokens=block_tokens, **batch)


_PREFILL_ONLY = "only the KV after prefill is counted: a request grows until its last output"
_LAST_OUTPUT = "the last output is stored too: it is never fed back, so it has no KV"
_NO_BLOCKS = "tokens are not rounded up to blocks: a request holds whole blocks"

INDEPENDENT = NumberPart(
    name="c",
    asked=(Quantity("KV of the batch", "MiB"),),
    cases=_each_batch(*_REQUEST),
    key=_independent,
    mistakes=(
        Mistake(_PREFILL_ONLY, lambda output_tokens, **batch: _independent(output_tokens=1, **batch)),
        Mistake(
            _LAST_OUTPUT,
            lambda output_tokens, **batch: _independent(output_tokens=output_tokens + 1, **batch),
            may_coincide=True,  # shows only where a request ends on a block's border
        ),
        Mistake(
            _NO_BLOCKS,
            lambda block_tokens, **batch: _independent(block_tokens=1, **batch),
            may_coincide=True,  # shows only elsewhere
        ),
        Mistake(
            "one request alone is counted: asked is what the whole batch holds",
            lambda requests, **request: _independent(requests=1, **request),
        ),
    ),
    first_step="count the tokens whose KV one request holds when it ends",
    hint="round them up to whole blocks, times the requests, times the bytes of a block; then divide by 1024²",
)

SHARED = NumberPart(
    name="d",
    asked=(Quantity("KV of the batch", "MiB"),),
    cases=_each_batch(*_REQUEST, "shared_prefix_tokens"),
    key=_shared,
    mistakes=(
        Mistake(
            "the prefix is subtracted once: of its copies, one for each request, all but one are gone",
            lambda shared_prefix_tokens, kv_bytes_per_token, **batch: (
                _independent(kv_bytes_per_token=kv_bytes_per_token, **batch)
                - shared_prefix_tokens * kv_bytes_per_token / MIB
            ),
        ),
        Mistake(
            "the prefix is not counted: one copy of it stays in memory",
            lambda shared_prefix_tokens, block_tokens, kv_bytes_per_token, **batch: (
                _shared(shared_prefix_tokens, block_tokens, kv_bytes_per_token=kv_bytes_per_token, **batch)
                - shared_prefix_tokens // block_tokens * block_tokens * kv_bytes_per_token / MIB
            ),
        ),
        Mistake(
            "the prefix is counted once per request, as if nothing were shared: all tables point at the same blocks",
            lambda shared_prefix_tokens, **batch: _independent(**batch),
        ),
        Mistake(
            "one request is counted with the prefix alone: behind it, it has blocks of its own like all others",
            lambda requests, **request: _shared(requests=requests - 1, **request),
        ),
        Mistake(
            "the first request is counted twice: as a whole, and again among those that add their own blocks",
            lambda requests, **request: _shared(requests=requests + 1, **request),
        ),
        Mistake(_PREFILL_ONLY, lambda output_tokens, **batch: _shared(output_tokens=1, **batch)),
        Mistake(
            _LAST_OUTPUT,
            lambda output_tokens, **batch: _shared(output_tokens=output_tokens + 1, **batch),
            may_coincide=True,  # shows only where a request ends on a block's border
        ),
        Mistake(
            "a block that the prefix fills in part is shared too: in the rest of it each request has tokens of its own",
            lambda shared_prefix_tokens, block_tokens, **batch: _with_common(
                pages_for(shared_prefix_tokens, block_tokens), block_tokens=block_tokens, **batch
            ),
            may_coincide=True,  # shows only where the prefix ends within a block
        ),
        Mistake(
            "the prefix is held once to its last token: the block in which it ends is each request's own as a whole",
            lambda shared_prefix_tokens, input_tokens, kv_bytes_per_token, **batch: (
                shared_prefix_tokens * kv_bytes_per_token / MIB
                + _independent(
                    input_tokens=input_tokens - shared_prefix_tokens, kv_bytes_per_token=kv_bytes_per_token, **batch
                )
            ),
            may_coincide=True,  # shows only there too
        ),
        Mistake(
            "the common tokens behind the last full block are forgotten: they are in each request's own blocks too",
            lambda requests, input_tokens, output_tokens, shared_prefix_tokens, block_tokens, kv_bytes_per_token: (
                _kv_mib(
                    requests,
                    tokens_stored(input_tokens, output_tokens) - shared_prefix_tokens,
                    block_tokens,
                    kv_bytes_per_token,
                    common_blocks=shared_prefix_tokens // block_tokens,
                )
            ),
            may_coincide=True,  # and there, if these tokens take one block more
        ),
        Mistake(
            "each spared copy is subtracted to its last token: saved are only the blocks that the prefix fills",
            lambda shared_prefix_tokens, requests, kv_bytes_per_token, **request: (
                _independent(requests=requests, kv_bytes_per_token=kv_bytes_per_token, **request)
                - (requests - 1) * shared_prefix_tokens * kv_bytes_per_token / MIB
            ),
            may_coincide=True,  # and there
        ),
        Mistake(
            _NO_BLOCKS,
            lambda block_tokens, **batch: _shared(block_tokens=1, **batch),
            may_coincide=True,  # shows only where a request or the prefix ends within a block
        ),
    ),
    first_step="count the blocks that the common prefix fills: they are held once, whatever the batch",
    hint="add to them, for each request, the blocks for all its tokens behind the shared blocks (not behind the "
    "prefix), its outputs but the last among them",
)


def _verdict(inputs: Inputs, number: int, **instead: int) -> str:
    """Which of the two fit into the pool, for one of the batches."""
    independent, shared = (part.key(**{**part.cases(inputs)[number], **instead}) for part in (INDEPENDENT, SHARED))
    pool = inputs.pool_bytes / MIB
    return BOTH if independent <= pool else SHARED_ONLY if shared <= pool else NEITHER


def _fits_part(name: str, number: int) -> ChoicePart:
    return ChoicePart(
        name=name,
        options=lambda _: (BOTH, SHARED_ONLY, NEITHER),
        key=lambda inputs: _verdict(inputs, number),
        mistakes=(
            Mistake(
                "the KV after prefill is compared: it fits then, and runs out before the last outputs",
                lambda inputs: _verdict(inputs, number, output_tokens=1),
                may_coincide=True,  # shows only for a batch that just does not fit
            ),
        ),
        first_step="turn the pool into MiB, and compare with it what c and d give for this batch",
        hint="sharing never needs more, so where the independent batch fits, the shared one does",
    )


SAVED = NumberPart(
    name="f",
    asked=(Quantity("blocks saved"),),
    cases=_each_batch("block_tokens", "kv_bytes_per_token"),
    key=lambda requests, **_: requests - 1,
    mistakes=(
        Mistake("the common block is taken for free: one copy of it stays in memory", lambda requests, **_: requests),
        Mistake("only one copy goes: each request had its own, and a single one is left for all", lambda **_: 1),
        Mistake(
            "table entries are counted: the tables keep their lengths, but now they point at the same block",
            lambda **_: 0,
        ),
        Mistake(
            "the saved memory is given in MiB: asked is the number of blocks, however large they are",
            lambda requests, **block: _kv_mib(requests - 1, 1, **block),
            may_coincide=True,  # shows only where a block has not just 1 MiB
        ),
    ),
    first_step="write down how many physical blocks hold this content before, and how many after",
    hint="before, each request has one of its own; after, all tables point at the same one",
)


def _drawn_lengths(random: Random, smallest: int) -> tuple[int, ...]:
    """From four to six lengths, among them a multiple of the largest block and one of the middle block alone."""
    middle, largest = 2 * smallest, 4 * smallest
    lengths = [random.randint(3, 40) for _ in range(random.randint(2, 4))]
    lengths += [random.randrange(largest, 41, largest), random.randrange(middle, 41, largest)]
    random.shuffle(lengths)
    return tuple(lengths)


def _drawn(random: Random) -> Inputs:
    smallest, block_tokens = random.choice((2, 3, 4, 5)), random.choice((8, 16, 32))
    input_tokens = 64 * random.randint(64, 256)
    output_tokens = drawn_outputs(random, block_tokens)
    blocks = pages_for(tokens_stored(input_tokens, output_tokens), block_tokens)
    filled = input_tokens // block_tokens
    common_blocks = random.randint(-(-3 * filled // 10), 9 * filled // 10 - 1)
    into_block = random.choice((0, random.randint(1, block_tokens - 1)))
    kv = kv_bytes_per_token(random.choice(MODELS))
    block_bytes = block_tokens * kv
    pool_bytes = POOL_GRAIN * random.randint(
        4 * blocks * block_bytes // POOL_GRAIN + 1, 14 * blocks * block_bytes // POOL_GRAIN
    )
    fit = pool_bytes // (blocks * block_bytes)
    fit_shared = (pool_bytes // block_bytes - common_blocks) // (blocks - common_blocks)
    just_out = (fit, fit + 1, fit_shared + 1)
    anywhere = (
        random.randint(2, fit),
        random.randint(fit + 1, fit_shared),
        random.randint(fit_shared + 1, 2 * fit_shared),
    )
    return Inputs(
        lengths=_drawn_lengths(random, smallest),
        block_sizes=(smallest, 2 * smallest, 4 * smallest),
        input_tokens=input_tokens,
        shared_prefix_tokens=common_blocks * block_tokens + into_block,
        output_tokens=output_tokens,
        batches=random.choice((just_out, anywhere)),
        block_tokens=block_tokens,
        kv_bytes_per_token=kv,
        pool_bytes=pool_bytes,
    )


def _suits(inputs: Inputs) -> bool:
    """Whether `check` calls each mistake by its name: none is the key in another unit or in another order."""
    return all(
        part.judge_function(inputs, mistake.formula).kind in {Kind.RIGHT, Kind.MISTAKE}
        for part in (UNUSED, TOTALS, INDEPENDENT, SHARED, SAVED)
        for mistake in part.mistakes
    )


EXERCISE = Exercise(
    number="8-3",
    parts=(UNUSED, TOTALS, INDEPENDENT, SHARED, _fits_part("e1", 0), _fits_part("e2", 1), _fits_part("e3", 2), SAVED),
    drawn=_drawn,
    suits=_suits,
)
