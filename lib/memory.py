"""What fits on a card: weights, KV, activations and other buffers together stay within its capacity."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lib.checks import InputError, whole
from lib.model import ElementSize, HeadAttention, Transformer, paged_kv_bytes
from lib.units import shown

# Far beyond any context; a length above it is a slip, not a request.
MOST_TOKENS = 2**40
MOST_BYTES = 2**60


@dataclass(frozen=True)
class CardUse:
    """Bytes that an instance takes on one card: M_w, M_KV, M_a and M_u of section 8.1.2."""

    weight_bytes: int
    kv_bytes: int
    activation_bytes: int = 0
    other_bytes: int = 0

    def __post_init__(self) -> None:
        for name in ("weight_bytes", "kv_bytes", "activation_bytes", "other_bytes"):
            whole(name, getattr(self, name))

    @property
    def total_bytes(self) -> int:
        return self.weight_bytes + self.kv_bytes + self.activation_bytes + self.other_bytes


def fits(use: CardUse, capacity_bytes: int) -> bool:
    """Whether M_w + M_KV + M_a + M_u <= C. Source: section 8.1.2."""
    return use.total_bytes <= whole("capacity_bytes", capacity_bytes, at_least=1)


def fits_on_each(uses: Sequence[CardUse], capacity_bytes: int) -> tuple[bool, ...]:
    """The balance of each card by itself: room on one does not help another unless data are moved."""
    return tuple(fits(use, capacity_bytes) for use in uses)


def left_for_activations(capacity_bytes: int, weight_bytes: int, kv_pool_bytes: int) -> int:
    """Bytes left for activations, replay buffers and workspaces once weights and the KV pool have theirs.

    Raises InputError when weights and pool alone exceed the capacity. Source: sections 8.0 and 8.1.2.
    """
    capacity = whole("capacity_bytes", capacity_bytes, at_least=1)
    beside_weights = capacity - whole("weight_bytes", weight_bytes, at_least=1, at_most=capacity)
    return beside_weights - whole("kv_pool_bytes", kv_pool_bytes, at_most=beside_weights)


def blocks_held(block_tables: Iterable[Sequence[int]]) -> int:
    """Physical blocks that these block tables hold: one that several requests share is counted once."""
    return len({block for table in block_tables for block in table})


def tokens_stored(input_tokens: int, output_tokens: int) -> int:
    """Tokens whose KV a finished request has stored: N + G - 1, as its last output is never fed back."""
    tokens_in = whole("input_tokens", input_tokens, at_least=1, at_most=MOST_TOKENS)
    return tokens_in + whole("output_tokens", output_tokens, at_least=1, at_most=MOST_TOKENS) - 1


def pages_for(tokens: int, page_tokens: int) -> int:
    """Pages that hold so many tokens: ceil(tokens / page)."""
    return -(-whole("tokens", tokens) // whole("page_tokens", page_tokens, at_least=1))


def paged_bytes(tokens: int, page_tokens: int, kv_bytes_per_token: int) -> int:
    """Bytes of the pages that hold so many tokens, the last one whole."""
    return pages_for(tokens, page_tokens) * page_tokens * whole("kv_bytes_per_token", kv_bytes_per_token, at_least=1)


@dataclass(frozen=True)
class RequestShape:
    """What decides the KV of a kind of request: tokens in and out, and the prefix it shares with its like."""

    input_tokens: int
    output_tokens: int
    shared_prefix_tokens: int = 0

    def __post_init__(self) -> None:
        whole("input_tokens", self.input_tokens, at_least=1, at_most=MOST_TOKENS)
        whole("output_tokens", self.output_tokens, at_least=1, at_most=MOST_TOKENS)
        # The last token of the input is computed by each request itself, to have an output at all.
        whole("shared_prefix_tokens", self.shared_prefix_tokens, at_most=self.input_tokens - 1)


@dataclass(frozen=True)
class KvPool:
    """A pool of KV pages of one size for one model; bytes are those a paged engine reserves, in every layer."""

    model: Transformer
    pool_bytes: int
    page_tokens: int = 16
    bytes_per_element: ElementSize = 2

    def __post_init__(self) -> None:
        whole("page_tokens", self.page_tokens, at_least=1, at_most=MOST_TOKENS)
        page = paged_kv_bytes(self.model, 1, self.page_tokens, self.bytes_per_element)
        if whole("pool_bytes", self.pool_bytes, at_most=MOST_BYTES) < page:
            raise InputError("pool_bytes", self.pool_bytes, f"at least one page, {page} bytes")

    def bytes_of(self, tokens: int) -> int:
        """Bytes of the pages that hold so many tokens; 0 for none."""
        if whole("tokens", tokens) == 0:
            return 0
        return paged_kv_bytes(self.model, tokens, self.page_tokens, self.bytes_per_element)

    def shared_bytes(self, request: RequestShape) -> int:
        """Bytes of the common prefix, held once: only pages that it fills are shared."""
        return self.bytes_of(self._shared_tokens(request))

    def private_bytes(self, request: RequestShape, finished: bool = True) -> int:
        """Bytes of one request beside the shared pages: after its last output, or just after its prefill."""
        outputs = request.output_tokens if finished else 1
        return self.bytes_of(tokens_stored(request.input_tokens, outputs) - self._shared_tokens(request))

    def held_bytes(self, request: RequestShape, requests: int, finished: bool = True) -> int:
        """Bytes that so many requests of a kind hold together: the shared pages once, the rest of each."""
        return self.shared_bytes(request) + whole("requests", requests) * self.private_bytes(request, finished)

    def requests_that_fit(self, request: RequestShape, finished: bool = True) -> int:
        """How many whole requests of a kind the pool holds at once.

        Counted when all are finished; with `finished=False` just after prefill, which admits too many (section 8.1.2).
        """
        room = self.pool_bytes - self.shared_bytes(request)
        return max(0, room // self.private_bytes(request, finished))

    def refuse_if_never(self, request: RequestShape) -> None:
        """Raise InputError for a request that can never be held, not even alone: waiting would not help it."""
        needed = self.held_bytes(request, 1)
        if needed > self.pool_bytes:
            allowed = f"at most what the pool holds, {shown(self.pool_bytes, 'MiB')}"
            raise InputError("KV of one request at its end", shown(needed, "MiB"), allowed)

    def _shared_tokens(self, request: RequestShape) -> int:
        return request.shared_prefix_tokens // self.page_tokens * self.page_tokens


def adapter_bytes(model: Transformer, rank: int, bytes_per_element: int = 2) -> int:
    """Bytes of one low-rank adapter on the query and value projections of every layer: rank x (in + out) each.

    Raises InputError for a model whose layers have no such projections. Source: section 8.2.1.
    """
    rank, size = whole("rank", rank, at_least=1), whole("bytes_per_element", bytes_per_element, at_least=1)
    elements = 0
    for group in model.layers:
        attention = group.attention
        if not isinstance(attention, HeadAttention):
            raise InputError("model", model.name, "a model whose layers all have query and value projections")
        query, value = attention.query_heads * attention.head_dim, attention.kv_heads * attention.head_dim
        elements += group.count * rank * ((model.hidden + query) + (model.hidden + value))
    return elements * size
