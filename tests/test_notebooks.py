"""The stored notebooks are executed, small, clean and really compared."""

import base64
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from PIL import Image

from tools.notebooks import FOLDERS, ROOT, VIEW, attached, code_cells, read_notebook, tracked

SMALLER_THAN = 500_000
PLOTLY = "application/vnd.plotly.v1+json"
OF_ONE_MACHINE = re.compile(
    r"0x[0-9a-f]{6,}|(?<![\w.])/(?:home|root|tmp|Users|usr|var|opt|mnt)/|\b[A-Z]:\\|ipykernel_\d|site-packages"
)
UNCOMPARED = re.compile(r"nbval[-_](?:skip|ignore[-_]output|raises)|raises-exception", re.IGNORECASE)


NOTEBOOKS = [path for path in tracked() if path.suffix == ".ipynb"]


def outputs_of(notebook) -> list:
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def texts_of(cell) -> list[str]:
    """What strict nbval compares letter by letter."""
    plain = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return [text for text in plain if text.strip()]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def stored(request: pytest.FixtureRequest) -> SimpleNamespace:
    text = request.param.read_text(encoding="utf-8")
    return SimpleNamespace(path=request.param, text=text, notebook=read_notebook(text))


def test_ran_from_top_to_bottom(stored) -> None:
    cells = code_cells(stored.notebook)
    assert cells
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))


def test_no_output_is_an_error(stored) -> None:
    wrong = [output for output in outputs_of(stored.notebook) if output.output_type == "error"]
    wrong += [output for output in outputs_of(stored.notebook) if output.get("name") == "stderr"]
    assert not wrong


def test_no_live_view_is_stored(stored) -> None:
    assert VIEW not in stored.text
    assert "widgets" not in stored.notebook.metadata


def test_no_picture_is_inside_a_text_cell(stored) -> None:
    assert attached(stored.notebook) == [], "put the picture into a file beside the notebook and link to it"


def test_is_small(stored) -> None:
    assert stored.path.stat().st_size < SMALLER_THAN


def test_pictures_have_a_palette(stored) -> None:
    for output in outputs_of(stored.notebook):
        picture = output.get("data", {}).get("image/png")
        if picture:
            assert Image.open(BytesIO(base64.b64decode(picture))).mode == "P"


def test_is_valid_with_an_id_for_each_cell(stored) -> None:
    nbformat.validate(stored.notebook)
    ids = [cell.id for cell in stored.notebook.cells]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", word) for word in ids)


def test_outputs_name_no_machine(stored) -> None:
    for cell in code_cells(stored.notebook):
        for text in texts_of(cell):
            assert not OF_ONE_MACHINE.search(text), text
            assert str(ROOT) not in text


def test_something_is_compared(stored) -> None:
    compared = [cell for cell in code_cells(stored.notebook) if not marks(cell)]
    assert any(texts_of(cell) for cell in compared)


def marks(cell) -> list[str]:
    """The marks by which a cell escapes comparison."""
    return [word for word in [*cell.metadata.get("tags", []), *cell.source.splitlines()] if UNCOMPARED.search(word)]


def test_only_a_plotly_view_escapes_comparison(stored) -> None:
    cells = code_cells(stored.notebook)
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if marks(cell):
            assert marks(cell) == ["nbval-ignore-output"]
            assert any(PLOTLY in output.get("data", {}) for output in cell.outputs)
            assert following is not None and texts_of(following), "a cell of numbers must follow"


def run_pytest(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of pytest with the project's own settings, on one core."""
    settings = ["-c", str(ROOT / "pyproject.toml"), "-n0", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *settings, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")


def test_every_tracked_notebook_is_run() -> None:
    assert NOTEBOOKS
    run = run_pytest("--collect-only", "-qq", *FOLDERS)
    collected = {line.split(":")[0] for line in run.stdout.splitlines() if ".ipynb" in line}
    # more may be: a reader's own notebook is nobody's fault
    assert collected >= {path.relative_to(ROOT).as_posix() for path in NOTEBOOKS}, run.stdout + run.stderr


def write_notebook(path: Path, source: str, output: str) -> None:
    v4 = nbformat.v4
    stream = v4.new_output("stream", name="stdout", text=output)
    nbformat.write(v4.new_notebook(cells=[v4.new_code_cell(source, execution_count=1, outputs=[stream])]), path)


def test_a_fault_in_a_notebook_is_noticed(tmp_path: Path) -> None:
    write_notebook(tmp_path / "right.ipynb", "print(6.95)", "6.95\n")
    write_notebook(tmp_path / "wrong.ipynb", "print(6.95)", "6.94\n")
    write_notebook(tmp_path / "raises.ipynb", "print(6.95)\n1 / 0", "6.95\n")
    run = run_pytest(f"--rootdir={tmp_path}", "-rpf", str(tmp_path))
    outcomes = set(re.findall(r"^(PASSED|FAILED) \S*?(\w+)\.ipynb", run.stdout, flags=re.MULTILINE))
    assert outcomes == {("PASSED", "right"), ("FAILED", "wrong"), ("FAILED", "raises")}, run.stdout + run.stderr
    assert run.returncode == 1
