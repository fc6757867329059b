# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Exercise 8-3: block size, a shared prefix, and what fits
#
# Calculate. It belongs to sections 8.3.1 and 8.3.2.
#
# Paging gives each sequence whole blocks, so a part of the last one stays unused. Sharing holds a common prefix once, so the copies of it are saved. How much
# is each of the two, and how many requests does it let in?
#
# **How to answer.** Each part has a place for numbers (`a = None`) and for a function that computes them. Put your own in place of the lines that say
# *not answered yet*, run the cell, then the cell below it: `check` tells what it found. Numbers by hand are the warm-up. The function is also tried
# with inputs that you do not see, and it is the function that earns the marks; where a part is a choice, the choice does.
# Keep the names of functions and of their parameters: `check` calls them by these names.
#
# Twice, after part b and in part f, you can ask the allocator of the chapter itself: it hands out blocks, and counts them.

# %% [markdown]
# The inputs, in bytes and tokens. Parts a and b are about a few short sequences and several block sizes. Parts c to e are about long requests:
# each has $L$ tokens of input and gives $G$ outputs, and what they share, if they do, is their first $S$ tokens.

# %% nbgrader={"grade": false, "grade_id": "inputs", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib import exercise_8_3
from lib.exercises import Checker

inputs = exercise_8_3.Inputs(
    lengths=(9, 13, 5, 15),  # l: tokens of each short sequence
    block_sizes=(2, 4, 8),  # p: tokens that a block holds, for parts a and b
    input_tokens=8_192,  # L
    shared_prefix_tokens=6_144,  # S
    output_tokens=256,  # G
    batches=(8, 16, 32),  # b: numbers of requests
    block_tokens=16,  # p0: tokens that a block holds, for parts c to f
    kv_bytes_per_token=147_456,  # k
    pool_bytes=12_884_901_888,  # M: memory for KV
)
check = Checker(exercise_8_3.EXERCISE, inputs)


# %% [markdown]
# ## a. Unused slots of each sequence
#
# How many slots does a sequence of $l$ tokens leave unused in blocks of $p$ tokens? One number for each sequence: first all of them with the smallest block
# size, then all with the next. `check.cases("a")` shows the cases in this order, one a line.

# %% nbgrader={"grade": false, "grade_id": "a", "locked": false, "schema_version": 3, "solution": true, "task": false}
def unused_slots(length, block_tokens):
    pass  # not answered yet


a = None  # whole numbers, as many as there are cases
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, unused_slots)


# %% [markdown]
# ## b. Totals
#
# For each block size: how many slots stay unused in all sequences together, and how many entries do their block tables have together? Nothing is
# shared. Two numbers for each block size, the slots first.

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def totals(lengths, block_tokens):
    pass  # not answered yet


b = None  # two whole numbers for each block size
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, totals)

# %% [markdown]
# **Let the allocator count.** The next cells admit the sequences to a pool, no two tokens alike, and count what the pool holds. Answer b first. For each block
# size in which your numbers differ from the pool's, you see its block tables: which sequence has a block more or less than you thought?

# %% nbgrader={"grade": false, "grade_id": "pool", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib.paging import Pool


def admitted(prompts, block_tokens):
    """A pool with room enough, and the sequences that it has made of these prompts."""
    pool = Pool(blocks=sum(map(len, prompts)), block_tokens=block_tokens)
    return pool, [pool.admit(prompt) for prompt in prompts]


def counted(lengths, block_tokens):
    tokens = iter(range(sum(lengths)))
    prompts = [[next(tokens) for _ in range(length)] for length in lengths]
    pool, sequences = admitted(prompts, block_tokens)
    tables = [sequence.table for sequence in sequences]
    unused = pool.held * block_tokens - sum(lengths)
    return (unused, sum(map(len, tables))), tables


# %% nbgrader={"grade": false, "grade_id": "count", "locked": true, "schema_version": 3, "solution": false, "task": false}
if b is None:
    print("Answer b, then run this cell again.")
else:
    yours = check.by_case("b", b)
    pools = {case["block_tokens"]: counted(**case) for case in check.cases("b")}
    print("you:     ", yours)
    print("the pool:", [numbers for numbers, _ in pools.values()])
    differing = [size for size, mine in zip(pools, yours) if mine != pools[size][0]]
    for size in differing or inputs.block_sizes[-1:]:
        print("its block tables, blocks of", size)
        for length, table in zip(inputs.lengths, pools[size][1]):
            print(f"    {length:>3} tokens: {table}")


# %% [markdown]
# ## c. Independent requests
#
# A batch of $b$ long requests shares nothing. How many MiB of KV does it hold when all of them have given their last output, for each $b$? Blocks hold $p_0$
# tokens. Give the exact numbers.

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def independent_mib(
    requests, input_tokens, output_tokens, block_tokens, kv_bytes_per_token
):
    pass  # not answered yet


c = None  # one number for each batch, in MiB
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, independent_mib)


# %% [markdown]
# ## d. The same requests with a common prefix
#
# Now the inputs of all requests begin with the same $S$ tokens. A block is shared if all tokens in it are common; everything else each request holds by itself.
# How many MiB does the batch hold in all at its end, for each $b$? In the inputs that you do not see, the prefix may end within a block.

# %% nbgrader={"grade": false, "grade_id": "d", "locked": false, "schema_version": 3, "solution": true, "task": false}
def shared_mib(
    requests,
    input_tokens,
    output_tokens,
    shared_prefix_tokens,
    block_tokens,
    kv_bytes_per_token,
):
    pass  # not answered yet


d = None  # one number for each batch, in MiB
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("d", d, shared_mib)

# %% [markdown]
# ## e. What fits the pool
#
# For each of the three batches, in their order: does the pool hold it to its end as `"both"` (independent and shared), `"shared only"`, or `"neither"`?

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
e1 = None  # "both", "shared only" or "neither"
e2 = None
e3 = None
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("e1", e1)
check("e2", e2)
check("e3", e3)

# %% [markdown]
# ## f. One more common block
#
# A full block that each of $b$ requests has held privately so far becomes part of their common prefix. Each request stays as long as it was. How many physical
# blocks are saved, all requests together, for each $b$? The function need not use all that it is given.
#
# **Predict, then try.** `held` admits requests whose first blocks are common, and tells how many blocks the pool holds then. Write down what you expect of
# `held(4, common_blocks=2)` and of `held(4, common_blocks=3)`; then call them, and others, in the answer's cell. Leave each request a private block: the last
# token of an input is always computed by the request itself, so its block is never found.

# %% nbgrader={"grade": false, "grade_id": "held", "locked": true, "schema_version": 3, "solution": false, "task": false}
from lib.checks import whole


def held(requests, common_blocks, blocks_each=6):
    whole("common_blocks", common_blocks, at_most=blocks_each)
    common = [0] * (common_blocks * inputs.block_tokens)
    own = (blocks_each - common_blocks) * inputs.block_tokens
    prompts = [common + [1 + number] * own for number in range(requests)]
    pool, _ = admitted(prompts, inputs.block_tokens)
    return pool.held


# %% nbgrader={"grade": false, "grade_id": "f", "locked": false, "schema_version": 3, "solution": true, "task": false}
def blocks_saved(requests, block_tokens, kv_bytes_per_token):
    pass  # not answered yet


f = None  # one whole number for each batch
pass  # not answered yet

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("f", f, blocks_saved)
