"""Numbers of section 8.6.3, of the summary and of the footnotes that belong to them."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from lib import dflash, efficiency, service_record, serving, whole_task
from lib.design_problem import INSTANCE, interval_alone
from lib.efficiency import Condition, Measured, batches, further_bytes_s, gpu_time, measured, read_plan
from lib.exercise_8_8 import BOOK as TASK_EXERCISE
from lib.exercise_8_8 import HALVED
from lib.flip_distance import BOOK, Case, Edge, Input, chosen, flip, within_limits
from lib.hardware import LINKS, RTX_PRO_6000
from lib.paging import Findable
from lib.prefix_value import GEN4, GEN5
from lib.quantization import BF16
from lib.service_record import Admission, RecordedWindow
from lib.serving import (
    CONFIGURATIONS,
    DFLASH,
    LESS_MEMORY,
    LIMITS,
    SHORT_OUTPUTS,
    WORKLOAD,
    Choice,
    Limit,
    Needs,
    Result,
    choose,
    judge,
    needs,
    recorded_first_token,
    recorded_memory,
    verify_time,
)
from lib.serving_run import (
    A,
    B,
    C,
    Conditions,
    D,
    memory_by_shape,
    memory_with_slots,
    pass_of_draft_s,
    recorded_request_s,
    round_by_reads,
    rounds_of_slowest,
    run,
    variations,
)
from lib.units import GB, GIB, MIB
from lib.whole_task import DECODE_SHARES, DECODE_SPEEDUP, AgentTask, FasterPart, agent_tasks, ceiling, task_speedup
from tests.claims.claim import Claim

LEAST, LOW, MIDDLE, MOST = batches(Condition.OWN)
BATCHES = (LEAST, LOW, MIDDLE, MOST)
BASE = measured(Condition.SHARED, WORKLOAD.requests)
KV = efficiency.peaks().kv_bytes_per_token
COLD = replace(WORKLOAD, is_cached=False)
# The host overhead of a round of one request, taken off every round.
HOST_GONE = replace(WORKLOAD, host_removed_s=measured(Condition.OWN, LEAST).excess_s)


def same(value: Callable[[], float], what: str, printed: str, unit: str, *ids: str, kind: Any = "computed") -> Claim:
    """A claim that holds exactly."""
    return Claim(ids, what, kind, (printed,), unit, 0, value)


def near(value: Callable[[], float], what: str, printed: str, unit: str, *ids: str, kind: Any = "computed") -> Claim:
    """A claim that holds to half a unit of the last printed digit."""
    digits = len(printed.partition(".")[2])
    return Claim(ids, what, kind, (printed,), unit, 0.5 / 10**digits, value)


def own(batch: int) -> Measured:
    return measured(Condition.OWN, batch)


def of_table(
    what: str, unit: str, first_id: int, printed: tuple[str, ...], value: Callable[[Measured], float], kind: Any
) -> list[Claim]:
    """A row of the table of efficiencies: a claim for each batch."""
    return [
        near(partial(lambda batch: value(own(batch)), batch), f"{what}, batch {batch}", text, unit, f"8.6.3-{place:02}",
             kind=kind)
        for batch, text, place in zip(BATCHES, printed, range(first_id, first_id + len(BATCHES)), strict=True)
    ]  # fmt: skip


def of_section(
    condition: Condition, what: str, unit: str, printed: tuple[str, ...], value: Callable[[Measured], float]
) -> list[Claim]:
    """A row of the same table as the text prints it: a claim for each batch, with the section alone as its id."""
    return [
        near(partial(lambda batch: value(measured(condition, batch)), batch), f"{what}, {condition}, batch {batch}",
             text, unit, "8.6.3")
        for batch, text in zip(batches(condition), printed, strict=True)
    ]  # fmt: skip


def mfus(condition: Condition) -> list[float]:
    return [100 * measured(condition, batch).mfu for batch in batches(condition)]


def gpu_s() -> float:
    return gpu_time(BASE.context - BASE.cached, WORKLOAD.output_tokens, BASE.prefill_rate, BASE.decode_rate)


def requests_that_read_as_much() -> float:
    """Short contexts whose KV is as much as that of A."""
    return WORKLOAD.requests * WORKLOAD.input_tokens / own(MOST).context


def read_bytes_of_c() -> int:
    return efficiency.decode_table(Condition.OWN, of_q8_0()).device.read_bytes(long_plan())


def of_q8_0() -> int:
    return int(KV * C.kv_format.ratio_to(BF16))


def long_plan() -> Any:
    return read_plan(WORKLOAD.requests, WORKLOAD.input_tokens)


def verify_flop() -> float:
    return verify_time(WORKLOAD.requests, DFLASH.positions, WORKLOAD.input_tokens, 1.0) * efficiency.peak_flop_s()


def verify_ms() -> float:
    return verify_time(WORKLOAD.requests, DFLASH.positions, WORKLOAD.input_tokens) * 1e3


def short(configuration: serving.Configuration) -> Needs:
    return needs(configuration, SHORT_OUTPUTS)


def gone(configuration: serving.Configuration) -> Needs:
    return needs(configuration, HOST_GONE)


def names(choice: Choice) -> float:
    """How many keep the limits."""
    return len(choice.within_limits)


def who(name: object) -> float:
    """A chosen configuration as a number: its place, from 1, or 0 for none."""
    return 0 if name is None else 1 + [each.name for each in CONFIGURATIONS].index(str(name))


def edge(found: Edge | None) -> Edge:
    assert found
    return found


def below(moved: Input, case: Case = BOOK, verdict: Any = chosen) -> Edge:
    return edge(flip(moved, case, verdict).below)


def above(moved: Input, case: Case = BOOK, verdict: Any = chosen) -> Edge:
    return edge(flip(moved, case, verdict).above)


def to_us(seconds: float) -> float:
    """An edge is found by halving: what lies below a microsecond says how it was looked for."""
    return round(seconds, 6)


SMALL, BRIEF = Case(limits=LESS_MEMORY), Case(workload=SHORT_OUTPUTS)


@cache
def varied(configuration: str, part: str) -> float:
    """Seconds of a configuration with something that the chapter leaves out."""
    (found,) = [each for each in variations() if each.configuration.name == configuration and part in each.what]
    return found.total_s


def of_slowest(place: int) -> float:
    """Rounds of one request, and of the slowest of all, by chance."""
    return rounds_of_slowest(DFLASH, WORKLOAD.output_tokens, WORKLOAD.requests)[place]


@cache
def cold_run_s(findable: Findable) -> float:
    """B with all prompts in one step and nothing cached before."""
    return run(B, COLD, Conditions(findable=findable)).total_s


HALF, FIFTH = (
    FasterPart(whole_task.TASK_S, part_s, DECODE_SPEEDUP) for part_s in (whole_task.DECODE_S, whole_task.LESS_DECODE_S)
)
SLOW, USUAL, FAST = (each for each in service_record.CONDITIONS if each.admission is Admission.CONTINUOUS)
_, ONE_BY_ONE, _ = (each for each in service_record.CONDITIONS if each.admission is Admission.ONE_AT_A_TIME)


def energy_j(condition: service_record.Condition) -> float:
    """Energy per qualified result, the median of three windows."""
    return service_record.middle(condition, RecordedWindow.energy_per_qualified)


def energies_j(condition: service_record.Condition) -> list[float]:
    """The same, window by window, from least to most."""
    return sorted(each.energy_per_qualified() for each in service_record.recorded(condition))


def energy_per_answer_j(condition: service_record.Condition) -> float:
    """Energy per completed answer, right or wrong, early or late: the median of three windows."""
    return service_record.middle(condition, lambda each: each.energy_j / each.window.completed)


def pooled_energy_j(condition: service_record.Condition) -> float:
    """Energy of the three windows together over their qualified results."""
    windows = service_record.recorded(condition)
    qualified = sum(each.window.qualified(service_record.DEADLINE_S) for each in windows)
    return sum(each.energy_j for each in windows) / qualified


def power_w(condition: service_record.Condition) -> float:
    return service_record.middle(condition, lambda each: each.energy_j / each.window.length_s)


def of_runs(value: Callable[[AgentTask], float]) -> float:
    return sum(map(value, agent_tasks()))


def fixed_runs() -> list[AgentTask]:
    return [task for task in agent_tasks() if task.is_fixed]


def per_fixed_s() -> float:
    """All runs of the agent's task for each that fixed it."""
    found = whole_task.span_per_fixed(agent_tasks())
    assert found
    return found


