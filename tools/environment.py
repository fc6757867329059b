"""Builds and checks the environment: `python3 tools/environment.py`, with `--check` to check alone.

Needs nothing but a Python. Written so that an old one, from 3.6 on, can still read it and be told that it is too old.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Set, Tuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "in-step"
LOCK = ROOT / "requirements.lock"
PROJECT = ROOT / "pyproject.toml"
FONTS = ROOT / "figures" / "fonts"
OLDEST = (3, 11)
IMPORTS = ("numpy", "matplotlib.pyplot", "PIL", "ipywidgets", "plotly", "jupytext", "jupyterlab", "nbclient")
OWN_IMPORTS = ("lib", "figures")
BUILD = "python3 tools/environment.py  (on Windows: py tools/environment.py)"

# What is wrong, and the mend. TROUBLESHOOTING.md has an entry for each, found by the part before the colon.
PROBLEMS: Dict[str, Tuple[str, str]] = {
    "old python": (
        "This Python is too old: {found}, but the chapter needs 3.11 or newer",
        "install a newer Python, then name it: make lab PYTHON=python3.12",
    ),
    "no venv module": (
        "This Python cannot make virtual environments: {module} is missing",
        "on Debian and Ubuntu: apt install python3-venv; elsewhere install Python from its own site",
    ),
    "no environment": ("There is no environment yet: {folder} is missing", BUILD),
    "broken environment": ("The environment does not start: {why}", BUILD),
    "out of step": ("The environment is out of step with requirements.lock: {why}", BUILD),
    "package": ("A package cannot be imported: {why}", BUILD),
    "no kernel": ("The notebook kernel python3 was not found: {why}", BUILD),
    "bad kernel": (
        "The notebook kernel python3 cannot be read: {why}",
        "delete the file {file}; the environment brings its own kernel",
    ),
    "foreign kernel": (
        "The notebook kernel python3 belongs to another Python: {found}",
        "delete the file {file}; the environment brings its own kernel",
    ),
    "no font": (
        "The Chinese font is missing: {folder} holds none",
        "bring the file back: git checkout -- figures/fonts",
    ),
    "bad font": (
        "The Chinese font cannot be used: {why}",
        "bring the file back: git checkout -- figures/fonts",
    ),
    "own package": ("The chapter's own code cannot be imported: {why}", BUILD),
    "foreign package": ("The chapter's own code comes from another folder: {why}", BUILD),
    "no network": (
        "The packages could not be downloaded: no network",
        "connect once and run it again; after that the chapter needs no network",
    ),
    "certificate": (
        "The packages could not be downloaded: the connection's certificate is not trusted",
        "behind a proxy with its own certificate, set UV_SYSTEM_CERTS=1, or SSL_CERT_FILE and PIP_CERT to its file",
    ),
    "installer": (
        "The packages could not be installed: {why}",
        "read the installer's own words above; if the folder .venv is damaged, delete it and run it again",
    ),
}

CERTIFICATE_WORDS = re.compile(r"certificate|UnknownIssuer|SSLError|CERT_", re.IGNORECASE)
NETWORK_WORDS = re.compile(
    r"resolution|resolve host|dns error|new connection|unreachable|refused|timed out|error sending request"
    r"|failed to fetch|no matching distribution|getaddrinfo",
    re.IGNORECASE,
)


class Problem(Exception):
    """Something wrong with the environment that a reader can mend."""

    def __init__(self, key: str, **words: str) -> None:
        what, mend = PROBLEMS[key]
        self.key = key
        self.what = what.format(**words)
        self.mend = mend.format(**words)
        super().__init__(self.what)

    def __str__(self) -> str:
        return "{}\n  mend: {}".format(self.what, self.mend)


def python_problems(version: Tuple[int, ...], modules: Dict[str, bool]) -> List[Problem]:
    """What is wrong with the Python that shall build the environment."""
    if version[:2] < OLDEST:
        return [Problem("old python", found=".".join(map(str, version[:3])))]
    missing = [name for name, there in sorted(modules.items()) if not there]
    return [Problem("no venv module", module=missing[0])] if missing else []


def venv_modules() -> Dict[str, bool]:
    """Which of the modules that make virtual environments this Python has."""
    from importlib.util import find_spec

    return {name: find_spec(name) is not None for name in ("venv", "ensurepip")}


def venv_python() -> Path:
    """The environment's Python."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def locked_versions(text: str) -> Dict[str, Tuple[Set[str], bool]]:
    """The lock as package -> (its versions, whether every platform and Python needs it)."""
    locked: Dict[str, Tuple[Set[str], bool]] = {}
    for name, version, rest in re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)([^\n]*)", text, re.MULTILINE):
        versions, everywhere = locked.get(plain_name(name), (set(), False))
        locked[plain_name(name)] = (versions | {version}, everywhere or ";" not in rest)
    return locked


