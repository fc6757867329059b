"""Every figure of the registry, as it leaves for print."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread

import matplotlib as mpl
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from PIL import Image

from figures import __main__ as command_line
from figures import registry, style
from figures.exploration import controls_of
from figures.guard import FigureFault, guard, visible_texts
from figures.page import FORMATS, new_page, screen_png, write
from figures.registry import FIGURES, Entry, entry
from figures.words import LANGUAGES, words
from lib.checks import InputError
from lib.design_problem import Prompt

ROOT = Path(__file__).resolve().parent.parent
FILES = [f"{language}/{known.slug}.{kind}" for language in LANGUAGES for known in FIGURES for kind in FORMATS]
each_figure = pytest.mark.parametrize("figure", FIGURES, ids=lambda known: known.slug)
each_language = pytest.mark.parametrize("language", LANGUAGES)

# A reader with a taste of their own, who draws everything the other way round after having looked at it.
READER = """
import sys
from pathlib import Path
import matplotlib as mpl
from matplotlib import pyplot

pyplot.style.use("dark_background")
mpl.rcParams.update({"backend": "svg", "font.size": 30, "font.family": "DejaVu Serif", "figure.dpi": 300,
                     "axes.unicode_minus": False, "savefig.dpi": 30, "svg.fonttype": "none", "pdf.fonttype": 3,
                     "pdf.compression": 0, "savefig.bbox": "tight", "axes.spines.top": True, "lines.linewidth": 9})
before = mpl.rcParams.copy()

from figures.__main__ import draw
from figures.page import FORMATS, screen_png
from figures.registry import FIGURES
from figures.words import LANGUAGES

for known in reversed(FIGURES):
    for language in reversed(LANGUAGES):
        screen_png(known.figure(language=language))
        draw(known.slug, language, FORMATS[::-1], Path(sys.argv[1]))
print("changed:", *(name for name in before if mpl.rcParams[name] != before[name]))
print("left open:", *pyplot.get_fignums())
"""


def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    """A Python of its own, in the project's folder."""
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **variables, "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def figures_command(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output and complaints of `python -m figures`."""
    running = start("-m", "figures", *arguments)
    output, complaints = running.communicate()
    return running.returncode, output, complaints


def written(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, str, str]]:
    """All figures by the command line, and by a reader in another year with other hashes; what each said."""
    by_command, by_reader = tmp_path_factory.mktemp("command"), tmp_path_factory.mktemp("reader")
    first = start("-m", "figures", "draw", "--to", str(by_command), PYTHONHASHSEED="1", SOURCE_DATE_EPOCH="0")
    second = start("-c", READER, str(by_reader), PYTHONHASHSEED="2", SOURCE_DATE_EPOCH="1000000000")
    said = [running.communicate() for running in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0), said
    yield by_command, by_reader, said[0][0], said[1][0]


@pytest.fixture(scope="module")
def printed(twice: tuple[Path, Path, str, str]) -> Path:
    return twice[0]


@each_language
@each_figure
def test_the_printed_figure_has_no_fault(figure: Entry, language: str) -> None:
    guard(figure.figure(language=language), f"{figure.slug} ({language})", figure.may_overlap)


@pytest.mark.long
@each_language
@each_figure
def test_it_has_none_at_any_end_of_a_control(figure: Entry, language: str) -> None:
    for name, control in controls_of(figure.draw).items():
        for end in control.ends:
            try:
                drawn = figure.figure(language=language, **{name: end})
            except InputError:
                continue  # a sentence stands where the picture would be
            guard(drawn, f"{figure.slug} ({language}) with {name} = {end!r}", figure.may_overlap)


@pytest.mark.long
@each_language
@each_figure
def test_the_named_settings_have_no_fault_either(figure: Entry, language: str) -> None:
    for name, settings in figure.exploration.settings.items():
        drawn = figure.figure(language=language, **settings)
        guard(drawn, f"{figure.slug} ({language}), {name}", figure.may_overlap)


@each_language
@each_figure
def test_texts_that_may_overlap_exist_and_have_a_reason(figure: Entry, language: str) -> None:
    known = {text.get_gid() for text in visible_texts(figure.figure(language=language))}
    for pair, reason in figure.may_overlap.items():
        assert set(pair) <= known
        assert reason.strip()


