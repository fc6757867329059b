"""The paged allocator beside the plain one of its tests, on the same work."""

import random
from array import array
from collections import deque

from lib.paging import Pool


def w1():
    draw = random.Random(8)
    prefixes = [[draw.randrange(50_000) for _ in range(1024)] for _ in range(20)]
    load = []
    for _ in range(2000):
        own = draw.randint(256, 768)
        load.append(array("q", draw.choice(prefixes) + [draw.randrange(50_000) for _ in range(own)]))
    appends = [draw.randrange(50_000) for _ in range(64)]
    return load, appends

def run(pool, load, appends):
    waiting = deque(load)
    running = []
    hits = operations = 0
    while waiting or running:
        while waiting and len(running) < 64:
            sequence = pool.admit(waiting.popleft())
            hits += sequence.cached
            running.append([sequence, 0])
            operations += 1
        for one in running:
            pool.append(one[0], appends[one[1]])
            one[1] += 1
        operations += len(running)
        ended = [one for one in running if one[1] == 64]
        for one in ended:
            pool.release(one[0])
        operations += len(ended)
        running = [one for one in running if one[1] < 64]
    return hits, operations
