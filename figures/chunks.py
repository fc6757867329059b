"""What the chunks of a prompt take, one after the other: pairs, FLOP, and time by several models beside the record."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from figures import style
from figures.exploration import Choice, Exploration, Question, Readout, Slider
from figures.lines import height_from_zero, line_key, token_axis
from figures.page import box, new_page, swatch, write
from figures.times import in_ns
from figures.words import words
from lib import records, step_time
from lib.attention import causal_pairs
from lib.checks import one_of, whole
from lib.clocks import Clock
from lib.design_problem import INSTANCE, SHORT_CHAT
from lib.model import matrix_flops
from lib.step_time import FIT, NS, LaunchBound, StepTime, decode_plan, device, step_plan

DEVICE = device(INSTANCE.model)
# The host's time in the experiment of the batch sweep, where it hid the device's: one decode step of one request.
_DECODE_ALONE = records.record("step_efficiency").one(input_kind="2k_independent", batch_requests=1)
HOST_S = round(_DECODE_ALONE["decode_step_median_ms"]) / 1e3
_RECORD = records.record("chunk_times").rows
RECORDED_CHUNK, RECORDED_PROMPT = _RECORD[0]["new_tokens"], sum(row["new_tokens"] for row in _RECORD)
NOT_RECORDED = "not recorded"
# The models of a step's time as labels and read-outs call them, and the clocks of each.
BY = {"fit": "the fit", "device": "the device", "launch": "max(host, device)"}
CLOCKS = {"fit": (Clock.FIT,), "device": (Clock.FLOP_RULE,), "launch": (Clock.FLOP_RULE, Clock.ASSUMED)}
CHUNKS = (64, 128, 256, 512, 1024, 2048)
# A longer prompt in the smallest chunks would make bars that cannot be seen.
MOST_PROMPT = 2**17


class Plotted(StrEnum):
    """What the chunks of a prompt are compared by."""

    PAIRS = "pairs"
    FLOP = "FLOP"
    TIME = "ms"


@dataclass(frozen=True)
class Chunks:
    """A prompt cut into chunks of (new tokens, tokens in context), each computed in a step of its own."""

    segments: tuple[tuple[int, int], ...]
    host_ns: int

    @property
    def edges(self) -> list[int]:
        """Tokens of the prompt before the first chunk and after each."""
        return [0, *(new + context for new, context in self.segments)]

    @property
    def pairs(self) -> list[int]:
        return [causal_pairs(*one) for one in self.segments]

    @property
    def flop(self) -> list[int]:
        return [matrix_flops(INSTANCE.model, *one, logit_positions=0) for one in self.segments]

    @property
    def flop_without_attention(self) -> list[int]:
        """FLOP of the matrices that each new token passes, whatever stands before it."""
        return [new * DEVICE.flop_per_token for new, _ in self.segments]

    @property
    def models(self) -> dict[str, StepTime]:
        return {"fit": FIT, "device": DEVICE, "launch": LaunchBound(self.host_ns, DEVICE)}

    def times_s(self, model: StepTime) -> list[float]:
        """Seconds of each chunk by a model of the step's time."""
        return [model(step_plan(one)) / NS for one in self.segments]

    @property
    def recorded_s(self) -> list[float]:
        """Seconds of each chunk as measured; none where another prompt or other chunks were."""
        same = [(row["new_tokens"], row["existing_context_tokens"]) for row in _RECORD] == list(self.segments)
        return [row["median_ms"] / 1e3 for row in _RECORD] if same else []


def chunks_of(chunk_tokens: int, prompt_tokens: int, host_s: float) -> Chunks:
    """The chunks that the figure's parameters describe; the last one takes what is left."""
    chunk = one_of("chunk_tokens", chunk_tokens, CHUNKS)
    prompt = whole("prompt_tokens", prompt_tokens, at_least=1, at_most=MOST_PROMPT)
    segments = tuple((min(chunk, prompt - context), context) for context in range(0, prompt, chunk))
    return Chunks(segments, in_ns("host_s", host_s))


def chunk_times(
    *,
    chunk_tokens: Annotated[int, Choice("chunk, tokens", CHUNKS)] = RECORDED_CHUNK,
    prompt_tokens: Annotated[int, Slider("prompt, tokens", 1024, 16384, 1024)] = RECORDED_PROMPT,
    plotted: Annotated[Plotted, Choice("plot", tuple(Plotted))] = Plotted.TIME,
    host_s: Annotated[float, Slider("host", 0.0, 30.0, 1.0, "ms")] = HOST_S,
    language: str = "en",
) -> Figure:
    """What each chunk of a prompt takes: pairs, FLOP, or time by three models beside what was measured.

    Raises InputError for values that make no sense. Source: section 8.2.3; record chunk_times.
    """
    chunks = chunks_of(chunk_tokens, prompt_tokens, host_s)
    what = one_of("plotted", plotted, Plotted)
    text = words(language, "chunk-times")
    draw = {Plotted.PAIRS: _draw_pairs, Plotted.FLOP: _draw_flop, Plotted.TIME: _draw_times}[what]
    with style.in_book_style():
        page = new_page(238)
        write(page, 14, 222, text[what.name.lower()])
        axes = box(page, 44, 80, 360, 132)
        token_axis(axes, chunks.edges[-1], text["width"])
        height_from_zero(axes, draw(page, axes, chunks, text))
    return page


