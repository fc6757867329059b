"""What fits on a card: weights, KV, activations and other buffers together stay within its capacity."""

from lib.checks import whole


def left_for_activations(capacity_bytes: int, weight_bytes: int, kv_pool_bytes: int) -> int:
    """Bytes left for activations, replay buffers and workspaces once weights and the KV pool have theirs.

    Raises InputError when weights and pool alone exceed the capacity. Source: sections 8.0 and 8.1.2.
    """
    capacity = whole("capacity_bytes", capacity_bytes, at_least=1)
    beside_weights = capacity - whole("weight_bytes", weight_bytes, at_least=1, at_most=capacity)
    return beside_weights - whole("kv_pool_bytes", kv_pool_bytes, at_most=beside_weights)