def plain_name(name: str) -> str:
    """A package's name as the lock spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def step_problems(locked: Dict[str, Tuple[Set[str], bool]], installed: Dict[str, str]) -> List[Problem]:
    """The first package that is missing or stands at another version than the lock's."""
    for name, (versions, everywhere) in sorted(locked.items()):
        if name not in installed and everywhere:
            return [Problem("out of step", why=name + " is missing")]
        if name in installed and installed[name] not in versions:
            wanted = " or ".join(sorted(versions))
            return [Problem("out of step", why="{} is {}, not {}".format(name, installed[name], wanted))]
    return []


def kernel_problems(argv: List[str], executable: str, error: str = "", file: str = "") -> List[Problem]:
    """Whether the kernel python3 is there, can be read, and starts the environment's own Python."""
    if not argv and file:
        return [Problem("bad kernel", why=error or "it names no program", file=file)]
    if not argv:
        return [Problem("no kernel", why=error or "no such kernel")]
    # a bare name is replaced by the Python that starts the kernel, which is the environment's
    bare = re.match(r"python(3(\.\d+)?)?(\.exe)?$", argv[0])
    if bare or os.path.normcase(os.path.abspath(argv[0])) == os.path.normcase(os.path.abspath(executable)):
        return []
    return [Problem("foreign kernel", found=argv[0], file=file)]


def font_problems(fonts: Path, error: str = "") -> List[Problem]:
    """Whether the Chinese font's file is there and the figures find it."""
    if not list(fonts.glob("*.ttf")):
        return [Problem("no font", folder="figures/fonts")]
    return [Problem("bad font", why=error)] if error else []


def own_package_problems(origins: Dict[str, str], root: Path = ROOT) -> List[Problem]:
    """Whether `lib` and `figures` come from this folder."""
    foreign = [path for path in sorted(origins.values()) if root not in Path(path).resolve().parents]
    return [Problem("foreign package", why=path) for path in foreign[:1]]


def facts_problems(facts: Dict[str, Any], lock_text: str) -> List[Problem]:
    """All that is wrong, from what the environment's own Python reports about itself."""
    found = step_problems(locked_versions(lock_text), facts["versions"])
    found += [Problem("package", why=why) for why in facts["failed imports"]]
    found += kernel_problems(facts["kernel"], facts["executable"], facts["kernel error"], facts["kernel file"])
    found += font_problems(FONTS, facts["font error"])
    found += [Problem("own package", why=why) for why in facts["failed own imports"]]
    return found + own_package_problems(facts["origins"])


def failed_imports(names: Tuple[str, ...]) -> List[str]:
    """The names that cannot be imported, each with the reason."""
    from importlib import import_module

    failed = []
    for name in names:
        try:
            import_module(name)
        except Exception as error:  # any error at import is what the reader would meet
            failed.append("{} ({})".format(name, error))
    return failed


def installed_versions() -> Dict[str, str]:
    """Each installed package's version."""
    from importlib.metadata import distributions

    return {plain_name(found.metadata["Name"]): found.version for found in distributions()}


def kernel_facts() -> Tuple[List[str], str, str]:
    """The command of the kernel python3, or why there is none, and the file that describes it."""
    file = ""
    try:
        from jupyter_client.kernelspec import KernelSpecManager

        manager = KernelSpecManager()
        if "python3" in manager.find_kernel_specs():
            file = str(Path(manager.find_kernel_specs()["python3"]) / "kernel.json")
        return list(manager.get_kernel_spec("python3").argv), "", file
    except Exception as error:  # no such kernel, or a damaged file
        return [], str(error), file


def font_error() -> str:
    """Why the figures cannot use their Chinese font; empty when they can."""
    try:
        from matplotlib import font_manager

        from figures import style

        font_manager.findfont(style.FONT_FAMILY, fallback_to_default=False)
    except Exception as error:  # a damaged file raises many kinds
        return str(error) or type(error).__name__
    return ""


