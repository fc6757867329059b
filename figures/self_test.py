"""Predictions to close the chapter with: questions that no section asks in this form, judged by `lib`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any

import ipywidgets as widgets

from figures.exploration import Question
from figures.prediction import WIDGET_VIEW, Prediction
from lib.attention import causal_pairs
from lib.checks import one_of, whole
from lib.design_problem import INSTANCE, LONG_CONTEXT, SHORT_CHAT, timed_request
from lib.goodput import Outcome, Since, Window
from lib.kv_compression import stored_in
from lib.little import requests_in_system
from lib.memory import KvPool
from lib.model import kv_bytes_per_token, streamed_weight_bytes
from lib.paging import Findable, Pool
from lib.prefix_value import A_TOKENS, GEN5, prefix_of
from lib.quantization import Q4_0
from lib.reads import kv_crossover
from lib.rejection_sampling import TARGET, acceptance_rate, output_law
from lib.serving import Limit, Limits, choose
from lib.speculation import ACCEPTS_B, at_every_position, expected_outputs
from lib.units import GIB, shown
from lib.whole_task import FasterPart, task_speedup

POOL = KvPool(INSTANCE.model, INSTANCE.kv_pool_bytes)


@dataclass(frozen=True)
class Asked:
    """One question of the self-test, and the section to read again for it."""

    section: str
    question: Question


def _number(
    section: str, text: str, right: float, wrong: Sequence[float], show: Callable[[float], str], because: str
) -> Asked:
    """A question with numbers to choose from, the right one among those that a slip leads to, in rising order."""
    choices = tuple(show(value) for value in sorted((right, *wrong)))
    assert all(one != other for one, other in pairwise(choices)), choices
    return Asked(section, Question(text, choices, show(right), reveals={}, because=because))


def _in_seconds(value: float) -> str:
    return shown(value, "s", 2)


def _count(value: float) -> str:
    return f"{value:g}"


def request_time() -> Asked:
    """Half as many outputs: what is halved, and what is not."""
    outputs, request = SHORT_CHAT.output_tokens // 2, timed_request()
    intervals = request.total_s - request.ttft_s
    text = (
        f"Alone on the card, the short request with {SHORT_CHAT.output_tokens} outputs takes "
        f"{_in_seconds(request.total_s)} "
        f"from its arrival. How long does it take with {outputs} outputs?"
    )
    right = timed_request(outputs=outputs).total_s
    because = (
        "Queue and prefill stay as they are; only the intervals between outputs are halved, and there is one fewer "
        "than outputs."
    )
    return _number("8.1.1", text, right, (request.total_s / 2, intervals / 2), _in_seconds, because)


def shared_prefix() -> Asked:
    """Twice the pool, with a prefix that is held once."""
    twice = KvPool(INSTANCE.model, 2 * INSTANCE.kv_pool_bytes)
    shared = LONG_CONTEXT.shape
    once = POOL.requests_that_fit(shared)
    text = (
        f"With their common prefix held once, {once} long requests fit the pool of "
        f"{shown(INSTANCE.kv_pool_bytes, 'GiB')}. "
        f"How many fit a pool of {shown(twice.pool_bytes, 'GiB')}?"
    )
    right, alone = twice.requests_that_fit(shared), twice.requests_that_fit(LONG_CONTEXT.shape_alone)
    because = (
        "More than twice as many: the prefix is there already, so the second half of the memory holds private parts "
        "only."
    )
    return _number("8.1.2", text, right, (2 * once, alone), _count, because)


def crossing_batch() -> Asked:
    """Smaller weights, and the batch from which KV is most of what is read."""
    weights, kv = streamed_weight_bytes(INSTANCE.model), kv_bytes_per_token(INSTANCE.model)
    context = LONG_CONTEXT.input_tokens
    now = kv_crossover(weights, context, kv)
    text = (
        f"At contexts of {context} tokens, KV becomes more than half of what a step reads from batch {now} on. "
        "Weights are now stored in 8 bits, KV stays in BF16. From which batch on?"
    )
    because = (
        "Half the weights are outweighed by half the contexts. The smaller the weights, the sooner KV is what costs."
    )
    return _number("8.2.1", text, kv_crossover(weights // 2, context, kv), (now, 2 * now), _count, because)


def chunked_pairs() -> Asked:
    """The pairs of a prompt that is cut into chunks."""
    prompt, chunk = LONG_CONTEXT.input_tokens, 512
    whole_prompt = causal_pairs(prompt)
    in_chunks = sum(causal_pairs(chunk, done) for done in range(0, prompt, chunk))
    assert in_chunks == whole_prompt
    text = (
        f"A prompt of {prompt} tokens is computed in chunks of {chunk} instead of at once. How many query-key pairs "
        "does that take?"
    )
    because = (
        f"Each token sees all before it, in whatever step it is computed: {in_chunks:,} pairs. What grows is the "
        "number of steps."
    )
    choices = ("more: each chunk reads the history again", "as many", "fewer: the triangles are smaller")
    return Asked("8.2.3", Question(text, choices, "as many", reveals={}, because=because))


def changed_token() -> Asked:
    """One other token, and what is found of a cached prefix."""
    changed, block = 1000, 16
    pool = Pool(2 * A_TOKENS // block, block, Findable.ON_ADMISSION)
    pool.admit([*range(A_TOKENS)])
    found = pool.cached_tokens([*range(changed), A_TOKENS, *range(changed + 1, A_TOKENS)])
    text = (
        f"A prompt of {A_TOKENS} tokens is in the prefix cache, in blocks of {block}. The next prompt differs in one "
        "token: "
        f"{changed} come before it, all behind it are equal. How many tokens are found?"
    )
    because = (
        "Whole blocks from the beginning, up to the first that differs. What stands behind it is text behind "
        "another history."
    )
    return _number("8.3.3", text, found, (changed, A_TOKENS - block, 0), _count, because)


def slower_link() -> Asked:
    """Half the link, and the probability from which a prefix is worth writing out."""
    now, slower = prefix_of(A_TOKENS), prefix_of(A_TOKENS, GEN5.bandwidth_bytes_s // 2)
    assert now.break_even and slower.break_even

    def percent(value: float) -> str:
        return f"{100 * value:.2f} %"

    text = (
        f"A prefix of {A_TOKENS} tokens is worth writing out to host memory if it comes back with a probability above "
        f"{percent(now.break_even)}. Now the link is half as fast. Above which?"
    )
    because = (
        "The write-out takes twice as long, and a hit saves less, as it takes longer to fetch. So it is more than "
        "twice as much."
    )
    wrong = (now.break_even, 2 * now.break_even)
    return _number("8.3.4", text, slower.break_even, wrong, percent, because)


def smaller_kv() -> Asked:
    """KV of 4 bits, with its scales."""
    request = LONG_CONTEXT.shape_alone
    in_bf16, right = POOL.requests_that_fit(request), stored_in(POOL, Q4_0).requests_that_fit(request)
    no_scales = POOL.pool_bytes * 4 // POOL.private_bytes(request)
    text = f"{in_bf16} long requests that share nothing fit the pool with KV in BF16. How many fit with KV in q4_0?"
    because = (
        f"Each group of {Q4_0.group_values} values has a scale beside it, so a value takes "
        f"{float(8 * Q4_0.bytes_per_value)} bits, not 4."
    )
    return _number("8.4.2", text, right, (2 * in_bf16, no_scales), _count, because)


def kept_drafts() -> Asked:
    """How often a draft is accepted by the rule that keeps the law."""
    draft = (Fraction(1, 2), Fraction(1, 2))
    agree = sum(float(p * q) for p, q in zip(TARGET, draft, strict=True))
    assert output_law(TARGET, draft) == TARGET
    text = (
        "The target draws A with 1/4 and B with 3/4; the draft draws each with 1/2. How often is a draft token "
        "accepted?"
    )
    because = (
        "A token is accepted with min(1, p/q), which sums up to min(p, q) over both. That two draws agree is "
        "another, stricter rule."
    )
    return _number(
        "8.5.1", text, float(acceptance_rate(TARGET, draft)), (agree, 1.0), lambda share: f"{share:.0%}", because
    )


def longer_drafts() -> Asked:
    """Twice the draft, and what a round outputs."""
    short, length = 4, 8
    outputs = [expected_outputs(at_every_position(ACCEPTS_B, tokens)) for tokens in (short, length)]
    text = (
        f"Each token of a draft is accepted with {ACCEPTS_B:g} if all before it were. Drafts of {short} give "
        f"{outputs[0]:.2f} outputs a round. "
        f"And drafts of {length}?"
    )
    because = "The later a token stands in a draft, the rarer all before it were accepted: the last four add little."
    wrong = (2 * outputs[0], 1 + length * ACCEPTS_B)
    return _number("8.5.2", text, outputs[1], wrong, lambda outputs: f"{outputs:.2f}", because)


def waiting_for_tools() -> Asked:
    """Little's law where requests wait for tools."""
    rate, stay, tool = 2, 7, 3
    text = (
        f"{rate} requests arrive a second and stay {stay} s. None of that is queue. Now each also waits {tool} s for a "
        "tool; nothing else changes. "
        "Of how many requests must KV be held on average, as none gives its KV back meanwhile?"
    )
    because = (
        "Little's law asks how long a request stays, not what it does. While a tool works nothing is computed, but "
        "the KV is held."
    )
    right = requests_in_system(rate, stay + tool)
    return _number("8.6.1", text, right, (requests_in_system(rate, stay), rate * stay + tool), _count, because)


