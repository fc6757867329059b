"""The atlas says what its models say, beside what stands in the records."""

import csv
import math
from collections import Counter
from random import Random
from statistics import median

import pytest

from lib import atlas_counts, atlas_times
from lib.atlas import atlas, judged, left_out, of_group
from lib.checks import InputError
from lib.clocks import Clock
from lib.comparison import Comparison, Group, Model, Seen, score, scores
from lib.records import FOLDER, names, record
from lib.scheduling import Policy, Request, walk
from lib.step_time import FIT

TIMES = [one for one in atlas() if one.seen.clock]
COUNTS = [one for one in atlas() if not one.seen.clock]


def found(group: Group, what: str, model: Model) -> Comparison:
    (one,) = (one for one in of_group(group) if (one.seen.what, one.model) == (what, model))
    return one


def cells(name: str) -> set[float]:
    """Every number of a record, read anew from its file."""
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        read = set()
        for row in csv.reader(file):
            for cell in row:
                try:
                    read.add(float(cell))
                except ValueError:
                    continue
        return read


# Means, a quotient, and what windows of requests come to: they follow from what stands in the record.
DERIVED = {Group.RETRIES, Group.OUTPUTS, Group.SERVICE}


@pytest.mark.parametrize("name", sorted({one.seen.record for one in atlas()}))
def test_what_was_seen_stands_in_the_record(name: str) -> None:
    known = cells(name)
    seen = {one.seen for one in atlas() if one.seen.record == name and one.seen.group not in DERIVED}
    assert [one for one in seen if one.value not in known and not one.what.startswith("all ")] == []


def test_all_chunks_together_are_their_sum() -> None:
    seen = {one.seen.value for one in of_group(Group.CHUNKS) if one.seen.what == "all 16"}
    assert seen == {sum(row["median_ms"] for row in record("chunk_times").rows)}


def test_each_number_stands_once_beside_each_of_its_models() -> None:
    counted = Counter((one.seen.group, one.seen.what, one.model) for one in atlas())
    assert [key for key, times in counted.items() if times > 1] == []
    assert {one.seen.group for one in atlas()} == set(Group)
    assert {one.model for one in atlas()} == set(Model)


def test_times_have_clocks_on_both_sides_and_counts_on_none() -> None:
    assert all(one.clock for one in TIMES) and not any(one.clock for one in COUNTS)
    assert {one.seen.unit for one in TIMES} == {"s", "ms", "1/s"}
    assert not {one.seen.unit for one in COUNTS} & {"s", "ms", "1/s"}
    assert {one.clock for one in TIMES if one.model == Model.FIT} == {Clock.FIT}


# Models, counted by hand


def pairs(new: int, context: int) -> int:
    return sum(range(context + 1, context + new + 1))


@pytest.mark.parametrize(("requests", "in_a_step"), [(1, 1), (4, 2), (16, 2), (64, 2)])
@pytest.mark.parametrize(("name", "context"), [("2K", 0), ("8K, 6K of it cached", 6144)])
def test_prefills_by_the_fit_are_the_sum_of_its_terms(requests: int, in_a_step: int, name: str, context: int) -> None:
    ns = requests // in_a_step * 26_220_000 + requests * (2048 * 30_400 + 3 * pairs(2048, context))
    said = found(Group.PREFILL, f"{requests} x {name}", Model.FIT)
    assert said.predicted == pytest.approx(ns / 1e9, rel=1e-12)
    assert said.is_fitted == (requests == 1)


@pytest.mark.parametrize("requests", [1, 4, 16, 64])
def test_the_bound_on_a_decode_step_is_what_it_reads_at_peak_bandwidth(requests: int) -> None:
    weights, kv, peak = 15_136_811_008, 147_456, 1792e6  # bytes a ms
    said = found(Group.DECODE, f"{requests} x 8K, 6K of it cached", Model.BOUND)
    assert said.predicted == pytest.approx((weights + requests * 8192 * kv) / peak, abs=1e-5)
    if requests > 1:
        once = found(Group.DECODE, f"{requests} x 8K, 6K of it cached", Model.READ_ONCE)
        assert once.predicted == pytest.approx((weights + (6144 + requests * 2048) * kv) / peak, abs=1e-5)


