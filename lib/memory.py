"""What fits on a card: weights, KV, activations and other buffers together stay within its capacity."""

from lib.checks import InputError, whole


def left_for_activations(capacity_bytes: int, weight_bytes: int, kv_pool_bytes: int) -> int:
    """Bytes left for activations, replay buffers and workspaces once weights and the KV pool have theirs.

    Raises InputError when weights and pool alone exceed the capacity. Source: sections 8.0 and 8.1.2.
    """
    capacity = whole("capacity_bytes", capacity_bytes, at_least=1)
    taken = whole("weight_bytes", weight_bytes, at_least=1) + whole("kv_pool_bytes", kv_pool_bytes)
    if taken > capacity:
        raise InputError(
            "kv_pool_bytes", kv_pool_bytes, f"at most {capacity - weight_bytes} bytes beside these weights"
        )
    return capacity - taken
