"""A prediction on the page: the question, a button for each choice, and below it room for the verdict."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from html import escape

import ipywidgets as widgets

from figures.exploration import Question

# In a window of 1024 px; so that a verdict has room before it is said, and the page does not jump.
CHARACTERS_A_LINE = 84
# How JupyterLab knows a widget among the forms of an output.
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


class Prediction:
    """A question with its choices. A click gives the choice to `judge`, which says what is put below."""

    def __init__(self, question: Question, lead: str, judge: Callable[[str], object]) -> None:
        self.question = question
        self._verdict = spare_lines(max(len(question.verdict(choice)) for choice in question.choices))
        self.rows: tuple[widgets.Widget, ...] = (
            widgets.HTML(paragraph(f"<b>{escape(lead)}</b> {escape(question.text)}")),
            buttons({choice: partial(judge, choice) for choice in question.choices}),
            self._verdict,
        )

    def say(self, verdict: str = "") -> None:
        """Put a verdict below the choices, or take it away."""
        self._verdict.value = paragraph(escape(verdict)) if verdict else ""


def spare_lines(characters: int) -> widgets.HTML:
    """A place for text, as high as so many characters need."""
    return widgets.HTML(layout={"min_height": f"{4 + 20 * math.ceil(characters / CHARACTERS_A_LINE)}px"})


def buttons(actions: Mapping[str, Callable[[], object]], lead: str = "") -> widgets.Box:
    """A button for each action, in a row that wraps."""
    shown = [widgets.Label(lead)] if lead else []
    for name, action in actions.items():
        button = widgets.Button(description=name, layout=widgets.Layout(width="auto"))
        button.on_click(lambda _, action=action: action())
        shown.append(button)
    return widgets.Box(shown, layout=widgets.Layout(flex_flow="row wrap"))


def paragraph(html: str) -> str:
    """HTML with room between its lines."""
    return f"<div style='line-height:1.5'>{html}</div>"
