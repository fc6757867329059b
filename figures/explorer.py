"""A figure that a reader can move: a question first, then controls, one picture redrawn in place, and read-outs."""

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from html import escape
from threading import RLock
from typing import Any

import ipywidgets as widgets

from figures import machine, page, registry
from figures.exploration import Choice, Control, Question, Readout, book_values, controls_of
from figures.prediction import WIDGET_VIEW, Prediction, buttons, paragraph, spare_lines
from figures.tables import Table
from figures.words import words
from lib.checks import InputError, one_of

_WIDE = f"{page.SCREEN_WIDTH_PX}px"
# Browsers count whole numbers exactly up to here.
FURTHEST = 2**53
# How far a browser's arithmetic may be off, in units of a slider.
_OFF = 1e-9
# As wide as a change will be: else the first one would make the labels wrap anew.
CHANGE_PX = 76
# Names wrap alike whatever numbers stand beside them: else a longer number would make the page jump.
NAMES_PERCENT = 34
# In JupyterLab a key pressed in a control would also be a command to the notebook: m makes the cell Markdown, and an
# arrow leaves it. This keeps those keys in the explorer, but for Shift+Enter and what is pressed with Ctrl, Alt or Cmd.
_KEYS_STAY = """<style onload="
    const root = this.closest('.widget-vbox');
    const stay = key => key.target.toggleAttribute('data-lm-suppress-shortcuts',
        !(key.ctrlKey || key.altKey || key.metaKey || key.shiftKey && key.key === 'Enter'));
    root.addEventListener('focusin', () => window.addEventListener('keydown', stay, true));
    root.addEventListener('focusout', () => window.removeEventListener('keydown', stay, true));
"></style>"""


def explore(figure: str, **settings: Any) -> "Explorer":
    """The explorer of a figure, by slug or number, at the book's values or at these settings.

    A setting that makes no sense gives one sentence in place of the picture. Raises InputError for an unknown figure
    or parameter.
    """
    return Explorer(registry.entry(figure), settings)


