"""A run small enough to be watched block by block: five requests in a pool that is too small for them. Section 8.3.2.

Sizes are made up, each for a reason. Three requests are in decode when D, the last to enter, makes the pool full, so
one is preempted; while it waits, C's user goes away, and the blocks of C bring D back. E comes meanwhile and stands
behind D. All begin with the same eight tokens, two blocks, so that it matters whether blocks can be found.
"""

from lib.paging import Findable
from lib.residency import Gate, PoolSetup
from lib.scheduling import Policy, Request, chunked

MS = 10**6  # ns
BLOCK_TOKENS = 4
POOL_BLOCKS = 28
RESERVE_BLOCKS = 4  # of the gate with a reserve: one more block for each row
COMMON_TOKENS = 2 * BLOCK_TOKENS
# Arrival in ms, tokens in, outputs; name by name.
_SIZES = {"A": (0, 16, 24), "B": (0, 12, 20), "C": (30, 16, 24), "D": (90, 12, 16), "E": (250, 12, 8)}
_CANCELLED, _CANCEL_MS = "C", 510


def five_requests() -> tuple[Request, ...]:
    """The requests A ... E in order of arrival; C's user goes away at 510 ms."""
    return tuple(
        Request(
            arrival * MS,
            prompt,
            output,
            name=name,
            ids=[*range(COMMON_TOKENS), *(100 * (place + 1) + each for each in range(prompt - COMMON_TOKENS))],
            cancel_ns=_CANCEL_MS * MS if name == _CANCELLED else None,
        )
        for place, (name, (arrival, prompt, output)) in enumerate(_SIZES.items())
    )


def policy() -> Policy:
    """Four rows; a step has 12 tokens, of which one prompt gets 8: so a prompt takes two steps and can be watched."""
    return chunked(max_running=4, chunk=8, token_budget=12)


def pool_of(
    blocks: int = POOL_BLOCKS, gate: Gate = Gate.WHOLE_SEQUENCE, findable: Findable = Findable.NEVER
) -> PoolSetup:
    """The pool they run in, or one of another size or with other rules; raises InputError as `PoolSetup` does."""
    return PoolSetup(blocks, BLOCK_TOKENS, gate, RESERVE_BLOCKS if gate == Gate.RESERVE else 0, findable)
