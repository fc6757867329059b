"""Brings each script and its notebook together by content, then runs the notebooks.

The last commit, and the content on which both sides last agreed, tell which side was edited. File times tell nothing.
Where both sides were edited, or nothing tells, every file stays as it is and the message says how to choose.
"""

import argparse
import hashlib
import json
import subprocess
import sys
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from tools.execution import run_all
from tools.notebooks import (
    ROOT,
    Pair,
    attached,
    clean,
    content,
    notebook_text,
    pairs,
    read_notebook,
    read_script,
    script_text,
    source,
)

SCRIPT, NOTEBOOK = "py", "ipynb"
DERIVED = "exercises"


@dataclass(frozen=True)
class Decision:
    """Which side of a pair the other follows; no side where a person must choose."""

    pair: Pair
    leader: str
    why: str


class Refused(Exception):
    """A file that cannot take part; says which, why, and the mend."""


def fingerprint(notebook: Any) -> str:
    """One word for a notebook's content."""
    return hashlib.sha256(json.dumps(content(notebook), sort_keys=True).encode("utf-8")).hexdigest()


def sides(pair: Pair) -> dict[str, Any]:
    """The sides of a pair that are there."""
    found = {side: read(path, side) for side, path in files(pair).items() if path.exists()}
    for number in attached(found[NOTEBOOK]) if NOTEBOOK in found else []:
        raise Refused(
            f"{pair.name}.ipynb, cell {number} holds a picture, which would be lost, as the script cannot hold it: "
            "put the picture into a file beside the notebook and link to it."
        )
    return found


def files(pair: Pair) -> dict[str, Path]:
    """The file of each side."""
    return {SCRIPT: pair.script, NOTEBOOK: pair.notebook}


def read(path: Path, side: str) -> Any:
    """The notebook in a file."""
    try:
        return parsed(path.read_bytes(), side)
    except Exception as error:  # the readers meet a damaged file, or the marks of a merge, with many kinds of error
        name, why = f"{path.parent.name}/{path.name}", " ".join(str(error).split())[:60]
        kind, other = ("script", NOTEBOOK) if side == SCRIPT else ("notebook", SCRIPT)
        raise Refused(
            f"{name} is not a {kind}: {why}. Bring it back with git checkout, or delete it "
            f'and make it from the other side: make sync ARGS="--take {other} {path.parent.name}/{path.stem}"'
        ) from error


def parsed(data: bytes, side: str) -> Any:
    """The notebook in a file's bytes."""
    text = data.decode("utf-8").replace("\r\n", "\n")
    return read_script(text) if side == SCRIPT else read_notebook(text)


def committed(pair: Pair, side: str) -> str:
    """The fingerprint of a side in the last commit; empty where there is none."""
    show = subprocess.run(["git", "show", f"HEAD:./{pair.name}.{side}"], cwd=pair.root, capture_output=True)
    if show.returncode:
        return ""
    try:
        return fingerprint(parsed(show.stdout, side))
    except Exception:  # a damaged file was committed, so nobody can have left its content untouched
        return ""


def was_committed(pair: Pair, side: str) -> bool:
    """Whether any commit up to now has a side."""
    log = subprocess.run(
        ["git", "log", "-1", "--format=%h", "--", f"{pair.name}.{side}"], cwd=pair.root, capture_output=True
    )
    return log.returncode == 0 and bool(log.stdout.strip())


