"""Grades what a class handed in: `python -m tools.grade FOLDER`, a folder made by `python -m tools.derive --to FOLDER`.

nbgrader has an environment of its own, `build/grading`, made from requirements-grading.lock; a reader never needs it.
It runs the students' own code: grade on a machine on which that is acceptable.
"""

import argparse
import csv
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tools.environment import Problem, install
from tools.notebooks import ROOT

LOCK = ROOT / "requirements-grading.lock"
ENVIRONMENT = ROOT / "build" / "grading"
PROGRAMS = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin")


class Stopped(Exception):
    """What hindered the grading, with nbgrader's own words."""


def build() -> None:
    """Make nbgrader's environment, unless it is in step with its lock; raises Problem if it cannot be made."""
    stamp, now = ENVIRONMENT / "in-step", hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text(encoding="utf-8") == now:
        return
    uv = [sys.executable, "-m", "uv", "-q"]
    install([*uv, "venv", "--clear", "--python", sys.executable, str(ENVIRONMENT)])
    install([*uv, "pip", "sync", "--require-hashes", "--python", str(ENVIRONMENT), str(LOCK)])
    stamp.write_text(now, encoding="utf-8")


def nbgrader(course: Path, *arguments: str) -> None:
    """Run a command of nbgrader on a course; raises Stopped, with what it said, if it fails."""
    paths = {"PATH": f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    command = [str(PROGRAMS / f"python{'.exe' if os.name == 'nt' else ''}"), "-m", "nbgrader", *arguments]
    run = subprocess.run(
        command,
        cwd=course,
        env=os.environ | paths,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if run.returncode:
        raise Stopped(f"nbgrader {' '.join(arguments)} failed:\n{run.stdout}")


def grade(course: Path) -> Path:
    """Grade all that was handed in, in `submitted/STUDENT/EXERCISE/`; the table of grades."""
    exercises = sorted(path.name for path in (course / "source").glob("ex_*"))
    handed_in = [name for name in exercises if list(course.glob(f"submitted/*/{name}/{name}.ipynb"))]
    if not handed_in:
        raise Stopped(f"nothing was handed in: {course / 'submitted'} holds no STUDENT/EXERCISE/EXERCISE.ipynb")
    build()
    for name in handed_in:
        if not (course / "release" / name).exists():
            nbgrader(course, "generate_assignment", name)
        nbgrader(course, "autograde", name, "--force")
    table = course / "grades.csv"
    nbgrader(course, "export", f"--to={table.name}")
    return table


def main(arguments: list[str] | None = None) -> int:
    """Grade a class and print the table; zero when all was graded."""
    parser = argparse.ArgumentParser(description="Grade what a class handed in.")
    parser.add_argument("course", type=Path, help="the folder with source/ and submitted/")
    try:
        table = grade(parser.parse_args(arguments).course.resolve())
    except (Problem, Stopped) as error:
        print(error, file=sys.stderr)
        return 1
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            print(f"{row['assignment']}  {row['student_id']}: {float(row['score']):g} of {float(row['max_score']):g}")
    print(f"all in {table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
