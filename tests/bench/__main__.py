"""Run benchmarks: `python -m tests.bench` all, or those named; `--list` says what there is."""

import argparse
import sys

from tests.bench.drawing import all_figures, each_figure, explorer_pictures
from tests.bench.frame import Benchmark, Result
from tests.bench.imports import import_lib
from tests.bench.kv_formats import kv_formats
from tests.bench.paging import allocator
from tests.bench.prefix_cache import cached_prompts, full_cache, growing_session
from tests.bench.scheduling import simulator, simulator_growth, simulator_in_pool

BENCHMARKS: dict[str, Benchmark] = {
    "import-lib": import_lib,
    "simulator": simulator,
    "simulator-growth": simulator_growth,
    "simulator-in-pool": simulator_in_pool,
    "allocator": allocator,
    "cached-prompts": cached_prompts,
    "full-cache": full_cache,
    "growing-session": growing_session,
    "all-figures": all_figures,
    "each-figure": each_figure,
    "explorer-pictures": explorer_pictures,
    "kv-formats": kv_formats,
}


def main(arguments: list[str] | None = None) -> int:
    """Print what was measured, beside what and by which bar; it measures and does not judge."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("name", nargs="*", help="benchmarks to run (default: all)")
    parser.add_argument("--list", action="store_true", help="name the benchmarks, run none")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.name if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(BENCHMARKS)}")
    if options.list:
        for name, benchmark in BENCHMARKS.items():
            print(f"{name:<20}{benchmark.__doc__}")
        return 0
    print(f"{'':<40}{'measured':>14}{'beside it':>14}  {'':<16}{'ratio':>7}  bar")
    for name in options.name or BENCHMARKS:
        for result in BENCHMARKS[name]():
            print(_line(result), flush=True)
    return 0


def _line(result: Result) -> str:
    value, other = (f"{number:.3g} {result.unit}" for number in (result.value, result.its_value))
    return f"{result.what:<40}{value:>14}{other:>14}  {result.beside:<16}{result.ratio:>7.2f}  {result.bar}".rstrip()


if __name__ == "__main__":
    sys.exit(main())