def right_and_in_time() -> Asked:
    """Goodput of a window whose wrong answers are in time."""
    deadline, length, times = 3, 5, [1.0] * 12 + [4.0] * 4
    right = [place not in (0, 1) for place in range(len(times))]
    outcomes = tuple(Outcome(0.0, 0.0, 0.5, time, correct) for time, correct in zip(times, right, strict=True))
    window = Window(outcomes, length)
    good = window.goodput(deadline, Since.PLANNED_ARRIVAL)
    text = (
        f"{len(outcomes)} requests in a window of {length} s: {sum(right)} are answered correctly, "
        f"{sum(time <= deadline for time in times)} in time. "
        "Both wrong answers are in time. What is the goodput?"
    )
    because = "Only answers that are both count, over the whole window. In time but wrong is no better than late."
    wrong = (window.completion_throughput, sum(right) / length)
    return _number("8.6.2", text, good, wrong, lambda rate: f"{rate:.1f} /s", because)


def less_memory() -> Asked:
    """The choice of a configuration in less memory."""
    limits = Limits(memory_bytes=9 * GIB)
    choice = choose(limits=limits)
    too_large = [each for each in choice.judged if each.broken is Limit.MEMORY]
    least = min(too_large, key=lambda each: each.needs.memory_bytes)
    sizes = ", ".join(f"{each.name} {shown(each.needs.memory_bytes, 'GiB', 2)}" for each in choice.judged)
    text = (
        f"Sixteen long requests, {shown(limits.memory_bytes, 'GiB')} for KV and drafts, due after "
        f"{limits.deadline_s:g} s. Which configuration of section 8.6.3 do you choose?"
    )
    because = f"Memory is asked first ({sizes}), then time: what fits is too late, and {least.name} misses by little."
    choices = ("A", "B", "C", "D", "none of them")
    return Asked("8.6.3", Question(text, choices, choice.name or choices[-1], reveals={}, because=because))


