"""Checks the environment, then opens the chapter: `python -m tools.lab`; further words go to JupyterLab."""

import subprocess
import sys
from typing import List

from tools import environment

CONFIG = environment.ROOT / "tools" / "lab" / "jupyter_lab_config.py"


def main(arguments: List[str]) -> int:
    """Print what is wrong with the environment, or start JupyterLab."""
    problems = environment.check()
    for problem in problems:
        print(problem, file=sys.stderr)
    if problems:
        return 1
    command = [str(environment.venv_python()), "-m", "jupyterlab", "--config", str(CONFIG)]
    try:
        return subprocess.call(command + arguments, cwd=str(environment.ROOT))
    except KeyboardInterrupt:  # the server got it too and has shut down
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
