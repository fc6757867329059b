"""JupyterLab with the project's own settings, on a copy of the project, so that the tree itself is never touched."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import URLError
from urllib.request import Request, urlopen

import nbformat

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "of-this-run-alone"
PATIENCE_S = 180
LOG_LINES = 40


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: its address and the copy of the project that it serves."""

    url: str
    root: Path

    def address(self, notebook: str = "") -> str:
        """The page of a notebook, without the tabs of an earlier visit; by default the page it opens by itself."""
        return f"{self.url}/lab/tree/{notebook}?token={TOKEN}&reset" if notebook else f"{self.url}/?token={TOKEN}"

    def changes(self) -> str:
        """What git sees changed in the copy; empty when nothing is."""
        return git(self.root, "status", "--porcelain")

    def write_notebook(self, name: str, source: str) -> str:
        """A notebook of one cell, in a folder that git ignores; gives its path."""
        cell = nbformat.v4.new_code_cell(source, id="only")
        kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
        path = self.root / "build" / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata={"kernelspec": kernel}), path)
        return path.relative_to(self.root).as_posix()

    def asked(self, path: str, method: str = "GET") -> bytes:
        """What the server's own interface answers."""
        with urlopen(Request(f"{self.url}/api/{path}?token={TOKEN}", method=method), timeout=PATIENCE_S) as answer:
            return bytes(answer.read())

    def end_kernels(self) -> None:
        """End all kernels, so that a notebook opened again starts anew."""
        for session in json.loads(self.asked("sessions")):
            self.asked(f"sessions/{session['id']}", "DELETE")


def log_of(root: Path) -> Path:
    """Where the lab on this copy, and its kernels, write what they have to say."""
    return root.with_name("lab.log")


def last_said(root: Path) -> str:
    """The end of that."""
    return "\n".join(log_of(root).read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:])


def git(folder: Path, *words: str) -> str:
    """What git says in a folder."""
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, encoding="utf-8").stdout


@contextmanager
def running_lab(folder: Path) -> Iterator[Lab]:
    """JupyterLab on a copy of the project inside this folder, away from the settings of whoever starts it."""
    root = folder / "project"
    _copy_project(root)
    # Elsewhere than the rest: the kernels' sockets are files in it, and their paths must be short.
    with TemporaryDirectory(prefix="lab-") as runtime, log_of(root).open("w", encoding="utf-8") as log:
        server = subprocess.Popen(
            _command(root),
            cwd=root,
            env=_environment(root, folder / "settings", runtime),
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        lab = _started(server, root, Path(runtime))
        try:
            yield lab
        finally:
            _stop(lab, server)


def _copy_project(to: Path) -> None:
    """The files that git tracks or would offer to track, as a repository of its own with one commit."""
    for name in filter(None, git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)
    git(to, "init", "-q")
    git(to, "add", "--all")
    nobody = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false")
    git(to, *nobody, "commit", "-q", "-m", "as it was")


def _command(root: Path) -> list[str]:
    config = root / "tools" / "lab" / "jupyter_lab_config.py"
    own = ["--no-browser", "--allow-root", f"--IdentityProvider.token={TOKEN}"]
    # A port that was found free may be taken when it is to be used. So the server takes its own at once, and kernels
    # use none where they can: one that does not get its port is started again with the same one until it is given up.
    own += ["--port=0", *(["--KernelManager.transport=ipc"] if sys.platform == "linux" else [])]
    return [sys.executable, "-m", "jupyterlab", "--config", str(config), *own]


def _environment(root: Path, settings: Path, runtime: str) -> dict[str, str]:
    own = {f"JUPYTER_{kind}_DIR": str(settings / kind.lower()) for kind in ("CONFIG", "DATA")}
    own |= {"JUPYTER_RUNTIME_DIR": runtime, "IPYTHONDIR": str(settings / "ipython")}
    # Kernels must take `lib` and `figures` from the copy, not from where the environment has them.
    return dict(os.environ) | own | {"PYTHONPATH": str(root)}


def _started(server: subprocess.Popen[bytes], root: Path, runtime: Path) -> Lab:
    """The server's lab as soon as it answers, at the port that the server has written down."""
    late = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < late:
        try:
            for file in runtime.glob("jpserver-*.json"):
                lab = Lab(f"http://127.0.0.1:{json.loads(file.read_text(encoding='utf-8'))['port']}", root)
                lab.asked("status")
                return lab
        except (URLError, json.JSONDecodeError):  # not there yet, or written in part
            pass
        time.sleep(0.1)
    server.kill()
    server.wait()
    raise RuntimeError(f"JupyterLab did not start:\n{last_said(root)}")


def _stop(lab: Lab, server: subprocess.Popen[bytes]) -> None:
    """Ask the server to end, as it then ends its kernels too; end it by force if it does not."""
    try:
        lab.asked("shutdown", "POST")
        server.wait(PATIENCE_S)
    except (URLError, subprocess.TimeoutExpired):
        server.kill()
        server.wait()