def test_numbers_and_names_are_given_once() -> None:
    numbers = [known.number for known in FIGURES if known.number]
    assert len(set(numbers)) == len(numbers)
    assert len({known.slug for known in FIGURES}) == len(FIGURES)
    for known in FIGURES:
        assert known.number is None or re.fullmatch(r"8-[1-9]\d?", known.number)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", known.slug)
        assert re.fullmatch(r"8\.\d(\.\d)?", known.section)


@pytest.mark.long
def test_the_command_draws_every_figure_in_every_form(twice: tuple[Path, Path, str, str]) -> None:
    by_command, _, said, _ = twice
    assert written(by_command) == sorted(FILES)
    assert sorted(said.splitlines()) == sorted(str(by_command / name) for name in FILES)


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_same_bytes_in_any_process_order_year_and_taste(name: str, twice: tuple[Path, Path, str, str]) -> None:
    by_command, by_reader, _, _ = twice
    assert (by_command / name).read_bytes() == (by_reader / name).read_bytes()


@pytest.mark.long
def test_the_reader_keeps_their_settings_and_no_figure_stays_open(twice: tuple[Path, Path, str, str]) -> None:
    assert twice[3].splitlines() == ["changed:", "left open:"]


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_no_file_tells_when_it_was_drawn_or_what_its_number_is(name: str, printed: Path) -> None:
    content = (printed / name).read_bytes()
    for word in (b"CreationDate", b"ModDate", b"<dc:date>", b"tIME", b"date:create"):
        assert word not in content
    number = entry(Path(name).stem).number or "8-"
    assert number not in name
    assert f">{number}<".encode() not in content
    assert f"Figure {number}".encode() not in content


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_no_file_is_wider_than_the_book(name: str, printed: Path) -> None:
    assert width_pt(printed / name) <= 420


def width_pt(path: Path) -> float:
    if path.suffix == ".png":
        return Image.open(path).width / style.PRINT_DPI * 72
    pattern = rb'<svg [^>]*width="([\d.]+)pt"' if path.suffix == ".svg" else rb"/MediaBox \[ 0 0 ([\d.]+) "
    found = re.search(pattern, path.read_bytes())
    assert found
    return float(found[1])


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".pdf")])
def test_every_font_of_a_pdf_is_embedded_as_outlines(name: str, printed: Path) -> None:
    content = (printed / name).read_bytes()
    embedded = content.count(b"/FontFile2")
    assert embedded == content.count(b"/Type /FontDescriptor") > 0
    assert b"/Subtype /Type3" not in content
    assert b"ChapterSansSC-Regular" in content


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("pdffonts"), reason="pdffonts is not installed")
@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(".pdf")])
def test_another_program_finds_every_font_embedded(name: str, printed: Path) -> None:
    listed = subprocess.run(["pdffonts", printed / name], capture_output=True, encoding="utf-8", check=True)
    _, rule, *fonts = listed.stdout.splitlines()
    embedded = re.search(r"---( ---){2} ", rule)
    assert fonts
    assert embedded
    assert {font[embedded.start() :].split()[0] for font in fonts} == {"yes"}


@pytest.mark.long
@each_figure
def test_the_chinese_figure_is_written_in_chinese(figure: Entry, printed: Path) -> None:
    texts = [text.get_text() for text in visible_texts(figure.figure(language="zh"))]
    assert any(re.search(r"[\u3400-\u9fff]", text) for text in texts)
    for kind in FORMATS:
        assert (printed / f"en/{figure.slug}.{kind}").read_bytes() != (
            printed / f"zh/{figure.slug}.{kind}"
        ).read_bytes()


@each_language
@each_figure
def test_no_text_in_a_figure_names_its_number(figure: Entry, language: str) -> None:
    for text in visible_texts(figure.figure(language=language)):
        assert not re.search(rf"\b{figure.number}\b|Figure|图\s*\d", text.get_text())


@pytest.mark.long
@each_language
@each_figure
def test_a_figure_function_is_pure(figure: Entry, language: str) -> None:
    with mpl.rc_context({"font.size": 31, "axes.facecolor": "black"}):
        before = dict(mpl.rcParams.items())
        first, second = figure.figure(language=language), figure.figure(language=language)
        assert dict(mpl.rcParams.items()) == before
    assert first is not second
    picture = screen_png(second)
    first.clear()
    assert screen_png(second) == picture
    assert screen_png(figure.figure(language=language)) == picture
    assert pyplot.get_fignums() == []


