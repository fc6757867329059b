"""The worked example of section 8.2.2: four requests, of which two may run at once, under each of three policies."""

from enum import StrEnum

from lib import scheduling
from lib.checks import one_of, whole
from lib.schedule import MOST_NS
from lib.scheduling import Order, Policy, Request
from lib.step_time import MOST_TOKENS

MS = 10**6  # ns
MAX_RUNNING = 2
CHUNK = 2048
TOKEN_BUDGET = 4096
R0_OUTPUTS, R1_OUTPUTS, R2_OUTPUTS, R3_OUTPUTS = 8, 2, 2, 4
SHORT_PROMPT, R2_PROMPT = 2048, 8192
R2_ARRIVAL_NS, R3_ARRIVAL_NS = 20 * MS, 30 * MS
# What the host takes to submit a step, as in the first of the three experiments of section 8.6.3.
HOST_NS = 26 * MS
NAMES = ("r0", "r1", "r2", "r3")
# The example is there to be looked at, so it stays within what can be seen.
MOST_OUTPUTS, MOST_PROMPT = 256, 2**16


class Batching(StrEnum):
    """The three policies that the example is run under."""

    FIXED = "fixed batch"
    CONTINUOUS = "continuous batching"
    CHUNKED = "chunked prefill"


def four_requests(
    r0_outputs: int = R0_OUTPUTS,
    r1_outputs: int = R1_OUTPUTS,
    r2_arrival_ns: int = R2_ARRIVAL_NS,
    r3_arrival_ns: int = R3_ARRIVAL_NS,
    r2_prompt: int = R2_PROMPT,
) -> tuple[Request, ...]:
    """The requests r0 ... r3 of the example, or the same with changed values, in order of arrival.

    Times in ns, prompts and outputs in tokens. Raises InputError for values that make no sense. Source: section 8.2.2.
    """
    r0_outputs = whole("r0_outputs", r0_outputs, at_least=1, at_most=MOST_OUTPUTS)
    r1_outputs = whole("r1_outputs", r1_outputs, at_least=1, at_most=MOST_OUTPUTS)
    r2_arrival_ns = whole("r2_arrival_ns", r2_arrival_ns, at_most=MOST_NS)
    r3_arrival_ns = whole("r3_arrival_ns", r3_arrival_ns, at_most=MOST_NS)
    r2_prompt = whole("r2_prompt", r2_prompt, at_least=1, at_most=MOST_PROMPT)
    load = (
        Request(0, SHORT_PROMPT, r0_outputs, name="r0"),
        Request(0, SHORT_PROMPT, r1_outputs, name="r1"),
        Request(r2_arrival_ns, r2_prompt, R2_OUTPUTS, name="r2"),
        Request(r3_arrival_ns, SHORT_PROMPT, R3_OUTPUTS, name="r3"),
    )
    return tuple(sorted(load, key=lambda request: request.arrival_ns))


def policy_of(
    policy: Batching,
    max_running: int = MAX_RUNNING,
    wait_to_fill_ns: int = 0,
    chunk: int = CHUNK,
    token_budget: int = TOKEN_BUDGET,
    order: Order = Order.DECODES_FIRST,
) -> Policy:
    """One of the three policies; a fixed batch alone may wait to be filled, and chunked prefill alone has limits.

    Raises InputError for limits that make no sense, even where the policy does not use them. Source: section 8.2.2.
    """
    whole("chunk", chunk, at_least=1, at_most=MOST_TOKENS)
    whole("token_budget", token_budget, at_least=1, at_most=MOST_TOKENS)
    known = {
        Batching.FIXED: scheduling.fixed_batch(max_running, wait_to_fill_ns),
        Batching.CONTINUOUS: scheduling.continuous(max_running),
        Batching.CHUNKED: scheduling.chunked(max_running, chunk, token_budget, order),
    }
    return known[one_of("policy", policy, Batching)]