class Explorer:
    """One figure with its controls. A move redraws the picture in place; what is stored shows where it began."""

    def __init__(self, entry: registry.Entry, settings: Mapping[str, Any]) -> None:
        self.entry = entry
        self.controls = controls_of(entry.draw)
        self.book = book_values(entry.draw, entry.arguments)
        self._refuse_unknown(settings)
        self._start = machine.starts_of(self.book, entry.slug)
        self.settings = self._start | dict(settings)
        # The controls that stand where the kernel put them, and not where a reader did.
        self._put = set(self.controls)
        # JupyterLab hands moved controls and pressed buttons to different threads of the kernel.
        self._turn = RLock()
        self.question: Question = entry.exploration.question()
        self._book_readouts = entry.exploration.readouts(**dict(entry.arguments) | self.book)

        self.widgets = {name: _widget(control, self.settings[name]) for name, control in self.controls.items()}
        self._picture = widgets.Image(format="png", layout=widgets.Layout(width=_WIDE, max_width="100%", margin="0"))
        self._refusal, self._table = widgets.HTML(layout={"margin": "0"}), widgets.HTML()
        self._machine = widgets.HTML()
        self._prediction = Prediction(self.question, "Before you move anything.", self.predict)
        self._prediction.rows[0].value += _KEYS_STAY
        self._line = spare_lines(1)
        self._frame = widgets.Box([self._picture, self._refusal])
        self.readouts: tuple[Readout, ...] = ()
        self._refused = self._still = ""
        self._draw()
        at_book = self.settings == self.book and machine.is_books(entry.slug)
        self._began: tuple[bytes, str, tuple[Readout, ...], bool] = self.png, self.sentence, self.readouts, at_book
        self._began_clocks = tuple(map(self._clock_of, self.readouts))
        self._view = self._lay_out()
        self._listening = True
        for name, widget in self.widgets.items():
            widget.observe(lambda _, name=name: self._moved(name), names="value")
        machine.watch(self)

    @property
    def png(self) -> bytes:
        """The picture as it stands; empty while a sentence is in its place."""
        return b"" if self.sentence else self._picture.value

    @property
    def sentence(self) -> str:
        """Why these settings make no sense, or nothing."""
        return self._refused

    @property
    def line(self) -> str:
        """Why the last move changed nothing, or nothing."""
        return self._still

    def move(self, **settings: Any) -> None:
        """Set several controls at once and draw once, as the named settings do; InputError for an unknown one."""
        self._refuse_unknown(settings)
        with self._turn:
            self.settings |= settings
            self._put |= set(settings)
            self._listening = False
            for name, value in settings.items():
                position = _position(self.controls[name], value)
                if position is not None:
                    _stand(self.widgets[name], _on_step(self.controls[name], position))
            self._listening = True
            self._draw()

    def predict(self, choice: str) -> str:
        """Judge a prediction and draw the setting that was asked about; gives the verdict."""
        verdict = self.question.verdict(one_of("choice", choice, self.question.choices))
        with self._turn:
            self._prediction.say(verdict)
            self.move(**self._start | dict(self.question.reveals))
        return verdict

    def redraw(self) -> None:
        """Draw for the machine as it is now; a control that stands where the old one began goes where this begins."""
        with self._turn:
            before, self._start = self._start, machine.starts_of(self.book, self.entry.slug)
            began = [name for name, value in before.items() if self.settings[name] == value]
            self.move(**{name: self._start[name] for name in began})

    def _try(self, settings: Mapping[str, Any]) -> None:
        with self._turn:
            self._prediction.say()  # it was said of another picture
            self.move(**self._start | dict(settings))

    def _refuse_unknown(self, settings: Mapping[str, Any]) -> None:
        for name in settings:
            one_of("setting", name, self.controls)

    def _moved(self, name: str) -> None:
        with self._turn:
            # While it waited for its turn, a button may have put the control elsewhere.
            value = self._value_at(name, self.widgets[name].value)
            if self._listening and value != self.settings[name]:
                self.settings[name] = value
                self._put.discard(name)
                self._draw(moved=name)

    def _value_at(self, name: str, position: Any) -> Any:
        """The value of a control that a browser gives at this position.

        A browser puts a slider on a whole step: that is no move away from a value between two steps, which the kernel
        had put there, and at this step a reader finds such a start again.
        """
        control = self.controls[name]
        if isinstance(control, Choice):
            return position
        for value, step in (
            (self.settings[name], control.step if name in self._put else 0),
            (self._start[name], control.step),
        ):
            stands = _position(control, value)
            if stands is not None and _is_snapped(stands, position, step):
                return value
        return control.to_parameter(position)

    def _draw(self, moved: str | None = None) -> None:
        before = self.png, tuple(map(str, self.readouts))
        self._refused = self._still = ""
        try:
            with machine.drawn_for(machine.readers(self.entry.slug)):
                readouts = self.entry.exploration.readouts(**dict(self.entry.arguments) | self.settings)
                picture = page.screen_png(self.entry.figure(**self.settings))
        except InputError as error:
            control = self.controls.get(error.parameter)
            where = f' (the control "{control.label}")' if control and control.label != error.parameter else ""
            self._refused = f"Nothing to draw: {error}{where}."
        except Exception:
            self._refused = "Nothing drawn: this is a fault in the figure, not in your settings."
            raise
        else:
            self._keep_height(picture)
            self.readouts, self._picture.value = readouts, picture
            if moved and before == (picture, tuple(map(str, readouts))):
                with machine.drawn_for(machine.readers(self.entry.slug)):
                    reason = self.entry.exploration.why_still(moved, self.settings)
                label = self.controls[moved].label
                self._still = reason or f"At these settings, moving {label} changes nothing that is shown here."
        finally:
            self._show()

    def _keep_height(self, picture: bytes) -> None:
        """The frame keeps its height when a sentence takes the picture's place, so that the page does not jump."""
        width, height = page.size_of(picture)
        self._frame.layout.min_height = f"{page.SCREEN_WIDTH_PX * height / width}px"

    def _show(self) -> None:
        if not self._frame.layout.min_height:
            self._keep_height(page.screen_png(self.entry.figure()))
        self._picture.layout.display = "none" if self._refused else None
        self._refusal.layout.display = None if self._refused else "none"
        box = "border:1px dashed;padding:16px;display:flex;align-items:center;box-sizing:border-box"
        height = f"min-height:{self._frame.layout.min_height}"
        self._refusal.value = f"<div style='line-height:1.5;{box};{height}'>{escape(self._refused)}</div>"
        self._machine.value = paragraph(escape(told)) if (told := machine.line(self.entry.slug)) else ""
        self._machine.layout.display = None if told else "none"
        now = None if self._refused else self.readouts
        self._table.value = _readout_table(now, self._book_readouts, self._clock_of)
        self._line.value = paragraph(escape(self._still))

    def _clock_of(self, readout: Readout) -> str:
        return machine.clock_of(readout.clock, self.entry.slug)

    def _lay_out(self) -> widgets.VBox:
        starts = {"the book's values": dict[str, Any]()} | dict(self.entry.exploration.settings)
        named = buttons({name: partial(self._try, values) for name, values in starts.items()}, "Try:")
        in_view = self.entry.exploration.in_view
        shown = _grid([self.widgets[name] for name in in_view])
        hidden = [widget for name, widget in self.widgets.items() if name not in in_view]
        more = [widgets.Accordion([_grid(hidden)], titles=("more",))] if hidden else []
        rows = [*self._prediction.rows, named, shown, *more, self._machine, self._frame, self._line, self._table]
        return widgets.VBox(rows, layout=widgets.Layout(max_width="720px"))

    @cached_property
    def _stored(self) -> tuple[dict[str, str], dict[str, Any]]:
        """What a notebook keeps: where the reader began, whatever was moved since."""
        png, sentence, readouts, at_book = self._began
        if sentence:
            return {"text/plain": sentence}, {}
        title = self.entry.title + (" at the book's values" if at_book else "")
        rows = [(readout.label, readout, clock) for readout, clock in zip(readouts, self._began_clocks, strict=True)]
        text = repr(Table((title, "", _clock_head(readouts)), rows, left=("clock",)))
        picture = base64.b64encode(page.palette_png(png)).decode("ascii")
        alt = (
            words("en", self.entry.slug)["alt"] if at_book else f"{self.entry.title} at other settings than the book's"
        )
        data = {"text/plain": text, "image/png": picture}
        return data, {"image/png": {"width": page.SCREEN_WIDTH_PX, "alt": alt}}

    def _repr_mimebundle_(self, **_: object) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = self._stored
        return data | {WIDGET_VIEW: self._view._repr_mimebundle_()[WIDGET_VIEW]}, metadata


