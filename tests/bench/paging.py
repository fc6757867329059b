"""The paged pool at work: prompts that share prefixes, an output each in turn; beside the plain pool of its tests."""

import random
from array import array

from lib.block_content import NO_TAG, Ids
from lib.paging import Findable, Pool
from tests.bench.frame import Result, median_seconds
from tests.plain_pool import PlainPool

SEQUENCES, RUNNING, OUTPUTS = 2_000, 64, 64
BLOCKS, BLOCK_TOKENS, VOCABULARY = 16_384, 16, 50_000
PREFIXES, PREFIX_TOKENS, FEWEST_OWN, MOST_OWN = 20, 1024, 256, 768
OPERATIONS = SEQUENCES * (OUTPUTS + 2)
BAR_PER_S, REACH_PER_S = 370_000, 600_000
FEW, FEW_BLOCKS = 8, 1024


def allocator() -> list[Result]:
    """Sequences admitted, grown token by token and released, all checks on, beside the plain pool."""
    prompts, outputs = work()
    few = prompts[:FEW]
    all_s, few_s, plain_s = median_seconds(
        lambda: run(prompts, outputs),
        lambda: run(few, outputs, FEW_BLOCKS),
        lambda: _run_plainly(few, outputs),
        times=5,
    )
    few_operations = FEW * (OUTPUTS + 2)
    by_share = plain_s / few_operations * OPERATIONS
    bar_s, reach_s = OPERATIONS / BAR_PER_S, OPERATIONS / REACH_PER_S
    return [
        Result(
            f"{OPERATIONS:,} operations on {BLOCKS:,} blocks", all_s, "s", "plain, by share", by_share, bar_s, reach_s
        ),
        Result(f"{few_operations:,} of them on {FEW_BLOCKS:,}", few_s * 1e3, "ms", "plain", plain_s * 1e3),
        Result("operations a second", OPERATIONS / all_s, "/s", "plain", few_operations / plain_s),
    ]


def work() -> tuple[list[Ids], list[int]]:
    """The prompts in the order of their admission, and the outputs that each of them gets."""
    draw = random.Random(8)
    prefixes = [[draw.randrange(VOCABULARY) for _ in range(PREFIX_TOKENS)] for _ in range(PREFIXES)]
    prompts = []
    for _ in range(SEQUENCES):
        own = [draw.randrange(VOCABULARY) for _ in range(draw.randint(FEWEST_OWN, MOST_OWN))]
        prompts.append(array("q", draw.choice(prefixes) + own))
    return prompts, [draw.randrange(VOCABULARY) for _ in range(OUTPUTS)]


def run(prompts: list[Ids], outputs: list[int], blocks: int = BLOCKS) -> int:
    """Tokens found at admission, all together; all blocks are free in the end."""
    pool, hit_tokens = Pool(blocks, BLOCK_TOKENS), 0
    for first in range(0, len(prompts), RUNNING):  # all have as many outputs, so those that run together end together
        running = [pool.admit(prompt) for prompt in prompts[first : first + RUNNING]]
        hit_tokens += sum(sequence.cached for sequence in running)
        for output in outputs:
            for sequence in running:
                pool.append(sequence, output)
        for sequence in running:
            pool.release(sequence)
    assert pool.free == blocks
    return hit_tokens


def _run_plainly(prompts: list[Ids], outputs: list[int]) -> None:
    pool = PlainPool(FEW_BLOCKS, BLOCK_TOKENS, Findable.ON_ADMISSION)
    names = [pool.admit(prompt, NO_TAG) for prompt in prompts]
    for output in outputs:
        for name in names:
            pool.extend(name, [output])
    for name in names:
        pool.release(name)
    assert len(pool.free()) == FEW_BLOCKS
