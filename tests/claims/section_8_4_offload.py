"""The numbers of section 8.4.3 and of its footnote."""

from collections.abc import Callable
from functools import cache

from lib import offload
from lib.design_problem import INSTANCE, LONG_CONTEXT, SHORT_CHAT
from lib.exercise_8_5 import BOOK as EXERCISE
from lib.hardware import Link
from lib.latency import throughput
from lib.memory import KvPool
from lib.model import ffn_bytes_per_layer
from lib.model_shape import Ffn
from lib.offload import COMPRESSED_EXAMPLE_BYTES, COMPRESSED_TO, NVLINK, PCIE, REQUESTS_TOGETHER, Offload, Part
from lib.prefetch import Prefetch, StepKind, hiding_distance, hiding_link, hiding_prompt, plain_step_ns, prefetch
from lib.prefix_value import transfer_time
from lib.step_time import FIT, NS, StepTime, device
from lib.units import GB, MIB
from tests.claims.claim import Claim
from tests.claims.section_8_3 import same

MODEL = INSTANCE.model
POOL = KvPool(MODEL, INSTANCE.kv_pool_bytes)
DECODE_NS, PREFILL_NS = plain_step_ns(StepKind.DECODE), plain_step_ns(StepKind.PREFILL, prompt_tokens=1024)
STEPS = offload.decode_steps(SHORT_CHAT.output_tokens)


@cache
def ffns(buffers: int = 1, part: Part = Part.FFN) -> Offload:
    layers = MODEL.layer_count
    return Offload(layers, offload.every_nth(layers, offload.EVERY), offload.bytes_of_set(MODEL, part), buffers)


def at_work(buffers: int) -> Prefetch:
    return prefetch(ffns(buffers), DECODE_NS, PCIE.bandwidth_bytes_s)


def in_a_row(buffers: int) -> Prefetch:
    """As many sets, of layers one after another, beside a prefill."""
    sets = tuple(range(ffns().sets))
    together = Offload(MODEL.layer_count, sets, ffns().set_bytes, buffers)
    return prefetch(together, PREFILL_NS, PCIE.bandwidth_bytes_s)


def kv_bytes_of_long(finished: bool) -> int:
    return POOL.private_bytes(LONG_CONTEXT.shape_alone, finished)


def extra(buffers: int, finished: bool = False) -> int:
    return ffns(buffers).extra_requests(kv_bytes_of_long(finished))


def copies_s(link: Link) -> float:
    return transfer_time(ffns().released_bytes, link.bandwidth_bytes_s)


def least_s(link: Link, requests: int = 1) -> float:
    step_s = plain_step_ns(StepKind.DECODE, requests) / NS
    return offload.least_step_time(ffns(), step_s, link.bandwidth_bytes_s)


def at_most_per_s(requests: int) -> float:
    return throughput(requests, least_s(PCIE, requests))


def hidden_by_prompt(buffers: int, step_time: StepTime) -> float:
    return hiding_prompt(ffns(buffers), PCIE.bandwidth_bytes_s, step_time) or 0


def hidden_at(buffers: int) -> float:
    return (hiding_link(ffns(buffers), DECODE_NS) or 0) / GB


def hidden_every(buffers: int) -> float:
    return hiding_distance(ffns(buffers), DECODE_NS, PCIE.bandwidth_bytes_s) or 0


def ffn_matrices() -> int:
    ffn = MODEL.layers[0].ffn
    assert isinstance(ffn, Ffn)
    return len(list(ffn.tensors(MODEL.hidden)))


def transfer_ms(share: float) -> float:
    return share * transfer_time(COMPRESSED_EXAMPLE_BYTES, PCIE.bandwidth_bytes_s) * 1e3


def about(value: Callable[[], float], what: str, printed: str, unit: str, tolerance: float, *places: str) -> Claim:
    """A computed claim that holds to the last printed digit; without a place the book prints it not."""
    return Claim(
        tuple(f"8.4.3{place}" for place in places or [""]), what, "computed", (printed,), unit, tolerance, value
    )


