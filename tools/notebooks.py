"""What a notebook pair is, what counts as its content, and the form in which a notebook is stored."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from jupytext.config import load_jupytext_configuration_file

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("chapters", "exercises", "solutions")
KEEP = ("deletable", "editable", "jupyter", "nbgrader", "slideshow", "tags")
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
VIEW = "application/vnd.jupyter.widget-view+json"
PLANE = "application/vnd.plotly.v1+json"
FORMAT = "py:percent"


@dataclass(frozen=True)
class Pair:
    """The two sides of a notebook: the script that is edited and the notebook that is opened."""

    root: Path
    name: str

    @property
    def script(self) -> Path:
        return self.root / (self.name + ".py")

    @property
    def notebook(self) -> Path:
        return self.root / (self.name + ".ipynb")


def pairs(root: Path = ROOT) -> list[Pair]:
    """All pairs under a project's folder, those with one side missing included."""
    stems = {
        f"{folder}/{path.stem}"
        for folder in FOLDERS
        for pattern in ("*.py", "*.ipynb")
        for path in (root / folder).glob(pattern)
    }
    return [Pair(root, stem) for stem in sorted(stems)]


def tracked(root: Path = ROOT) -> list[Path]:
    """The files that git tracks; in a copy without git, all that lie there."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, encoding="utf-8")
    if listed.returncode == 0 and (root / ".git").exists():
        return sorted(root / name for name in listed.stdout.split("\0") if name)
    every = (path for path in root.rglob("*") if path.is_file())
    return sorted(path for path in every if not any(part.startswith(".") for part in path.relative_to(root).parts))


def read_notebook(text: str) -> Any:
    """A notebook from its stored text."""
    return nbformat.reads(text, as_version=4)


def read_script(text: str) -> Any:
    """A notebook from the text of its script."""
    return jupytext.reads(text, fmt=FORMAT)


def notebook_text(notebook: Any) -> str:
    """The text in which a notebook is stored."""
    text: str = nbformat.writes(notebook, version=nbformat.NO_CONVERT)
    return text.rstrip("\n") + "\n"


def script_text(notebook: Any) -> str:
    """The text in which a notebook's script is stored, the same that JupyterLab writes."""
    bare = nbformat.v4.new_notebook(cells=notebook.cells, metadata={"kernelspec": dict(KERNEL)})
    settings = load_jupytext_configuration_file(str(ROOT / "jupytext.toml"))
    text: str = jupytext.writes(bare, fmt=FORMAT, config=settings)
    return text.rstrip("\n") + "\n"


def kept(metadata: dict[str, Any]) -> dict[str, Any]:
    """The part of a cell's metadata that both sides carry."""
    return {key: value for key, value in metadata.items() if key in KEEP}


def content(notebook: Any) -> list[tuple[str, str, dict[str, Any]]]:
    """What both sides of a pair must agree on."""
    return [(cell["cell_type"], source(cell), kept(cell["metadata"])) for cell in notebook["cells"]]


def source(cell: Any) -> str:
    """A cell's text as both sides are stored with it: one kind of line end, and no blank end, which a script loses."""
    return joined(cell["source"]).replace("\r\n", "\n").replace("\r", "\n").rstrip()


def attached(notebook: Any) -> list[int]:
    """The numbers of the cells that hold pictures themselves, which a script cannot carry."""
    return [number for number, cell in enumerate(notebook["cells"], start=1) if cell.get("attachments")]


def code_cells(notebook: Any) -> list[Any]:
    """The cells that run; an empty one does not."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and joined(cell["source"]).strip()]


def joined(text: str | list[str]) -> str:
    """Text that may have come as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def clean(notebook: Any) -> Any:
    """Bring a notebook, in place, to the form that is stored: nothing that changes from run to run."""
    notebook["metadata"] = type(notebook["metadata"])(kernelspec=dict(KERNEL))
    for cell in notebook["cells"]:
        cell["metadata"] = type(cell["metadata"])(kept(cell["metadata"]))
        cell["source"] = source(cell)
        if cell["cell_type"] == "code":
            cell["outputs"] = [output for output in map(clean_output, merged(cell["outputs"])) if output]
    renumber(notebook)
    return notebook


def clean_output(output: Any) -> Any:
    """One output without what a screen made of it, a live view or a picture of a plane; nothing where that was all."""
    data = output.get("data")
    if data is None:
        return output
    data.pop(VIEW, None)
    if PLANE in data:  # JupyterLab takes a picture of what it has drawn from it
        data.pop("image/png", None)
    if "image/png" in data:  # the kernel ends the picture's text in a line break, JupyterLab does not
        data["image/png"] = joined(data["image/png"]).strip()
    return output if data else None


def merged(outputs: list[Any]) -> Iterator[Any]:
    """The outputs, neighbouring pieces of one stream joined: where they are cut is chance."""
    last = None
    for output in outputs:
        if output["output_type"] != "stream":
            last = None
        elif last is not None and last["name"] == output["name"]:
            last["text"] = joined(last["text"]) + joined(output["text"])
            continue
        else:
            last = output
        yield output


def renumber(notebook: Any) -> None:
    """Number the cells 1 … N when all ran from top to bottom, whatever ran in that kernel before."""
    cells = code_cells(notebook)
    counts = [cell["execution_count"] for cell in cells]
    if None in counts or counts != sorted(set(counts)):
        return
    for number, cell in enumerate(cells, start=1):
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if output["output_type"] == "execute_result":
                output["execution_count"] = number


def clean_before_save(model: dict[str, Any], path: str, **_: Any) -> None:
    """JupyterLab's hook before saving: the chapter's notebooks are stored clean, a reader's own are left alone."""
    if model["type"] == "notebook" and path.strip("/").split("/")[0] in FOLDERS:
        clean(model["content"])
