"""The project stands on its own: a copy of what git tracks, in another folder, passes the core of the tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.notebooks import FOLDERS, ROOT

# The numbers, the pairs, and every cell of every notebook, with the pictures they draw.
CORE = (*FOLDERS, *(f"tests/test_{name}.py" for name in ("claims", "prose", "pairs", "notebooks")))


@pytest.mark.long
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only git knows which files belong to the project")
def test_a_copy_elsewhere_passes(tmp_path: Path) -> None:
    copy = tmp_path / "deep" / "copy"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    # so that the copy's own code is found before the installed one, in the kernels too
    variables = {**os.environ, "PYTHONPATH": str(copy)}
    where = subprocess.run(
        [sys.executable, "-c", "import lib, figures; print(lib.__file__, figures.__file__)"],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert where.stdout.count(str(copy)) == 2
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "not long", "-rp", "-p", "no:cacheprovider", *CORE],
        cwd=copy,
        env=variables,
        capture_output=True,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr
    for part in ("test_claims.py", "test_pairs.py", "8_0_design_problem.ipynb::Cell"):
        assert part in run.stdout
