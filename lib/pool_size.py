"""What the size of a pool changes: equal requests, all there at time 0, run in a pool of one size after another.

A preempted request computes anew all that it had in KV. A larger pool fills later, and by then its victim has more.
Nothing is found again, as in the record. Source: section 8.3.2.
"""

from dataclasses import dataclass

from lib.checks import InputError, keep_whole, one_of, whole
from lib.fast_forward import simulate
from lib.memory import pages_for, tokens_stored
from lib.records import record
from lib.residency import Gate, PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Request, chunked
from lib.step_time import FIT, StepTime

_SMALL, _LARGE = (record("preemption").one(run=run) for run in ("small_pool", "large_pool"))
PROMPT = int(_SMALL["input_tokens_per_request"])
OUTPUT = int(_SMALL["output_tokens_total"]) // int(_SMALL["requests"])
REQUESTS = int(_SMALL["requests"])
TOKEN_BUDGET = 512  # of the recorded runs, which is also the most of one prompt in a step
BLOCK_TOKENS = 16
# A run is there to be looked at within a moment, so it stays within what a slider shows.
MOST_REQUESTS, MOST_OUTPUT, MOST_BUDGET, MOST_SIZES = 64, 4096, 2**16, 1000


@dataclass(frozen=True)
class EqualRequests:
    """So many requests of one size, all there at time 0, and the rules by which they share steps and a pool.

    By default those of the record. Raises InputError for what makes no sense. Source: record preemption.
    """

    requests: int = REQUESTS
    output: int = OUTPUT
    token_budget: int = TOKEN_BUDGET
    gate: Gate = Gate.WHOLE_SEQUENCE
    reserve_blocks: int = 0

    def __post_init__(self) -> None:
        keep_whole(self, MOST_REQUESTS, requests=1)
        keep_whole(self, MOST_OUTPUT, output=1)
        keep_whole(self, MOST_BUDGET, token_budget=self.requests)
        one_of("gate", self.gate, Gate)
        keep_whole(self, None if self.gate == Gate.RESERVE else 0, reserve_blocks=0)

    @property
    def blocks_of_one(self) -> int:
        """Blocks of one request at its largest: in a smaller pool all would be refused."""
        return pages_for(tokens_stored(PROMPT, self.output), BLOCK_TOKENS)

    @property
    def blocks_of_all(self) -> int:
        """Blocks of all requests at their largest: in a pool of as many nobody is ever preempted."""
        return self.requests * self.blocks_of_one

    def in_pool(self, blocks: int, step_time: StepTime = FIT) -> Schedule:
        """Their run in a pool of so many blocks; step times by the fit, or by another model."""
        load = [Request(0, PROMPT, self.output)] * self.requests
        policy = chunked(self.requests, self.token_budget, self.token_budget)
        return simulate(load, policy, step_time, PoolSetup(blocks, BLOCK_TOKENS, self.gate, self.reserve_blocks))

    def sizes(self, count: int) -> tuple[int, ...]:
        """About so many pool sizes, evenly from the smallest that holds one request to the one that holds all."""
        whole("count", count, at_least=1, at_most=MOST_SIZES)
        first = max(self.blocks_of_one, self.reserve_blocks + 1)
        last = max(first, self.blocks_of_all)
        return tuple(sorted({first + (last - first) * place // count for place in range(count + 1)} | {last}))


def tokens_again(schedule: Schedule) -> int:
    """Tokens computed once more than needed, as preemptions had taken their KV; all users have stayed to the end.

    Raises InputError for a schedule in which somebody went away.
    """
    if schedule.cancellations:
        raise InputError("schedule", "one with cancelled requests", "one in which each request gives all its outputs")
    return schedule.scheduled_tokens - sum(tokens_stored(one.prompt, one.output) for one in schedule.requests)


@dataclass(frozen=True)
class Recorded:
    """A measured run of the recorded requests: the blocks that they could have, tokens computed again, preemptions."""

    blocks: int
    tokens_again: int
    preemptions: int


def recorded() -> tuple[Recorded, Recorded]:
    """The two pools that were measured; what the larger one computed was needed. Source: record preemption."""
    needed = int(_LARGE["scheduled_token_positions"])
    small, large = (
        Recorded(
            int(run["pool_blocks"]) - int(run["reserved_blocks"]),
            int(run["scheduled_token_positions"]) - needed,
            int(run["preemptions"]),
        )
        for run in (_SMALL, _LARGE)
    )
    return small, large
