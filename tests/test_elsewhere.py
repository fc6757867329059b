"""The project stands on its own: a copy of what git tracks, in another folder, passes the core of the tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.notebooks import ROOT

# The copy has no environment of its own and is no repository: what asks for these is left out.
LEFT_OUT = ("tests/test_environment.py", "tests/test_elsewhere.py")


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
    left_out = [f"--ignore={name}" for name in LEFT_OUT]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "not long and not browser", "-p", "no:cacheprovider", *left_out],
        cwd=copy,
        env=variables,
        capture_output=True,
        encoding="utf-8",
    )
    assert run.returncode == 0, run.stdout[-5000:] + run.stderr
    assert ".ipynb" in run.stdout or "passed" in run.stdout
