"""Whatever is wrong with the environment is named together with its mend."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools import environment
from tools.environment import PROBLEMS, ROOT, Problem

HERE = {"venv": True, "ensurepip": True}
YOUNG = {"dataclasses", "graphlib", "tomllib", "zoneinfo", "__future__"}
STANDARD = set(sys.stdlib_module_names) - YOUNG
LOCK = (
    "anyio==4.16.0 \\\n    --hash=sha256:aa\nuv==0.13.9 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    "contourpy==1.3.3 ; python_full_version < '3.12' \\\n    --hash=sha256:dd\n"
    "contourpy==1.4.0 ; python_full_version >= '3.12' \\\n    --hash=sha256:ee\n"
    "pywinpty==3.0.0 ; os_name == 'nt' \\\n    --hash=sha256:ff\n"
)


def said(problems: list[Problem]) -> str:
    """What a reader sees."""
    return "\n".join(map(str, problems))


def fixed_part(key: str) -> str:
    """The words of a message that stay the same, up to its first detail."""
    return PROBLEMS[key][0].split("{")[0].rstrip(": ")


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 6, 9), (3, 10, 14)])
def test_an_old_python_is_named(version: tuple[int, int, int]) -> None:
    told = said(environment.python_problems(version, HERE))
    assert "This Python is too old: " + ".".join(map(str, version)) in told
    assert "mend: install a newer Python" in told


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 12, 1), (4, 0, 0)])
def test_a_new_python_is_taken(version: tuple[int, int, int]) -> None:
    assert environment.python_problems(version, HERE) == []


def test_a_missing_venv_module_is_named() -> None:
    told = said(environment.python_problems((3, 11, 2), {"venv": True, "ensurepip": False}))
    assert "ensurepip is missing" in told
    assert "apt install python3-venv" in told


@pytest.mark.parametrize("name", ["environment", "lab/__main__"])
def test_an_old_python_can_read_the_program(name: str) -> None:
    tree = ast.parse((ROOT / "tools" / f"{name}.py").read_text(encoding="utf-8"), feature_version=(3, 6))
    for node in tree.body:
        if isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= STANDARD
        if isinstance(node, ast.ImportFrom):
            assert node.module in STANDARD | {"tools"}
    hints = [ast.unparse(hint) for hint in annotations(tree)]
    assert hints and not [hint for hint in hints if re.search(r"\||\b(?:list|dict|set|tuple)\[", hint)]


def annotations(tree: ast.Module) -> list[ast.expr]:
    """All hints of types; an old Python computes them, and knows no `list[str]`."""
    nodes = list(ast.walk(tree))
    found = [node.returns for node in nodes if isinstance(node, ast.FunctionDef)]
    found += [node.annotation for node in nodes if isinstance(node, (ast.arg, ast.AnnAssign))]
    return [hint for hint in found if hint is not None]


def test_the_lock_is_read_with_its_forks() -> None:
    assert environment.locked_versions(LOCK) == {
        "anyio": ({"4.16.0"}, True),
        "uv": ({"0.13.9"}, True),
        "contourpy": ({"1.3.3", "1.4.0"}, False),
        "pywinpty": ({"3.0.0"}, False),
    }
    assert environment.lock_entry("uv", LOCK) == ("uv==0.13.9 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n")


@pytest.mark.parametrize(
    ("installed", "why"),
    [
        ({"anyio": "4.16.0", "uv": "0.13.9", "contourpy": "1.3.3"}, ""),
        ({"anyio": "4.16.0", "uv": "0.13.9", "contourpy": "1.4.0"}, ""),
        ({"anyio": "4.16.0", "contourpy": "1.4.0"}, "uv is missing"),
        ({"anyio": "4.15.0", "uv": "0.13.9"}, "anyio is 4.15.0, not 4.16.0"),
        ({"anyio": "4.16.0", "uv": "0.13.9", "contourpy": "1.2"}, "contourpy is 1.2, not 1.3.3 or 1.4.0"),
    ],
)
def test_packages_out_of_step_are_named(installed: dict[str, str], why: str) -> None:
    told = said(environment.step_problems(environment.locked_versions(LOCK), installed))
    assert (why in told and "mend: python3 tools/environment.py" in told) if why else told == ""


@pytest.mark.parametrize("first", ["python", "python3", "python3.11", "python.exe", sys.executable])
def test_the_environments_own_kernel_is_taken(first: str) -> None:
    assert environment.kernel_problems([first, "-m", "ipykernel_launcher"], sys.executable) == []


def test_a_missing_kernel_is_named() -> None:
    told = said(environment.kernel_problems([], sys.executable, "No such kernel named python3"))
    assert "The notebook kernel python3 was not found: No such kernel named python3" in told
    assert "mend: python3 tools/environment.py" in told


def test_a_foreign_kernel_is_named() -> None:
    command = ["/elsewhere/bin/python3", "-m", "ipykernel_launcher"]
    told = said(environment.kernel_problems(command, sys.executable, file="/user/kernel.json"))
    assert "belongs to another Python: /elsewhere/bin/python3" in told
    assert "mend: delete the file /user/kernel.json" in told


def test_a_missing_font_is_named(tmp_path: Path) -> None:
    told = said(environment.font_problems(tmp_path))
    assert "The Chinese font is missing" in told
    assert "git checkout -- figures/fonts" in told


def test_a_damaged_font_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.ttf").touch()
    assert "The Chinese font cannot be used: broken table" in said(environment.font_problems(tmp_path, "broken table"))
    assert environment.font_problems(tmp_path) == []


def test_code_from_another_folder_is_named(tmp_path: Path) -> None:
    inside = str(tmp_path / "lib" / "__init__.py")
    assert environment.own_package_problems({"lib": inside}, tmp_path.resolve()) == []
    assert "/elsewhere" in said(environment.own_package_problems({"lib": "/elsewhere/lib/__init__.py"}, tmp_path))


@pytest.mark.parametrize(
    ("output", "key"),
    [
        ("error: Request failed\n  cause: invalid peer certificate: UnknownIssuer", "certificate"),
        ("SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED]'))", "certificate"),
        ("error sending request for url: dns error: failed to lookup address", "no network"),
        ("Failed to establish a new connection: [Errno 101] Network is unreachable", "no network"),
        ("ERROR: No matching distribution found for uv==0.13.9", "no network"),
        ("error: No space left on device", "installer"),
    ],
)
def test_the_installers_words_are_understood(output: str, key: str) -> None:
    problem = environment.download_problem(output)
    assert problem.key == key
    assert "mend: " in str(problem)


def test_what_a_python_says_about_itself_is_complete() -> None:
    facts = json.loads(json.dumps(environment.own_facts()))
    assert environment.facts_problems(facts, environment.LOCK.read_text(encoding="utf-8")) == []
    facts["failed imports"], facts["failed own imports"] = ["plotly (damaged)"], ["figures (damaged)"]
    keys = [problem.key for problem in environment.facts_problems(facts, "numpy==1.0\n")]
    assert {"package", "own package", "out of step"} <= set(keys)


def checked(root: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`--check` as a reader calls it, in a folder of the chapter's shape."""
    command = [sys.executable, str(root / "tools" / "environment.py"), "--check"]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env={**os.environ, **variables})


