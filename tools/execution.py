"""Runs notebooks so that the same notebook gives the same bytes each time."""

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from tools.notebooks import clean, code_cells, notebook_text, read_notebook

SECONDS_PER_CELL = 300
PROCESSES = 2


@dataclass(frozen=True)
class Run:
    """How the run of one notebook ended: its text to store, or what went wrong."""

    path: Path
    text: str = ""
    error: str = ""


class ListeningClient(NotebookClient):
    """Runs a notebook and keeps every complaint of its kernel.

    What fails in a callback, an Output widget or a thread does not fail its cell, and may leave nothing in its outputs.
    """

    def __init__(self, notebook: Any, **settings: Any) -> None:
        super().__init__(notebook, **settings)
        self.complaints: list[str] = []

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """Listen, then do with a message what is always done."""
        said = complaint(msg)
        if said:
            self.complaints.append(f"cell {cell_index + 1}: {said}")
        return super().process_message(msg, cell, cell_index)


def complaint(message: dict[str, Any]) -> str:
    """What a kernel's message says went wrong; empty where nothing did."""
    said = message["content"]
    if message["msg_type"] == "error":
        return f"{said['ename']}: {said['evalue']}"
    if message["msg_type"] == "stream" and said["name"] == "stderr" and said["text"].strip():
        return f"written to stderr: {said['text'].strip().splitlines()[-1]}"
    return ""


def run_all(paths: list[Path]) -> list[Run]:
    """Run notebooks side by side; results in the order of the paths."""
    if not paths:
        return []
    with ProcessPoolExecutor(min(PROCESSES, len(paths)), mp_context=get_context("spawn")) as pool:
        return list(pool.map(run, paths))


def run(path: Path) -> Run:
    """Run one notebook in its own folder; the file is not touched."""
    if sys.platform == "win32":
        import asyncio

        asyncio.set_event_loop_policy(asyncio.WindowsSelectorEventLoopPolicy())
    notebook = read_notebook(path.read_text(encoding="utf-8"))
    client = ListeningClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        kernel_name="python3",
        record_timing=False,
        extra_arguments=["--log-level=40"],  # else each kernel warns that it listens on this machine
        store_widget_state=True,  # without it, Output widgets make nbclient fail; cleaning drops the state
        resources={"metadata": {"path": str(path.parent)}},
    )
    at = [0]
    client.on_cell_start = lambda cell, cell_index: at.__setitem__(0, cell_index)
    try:
        client.execute()
    except CellExecutionError as error:
        return Run(path, error=f"cell {at[0] + 1}: {error.ename}: {error.evalue}")
    except (CellTimeoutError, DeadKernelError) as error:
        return Run(path, error=f"cell {at[0] + 1}: {type(error).__name__}: {error}")
    if client.complaints:
        return Run(path, error=client.complaints[0])
    for number, cell in enumerate(code_cells(notebook), start=1):
        cell.execution_count = number
    return Run(path, text=notebook_text(clean(notebook)))