def chunk_readouts(**settings: Any) -> tuple[Readout, ...]:
    """How the last chunk compares with the first, and what all take together, at the settings of `chunk_times`."""
    one_of("plotted", settings["plotted"], Plotted)
    chunks = chunks_of(settings["chunk_tokens"], settings["prompt_tokens"], settings["host_s"])
    pairs, flop, recorded = chunks.pairs, chunks.flop, chunks.recorded_s
    times = {name: chunks.times_s(model) for name, model in chunks.models.items()}
    return (
        Readout("pairs of the first chunk", pairs[0]),
        Readout("pairs of the last chunk", pairs[-1]),
        Readout("last / first: pairs", pairs[-1] / pairs[0], "", 1),
        Readout("last / first: FLOP", flop[-1] / flop[0], "", 2),
        Readout("last / first: time measured", _growth(recorded) if recorded else NOT_RECORDED, "", 2),
        *(Readout(f"last / first: time by {BY[name]}", _growth(times[name]), "", 2) for name in ("fit", "device")),
        Readout("all chunks measured", *((sum(recorded), "ms", 0, (Clock.MEASURED,)) if recorded else (NOT_RECORDED,))),
        *(Readout(f"all chunks by {BY[name]}", sum(each), "ms", 0, CLOCKS[name]) for name, each in times.items()),
        Readout("prompt tokens that ride along free while the host submits a decode step", free_tokens(chunks.host_ns)),
    )


def _growth(times: Sequence[float]) -> float:
    return times[-1] / times[0]


def free_tokens(host_ns: int) -> int:
    """Tokens of a new prompt that the device computes beside one decode while the host submits the step anyway."""
    return step_time.tokens_that_fit(host_ns, DEVICE, 0, decode_plan(1, SHORT_CHAT.input_tokens)) if host_ns else 0


def _ask_last_chunk() -> Question:
    chunks = chunks_of(RECORDED_CHUNK, RECORDED_PROMPT, HOST_S)
    pairs, recorded, flop = chunks.pairs, chunks.recorded_s, chunks.flop
    answer, many = f"{recorded[-1] / recorded[0]:.1f} times", round(pairs[-1] / pairs[0])
    return Question(
        text=f"A prompt of {RECORDED_PROMPT} tokens is computed in chunks of {RECORDED_CHUNK}. The last chunk has "
        f"{many} times the pairs of the first. How many times as long did it take?",
        choices=(f"{many} times", "3 times", answer),
        answer=answer,
        reveals={"chunk_tokens": RECORDED_CHUNK, "prompt_tokens": RECORDED_PROMPT, "plotted": Plotted.FLOP},
        because=f"Pairs are attention only. The matrices that each token passes weigh more: all FLOP together grow "
        f"{flop[-1] / flop[0]:.2f} times. Measured: {recorded[0] * 1e3:.1f} and {recorded[-1] * 1e3:.1f} ms.",
    )


def _why_chunks_still(moved: str, settings: Mapping[str, Any]) -> str:
    if moved == "host_s":
        return "The device needs longer than the host for every chunk and for a decode step: the host costs nothing."
    return ""


CHUNKS_EXPLORATION = Exploration(
    question=_ask_last_chunk,
    in_view=("chunk_tokens", "prompt_tokens", "plotted", "host_s"),
    settings={
        "their pairs": {"plotted": Plotted.PAIRS},
        "their FLOP": {"plotted": Plotted.FLOP},
        "small chunks": {"chunk_tokens": 128},
    },
    readouts=chunk_readouts,
    why_still=_why_chunks_still,
)


def _draw_pairs(page: Figure, axes: Axes, chunks: Chunks, text: Mapping[str, str]) -> float:
    within = [causal_pairs(new) / 1e6 for new, _ in chunks.segments]
    return _draw_parts(
        page, axes, chunks, within, [one / 1e6 for one in chunks.pairs], (text["within"], text["context"])
    )


def _draw_flop(page: Figure, axes: Axes, chunks: Chunks, text: Mapping[str, str]) -> float:
    matrices = [one / 1e12 for one in chunks.flop_without_attention]
    names = text["matrices"], text["attention"]
    return _draw_parts(page, axes, chunks, matrices, [one / 1e12 for one in chunks.flop], names)


def _draw_parts(
    page: Figure, axes: Axes, chunks: Chunks, lower: list[float], both: list[float], names: tuple[str, str]
) -> float:
    """A bar a chunk in two parts: what only its own tokens decide, and what grows with the context."""
    axes.stairs(lower, chunks.edges, fill=True, **style.look("decode"))
    axes.stairs(both, chunks.edges, baseline=lower, fill=True, **style.look("prefill"))
    swatch(page, 14, 30, names[0], "decode")
    swatch(page, 214, 30, names[1], "prefill")
    return max(both)


def _draw_times(page: Figure, axes: Axes, chunks: Chunks, text: Mapping[str, str]) -> float:
    """A line a model and a dot for each measured chunk; gives the highest of them."""
    times = {role: [1e3 * time for time in chunks.times_s(model)] for role, model in chunks.models.items()}
    for (role, each), left, bottom in zip(times.items(), (14, 14, 214), (30, 10, 10), strict=True):
        axes.stairs(each, chunks.edges, baseline=None, linewidth=style.LINE_PT, **style.line(role))
        line_key(page, left, bottom, text[role], role)
    recorded = [1e3 * time for time in chunks.recorded_s]
    if recorded:
        middles = [(start + end) / 2 for start, end in pairwise(chunks.edges)]
        axes.plot(middles, recorded, "o", markersize=4, color=style.INK)
    write(page, 214, 30, text["measured" if recorded else "not_measured"])
    return max(map(max, times.values()))
