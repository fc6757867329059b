"""Which pairs of tokens attention looks at."""

from lib.checks import whole

# The worked example of figures 8-8 and 8-9: a short chunk, at the beginning of a prompt or behind a context.
EXAMPLE_CHUNK, EXAMPLE_CONTEXT = 4, 8


def causal_pairs(new_tokens: int, context: int = 0, window: int | None = None) -> int:
    """Query-key pairs of new tokens behind a context: each new token sees the context, its predecessors and itself.

    `c h + c (c + 1) / 2`; with a window each sees the last `window` tokens only, itself among them.
    Source: section 8.2.3, figures 8-8 and 8-9.
    """
    c, h = whole("new_tokens", new_tokens), whole("context", context)
    if window is None:
        return c * h + c * (c + 1) // 2
    span = whole("window", window, at_least=1)
    return _pairs_of_first(h + c, span) - _pairs_of_first(h, span)


def _pairs_of_first(tokens: int, span: int) -> int:
    growing = min(tokens, span)
    return growing * (growing + 1) // 2 + (tokens - growing) * span