def test_the_bound_holds_but_where_a_prefix_is_read_once_for_all() -> None:
    broken = {one.seen.what for one in TIMES if one.model == Model.BOUND and one.error > 0}
    assert broken == {"64 x 8K, 6K of it cached"}
    assert all(one.error < 0 for one in TIMES if one.model == Model.READ_ONCE)


@pytest.mark.parametrize("model", [Model.FIT, Model.DEVICE, Model.HOST])
def test_a_batch_is_the_plain_loop_over_its_steps(model: Model) -> None:
    run = walk([Request(0, 2048, 256)] * 4, Policy(4, token_budget=4096), atlas_times.STEP_TIMES[model])
    assert found(Group.BATCHES, "4 x 2K, whole", model).predicted == run.total_ns / 1e9
    assert found(Group.BATCHES, "4 x 2K, first token", model).predicted == median(map(int, run.ttft_ns)) / 1e6
    lengths = [sum(run.intervals_ns(place)) / 255 / 1e6 for place in range(4)]
    assert found(Group.BATCHES, "4 x 2K, interval", model).predicted == pytest.approx(median(lengths), rel=1e-12)


def test_parts_added_are_prefill_and_rounds() -> None:
    said = found(Group.BATCHES, "16 x 8K, 6K of it cached, whole", Model.ADDED)
    assert said.predicted == pytest.approx(2.0405 + 255 * 0.02735)
    assert said.seen.value == sorted([9.1499, 8.8993, 9.1341])[1]
    with_drafts = found(Group.DRAFTS, "short_math, whole, drafts of 7", Model.ADDED)
    rounds = sum(row["round"] > 0 for row in record("dflash_rounds").where(draft_tokens=7, task="short_math"))
    assert with_drafts.predicted == pytest.approx(15.611 + rounds * 15.215)


def test_a_prompt_alone_goes_through_in_chunks() -> None:
    for model, by in atlas_times.STEP_TIMES.items():
        run = walk([Request(0, 4000, 1)], Policy(1, chunk=512, token_budget=512), by)
        said = found(Group.AGENT, "pool1gib_interference, others", model)
        assert said.predicted == pytest.approx(33 * run.total_ns / 1e9, rel=1e-12)


def test_the_own_host_of_an_experiment_is_its_own_step() -> None:
    said = found(Group.DRAFTS, "short_lookup, whole", Model.OWN_HOST)
    assert said.predicted == pytest.approx(5 * 16.883)


def test_tasks_with_retries() -> None:
    rows = record("retries").where(documents="known")
    again = [row["retry_s"] for row in rows if row["retry_s"] is not None]
    expected = (sum(row["first_s"] for row in rows) + sum(again)) / len(rows)
    for documents in ("known", "new"):
        said = found(Group.RETRIES, f"{documents} documents", Model.RETRY_RULE)
        assert said.predicted == pytest.approx(expected)
        seen = [row["task_s"] for row in record("retries").where(documents=documents)]
        assert said.seen.value == pytest.approx(sum(seen) / len(seen))
        assert said.is_fitted == (documents == "known")


def test_the_service_under_load_is_predicted_by_requests_that_ran_alone() -> None:
    rows = of_group(Group.SERVICE)
    assert {one.seen.what for one in rows if one.is_fitted} == {
        f"one at a time at 1/s, {what}" for what in ("longest request", "longest first token", "goodput")
    }
    alone = [row for row in record("service_requests").rows if row["arrivals_per_s"] == 4]
    longest = [
        max(row["total_s"] for row in alone if (row["admission"], row["window"]) == ("one at a time", window))
        for window in (1, 2, 3)
    ]
    assert found(Group.SERVICE, "one at a time at 4/s, longest request", Model.CALIBRATED).seen.value == median(longest)
    far = {one.seen.what for one in rows if abs(one.error) > 0.06}
    assert far == {"continuous batching at 1/s, longest request"}


# Counts


def test_counts_are_exact_but_where_a_rule_is_too_simple() -> None:
    wrong = {one.seen.what: one.model for one in COUNTS if one.error}
    assert {what: model for what, model in wrong.items() if model == Model.COUNT} == {
        "read by one layer, bf16_kv": Model.COUNT,
        "read by one layer, fp8_kv_default": Model.COUNT,
    }
    assert set(wrong.values()) == {Model.COUNT, Model.ONE_RATE}
    assert all(abs(one.error) < 0.0014 for one in COUNTS if one.model == Model.COUNT)