class Agreements:
    """The content on which the sides of each pair last agreed, kept outside of git for pairs not yet committed."""

    def __init__(self, root: Path) -> None:
        self._file = root / "build" / "agreed.json"
        self._known = self._read()

    def _read(self) -> dict[str, str]:
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # none yet, or damaged: then git alone must tell
            return {}
        return known if isinstance(known, dict) else {}

    def last(self, pair: Pair) -> str:
        """The fingerprint of the content last agreed on; empty where none is known."""
        return self._known.get(pair.name, "")

    def note(self, pair: Pair, agreed: str) -> None:
        """Remember what the sides of a pair now agree on."""
        self._known[pair.name] = agreed
        self._file.parent.mkdir(exist_ok=True)
        self._file.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def decide(pair: Pair, take: str, agreements: Agreements) -> Decision:
    """Which side leads."""
    there = sides(pair)
    if take:
        known = take in there
        return Decision(pair, take if known else "", "you chose it" if known else f"there is no {pair.name}.{take}")
    if len(there) == 1:
        return decide_lonely(pair, next(iter(there)))
    now = {side: fingerprint(notebook) for side, notebook in there.items()}
    if now[SCRIPT] == now[NOTEBOOK]:
        return Decision(pair, SCRIPT, "")
    as_committed = [side for side in now if now[side] == committed(pair, side)]
    untouched = [side for side in now if side in as_committed or now[side] == agreements.last(pair)]
    if untouched == [NOTEBOOK]:
        return Decision(pair, SCRIPT, "only the script was edited")
    if untouched == [SCRIPT]:
        return Decision(pair, NOTEBOOK, "only the notebook was edited")
    return Decision(pair, "", why_nobody_leads(as_committed, untouched))


def decide_lonely(pair: Pair, side: str) -> Decision:
    """A new side gets its partner; one whose partner was taken away does not bring it back."""
    gone = NOTEBOOK if side == SCRIPT else SCRIPT
    if committed(pair, side) and was_committed(pair, gone):
        return Decision(pair, "", f"{pair.name}.{gone} was committed and is gone")
    return Decision(pair, side, "the other side is missing")


def why_nobody_leads(as_committed: list[str], untouched: list[str]) -> str:
    """Why neither side of a pair that differs is known to be the newer one."""
    if not untouched:
        return "both sides were edited since they last agreed"
    if len(as_committed) == len(untouched):
        return "they were committed different"
    (put_back,) = as_committed
    agreed = NOTEBOOK if put_back == SCRIPT else SCRIPT
    return f"the .{put_back} is as it was committed, the .{agreed} as both were when they last agreed"


def refusal(decision: Decision) -> str:
    """What a person reads who has to choose."""
    name = decision.pair.name
    there = [side for side, path in files(decision.pair).items() if path.exists()]
    if len(there) == 1:
        return (
            f"{decision.why}. Nothing was changed. Rename or delete both sides of a pair, here {name}.{there[0]} too; "
            f'or make it again: make sync ARGS="--take {there[0]} {name}"'
        )
    return (
        f"{name}.py and {name}.ipynb differ: {decision.why}. Nothing was changed. Choose the side to keep:\n"
        f'  make sync ARGS="--take py {name}"\n'
        f'  make sync ARGS="--take ipynb {name}"'
    )


def brought_together(decision: Decision) -> Any:
    """The notebook that both sides shall hold, with the outputs that are still good."""
    pair, there = decision.pair, sides(decision.pair)
    if decision.leader == SCRIPT:
        leader = there[SCRIPT]
        with_outputs(leader, there.get(NOTEBOOK))
    else:
        leader = there[NOTEBOOK]
    clean(leader)
    told, meant = content(read_script(script_text(leader))), content(leader)
    if told != meant:
        number = next((at for at, (a, b) in enumerate(zip(told, meant, strict=False)) if a != b), len(meant) - 1) + 1
        raise Refused(f"{pair.name}, cell {number} would read otherwise in the script: write it in another way.")
    return leader


def with_outputs(notebook: Any, old: Any) -> None:
    """Give a script's notebook the ids of the cells it had, and the outputs of those that did not change."""
    matched = matches(content(notebook), content(old) if old else [])
    ids = {number: old.cells[other].id for number, other in matched.items()}
    taken = set(ids.values())
    for number, cell in enumerate(notebook.cells):
        cell.id = ids.get(number) or new_id(cell, taken)
        taken.add(cell.id)
        if cell.cell_type == "code" and number in matched and source(old.cells[matched[number]]) == source(cell):
            cell.outputs = old.cells[matched[number]].outputs
            cell.execution_count = old.cells[matched[number]].execution_count


def matches(new: list[Any], old: list[Any]) -> dict[int, int]:
    """Which cell was which before: equal ones, and edited ones that stayed in their place."""
    found = {}
    before, after = ([cell[:2] for cell in cells] for cells in (old, new))
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal" or (kind == "replace" and b - a == d - c):
            same_place = zip(range(c, d), range(a, b), strict=True)
            found.update({now: then for now, then in same_place if new[now][0] == old[then][0]})
    return found