def prepared_task() -> Asked:
    """A faster part, preparation included."""
    task = FasterPart(task_s=100, part_s=80, speedup=4, preparation_s=20)
    text = (
        f"Of a task of {task.task_s} s, {task.part_s} s are decode. It gets {task.speedup} times as fast, after "
        f"{task.preparation_s} s of "
        "preparation. How many times as fast is the task?"
    )
    because = "The rest stays, the preparation comes on top: both stand in the new time."
    wrong = (task_speedup(task.part, task.speedup), task.speedup)
    return _number("8.6.3", text, task.net_speedup, wrong, lambda times: f"{times:.2f}", because)


QUESTIONS: tuple[Callable[[], Asked], ...] = (
    request_time, shared_prefix, crossing_batch, chunked_pairs, changed_token, slower_link, smaller_kv, kept_drafts,
    longer_drafts, waiting_for_tools, right_and_in_time, less_memory, prepared_task,
)  # fmt: skip


class SelfTest:
    """The questions one below the other, each judged where it stands. What was answered is kept nowhere."""

    def __init__(self) -> None:
        self.asked = tuple(ask() for ask in QUESTIONS)
        self.predictions = tuple(
            Prediction(each.question, f"{number}.", partial(self.judge, number - 1))
            for number, each in enumerate(self.asked, start=1)
        )
        rows = [row for prediction in self.predictions for row in prediction.rows]
        self._view = widgets.VBox(rows, layout=widgets.Layout(max_width="720px"))

    def judge(self, place: int, choice: str) -> str:
        """The verdict on a choice, which then stands below the question of this place, counted from 0.

        Raises InputError for what is no question and no choice.
        """
        at = whole("place", place, at_most=len(self.asked) - 1)
        asked = self.asked[at]
        verdict = asked.question.verdict(one_of("choice", choice, asked.question.choices))
        told = f"{verdict} (Section {asked.section}.)"
        self.predictions[at].say(told)
        return told

    def __repr__(self) -> str:
        lines = (f"{number}. {each.question.text}" for number, each in enumerate(self.asked, start=1))
        return "\n".join(lines)

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        return {"text/plain": repr(self), WIDGET_VIEW: self._view._repr_mimebundle_()[WIDGET_VIEW]}


def self_test() -> SelfTest:
    """The questions of the self-test, to be shown in a notebook."""
    return SelfTest()
