"""What holds for every module of `lib` and `figures`: who imports whom, and that each public thing says what it is."""

import ast
import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILES = [path for package in ("lib", "figures") for path in sorted((ROOT / package).rglob("*.py"))]
MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in FILES]
DRAWING = {"IPython", "ipywidgets", "matplotlib", "numpy", "PIL", "plotly"}


def imported(path: Path) -> Iterator[str]:
    """The first part of each module that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports by a relative name"
            yield str(node.module).partition(".")[0]


@pytest.mark.parametrize("path", FILES, ids=MODULES)
def test_arrows_go_one_way(path: Path) -> None:
    own = {"lib"} if path.is_relative_to(ROOT / "lib") else {"lib", "figures"}
    others = {"numpy"} if own == {"lib"} else DRAWING
    assert set(imported(path)) - sys.stdlib_module_names <= own | others


@pytest.mark.parametrize("name", MODULES)
def test_every_public_function_and_class_says_what_it_is(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    silent = [told for told, thing in public(module) if not own_words(thing)]
    assert not silent, f"without a docstring: {', '.join(silent)}"


def public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", None) == module.__name__ and not name.startswith("_"):
            if inspect.isclass(thing):
                yield name, thing
                yield from ((f"{name}.{each}", method) for each, method in methods(thing))
            elif callable(thing) and hasattr(thing, "__name__"):
                yield name, thing


def methods(owner: type) -> Iterator[tuple[str, Any]]:
    """Methods that take something; what a property or a plain accessor gives is told by its name."""
    for name, method in vars(owner).items():
        if inspect.isfunction(method) and not name.startswith("_") and len(inspect.signature(method).parameters) > 1:
            yield name, method


def own_words(thing: Any) -> str:
    """A docstring somebody wrote; a dataclass without one gets its signature instead."""
    words = (vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__) or ""
    return "" if words.startswith(f"{thing.__name__}(") else words


@pytest.mark.parametrize("package", ["lib", "figures"])
def test_both_packages_are_found_from_any_folder(package: str, tmp_path: Path) -> None:
    asked = f"import {package}; print({package}.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=True
    )
    assert Path(found.stdout.strip()) == ROOT / package / "__init__.py"


def test_lib_computes_without_anything_that_draws(tmp_path: Path) -> None:
    names = [name for name in MODULES if name.partition(".")[0] == "lib"]
    asked = f"import sys, {', '.join(names)}; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", asked], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=True
    )
    loaded = set(found.stdout.split())
    assert loaded >= set(names)
    assert not loaded & ({"figures"} | DRAWING - {"numpy"})
