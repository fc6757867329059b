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
    ### BEGIN SOLUTION
    blocks = -(-length // block_tokens)
    return blocks * block_tokens - length
    ### END SOLUTION


a = None  # whole numbers, as many as there are cases
### BEGIN SOLUTION
a = [unused_slots(**case) for case in check.cases("a")]
print(a)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_a", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("a", a, unused_slots)
### BEGIN HIDDEN TESTS
assert check.earned("a", unused_slots, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_a", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** A sequence gets $\lceil l/p\rceil$ blocks. All are full but the last, so all that is wasted lies there: $p\lceil l/p\rceil - l$, never more
# than $p-1$.
#
# With the book's numbers: 1, 1, 1, 1 with blocks of 2; 3, 3, 3, 1 with blocks of 4; 7, 3, 3, 1 with blocks of 8. The sequence of 9 tokens meets the worst
# case each time: its last block holds a single token. The one of 15 wastes one slot with every block size, since 16 is a multiple of all three.
#
# Tempting, and right here only: $p - (l \bmod p)$. No length of the book is a multiple of a block size, so it always passes. Eight tokens in blocks of 4 fill
# two blocks and waste nothing; this formula says 4, a whole empty block that nobody has taken. Also tempting: $p-1$ for each. That is a bound, and with
# blocks of 2 all four sequences meet it.

# %% [markdown]
# ## b. Totals
#
# For each block size: how many slots stay unused in all sequences together, and how many entries do their block tables have together? Nothing is
# shared. Two numbers for each block size, the slots first.

# %% nbgrader={"grade": false, "grade_id": "b", "locked": false, "schema_version": 3, "solution": true, "task": false}
def totals(lengths, block_tokens):
    ### BEGIN SOLUTION
    slots = sum(unused_slots(length, block_tokens) for length in lengths)
    entries = sum(-(-length // block_tokens) for length in lengths)
    return slots, entries
    ### END SOLUTION


b = None  # two whole numbers for each block size
### BEGIN SOLUTION
b = [totals(**case) for case in check.cases("b")]
print(b)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_b", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("b", b, totals)
### BEGIN HIDDEN TESTS
assert check.earned("b", totals, draw="marks")
### END HIDDEN TESTS

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


# %% [markdown] nbgrader={"grade": true, "grade_id": "why_b", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Add up over the sequences: $\sum (p\lceil l/p\rceil - l)$ slots and $\sum \lceil l/p\rceil$ entries, one entry for each block.
#
# With the book's numbers: 4 slots and 23 entries with blocks of 2; 10 and 13 with 4; 14 and 7 with 8. Doubling the block about halves the entries, and the
# waste grows: that is the bargain. A sequence wastes about half a block, however long it is, so long sequences can afford large blocks. Reserving 16 slots
# for each, as in the example of section 8.3.1, would leave 22 unused, more than any of the three.
#
# Tempting, and wrong: paging all 42 tokens as one sequence, which gives 6 slots and 6 entries with blocks of 8. A block belongs to one sequence (unless its
# content is shared), so every sequence has a last block of its own. The waste follows the number of sequences, not of tokens.

# %% [markdown]
# ## c. Independent requests
#
# A batch of $b$ long requests shares nothing. How many MiB of KV does it hold when all of them have given their last output, for each $b$? Blocks hold $p_0$
# tokens. Give the exact numbers.

# %% nbgrader={"grade": false, "grade_id": "c", "locked": false, "schema_version": 3, "solution": true, "task": false}
def independent_mib(
    requests, input_tokens, output_tokens, block_tokens, kv_bytes_per_token
):
    ### BEGIN SOLUTION
    blocks = -(-(input_tokens + output_tokens - 1) // block_tokens)
    return requests * blocks * block_tokens * kv_bytes_per_token / 2**20
    ### END SOLUTION


c = None  # one number for each batch, in MiB
### BEGIN SOLUTION
c = [independent_mib(**case) for case in check.cases("c")]
print(c)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_c", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("c", c, independent_mib)
### BEGIN HIDDEN TESTS
assert check.earned("c", independent_mib, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_c", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** The last output is never fed back, so a request stores $L+G-1$ tokens, in $\lceil (L+G-1)/p_0\rceil$ blocks of $p_0 k$ bytes.
#
# With the book's numbers: a block has 16 × 144 KiB = 2.25 MiB. 8192 + 255 = 8447 tokens take 528 blocks = 1188 MiB, so 8, 16 and 32 requests hold 9504,
# 19,008 and 38,016 MiB.
#
# Tempting, and wrong: 1152 MiB a request, what it holds after its prefill. Tempting, and right here only: storing the last output too. The 528 blocks have
# just one free slot, and it goes in there. With an input one token longer it would cost a block.

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
    ### BEGIN SOLUTION
    common = shared_prefix_tokens // block_tokens
    own_tokens = input_tokens + output_tokens - 1 - common * block_tokens
    own = -(-own_tokens // block_tokens)
    return (common + requests * own) * block_tokens * kv_bytes_per_token / 2**20
    ### END SOLUTION


d = None  # one number for each batch, in MiB
### BEGIN SOLUTION
d = [shared_mib(**case) for case in check.cases("d")]
print(d)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_d", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
check("d", d, shared_mib)
### BEGIN HIDDEN TESTS
assert check.earned("d", shared_mib, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_d", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** The prefix fills $s = \lfloor S/p_0\rfloor$ blocks, held once. Each request adds blocks for the rest, $L - s\,p_0 + G - 1$ tokens: $\left(s +
# b\,\lceil (L - s\,p_0 + G - 1)/p_0\rceil\right) p_0 k$.
#
# With the book's numbers: $s$ = 384 blocks = 864 MiB. 8192 − 6144 + 255 = 2303 tokens take 144 blocks = 324 MiB. So 864 + 324 $b$: 3456, 6048 and 11,232 MiB.
#
# Tempting, and wrong: c minus one prefix, 9504 − 864 = 8640 MiB. Of $b$ copies $b - 1$ go, 7 × 864. Minus all of them is wrong too: 8 × 324 = 2592 MiB would
# hold the prefix nowhere. And where $S$ ends within a block, that block is private: after the prefix each request has other tokens in it. Here $S$ is a
# multiple of 16, which hides this. The common tokens in that block are not gone: each request has them in a block of its own, so its rest begins at $s\,p_0$,
# not at $S$.

# %% [markdown]
# ## e. What fits the pool
#
# For each of the three batches, in their order: does the pool hold it to its end as `"both"` (independent and shared), `"shared only"`, or `"neither"`?

# %% nbgrader={"grade": false, "grade_id": "e", "locked": false, "schema_version": 3, "solution": true, "task": false}
e1 = None  # "both", "shared only" or "neither"
e2 = None
e3 = None
### BEGIN SOLUTION
pool_mib = inputs.pool_bytes / 2**20
e1, e2, e3 = [
    "both" if alone <= pool_mib else "shared only" if together <= pool_mib else "neither"
    for alone, together in zip(c, d)
]
print(pool_mib, e1, e2, e3)
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_e", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("e1", e1)
check("e2", e2)
check("e3", e3)
### BEGIN HIDDEN TESTS
assert check.earned("e1", e1) and check.earned("e2", e2) and check.earned("e3", e3)
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_e", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Compare c and d with $M$ in MiB. With the book's numbers the pool has 12 × 1024 = 12,288 MiB: 8 requests fit either way, 16 and 32 only if
# they share.
#
# How far does it go? Independent requests: 12,288/1188 = 10.3, so 10. Shared: the prefix is paid once, 12,288 − 864 = 11,424 MiB are left, and 11,424/324 =
# 35.3, so 35. What counts is the price of *one more* request: it falls from 1188 to 324 MiB, to 27 %, because 6144 of its 8447 tokens are there already. The
# first request costs as much as before. Had the prefix been free, 37 would fit.
#
# With 35 requests the pool is full, and again it is the part that nobody shares that fills it: 35 × 324 = 11,340 MiB of private blocks beside 864 MiB of
# prefix.

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
    ### BEGIN SOLUTION
    return requests - 1
    ### END SOLUTION


f = None  # one whole number for each batch
### BEGIN SOLUTION
f = [blocks_saved(**case) for case in check.cases("f")]
print(f)
print([held(4, common_blocks=blocks) for blocks in range(6)])
### END SOLUTION

# %% nbgrader={"grade": true, "grade_id": "test_f", "locked": true, "points": 1, "schema_version": 3, "solution": false, "task": false}
check("f", f, blocks_saved)
### BEGIN HIDDEN TESTS
assert check.earned("f", blocks_saved, draw="marks")
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade": true, "grade_id": "why_f", "locked": false, "points": 0, "schema_version": 3, "solution": true, "task": false}
# **Solution.** Before, $b$ blocks hold this content, one of each request. After, one block does, with $b$ references. So $b - 1$ are saved, not $b$: the
# common one must stay, or nobody could read it. With the book's numbers 7, 15 and 31.
#
# The pool shows it: four requests of six blocks hold 24, and with each further common block 3 less. The tables do not get shorter: all of them still have an
# entry for the block, which is why it may be freed only when the last reference is gone.
#
# Part f explains the step from c to d: 384 blocks became common, each saved $b - 1$, and for 16 requests 384 × 15 × 2.25 MiB = 12,960 MiB = 19,008 − 6048. A
# single request saves nothing; of many, the share $(b-1)/b$ of the copies goes.