CLAIMS: tuple[Claim, ...] = (
    same(ffn_matrices, "matrices of an FFN", "3", "matrix", "8.4.3-01", kind="input"),
    same(lambda: ffn_bytes_per_layer(MODEL) / MIB, "an FFN", "288", "MiB", "8.4.3-02"),
    same(lambda: MODEL.layer_count, "layers", "36", "layer", "8.4.3-03", "fn16-02", kind="input"),
    same(lambda: offload.EVERY, "one layer in so many is offloaded", "4", "layer", "8.4.3-04", kind="input"),
    same(lambda: ffns().sets, "sets offloaded", "9", "layer", "8.4.3-05", "8.4.3-16"),
    same(
        lambda: ffns().released_bytes / MIB, "released, and copied in each step", "2592", "MiB", "8.4.3-06",
        "8.4.3-17", "8.4.3-21", "8.4.3-35",
    ),
    same(lambda: ffns(1).buffer_bytes / MIB, "one buffer", "288", "MiB", "8.4.3-07"),
    same(lambda: ffns(1).net_bytes / MIB, "gained with one buffer", "2304", "MiB", "8.4.3-08", "8.4.3-18"),
    same(lambda: ffns(2).buffer_bytes / MIB, "two buffers", "576", "MiB", "8.4.3-09"),
    same(lambda: ffns(2).net_bytes / MIB, "gained with two buffers", "2016", "MiB", "8.4.3-10", "8.4.3-19"),
    same(lambda: kv_bytes_of_long(finished=False) / MIB, "KV of a long input", "1152", "MiB", "8.4.3-11"),
    same(lambda: extra(1), "more long inputs with one buffer", "2", "request", "8.4.3-12"),
    same(lambda: extra(2), "more long inputs with two buffers", "1", "request", "8.4.3-13"),
    same(lambda: kv_bytes_of_long(finished=True) / MIB, "KV of a finished long request", "1188", "MiB", "8.4.3-14"),
    same(
        lambda: max(extra(buffers, finished=True) for buffers in (1, 2)), "more finished ones with either", "1",
        "request", "8.4.3-15",
    ),
    same(lambda: extra(2, finished=True), "more finished ones with two buffers", "1", "request", "8.4.3"),
    same(
        lambda: PCIE.bandwidth_bytes_s / GB, "PCIe Gen5 x16", "64", "GB/s", "8.4.3-20", "8.4.3-37", kind="input"
    ),
    about(lambda: ffns().released_bytes / GB, "copied in each step", "2.72", "GB", 0.005, "-22", "-36"),
    about(lambda: copies_s(PCIE) * 1e3, "all copies over PCIe", "42.5", "ms", 0.05, "-23", "-38"),
    same(lambda: DECODE_NS / 1e6, "decode step", "26.26", "ms", "8.4.3-24", "fn16-01", kind="measured"),
    about(lambda: least_s(PCIE) * 1e3, "a step at least", "42.5", "ms", 0.05, "-25"),
    same(lambda: REQUESTS_TOGETHER, "requests decoded together", "4", "request", "8.4.3-26", kind="input"),
    about(lambda: at_most_per_s(REQUESTS_TOGETHER), "tokens at most", "94", "token/s", 0.5, "-27"),
    same(lambda: SHORT_CHAT.output_tokens, "outputs", "256", "token", "8.4.3-28", kind="input"),
    same(lambda: STEPS, "decode steps", "255", "step", "8.4.3-29"),
    about(lambda: STEPS * copies_s(PCIE), "copies of all steps over PCIe", "10.8", "s", 0.05, "-30"),
    same(lambda: SHORT_CHAT.deadline_s, "deadline", "7", "s", "8.4.3-31", kind="input"),
    same(
        lambda: NVLINK.bandwidth_bytes_s / GB, "NVLink-C2C one way", "450", "GB/s", "8.4.3-32", "8.4.3-39", "fn16-04",
        kind="input",
    ),
    about(lambda: copies_s(NVLINK) * 1e3, "all copies over NVLink-C2C", "6.0", "ms", 0.05, "-33", "-40"),
    about(lambda: STEPS * copies_s(NVLINK), "copies of all steps over NVLink-C2C", "1.54", "s", 0.005, "-34"),
    same(lambda: NVLINK.both_ways_bytes_s / GB, "NVLink-C2C both ways", "900", "GB/s", "fn16-03", kind="input"),
    same(lambda: COMPRESSED_EXAMPLE_BYTES / MIB, "weights compressed", "96", "MiB", "8.4.3-41", kind="input"),
    same(lambda: COMPRESSED_TO, "compressed to", "1/4", "", "8.4.3-42", kind="input"),
    about(lambda: transfer_ms(1), "transfer as they are", "1.57", "ms", 0.005, "-43"),
    about(lambda: transfer_ms(COMPRESSED_TO), "transfer compressed", "0.39", "ms", 0.005, "-44"),
    about(lambda: transfer_ms(1 - COMPRESSED_TO), "saved on the link", "1.18", "ms", 0.005, "-45"),
    about(
        lambda: offload.break_even_decompression(PCIE.bandwidth_bytes_s, COMPRESSED_TO) / GB,
        "decompressing must put out more than", "85.3", "GB/s", 0.05, "-46",
    ),
    about(
        lambda: offload.break_even_decompression(NVLINK.bandwidth_bytes_s, COMPRESSED_TO) / GB,
        "the same over NVLink-C2C", "600", "GB/s", 0.5,
    ),
    about(lambda: DECODE_NS / 1e6 / MODEL.layer_count, "decode of a layer", "0.729", "ms", 0.0005),
    about(lambda: at_work(1).copy_ns / 1e6, "copy of a set over PCIe", "4.72", "ms", 0.005),
    about(
        lambda: transfer_time(ffns().set_bytes, NVLINK.bandwidth_bytes_s) * 1e3,
        "the same over NVLink-C2C", "0.67", "ms", 0.005,
    ),
    about(lambda: sum(at_work(1).layer_ns[:4]) / 1e6, "decode of four layers", "2.92", "ms", 0.005),
    about(lambda: sum(at_work(1).layer_ns[:3]) / 1e6, "decode of three layers", "2.19", "ms", 0.005),
    about(lambda: at_work(1).pass_ns / 1e6, "step with one buffer", "49.0", "ms", 0.05),
    about(lambda: at_work(2).pass_ns / 1e6, "step with two buffers", "42.5", "ms", 0.05),
    about(lambda: at_work(1).exposed_ns / 1e6, "not hidden with one buffer", "22.8", "ms", 0.05),
    about(lambda: at_work(2).exposed_ns / 1e6, "not hidden with two buffers", "16.2", "ms", 0.05),
    about(lambda: hidden_at(1), "link that hides all with one buffer", "138", "GB/s", 0.5),
    about(lambda: hidden_at(2), "link that hides all with two buffers", "103.5", "GB/s", 0.05),
    same(lambda: hidden_by_prompt(1, FIT), "prompt that hides all with one buffer", "956", "token", "8.4.3"),
    same(lambda: hidden_by_prompt(2, FIT), "prompt that hides all with two buffers", "522", "token", "8.4.3"),
    same(lambda: hidden_by_prompt(1, device()), "with one, by the FLOP rule", "1245", "token", "8.4.3"),
    same(lambda: hidden_by_prompt(2, device()), "with two, by the FLOP rule", "940", "token", "8.4.3"),
    same(lambda: hidden_every(1), "one layer in so many hides with one buffer", "8", "layer", "8.4.3"),
    same(lambda: hidden_every(2), "one layer in so many hides with two buffers", "7", "layer", "8.4.3"),
    about(lambda: PREFILL_NS / 1e6, "prefill of 1024 tokens", "58.9", "ms", 0.05),
    about(lambda: in_a_row(1).pass_ns / 1e6, "nine layers in a row, one buffer", "96.7", "ms", 0.05),
    about(lambda: in_a_row(2).pass_ns / 1e6, "nine layers in a row, two buffers", "80.5", "ms", 0.05),
    about(
        lambda: offload.lowest_link(ffns(), STEPS, SHORT_CHAT.deadline_s) / GB, "link whose copies end in time", "99",
        "GB/s", 0.5,
    ),
    about(lambda: at_most_per_s(1), "one request, tokens at most", "23.5", "token/s", 0.05),
    about(lambda: at_most_per_s(2 * REQUESTS_TOGETHER), "eight requests, tokens at most", "188", "token/s", 0.5),
    same(lambda: ffns(part=Part.LAYER).set_bytes // MIB, "a whole layer", "368", "MiB", "8.4.3"),
    same(
        lambda: len(offload.every_nth(EXERCISE.layers, EXERCISE.every)), "sets of the exercise", "9", "layer",
        "8.4.3-47", kind="input",
    ),
    same(lambda: EXERCISE.set_bytes / MIB, "a set of it", "288", "MiB", "8.4.3-48", kind="input"),
    same(lambda: EXERCISE.input_state_bytes / MIB, "its input state", "1152", "MiB", "8.4.3-49", kind="input"),
    same(lambda: EXERCISE.request_bytes / MIB, "its complete request", "1188", "MiB", "8.4.3-50", kind="input"),
    same(lambda: EXERCISE.links_bytes_s[0] / GB, "its first link", "64", "GB/s", "8.4.3-51", kind="input"),
    same(lambda: EXERCISE.links_bytes_s[1] / GB, "its other link", "450", "GB/s", "8.4.3-52", kind="input"),
    same(lambda: offload.decode_steps(EXERCISE.output_tokens), "its steps", "255", "step", "8.4.3-53", kind="input"),
    same(lambda: EXERCISE.limit_s, "its limit", "1", "s", "8.4.3-54", kind="input"),
)  # fmt: skip