def test_check_passes_here() -> None:
    run = checked(ROOT)
    assert (run.returncode, run.stdout, run.stderr) == (0, "the environment is ready\n", "")


FOREIGN = {"argv": ["/elsewhere/python", "-m", "ipykernel_launcher"], "display_name": "x", "language": "python"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "what"),
    [
        (json.dumps(FOREIGN), "belongs to another Python: /elsewhere/python"),
        ("{", "cannot be read: "),
        ("[]", "cannot be read: "),
        ("{}", "cannot be read: it names no program"),
    ],
)
def test_check_names_a_wrong_kernel_and_its_mend_mends(tmp_path: Path, text: str, what: str) -> None:
    file = tmp_path / "kernels" / "python3" / "kernel.json"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    run = checked(ROOT, JUPYTER_PATH=str(tmp_path))
    assert run.returncode == 1
    assert f"The notebook kernel python3 {what}" in run.stderr
    assert f"mend: delete the file {file};" in run.stderr
    file.unlink()
    assert checked(ROOT, JUPYTER_PATH=str(tmp_path)).returncode == 0


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """What the environment's program needs, in another folder, without an environment."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_check_names_a_missing_environment(copy: Path) -> None:
    run = checked(copy)
    assert run.returncode == 1
    assert "There is no environment yet: .venv is missing\n  mend: python3 tools/environment.py" in run.stderr


@pytest.mark.skipif(os.name == "nt", reason="symbolic links need rights there")
def test_check_names_all_that_is_wrong_at_once(copy: Path) -> None:
    (copy / ".venv").symlink_to(ROOT / ".venv")
    lock = copy / "requirements.lock"
    other = re.sub(r"^anyio==\S+", "anyio==0.0.1", lock.read_text(encoding="utf-8"), flags=re.M)
    lock.write_text(other, encoding="utf-8")
    run = checked(copy)
    assert run.returncode == 1
    for key in ("out of step", "no font", "foreign package"):
        assert fixed_part(key) in run.stderr


def test_lab_does_not_start_in_a_broken_environment(copy: Path) -> None:
    run = subprocess.run([sys.executable, "-m", "tools.lab"], cwd=copy, capture_output=True, encoding="utf-8")
    assert run.returncode == 1
    assert "There is no environment yet" in run.stderr


def run_without_browser(folder: Path, ci: str) -> str:
    """What pytest says of a browser test where there is no browser."""
    (folder / "test_page.py").write_text("def test_page(chromium_path):\n    pass\n", encoding="utf-8")
    settings = ["-c", str(ROOT / "pyproject.toml"), f"--rootdir={folder}", "-p", "tests.conftest", "-n1"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *settings, "-p", "no:cacheprovider", str(folder)],
        cwd=ROOT,
        env={**os.environ, "CHROMIUM": str(folder / "none"), "CI": ci},
        capture_output=True,
        encoding="utf-8",
    )
    return run.stdout


@pytest.mark.long
def test_without_a_browser_a_reader_is_told(tmp_path: Path) -> None:
    told = run_without_browser(tmp_path, ci="")
    assert "1 skipped" in told
    assert "Left out, as no Chromium was found: 1" in told
    assert "apt install chromium" in told


@pytest.mark.long
def test_without_a_browser_ci_fails(tmp_path: Path) -> None:
    told = run_without_browser(tmp_path, ci="true")
    assert "1 error" in told
    assert "in CI the browser tests must run" in told


@pytest.mark.parametrize("key", PROBLEMS)
def test_each_message_has_an_entry_in_the_troubleshooting_page(key: str) -> None:
    page = (ROOT / "TROUBLESHOOTING.md").read_text(encoding="utf-8")
    named = re.findall(r"^#+ (.+)$", page, flags=re.M) + re.findall(r"`([^`]+)`", page)
    assert any(fixed_part(key) in words for words in named), fixed_part(key)
