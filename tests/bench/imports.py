"""What a reader waits for before the first line of `lib` can run."""

import json
import pkgutil
import subprocess
import sys
from statistics import median

import lib
from tests.bench.frame import Result

TIMES = 15
_PROGRAM = """
import importlib, json, sys, time
start = time.perf_counter()
import numpy
middle = time.perf_counter()
for name in sys.argv[1:]:
    importlib.import_module(name)
print(json.dumps([middle - start, time.perf_counter() - middle]))
"""


def import_lib() -> list[Result]:
    """All modules of lib in a fresh Python, beyond numpy, beside numpy itself."""
    modules = ["lib", *(f"lib.{module.name}" for module in pkgutil.iter_modules(lib.__path__))]
    taken = [_import(modules) for _ in range(TIMES)]
    numpy_ms, lib_ms = (median(column) * 1e3 for column in zip(*taken, strict=True))
    return [Result("import all of lib, beyond numpy", lib_ms, "ms", "import numpy", numpy_ms, 50, 20)]


def _import(modules: list[str]) -> tuple[float, float]:
    run = subprocess.run([sys.executable, "-c", _PROGRAM, *modules], check=True, capture_output=True, encoding="utf-8")
    numpy_s, lib_s = json.loads(run.stdout)
    return numpy_s, lib_s