def new_id(cell: Any, taken: set[str]) -> str:
    """An id that the same new cell gets on every machine."""
    occurrence = 0
    while True:
        word = hashlib.sha256(f"{cell.cell_type}\n{cell.source}\n{occurrence}".encode()).hexdigest()[:8]
        if word not in taken:
            return word
        occurrence += 1


def write(path: Path, text: str) -> None:
    """Write a file if that changes it."""
    data = text.encode("utf-8")
    if not path.exists() or path.read_bytes() != data:
        path.write_bytes(data)


def disagreements(chosen: list[Pair]) -> list[str]:
    """One line for each pair that has a lonely side or differs in content."""
    found = []
    for pair in chosen:
        there = sides(pair)
        if len(there) == 1:
            found.append(f"{pair.name}.{SCRIPT if NOTEBOOK in there else NOTEBOOK} is missing")
        elif fingerprint(there[SCRIPT]) != fingerprint(there[NOTEBOOK]):
            found.append(f"{pair.name}.py and {pair.name}.ipynb differ")
    return found


def run_and_store(paths: list[Path]) -> list[str]:
    """Run the notebooks and store those that ran through; a line for each that did not."""
    failed = []
    for result in run_all(paths):
        if result.error:
            failed.append(f"{result.path.parent.name}/{result.path.name}, {result.error}")
        else:
            write(result.path, result.text)
    return failed


def sync(chosen: list[Pair], take: str = "", execute: bool = True) -> list[str]:
    """Bring pairs together and run them; what went wrong, in lines to print."""
    if not chosen:
        return []
    agreements = Agreements(chosen[0].root)
    decisions = [decide(pair, take, agreements) for pair in chosen]
    refused = [refusal(decision) for decision in decisions if not decision.leader]
    if refused:
        return refused
    together = [brought_together(decision) for decision in decisions]
    for decision, notebook in zip(decisions, together, strict=True):
        if decision.why:
            print(f"{decision.pair.name}: the .{decision.leader} leads, {decision.why}")
        write(decision.pair.script, script_text(notebook))
        write(decision.pair.notebook, notebook_text(notebook))
        agreements.note(decision.pair, fingerprint(notebook))
    return run_and_store([pair.notebook for pair in chosen]) if execute else []


def by_hand(root: Path) -> list[Pair]:
    """The pairs that are edited; those of the exercises follow their solutions and never lead."""
    return [pair for pair in pairs(root) if not pair.name.startswith(DERIVED + "/")]


def choose(names: list[str], root: Path) -> list[Pair]:
    """The pairs named, with or without a suffix; all where none is."""
    every = {pair.name: pair for pair in by_hand(root)}
    wanted = [name.replace("\\", "/").removesuffix(".py").removesuffix(".ipynb") for name in names]
    unknown = [name for name in wanted if name not in every]
    derived = [name for name in unknown if name.startswith(DERIVED + "/")]
    if derived:
        solution = derived[0].replace(DERIVED, "solutions", 1)
        raise SystemExit(f"{derived[0]} is derived: edit {solution}, make sync, then make exercises")
    if unknown:
        raise SystemExit(f"no such notebook: {', '.join(unknown)}; there are: {', '.join(every)}")
    return [every[name] for name in wanted] if wanted else list(every.values())


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Sync, or only check; zero when the pairs agree and all ran."""
    parser = argparse.ArgumentParser(description="Bring scripts and notebooks together and run them.")
    parser.add_argument("names", nargs="*", help="such as chapters/8_0_design_problem (default: all)")
    parser.add_argument("--take", choices=(SCRIPT, NOTEBOOK), default="", help="the side to keep; names are needed")
    parser.add_argument("--check", action="store_true", help="say which pairs differ, change nothing")
    parser.add_argument("--no-run", action="store_true", help="do not run the notebooks")
    options = parser.parse_args(arguments)
    if options.take and not options.names:
        parser.error("--take needs the names of the notebooks")
    chosen = choose(options.names, root)
    try:
        problems = disagreements(chosen) if options.check else sync(chosen, options.take, not options.no_run)
    except Refused as error:
        problems = [str(error)]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