def own_facts() -> Dict[str, Any]:
    """What the Python that runs this says about itself."""
    failed, failed_own = failed_imports(IMPORTS), failed_imports(OWN_IMPORTS)
    kernel, kernel_error, kernel_file = kernel_facts()
    return {
        "versions": installed_versions(),
        "failed imports": failed,
        "failed own imports": failed_own,
        "origins": {name: sys.modules[name].__file__ or "" for name in OWN_IMPORTS if name in sys.modules},
        "kernel": kernel,
        "kernel error": kernel_error,
        "kernel file": kernel_file,
        "executable": sys.executable,
        "font error": font_error(),
    }


def check() -> List[Problem]:
    """All that is wrong with the environment."""
    found = python_problems(sys.version_info[:3], venv_modules())
    if found:
        return found
    if not venv_python().exists():
        return [Problem("no environment", folder=VENV.name)]
    # asked from another folder, so that the chapter's own code is found by installation and not by chance
    run = subprocess.run(
        [str(venv_python()), str(Path(__file__).resolve()), "--facts"],
        cwd=tempfile.gettempdir(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    if run.returncode:
        return [Problem("broken environment", why=last_line(run.stderr))]
    found = facts_problems(json.loads(run.stdout), LOCK.read_text(encoding="utf-8"))
    if not found and not STAMP.exists():
        found = [Problem("out of step", why="its set-up did not come to an end")]
    return found


def last_line(text: str) -> str:
    """The last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no message"


def download_problem(output: str) -> Problem:
    """The reason behind an installer's words."""
    if CERTIFICATE_WORDS.search(output):
        return Problem("certificate")
    if NETWORK_WORDS.search(output):
        return Problem("no network")
    return Problem("installer", why=last_line(output))


def install(command: List[str]) -> None:
    """Run an installer in the project's folder; raise what hindered it."""
    environment = dict(os.environ, UV_PYTHON_DOWNLOADS="never", PIP_DISABLE_PIP_VERSION_CHECK="1")
    run = subprocess.run(
        command,
        cwd=str(ROOT),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if run.returncode:
        print(run.stdout, flush=True)
        raise download_problem(run.stdout)


def lock_entry(name: str, text: str) -> str:
    """One package's lines of the lock, hashes included."""
    found = re.search(r"^{}==.*(?:\n    .*)*".format(re.escape(name)), text, re.MULTILINE)
    if not found:
        raise ValueError("requirements.lock has no entry for " + name)
    return found.group() + "\n"


def make_venv() -> None:
    """Make .venv afresh with the locked uv in it."""
    print("making .venv", flush=True)
    install([sys.executable, "-m", "venv", "--clear", str(VENV)])
    with tempfile.TemporaryDirectory() as folder:
        entry = Path(folder) / "uv.txt"
        entry.write_text(lock_entry("uv", LOCK.read_text(encoding="utf-8")), encoding="utf-8")
        pip = [str(venv_python()), "-m", "pip", "install", "-q", "--retries", "2"]
        install(pip + ["--require-hashes", "-r", str(entry)])


def starts(python: Path) -> bool:
    """Whether the environment's Python runs, is new enough and has uv."""
    ask = "import sys, uv; sys.exit(sys.version_info[:2] < {})".format(OLDEST)
    try:
        run = subprocess.run([str(python), "-c", ask], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return run.returncode == 0


def build() -> None:
    """Bring .venv in step with the lock, making it where there is none."""
    for problem in python_problems(sys.version_info[:3], venv_modules()):
        raise problem
    if STAMP.exists():
        STAMP.unlink()
    if not starts(venv_python()):
        make_venv()
    print("installing what requirements.lock names", flush=True)
    uv = [str(venv_python()), "-m", "uv", "pip"]
    target = ["--python", str(venv_python()), "-q"]
    install(uv + ["sync", "--require-hashes", str(LOCK)] + target)
    install(uv + ["install", "--no-deps", "--editable", str(ROOT)] + target)
    STAMP.write_text(hashlib.sha256(LOCK.read_bytes()).hexdigest() + "\n", encoding="utf-8")


def build_problems() -> List[Problem]:
    """Build; what hindered it."""
    try:
        build()
    except Problem as problem:
        return [problem]
    return []


def main(arguments: Optional[List[str]] = None) -> int:
    """Build the environment, or check it; zero when all is well."""
    parser = argparse.ArgumentParser(description="Build the environment in .venv, or check it.")
    parser.add_argument("--check", action="store_true", help="check, change nothing")
    parser.add_argument("--facts", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.facts:
        print(json.dumps(own_facts()))
        return 0
    problems = [] if options.check else build_problems()
    problems = problems or check()
    for found in problems:
        print(found, file=sys.stderr)
    if not problems:
        print("the environment is ready")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