def test_the_engine_says_the_numbers_of_the_records() -> None:
    assert found(Group.PREEMPTION, "small_pool, positions computed", Model.COUNT).predicted == 1536 * 4 + 511 * 4 + 1805
    assert found(Group.PREEMPTION, "small_pool, outputs kept", Model.COUNT).predicted == 270
    assert found(Group.SHARING, "cold_engine, held", Model.COUNT).predicted == 131
    hits = [one.predicted for one in of_group(Group.HITS) if one.seen.what.startswith("pool6gib, round")]
    assert sum(hits) == 16304 and len(hits) == 12
    assert found(Group.CAPACITY, "FP8, requests at once", Model.COUNT).predicted == 15


def test_preemptions_tell_the_limit_of_a_step_apart() -> None:
    assert [atlas_counts.runs_that_come_out(limit) for limit in (512, 4096, 8192)] == [8, 18, 20]
    assert len(atlas_counts.pool_runs()) == 20


# What is said about the models


def test_models_fitted_to_a_number_are_those_that_took_it() -> None:
    fitted = {(one.seen.what, one.model) for one in TIMES if one.is_fitted and one.seen.group == Group.DECODE}
    alone = ("1 x 2K", "1 x 8K, 6K of it cached")
    assert fitted == {
        *((what, model) for what in alone for model in (Model.FIT, Model.HOST)),
        ("64 x 2K", Model.DEVICE), ("64 x 2K", Model.HOST),
        *((f"{requests} x 2K", Model.RECORDED_STEPS) for requests in (1, 4, 16, 64)),
    }  # fmt: skip
    assert all(abs(one.error) < 0.05 for one in TIMES if one.is_fitted and one.model in (Model.FIT, Model.DEVICE))


def test_the_fit_is_worst_where_its_fixed_part_is_paid_again_and_again() -> None:
    assert all(one.error > 0.5 for one in of_group(Group.CHUNKS) if one.model == Model.FIT)
    assert all(abs(one.error) < 0.14 for one in of_group(Group.CHUNKS) if one.model == Model.DEVICE)


def test_judged_leaves_counts_and_fitted_ones_out() -> None:
    kept = judged(atlas())
    assert kept and all(one.seen.clock and not one.is_fitted for one in kept)
    assert len(kept) == len(atlas()) - len(COUNTS) - sum(one.is_fitted for one in TIMES)


def test_left_out_records_are_measured_and_unused() -> None:
    used = {one.seen.record for one in atlas()}
    measured = {name for name in names() if record(name).kind == "measured"}
    assert set(left_out()) == measured - used
    assert "answer_times" in left_out() and "chunk_times" not in left_out()


def compared(model: Model, predicted: float, value: float = 100) -> Comparison:
    return Comparison(Seen(Group.DECODE, "", "", value, "ms", Clock.ENGINE), model, predicted)


def test_scores_are_those_of_a_plain_count() -> None:
    draw = Random(7)
    for _ in range(50):
        errors = [draw.uniform(-0.9, 2) for _ in range(draw.randint(1, 9))]
        rows = [compared(Model.FIT, 100 * (1 + error)) for error in errors] + [compared(Model.BOUND, 50)]
        sizes = sorted(map(abs, errors))
        expected = (len(errors), sizes[0], median(sizes), sizes[-1])
        assert score(rows, Model.FIT)[1:] == pytest.approx(expected)
        assert [one.model for one in scores(rows)] == sorted(
            (Model.FIT, Model.BOUND), key=lambda model: median(sizes) if model == Model.FIT else 0.5
        )


def test_errors_at_nothing() -> None:
    assert compared(Model.COUNT, 0, 0).error == 0
    assert compared(Model.COUNT, 1, 0).error == math.inf
    assert compared(Model.FIT, 0, 5).error == -1


@pytest.mark.parametrize("value", [math.nan, math.inf, -1, True, "3", None])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="predicted"):
        compared(Model.FIT, value)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="seen"):
        compared(Model.FIT, 1, value)  # type: ignore[arg-type]


def test_a_model_without_comparisons_has_no_score() -> None:
    with pytest.raises(InputError, match=r"model is .*allowed: a model of at least one"):
        score([compared(Model.FIT, 1)], Model.BOUND)
    assert scores([]) == ()
    assert FIT is atlas_times.STEP_TIMES[Model.FIT]