def test_two_threads_are_in_the_book_style_one_after_the_other() -> None:
    before, leave = dict(mpl.rcParams.items()), Event()

    def draw() -> None:
        with style.in_book_style():
            leave.wait()

    other = Thread(target=draw)
    with style.in_book_style():
        other.start()
        other.join(0.2)
    leave.set()
    other.join()
    assert dict(mpl.rcParams.items()) == before


@each_figure
def test_boxes_stay_where_they_were_put(figure: Entry) -> None:
    drawn = figure.figure()
    assert drawn.get_layout_engine() is None
    before = [axes.get_position().bounds for axes in drawn.axes]
    screen_png(drawn)
    assert [axes.get_position().bounds for axes in drawn.axes] == before


@each_figure
def test_an_unknown_language_is_refused(figure: Entry) -> None:
    with pytest.raises(InputError, match=r"^language is 'fr'; allowed: one of 'en', 'zh'$"):
        figure.figure(language="fr")


@pytest.mark.parametrize("arguments", [(), ("list",)], ids=["without a command", "list"])
def test_the_command_lists_the_figures(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(list(arguments)) == 0
    lines = capsys.readouterr().out.splitlines()
    for known, line in zip(FIGURES, lines, strict=True):
        number, slug, section, caption = line.split(maxsplit=3)
        assert (number, slug, section) == (known.number or "–", known.slug, known.section)
        assert words("en", known.slug)["caption"].startswith(caption.removesuffix(" [...]"))
        assert len(line) < 120


@pytest.mark.parametrize("name", [FIGURES[0].slug, FIGURES[0].number], ids=["by its slug", "by its number"])
def test_the_command_draws_one_figure_as_chosen(name: str, tmp_path: Path) -> None:
    where = tmp_path / "not yet" / "there"
    code, output, complaints = figures_command(
        "draw", name, "--language", "zh", "--format", "svg", "png", "--to", str(where)
    )
    assert (code, complaints) == (0, "")
    assert written(where) == [f"zh/{FIGURES[0].slug}.png", f"zh/{FIGURES[0].slug}.svg"]
    assert output.splitlines() == [str(where / f"zh/{FIGURES[0].slug}.{kind}") for kind in ("svg", "png")]


def test_the_command_knows_no_other_figure_and_then_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["draw", FIGURES[0].slug, "no-such-figure", "--to", str(tmp_path)]) == 1
    output, complaints = capsys.readouterr()
    assert output == ""
    assert complaints.startswith("figure is 'no-such-figure'; allowed: one of ")
    assert FIGURES[0].slug in complaints
    assert len(complaints.splitlines()) == 1
    assert written(tmp_path) == []


@pytest.mark.parametrize("wrong", [("--language", "fr"), ("--format", "gif")], ids=["language", "format"])
def test_the_command_knows_no_other_language_or_format(
    wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as leaving:
        command_line.main(["draw", *wrong])
    assert leaving.value.code == 2
    assert f"invalid choice: '{wrong[1]}'" in capsys.readouterr().err


def refuses(**_: object) -> Figure:
    raise InputError("batch", 0, "a whole number of at least 1")


def breaks_a_rule(**_: object) -> Figure:
    page = new_page(100)
    write(page, 20, 50, "small", fontsize=6)
    return page


@pytest.mark.parametrize(("draw", "error"), [(refuses, InputError), (breaks_a_rule, FigureFault)])
def test_a_figure_that_must_not_be_drawn_writes_nothing(
    draw: Callable[..., Figure], error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "FIGURES", (replace(FIGURES[0], draw=draw),))
    with pytest.raises(error):
        command_line.draw(FIGURES[0].slug, "en", FORMATS, tmp_path)
    assert written(tmp_path) == []


@pytest.mark.parametrize("queue", [0.0, 0.5])
@pytest.mark.parametrize("interval", [0.01, 0.06])
@pytest.mark.parametrize("outputs", [1, 2, 16, 512])
@pytest.mark.parametrize("deadline", [1.0, 20.0])
@pytest.mark.parametrize("prompt", Prompt)
def test_what_is_magnified_lies_inside_the_whole(
    queue: float, interval: float, outputs: int, deadline: float, prompt: Prompt
) -> None:
    page = entry("request-timeline").figure(
        queue=queue, interval=interval, outputs=outputs, deadline=deadline, prompt=prompt
    )
    whole, first, last = (axes.get_xlim() for axes in page.axes)
    for part in (first, last):
        assert whole[0] <= part[0] < part[1] <= whole[1]
        assert part[1] - part[0] < whole[1] - whole[0]