def _widget(control: Control, value: Any) -> widgets.Widget:
    how = {"style": {"description_width": "128px"}, "layout": widgets.Layout(width="auto")}
    start = _position(control, value)
    if isinstance(control, Choice):
        options = [(str(option), option) for option in control.options]
        start = control.options[0] if start is None else start
        return widgets.Dropdown(options=options, value=start, description=control.label, **how)
    make = widgets.IntSlider if control.is_whole else widgets.FloatSlider
    unit = f" ({control.unit})" if control.unit else ""
    extra = {} if control.is_whole else {"readout_format": f".{_decimals(control.step)}f"}
    start = control.low if start is None else _on_step(control, start)
    ends = {"min": min(control.low, start), "max": max(control.high, start)}
    return make(value=start, step=control.step, description=control.label + unit, **ends, **extra, **how)


def _stand(widget: widgets.Widget, position: Any) -> None:
    """Set a control, and widen a slider that would not reach so far."""
    if hasattr(widget, "max"):
        widget.min, widget.max = min(widget.min, position), max(widget.max, position)
    widget.value = position


def _position(control: Control, value: Any) -> Any:
    """Where a control stands to show a value; None for a value that it cannot show."""
    if isinstance(control, Choice):
        return next((option for option in control.options if option == value), None)
    try:
        position = control.to_position(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return position if math.isfinite(position) and abs(position) <= FURTHEST else None


def _on_step(control: Control, position: Any) -> Any:
    """The step at which a browser shows a position within a slider's ends: put there, it sends nothing back."""
    if isinstance(control, Choice) or not control.low <= position <= control.high:
        return position
    steps = math.floor((position - control.low) / control.step + 0.5 + _OFF)
    return min(round(control.low + steps * control.step, 9), control.high)


def _is_snapped(stands: float, position: float, step: float) -> bool:
    """Whether a browser shows a slider of such steps that stands at one place at another: at the nearest step.

    Of two that are as near it takes the upper one. Its arithmetic may be a little off.
    """
    half = max(step / 2, _OFF)
    return -half < position - stands < half + _OFF


def _decimals(step: float) -> int:
    return len(f"{step:g}".partition(".")[2])


def _grid(children: Sequence[widgets.Widget]) -> widgets.GridBox:
    return widgets.GridBox(
        children, layout=widgets.Layout(grid_template_columns="repeat(auto-fill, minmax(340px, 1fr))")
    )


def _readout_table(now: Sequence[Readout] | None, book: Sequence[Readout], clock_of: Callable[[Readout], str]) -> str:
    """Now, the book's value, the change and the clock of each read-out; dashes for now while there is no picture."""
    if now is None:
        rows: list[Sequence[object]] = [(there.label, "–", there, "–", "") for there in book]
    else:
        pairs = zip(now, book, strict=True)
        rows = [(here.label, here, there, here.change_from(there), clock_of(here)) for here, there in pairs]
    head = ("", "now", "book", "change", _clock_head(book))
    return paragraph(Table(head, rows, left=("clock",), least_px=CHANGE_PX, names_percent=NAMES_PERCENT)._repr_html_())


def _clock_head(readouts: Sequence[Readout]) -> str:
    """The head of the column of clocks; empty where nothing was timed."""
    return "clock" if any(readout.clocks for readout in readouts) else ""