def mean_fixed_s() -> float:
    return sum(task.span_s for task in fixed_runs()) / len(fixed_runs())


def of_ceiling(part: float) -> float:
    """What part of its ceiling, in %, a task reaches with decode 4 times as fast."""
    return 100 * task_speedup(part, DECODE_SPEEDUP) / ceiling(part)


CLAIMS: tuple[Claim, ...] = (
    near(lambda: interval_alone().seconds * 1e3, "interval of one short request (client)", "26.5", "ms", "8.6.3-01",
         kind="measured"),
    same(lambda: own(LEAST).context, "context of the table", "2K", "token", "8.6.3-02", kind="input"),
    *(
        same(partial(lambda place: batches(Condition.OWN)[place], place), f"batch of column {place + 1}", text,
             "requests", f"8.6.3-{3 + place:02}", kind="input")
        for place, text in enumerate(("1", "4", "16", "64"))
    ),
    *of_table("read in a round", "GB", 7, ("15.44", "16.34", "19.97", "34.46"), lambda row: row.read_bytes / GB,
              "computed"),
    same(lambda: RTX_PRO_6000.bandwidth_bytes_s / GB, "peak bandwidth", "1792", "GB/s", "8.6.3-11", "fn25-01",
         kind="input"),
    *of_table("time to read it at the peak", "ms", 12, ("8.62", "9.12", "11.14", "19.23"),
              lambda row: row.read_bound_s * 1e3, "computed"),
    *of_table("measured round", "ms", 16, ("26.26", "26.62", "27.44", "29.63"), lambda row: row.round_s * 1e3,
              "measured"),
    *of_table("MBU", "%", 20, ("33", "34", "41", "65"), lambda row: 100 * row.mbu, "computed"),
    *of_table("MFU of prefill", "%", 24, ("62", "61", "61", "58"), lambda row: 100 * row.mfu, "computed"),
    near(lambda: min(mfus(Condition.OWN)), "least MFU at 2K", "58", "%", "8.6.3-28", kind="measured"),
    near(lambda: max(mfus(Condition.OWN)), "most", "62", "%", "8.6.3-29", kind="measured"),
    same(lambda: BASE.context, "input of the runs with a cached prefix", "8K", "token", "8.6.3-30", "8.6.3-52",
         kind="input"),
    same(lambda: BASE.cached, "cached of it", "6K", "token", "8.6.3-31", "8.6.3-53", kind="input"),
    near(lambda: min(mfus(Condition.SHARED)), "least MFU behind a cached prefix", "52", "%", "8.6.3-32",
         kind="measured"),
    near(lambda: max(mfus(Condition.SHARED)), "most", "58", "%", "8.6.3-33", kind="measured"),
    near(lambda: own(LEAST).excess_s * 1e3, "round over the read bound, batch 1", "17.6", "ms", "8.6.3-34"),
    same(lambda: INSTANCE.share_bytes / GIB, "memory of the instance", "32", "GiB", "8.6.3-35", kind="input"),
    same(lambda: LIMITS.memory_bytes / GIB, "room for KV and what drafts take", "12", "GiB", "8.6.3-36", "8.6.3-105",
         "8.6.3-111", kind="input"),
    same(lambda: WORKLOAD.requests, "long requests that come together", "16", "requests", "8.6.3-37", "8.6.3-84",
         "8.6.3-104", "summary-01", kind="input"),
    same(lambda: WORKLOAD.input_tokens, "input of each", "8192", "token", "8.6.3-38", "8.6.3-75", kind="input"),
    same(lambda: WORKLOAD.output_tokens, "outputs of each", "256", "token", "8.6.3-39", "summary-02", kind="input"),
    same(lambda: WORKLOAD.prefix_tokens, "common prefix", "6144", "token", "8.6.3-40", kind="input"),
    same(lambda: LIMITS.deadline_s, "deadline", "7", "s", "8.6.3-41", "8.6.3-106", kind="input"),
    same(lambda: len(CONFIGURATIONS), "configurations", "4", "", "8.6.3-42", kind="input"),
    near(lambda: DFLASH.memory_bytes / GIB, "memory that DFlash takes", "3.1", "GiB", "8.6.3-43"),
    same(lambda: recorded_memory(dflash.PLAIN) / MIB, "process without DFlash", "17,706", "MiB", "8.6.3-44",
         kind="measured"),
    same(lambda: recorded_memory(dflash.K7) / MIB, "process with it", "20,894", "MiB", "8.6.3-45", kind="measured"),
    near(lambda: dflash.weight_bytes() / GIB, "weights of the draft network in it", "1.95", "GiB", "8.6.3-46",
         kind="measured"),
    Claim(("8.6.3-47",), "input of the first-token times", "measured", ("2300",), "token", 50,
          lambda: serving.RECORDED_INPUT),
    near(lambda: recorded_first_token(dflash.PLAIN) * 1e3, "first token without DFlash", "129.4", "ms", "8.6.3-48",
         kind="measured"),
    near(lambda: recorded_first_token(dflash.K7) * 1e3, "first token with it", "141.6", "ms", "8.6.3-49",
         kind="measured"),
    near(lambda: 100 * (DFLASH.prefill_factor - 1), "longer by", "9.4", "%", "8.6.3-50"),
    same(lambda: DFLASH.outputs_per_round, "outputs of a round, assumed", "3", "token", "8.6.3-51", "8.6.3-73",
         kind="input"),
    same(lambda: BASE.new_tokens, "new tokens of the shared prefill", "32,768", "token", "8.6.3-54"),
    near(lambda: BASE.prefill_s, "shared prefill", "2.04", "s", "8.6.3-55", "8.6.3-65", kind="measured"),
    near(lambda: BASE.prefill_rate, "r_P", "16,059", "token/s", "8.6.3-56"),
    near(lambda: 100 * BASE.mfu, "MFU of the shared prefill", "58", "%", "8.6.3-57"),
    near(lambda: BASE.round_s * 1e3, "round with the shared prefix", "27.35", "ms", "8.6.3-58", "8.6.3-67",
         kind="measured"),
    near(lambda: BASE.decode_rate, "r_D", "585", "calls/s", "8.6.3-59"),
    near(gpu_s, "GPU time of a request", "0.563", "GPU s", "8.6.3-60"),
    near(lambda: WORKLOAD.requests * gpu_s(), "GPU time of all", "9.01", "GPU s", "8.6.3-61"),
    near(lambda: needs(A).prefill_s, "prefill of A, and of C", "7.34", "s", "8.6.3-62", "8.6.3-78"),
    near(lambda: needs(C).prefill_s, "prefill of C", "7.34", "s", "8.6.3-68"),
    same(lambda: needs(A).rounds, "rounds of A", "255", "rounds", "8.6.3-63"),
    same(lambda: needs(B).rounds, "rounds of B", "255", "rounds", "8.6.3-66"),
    same(lambda: needs(C).rounds, "rounds of C", "255", "rounds", "8.6.3-69"),
    near(lambda: needs(A).round_s * 1e3, "round of A: that of the same bytes", "29.63", "ms", "8.6.3-64",
         kind="measured"),
    near(lambda: needs(C).round_s * 1e3, "round of C, interpolated", "28.26", "ms", "8.6.3-70", "8.6.3-83"),
    near(lambda: needs(D).prefill_s, "prefill of D", "2.23", "s", "8.6.3-71"),
    same(lambda: needs(D).rounds, "rounds of D", "85", "rounds", "8.6.3-72"),
    near(lambda: needs(D).round_s * 1e3, "round of D: not below that of B", "27.35", "ms", "8.6.3-74", "8.6.3-89"),
    near(lambda: efficiency.prefill_flop(WORKLOAD.requests, WORKLOAD.input_tokens, 0) / 1e12, "FLOP of full prefills",
         "2137.5", "TFLOP", "8.6.3-76"),
    near(lambda: 100 * serving.MFU, "MFU that they are computed with", "58", "%", "8.6.3-77", "8.6.3-87"),
    near(lambda: 100 * serving.MFU, "the same to three digits", "57.8", "%", "8.6.3"),
    near(lambda: efficiency.peaks().read_bytes(long_plan()) / GB, "read by A in a round", "34.46", "GB", "8.6.3-79"),
    same(requests_that_read_as_much, "short requests that read as much", "64", "requests", "8.6.3-80"),
    same(lambda: float(C.kv_format.ratio_to(BF16)), "KV of C against BF16", "34/64", "", "8.6.3-81"),
    near(lambda: read_bytes_of_c() / GB, "read by C in a round", "25.40", "GB", "8.6.3-82"),
    same(lambda: DFLASH.positions, "positions verified for each", "8", "positions", "8.6.3-85"),
    near(lambda: verify_flop() / 1e12, "FLOP of a round that verifies them", "2.56", "TFLOP", "8.6.3-86"),
    near(verify_ms, "time to compute it", "8.8", "ms", "8.6.3-88"),
    same(lambda: needs(A).memory_bytes / MIB, "memory of A", "19008", "MiB", "8.6.3-90"),
    same(lambda: needs(B).memory_bytes / MIB, "memory of B", "6048", "MiB", "8.6.3-91"),
    near(lambda: needs(B).memory_bytes / GIB, "the same in GiB", "5.91", "GiB", "8.6.3-92", "8.6.3-113"),
    near(lambda: needs(C).memory_bytes / GIB, "memory of C", "9.86", "GiB", "8.6.3-93"),
    same(lambda: DFLASH.memory_bytes / MIB, "what D takes beside KV", "3188", "MiB", "8.6.3-94"),
    same(lambda: needs(D).memory_bytes / MIB, "memory of D", "9236", "MiB", "8.6.3-95"),
    near(lambda: needs(D).memory_bytes / GIB, "the same in GiB", "9.02", "GiB", "8.6.3-96"),
    near(lambda: needs(B).total_s, "total of B", "9.01", "s", "8.6.3-97"),
    near(recorded_request_s, "a request of B, as its client saw it", "9.02", "s", "8.6.3-98", kind="measured"),
    near(lambda: needs(B).decode_s, "rounds of B alone", "6.97", "s", "8.6.3-99"),
    near(lambda: needs(C).total_s, "total of C", "14.55", "s", "8.6.3-100"),
    same(lambda: needs(D).rounds * DFLASH.outputs_per_round, "tokens that D outputs in its rounds", "255", "token",
         "8.6.3-101"),
    near(lambda: needs(D).total_s, "total of D", "4.56", "s", "8.6.3-102"),
    same(lambda: judge(D).qualified, "results of D in time", "16", "requests", "8.6.3-103", kind="measured"),
    near(lambda: judge(D).gpu_s_per_result or 0, "GPU time of a qualified result of D", "0.285", "GPU s",
         "8.6.3-107"),
    same(lambda: INSTANCE.card.power_limit_w or 0, "power limit", "600", "W", "8.6.3-108", kind="input"),
    near(lambda: judge(D).most_joules_per_result or 0, "at most so much energy for it", "171", "J", "8.6.3-109"),
    same(lambda: judge(B).qualified, "results of B in time", "0", "requests", "8.6.3-110"),
    same(lambda: LESS_MEMORY.memory_bytes / GIB, "less memory", "6", "GiB", "8.6.3-112", kind="input"),
    same(lambda: SHORT_OUTPUTS.output_tokens, "shorter outputs", "16", "token", "8.6.3-114", kind="input"),
    same(lambda: short(B).rounds, "rounds of B for them", "15", "rounds", "8.6.3-115"),
    near(lambda: short(B).total_s, "total of B for them", "2.45", "s", "8.6.3-116"),
    same(lambda: short(D).rounds, "rounds of D for them", "5", "rounds", "8.6.3-117"),
    near(lambda: short(D).total_s, "total of D for them", "2.37", "s", "8.6.3-118"),
    near(lambda: short(B).total_s - short(D).total_s, "by which D ends earlier", "0.08", "s", "8.6.3-119"),
    near(lambda: short(D).prefill_s - short(B).prefill_s, "more prefill for its draft network", "0.19", "s",
         "8.6.3-120"),
    same(lambda: short(B).rounds - short(D).rounds, "rounds that it saves", "10", "rounds", "8.6.3-121"),
    same(lambda: len(Result), "kinds of result to record", "3", "", "summary-03", kind="input"),
    near(lambda: efficiency.peak_flop_s() / 1e12, "peak compute", "503.8", "TFLOP/s", "fn25-02", kind="input"),
    same(lambda: GEN5.bandwidth_bytes_s / GEN4.bandwidth_bytes_s, "PCIe 5.0 against 4.0", "2", "x", "fn28-01",
         kind="input"),
    same(lambda: LINKS["PCIe 4.0 x16"].both_ways_bytes_s / GB, "PCIe 4.0, both directions", "64", "GB/s", "fn28-02",
         kind="input"),
    same(lambda: GEN4.bandwidth_bytes_s / GB, "PCIe 4.0, one direction", "32", "GB/s", "fn28-03"),
    same(lambda: GEN5.bandwidth_bytes_s / GB, "PCIe 5.0, one direction", "64", "GB/s", "fn28-04"),
    # Why efficiency rises with the batch.
    near(lambda: (own(MOST).read_bytes - own(LEAST).read_bytes) / GB, "read more by 64 than by one", "19.0", "GB",
         "8.6.3"),
    near(lambda: (own(MOST).round_s - own(LEAST).round_s) * 1e3, "in so much more time", "3.37", "ms", "8.6.3"),
    near(lambda: (own(MOST).read_bound_s - own(LEAST).read_bound_s) * 1e3, "for which the peak would take", "10.6",
         "ms", "8.6.3"),
    near(lambda: further_bytes_s(own(LEAST), own(MOST)) / 1e12, "bandwidth of what is read more", "5.6", "TB/s",
         "8.6.3"),
    near(lambda: 100 * measured(Condition.SHARED, MOST).mbu, "nominal MBU of 64 with a shared prefix", "125", "%",
         "8.6.3"),
    # The same table behind a shared prefix, and more digits of the one that the chapter prints.
    *of_section(Condition.SHARED, "round", "ms", ("25.83", "27.16", "27.35", "41.22"), lambda row: row.round_s * 1e3),
    *of_section(Condition.SHARED, "MFU of prefill", "%", ("58.2", "58.1", "57.8", "52.1"), lambda row: 100 * row.mfu),
    *of_section(Condition.OWN, "MFU of prefill", "%", ("62.2", "61.4", "61.4", "58.4"), lambda row: 100 * row.mfu),
    *(
        same(partial(lambda condition, batch: measured(condition, batch).new_tokens, condition, batch),
             f"new tokens of its prefill, {condition}, batch {batch}", text, "token", "8.6.3")
        for condition in Condition
        for batch, text in zip(batches(condition), ("2048", "8192", "32,768", "131,072"), strict=True)
    ),
    same(lambda: serving.RECORDED_INPUT, "input of the first-token times, exactly", "2276", "token", "8.6.3"),
    # What the table does not print, and what each lacks.
    near(lambda: needs(A).total_s, "total of A", "14.90", "s", "8.6.3"),
    near(lambda: needs(A).memory_bytes / GIB, "memory of A", "18.56", "GiB", "8.6.3"),
    same(lambda: needs(C).memory_bytes / MIB, "memory of C", "10,098", "MiB", "8.6.3"),
    near(lambda: (INSTANCE.card.power_limit_w or 0) * needs(B).total_s / 1e3, "energy that B may spend for nothing",
         "5.4", "kJ", "8.6.3"),
    near(lambda: (judge(B).longest_round_s or 0) * 1e3, "longest round with which B is in time", "19.4", "ms", "8.6.3"),
    near(lambda: (judge(D).longest_round_s or 0) * 1e3, "longest round with which D is", "56.1", "ms", "8.6.3"),
    near(lambda: judge(D).fewest_outputs_per_round or 0, "fewest outputs of a round for D", "1.47", "token", "8.6.3"),
    same(lambda: judge(C).longest_round_s is None, "C is late with rounds of no time", "1", "", "8.6.3"),
    same(lambda: short(D).memory_bytes / MIB, "memory of D for 16 outputs", "8696", "MiB", "8.6.3"),
    same(lambda: short(B).memory_bytes / MIB, "memory of B for 16 outputs", "5508", "MiB", "8.6.3"),
    near(lambda: short(A).total_s, "total of A for 16 outputs", "7.78", "s", "8.6.3"),
    near(lambda: short(C).total_s, "total of C for 16 outputs", "7.76", "s", "8.6.3"),
    same(lambda: names(choose(limits=LESS_MEMORY)), "within 6 GiB and the deadline", "0", "", "8.6.3"),
    same(lambda: judge(B, limits=LESS_MEMORY).broken is Limit.DEADLINE, "B fits 6 GiB and is late", "1", "", "8.6.3"),
    same(lambda: (LESS_MEMORY.memory_bytes - needs(B).memory_bytes) / MIB, "to spare for B in 6 GiB", "96", "MiB",
         "8.6.3"),
    # The host's part of a round taken away.
    near(lambda: needs(A).prefill_s - needs(B).prefill_s, "prefill that sharing spares", "5.3", "s", "8.6.3"),
    near(lambda: gone(B).round_s * 1e3, "round of B without the host", "11.65", "ms", "8.6.3"),
    near(lambda: gone(B).total_s, "total of B without the host", "5.01", "s", "8.6.3"),
    near(lambda: gone(D).total_s, "total of D without the host", "3.22", "s", "8.6.3"),
    near(lambda: gone(A).total_s, "total of A without the host", "12.24", "s", "8.6.3"),
    near(lambda: gone(C).total_s, "total of C without the host", "10.96", "s", "8.6.3"),
    same(lambda: names(choose(workload=HOST_GONE)), "within the limits without the host", "2", "", "8.6.3"),
    # How far each input is from another choice.
    same(lambda: below(Input.MEMORY).last / MIB, "least memory for D", "9236", "MiB", "8.6.3"),
    near(lambda: below(Input.DEADLINE).last, "earliest deadline for D", "4.56", "s", "8.6.3"),
    same(lambda: below(Input.OUTPUTS).first, "outputs at which B is chosen", "12", "token", "8.6.3"),
    same(lambda: above(Input.OUTPUTS).last, "most outputs that D gives in time", "523", "token", "8.6.3"),
    same(lambda: above(Input.REQUESTS).last, "most requests for which D has room", "25", "requests", "8.6.3"),
    near(lambda: to_us(above(Input.DRAFT_ROUND).last) * 1e3, "what drafts may add to a round", "28.7", "ms", "8.6.3"),
    near(lambda: to_us(above(Input.DRAFT_PREFILL).last), "how much longer they may make the prefill", "2.29", "x",
         "8.6.3"),
    near(lambda: to_us(above(Input.HOST, verdict=within_limits).first) * 1e3, "off each round for B to be in time",
         "7.9", "ms", "8.6.3"),
    same(lambda: below(Input.OUTPUTS, verdict=within_limits).first, "outputs that B gives in time", "182", "token",
         "8.6.3"),
    same(lambda: below(Input.REQUESTS, verdict=within_limits).first, "requests that B serves in time", "2", "requests",
         "8.6.3"),
    near(lambda: above(Input.DEADLINE, SMALL).first, "deadline that B keeps in 6 GiB", "9.01", "s", "8.6.3"),
    same(lambda: below(Input.OUTPUTS, SMALL).first, "outputs that B gives in time in 6 GiB", "182", "token", "8.6.3"),
    same(lambda: below(Input.REQUESTS, SMALL).first, "requests for which D fits 6 GiB", "6", "requests", "8.6.3"),
    same(lambda: who(below(Input.REQUESTS, SMALL).then), "which is then chosen: D", "4", "", "8.6.3"),
    near(lambda: to_us(below(Input.OUTPUTS_PER_ROUND, BRIEF).first), "outputs of a round at which B wins 16 outputs",
         "2.14", "token", "8.6.3"),
    near(lambda: to_us(above(Input.DRAFT_ROUND, BRIEF).first) * 1e3, "or what drafts add to a round", "16.3", "ms",
         "8.6.3"),
    # What the arithmetic leaves out.
    near(lambda: pass_of_draft_s() * 1e3, "a pass of the draft network", "3.57", "ms", "8.6.3"),
    near(lambda: varied("D", "pass is charged"), "D if it is charged", "4.86", "s", "8.6.3"),
    near(lambda: of_slowest(0), "rounds of one request by chance, on average", "85.6", "rounds", "8.6.3"),
    near(lambda: of_slowest(1), "rounds of the slowest of 16", "97.4", "rounds", "8.6.3"),
    near(lambda: varied("D", "the slowest"), "D if its slowest is waited for", "4.90", "s", "8.6.3"),
    near(lambda: varied("D", "both of these"), "D with both", "5.24", "s", "8.6.3"),
    near(lambda: (varied("B", "grows") - needs(B).total_s) * 1e3, "B's context grows: longer by", "18", "ms", "8.6.3"),
    near(lambda: round_by_reads(once=True) * 1e3, "B's round by the bytes of a prefix read once", "27.58", "ms",
         "8.6.3"),
    near(lambda: round_by_reads(once=False) * 1e3, "and read by each", "29.63", "ms", "8.6.3"),
    near(lambda: varied("B", "read once"), "B with the one", "9.07", "s", "8.6.3"),
    near(lambda: varied("B", "read by each"), "B with the other", "9.60", "s", "8.6.3"),
    near(lambda: varied("B", "not cached"), "B if the prefix was not cached", "9.32", "s", "8.6.3"),
    near(lambda: varied("D", "not cached"), "D if the prefix was not cached", "4.89", "s", "8.6.3"),
    near(lambda: varied("A", "within the limit"), "A if 10 run and 6 wait", "21.7", "s", "8.6.3"),
    near(lambda: run(B).total_s, "B in the simulator", "9.03", "s", "8.6.3"),
    near(lambda: run(D).total_s, "D in the simulator", "4.56", "s", "8.6.3"),
    near(lambda: varied("B", "4096"), "B in steps of 4096 tokens", "9.06", "s", "8.6.3"),
    near(lambda: cold_run_s(Findable.ON_ADMISSION), "B, nothing cached before, all prompts in one step", "9.36", "s",
         "8.6.3"),
    near(lambda: cold_run_s(Findable.ONCE_DONE), "the same if blocks are found once computed", "14.33", "s", "8.6.3"),
    same(lambda: memory_with_slots(D) / MIB, "memory of D with slots for its last drafts", "9272", "MiB", "8.6.3"),
    near(lambda: memory_by_shape(shares_draft_prefix=False) / MIB, "by its shape, each with draft KV of its own",
         "10,688", "MiB", "8.6.3"),
    near(lambda: memory_by_shape(shares_draft_prefix=True) / MIB, "by its shape, draft KV of the prefix shared", "8888",
         "MiB", "8.6.3"),
    # A whole task, and energy per qualified result.
    same(lambda: HALF.task_s, "time of the agent's task", "100", "s", "8.6.3-122", kind="input"),
    same(lambda: HALF.part_s, "decode in it", "50", "s", "8.6.3-123", kind="input"),
    same(lambda: HALF.speedup, "how many times as fast decode gets", "4", "x", "8.6.3-124", kind="input"),
    same(lambda: HALF.new_task_s, "its time then", "62.5", "s", "8.6.3-125"),
    same(lambda: HALF.net_speedup, "its speed-up", "1.6", "x", "8.6.3-126"),
    same(lambda: FIFTH.part_s, "decode in the other case", "20", "s", "8.6.3-127", kind="input"),
    same(lambda: FIFTH.task_s - FIFTH.part_s, "the other stages then", "80", "s", "8.6.3-128"),
    same(lambda: FIFTH.new_task_s, "its time then", "85", "s", "8.6.3-129"),
    near(lambda: FIFTH.net_speedup, "its speed-up", "1.18", "x", "8.6.3-130"),
    same(lambda: 100 * DECODE_SHARES[0], "share of the first curve", "20", "%", "8.6.3-131", kind="input"),
    same(lambda: 100 * DECODE_SHARES[1], "share of the second curve", "50", "%", "8.6.3-132", kind="input"),
    same(lambda: 100 * DECODE_SHARES[2], "share of the third curve", "80", "%", "8.6.3-133", kind="input"),
    same(lambda: task_speedup(DECODE_SHARES[2], DECODE_SPEEDUP), "the third at 4 times", "2.5", "x", "8.6.3"),
    same(lambda: ceiling(DECODE_SHARES[0]), "ceiling of the first curve", "1.25", "x", "8.6.3"),
    same(lambda: ceiling(DECODE_SHARES[1]), "ceiling of the second", "2", "x", "8.6.3"),
    same(lambda: ceiling(DECODE_SHARES[2]), "ceiling of the third", "5", "x", "8.6.3"),
    near(lambda: task_speedup(DECODE_SHARES[1], 100), "half decode, 100 times as fast", "1.98", "x", "8.6.3"),
    near(lambda: of_ceiling(DECODE_SHARES[0]), "of its ceiling the first reaches at 4 times", "94", "%", "8.6.3"),
    near(lambda: of_ceiling(DECODE_SHARES[1]), "of its ceiling the second reaches", "80", "%", "8.6.3"),
    near(lambda: of_ceiling(DECODE_SHARES[2]), "of its ceiling the third reaches", "50", "%", "8.6.3"),
    near(lambda: task_speedup(DECODE_SHARES[1], DECODE_SPEEDUP, 0.2), "half decode, 20 s of preparation", "1.21", "x",
         "8.6.3"),
    near(lambda: task_speedup(DECODE_SHARES[0], DECODE_SPEEDUP, 0.2), "a fifth decode, 20 s of preparation", "0.95",
         "x", "8.6.3"),
    same(lambda: SLOW.arrivals_per_s or 0, "first arrival rate", "1", "request/s", "8.6.3-134", kind="input"),
    same(lambda: USUAL.arrivals_per_s or 0, "second arrival rate", "4", "request/s", "8.6.3-135", kind="input"),
    same(lambda: FAST.arrivals_per_s or 0, "third arrival rate", "16", "request/s", "8.6.3-136", kind="input"),
    near(lambda: energy_j(SLOW), "energy per qualified result at 1/s", "615.0", "J", "8.6.3-137", kind="measured"),
    near(lambda: energy_j(USUAL), "at 4/s", "652.0", "J", "8.6.3-138", kind="measured"),
    near(lambda: energy_j(FAST), "at 16/s", "1083.7", "J", "8.6.3-139", kind="measured"),
    same(lambda: ONE_BY_ONE.arrivals_per_s or 0, "rate, one by one", "4", "request/s", "8.6.3-140", kind="input"),
    near(lambda: energy_j(ONE_BY_ONE), "energy per qualified result, one by one at 4/s", "1982.3", "J", "8.6.3-141",
         kind="measured"),
    near(lambda: 100 * (energy_j(FAST) / energy_j(USUAL) - 1), "more energy at 16/s than at 4/s", "66", "%",
         "8.6.3-142"),
    near(lambda: energies_j(USUAL)[0], "least of three windows at 4/s", "441", "J", "8.6.3", kind="measured"),
    near(lambda: energies_j(USUAL)[-1], "most of three windows at 4/s", "852", "J", "8.6.3", kind="measured"),
    near(lambda: energies_j(FAST)[0], "least of three windows at 16/s", "744", "J", "8.6.3", kind="measured"),
    near(lambda: energies_j(FAST)[-1], "most of three windows at 16/s", "1491", "J", "8.6.3", kind="measured"),
    near(lambda: energy_per_answer_j(SLOW), "energy per answer, of whatever kind, at 1/s", "538", "J", "8.6.3"),
    near(lambda: energy_per_answer_j(USUAL), "the same at 4/s", "285", "J", "8.6.3"),
    near(lambda: energy_per_answer_j(FAST), "the same at 16/s", "279", "J", "8.6.3"),
    near(lambda: energy_per_answer_j(ONE_BY_ONE), "the same one by one at 4/s", "510", "J", "8.6.3"),
    near(lambda: pooled_energy_j(USUAL), "three windows together at 4/s, per qualified result", "613", "J", "8.6.3"),
    near(lambda: pooled_energy_j(FAST), "three windows together at 16/s", "1021", "J", "8.6.3"),
    near(lambda: power_w(SLOW), "GPU and CPU package at 1/s", "552", "W", "8.6.3"),
    near(lambda: power_w(FAST), "GPU and CPU package at 16/s", "662", "W", "8.6.3"),
    same(lambda: len(agent_tasks()), "recorded runs of an agent's task", "4", "runs", "8.6.3", kind="measured"),
    same(lambda: len(fixed_runs()), "of which fixed it", "2", "runs", "8.6.3", kind="measured"),
    same(lambda: of_runs(lambda task: task.rounds), "rounds of the four", "42", "rounds", "8.6.3", kind="measured"),
    near(lambda: of_runs(lambda task: task.span_s), "time of the four", "17.23", "s", "8.6.3", kind="measured"),
    near(lambda: of_runs(lambda task: task.model_s), "of it in calls of the model", "16.80", "s", "8.6.3",
         kind="measured"),
    near(lambda: of_runs(lambda task: task.tool_s), "of it in tools", "0.270", "s", "8.6.3", kind="measured"),
    near(lambda: of_runs(lambda task: task.rest_s), "of it in neither", "0.16", "s", "8.6.3"),
    near(lambda: 100 * of_runs(lambda task: task.model_s) / of_runs(lambda task: task.span_s),
         "calls of the model, of the time of the four", "97.5", "%", "8.6.3"),
    near(lambda: 100 * min(task.model_share for task in agent_tasks()), "calls of the model, least share", "95.2", "%",
         "8.6.3"),
    near(lambda: 100 * max(task.model_share for task in agent_tasks()), "calls of the model, largest share", "98.9",
         "%", "8.6.3"),
    near(lambda: 100 * max(task.tool_share for task in agent_tasks()), "tools, largest share", "2.8", "%", "8.6.3"),
    near(lambda: min(task.most_from_decode(DECODE_SPEEDUP) for task in agent_tasks()),
         "decode 4 times as fast, at most, the run with most besides", "3.50", "x", "8.6.3"),
    near(lambda: max(task.most_from_decode(DECODE_SPEEDUP) for task in agent_tasks()),
         "the same, the run with least besides", "3.87", "x", "8.6.3"),
    near(mean_fixed_s, "a run that fixed it, on average", "2.81", "s", "8.6.3"),
    near(per_fixed_s, "all runs, for each that fixed it", "8.61", "s", "8.6.3"),
    near(lambda: per_fixed_s() / mean_fixed_s(), "times as long", "3.1", "x", "8.6.3"),
    same(lambda: TASK_EXERCISE.prefill_s + TASK_EXERCISE.decode_s + TASK_EXERCISE.tools_s, "task of the exercise",
         "100", "s", "8.6.3-143", kind="input"),
    same(lambda: TASK_EXERCISE.prefill_s, "its prefill", "20", "s", "8.6.3-144", kind="input"),
    same(lambda: TASK_EXERCISE.decode_s, "its decode", "50", "s", "8.6.3-145", kind="input"),
    same(lambda: TASK_EXERCISE.tools_s, "its tools and waiting", "30", "s", "8.6.3-146", kind="input"),
    same(lambda: 1 / HALVED, "what is left of each part", "1/2", "ratio", "8.6.3-147", kind="input"),
    same(lambda: 1 / TASK_EXERCISE.speedup, "what is left of decode", "1/4", "ratio", "8.6.3-148", kind="input"),
    same(lambda: TASK_EXERCISE.preparation_s, "its preparation", "8", "s", "8.6.3-149", kind="input"),
)  # fmt: skip
