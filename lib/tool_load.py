"""A made load whose requests call a tool half-way: what Little's law says of it, and what the pool has to hold.

Short prompts of the design problem, each with a few outputs, so that many come and go within seconds. Source: section
8.6.1, which names such requests and gives no load: this one is the notebook's choice.
"""

from dataclasses import dataclass
from functools import cached_property

from lib.arrivals import Arrivals, spaced
from lib.checks import InputError, finite, keep_whole, one_of, seconds
from lib.design_problem import INSTANCE, SHORT_CHAT
from lib.fast_forward import simulate
from lib.little import EXAMPLE_RATE_PER_S, Occupancy, Phase, Seen, in_system, kv_held, requests_in_system, seen
from lib.memory import KvPool, RequestShape
from lib.residency import Gate, PoolSetup
from lib.schedule import Schedule
from lib.scheduling import Request, ToolWait, continuous
from lib.speculation_setup import MOST_SEED
from lib.step_time import FIT, NS, StepTime

OUTPUTS, CALLS_AFTER = 16, 8
WAIT_S, MAX_RUNNING = 1.0, 8
# Requests come for so long; in the second half of it a system that can settle has done so.
ARRIVING_S = 12
SEED = 8
MOST_RATE_PER_S, MOST_ROWS = 100, 1024


@dataclass(frozen=True)
class ToolLoad:
    """Requests that arrive for some seconds, each with one wait for a tool (none at 0 s), in a pool.

    A request enters where the pool can hold it and all others at their largest. Raises InputError for what makes no
    sense. Rates are arrivals a second, waits seconds; steps take what the fit says, if no other step time is given.
    """

    rate_per_s: float = EXAMPLE_RATE_PER_S
    wait_s: float = WAIT_S
    max_running: int = MAX_RUNNING
    arrivals: Arrivals = Arrivals.EVEN
    pool_bytes: int = INSTANCE.kv_pool_bytes
    seed: int = SEED
    step_time: StepTime = FIT

    def __post_init__(self) -> None:
        least = 1 / ARRIVING_S
        allowed = f"a rate at which somebody arrives within {ARRIVING_S} s, at most {MOST_RATE_PER_S} a second"
        if finite("rate_per_s", self.rate_per_s, least, allowed) > MOST_RATE_PER_S:
            raise InputError("rate_per_s", self.rate_per_s, allowed)
        seconds("wait_s", self.wait_s)
        keep_whole(self, MOST_ROWS, max_running=1)
        one_of("arrivals", self.arrivals, Arrivals)
        self.kv_pool.refuse_if_never(self.shape)
        keep_whole(self, MOST_SEED, seed=0)
        if not isinstance(self.step_time, StepTime):
            raise InputError("step_time", self.step_time, "a StepTime, such as FIT")

    @cached_property
    def requests(self) -> tuple[Request, ...]:
        """In order of arrival."""
        count = round(self.rate_per_s * ARRIVING_S)
        times = spaced(self.arrivals, self.rate_per_s, count, self.seed)
        wait_ns = round(self.wait_s * NS)
        calls = (ToolWait(CALLS_AFTER, wait_ns),) if wait_ns else ()
        return tuple(Request(at, SHORT_CHAT.input_tokens, OUTPUTS, tool_waits=calls) for at in times)

    @property
    def shape(self) -> RequestShape:
        """What decides the KV of each."""
        return RequestShape(SHORT_CHAT.input_tokens, OUTPUTS)

    @property
    def kv_pool(self) -> KvPool:
        return KvPool(INSTANCE.model, self.pool_bytes)

    @property
    def fit(self) -> int:
        """How many of them the pool holds at once."""
        return self.kv_pool.requests_that_fit(self.shape)

    @cached_property
    def run(self) -> Schedule:
        pages = self.pool_bytes // self.kv_pool.bytes_of(1)
        pool = PoolSetup(pages, self.kv_pool.page_tokens, Gate.FINAL_SIZE)
        return simulate(self.requests, continuous(self.max_running), self.step_time, pool)

    @cached_property
    def present(self) -> Occupancy:
        """Requests in the system, by what they do."""
        return in_system(self.run)

    @cached_property
    def held(self) -> Occupancy:
        """Blocks of KV that they hold."""
        return kv_held(self.run, self.kv_pool.page_tokens)

    @cached_property
    def whole_run(self) -> Seen:
        """What one sees who watches until the last has left."""
        return seen(self.run, 0, int(self.present.times_ns[-1]))

    @cached_property
    def settled(self) -> Occupancy:
        """Requests in the system in the second half of the time in which they arrive."""
        return self.present.within(ARRIVING_S * NS // 2, ARRIVING_S * NS)

    @property
    def by_the_law(self) -> float:
        """The rate times the mean stay: how many there are in the system if it settles."""
        return requests_in_system(self.rate_per_s, self.whole_run.mean_stay_s)

    @property
    def peak_bytes(self) -> int:
        """The most KV held at once, in whole blocks."""
        return self.held.peak * self.kv_pool.bytes_of(1)

    @property
    def idle_share(self) -> float:
        """Of the KV held, over time, the share whose request has no row."""
        return 1 - self.held.area(Phase.COMPUTING) / self.held.area()

    @property
    def longest_queue(self) -> int:
        """The most requests that queue at once."""
        return int(self.present.by_phase[Phase.QUEUED].max())
