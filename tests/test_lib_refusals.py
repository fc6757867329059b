"""Every function of `lib` that takes a count, a time or a choice refuses by name what makes no sense."""

import importlib
import inspect
import math
import pkgutil
from collections.abc import Callable, Iterator
from enum import StrEnum
from random import Random
from typing import Any, get_type_hints

import numpy as np
import pytest

import lib
from lib import (
    admission,
    agent_replay,
    allotment,
    arrivals,
    atlas,
    atlas_counts,
    attention,
    attention_error,
    bill,
    block_content,
    block_history,
    block_reuse,
    broken_engine,
    cancellation,
    codecs,
    comparison,
    confirmed_state,
    context_edit,
    copy_on_write,
    design_problem,
    dflash,
    draft_length,
    draft_sources,
    efficiency,
    exercise_8_1,
    file_budget,
    five_requests,
    flip_distance,
    float_formats,
    four_requests,
    goodput,
    greedy_check,
    kv_compression,
    latency,
    little,
    load_curve,
    mapped_pages,
    memory,
    model,
    ngram_draft,
    offload,
    overload,
    paged_attention,
    prefetch,
    prefix_tree,
    prefix_value,
    quality,
    quantization,
    reads,
    rejection_sampling,
    retries,
    scheduling,
    service_calibration,
    service_overload,
    serving,
    serving_run,
    shapes,
    shortest_script,
    slo,
    speculation,
    speculation_setup,
    state_cache,
    step_time,
    whole_task,
    window_state,
)
from lib.checks import InputError
from lib.design_problem import Prompt
from lib.draft_sources import Order
from lib.latency import InsertedAs
from lib.paging import Findable, Pool
from lib.rejection_sampling import ALWAYS_A, TARGET, Rule
from lib.residency import Gate
from lib.service_record import Admission

SCHEDULE = scheduling.walk([scheduling.Request(0, 8, 2)], scheduling.continuous(1))
QUERIES, KV_BLOCKS = np.ones((1, 2, 4)), paged_attention.KvBlocks(2, 2, 1, 4)
LOAD = allotment.Load()
PREFIX = prefix_value.prefix_of(2048)
POOL, ROUND = Pool(4), draft_length.RoundTime(0.02)
OFFLOAD = offload.Offload(36, offload.every_nth(36, 4), 288 * 2**20, 1)
REQUEST = latency.evenly_timed_request(queue=0.1, prefill=0.1, interval=0.02, outputs=10, deadline=7)
ARRIVING = arrivals.load_of((0, 5), [memory.RequestShape(8, 2)])
ENGINE = service_overload.service_engine()

# A call of each function that is right, from which one argument at a time is made wrong.
RIGHT: dict[Callable[..., Any], dict[str, Any]] = {
    atlas.of_group: {"group": comparison.Group.DECODE},
    atlas_counts.runs_that_come_out: {"tokens_per_step": 8192},
    comparison.score: {"compared": atlas.of_group(comparison.Group.DECODE), "model": comparison.Model.FIT},
    bill.bill: {"schedule": SCHEDULE, "place": 0},
    latency.time_to_first_token: {"queue_s": 0.1, "prefill_s": 0.1},
    latency.request_time: {"ttft_s": 0.2, "intervals_s": (0.02, 0.03)},
    latency.slack: {"deadline_s": 7, "request_s": 6.5},
    latency.delay_of_inserted_prefill: {"tokens": 2048, "alone_s": 0.1, "inserted_as": InsertedAs.INSIDE_STEP},
    latency.evenly_timed_request: {
        "queue": 0.1, "prefill": 0.1, "interval": 0.02, "outputs": 10, "deadline": 7, "inserted": 2, "delay": 0.1,
    },
    latency.prefills_that_fit: {"request": REQUEST, "delay_s": 0.1},
    latency.throughput: {"tokens_per_step": 16, "step_s": 0.027},
    memory.adapter_bytes: {"model": model.QWEN3_8B, "rank": 16, "bytes_per_element": 2},
    memory.fits: {"use": memory.CardUse(1, 1), "capacity_bytes": 4},
    memory.fits_on_each: {"uses": [memory.CardUse(1, 1)], "capacity_bytes": 4},
    latency.percentile: {"values": (1, 2, 3), "percent": 95},
    memory.pages_for: {"tokens": 17, "page_tokens": 16},
    memory.paged_bytes: {"tokens": 17, "page_tokens": 16, "kv_bytes_per_token": 10},
    memory.tokens_stored: {"input_tokens": 8, "output_tokens": 4},
    scheduling.fixed_batch: {"max_running": 2, "wait_to_fill_ns": 5},
    scheduling.continuous: {"max_running": 2},
    scheduling.chunked: {"max_running": 2, "chunk": 8, "token_budget": 16, "order": scheduling.Order.BY_ADMISSION},
    memory.left_for_activations: {"capacity_bytes": 32, "weight_bytes": 16, "kv_pool_bytes": 12},
    model.ffn_bytes_per_layer: {"model": model.QWEN3_8B, "bytes_per_element": 2},
    model.kv_bytes: {"model": model.QWEN3_8B, "tokens": 4, "bytes_per_element": 2},
    model.kv_bytes_by_kind: {"model": model.QWEN3_8B, "tokens": 4, "bytes_per_element": 2},
    model.kv_elements: {"model": model.QWEN3_8B, "tokens": 4},
    model.matrix_flops: {"model": model.QWEN3_8B, "new_tokens": 4, "cached_tokens": 8, "logit_positions": 1},
    model.paged_kv_bytes: {"model": model.QWEN3_8B, "tokens": 4, "page_tokens": 16, "bytes_per_element": 2},
    model.streamed_weight_bounds: {"model": model.QWEN3_8B, "batch_tokens": 4, "bytes_per_element": 2},
    model.tokens_that_fit: {"model": model.QWEN3_8B, "available_bytes": 10**6, "bytes_per_element": 2},
    model.weight_bytes: {"model": model.QWEN3_8B, "bytes_per_element": 2},
    block_history.play_history: {"events": 7, "block_tokens": 4},
    copy_on_write.write_in_branches: {
        "block_tokens": 4, "tail_tokens": 3, "branches": 2, "parent": copy_on_write.Parent.STAYS, "written": 2,
    },
    block_reuse.story: {
        "sharers": 2, "in_flight": 1, "rule": block_reuse.Rule.AFTER_STEP,
        "ending": block_reuse.Ending.FIRST_ADMITTED,
    },
    cancellation.cancel: {"phase_percent": 50, "step_time": 0.03, "in_flight": 1, "needs_blocks": 100},
    context_edit.reusable_tokens: {"tokens": 200, "unchanged": 100, "block_tokens": 16},
    context_edit.append: {"appended": 10, "history": 100, "block_tokens": 16},
    context_edit.rewrite: {"position": 50, "appended": 10, "history": 100, "block_tokens": 16},
    context_edit.summarise: {"summary": 20, "appended": 10, "history": 100, "block_tokens": 16},
    context_edit.turns: {"edit": context_edit.append(), "further": 3},
    context_edit.break_even: {
        "edit": context_edit.summarise(), "other": context_edit.append(), "cost": lambda turn: turn.carried,
        "within": 5,
    },
    broken_engine.pool_with: {"faults": (), "blocks": 2},
    broken_engine.run_script: {"script": "admit A a", "blocks": 2},
    shortest_script.judge: {"script": "admit A a", "fault": broken_engine.Fault.NO_COPY},
    shortest_script.search: {"fault": broken_engine.Fault.FULL_HIT, "blocks": 2, "most_events": 2},
    block_content.token_ids: {"tokens": [1, 2], "at_most": 2},
    paged_attention.paged_attend: {"queries": QUERIES, "kv": KV_BLOCKS, "table": [1, 0], "length": 3},
    allotment.wasted_slots: {"tokens": 9, "block_tokens": 4},
    allotment.shared_blocks: {"tokens": 9, "common_tokens": 8, "block_tokens": 4},
    allotment.pieces_to_move: {"model": model.QWEN3_8B, "pieces": 13},
    allotment.allotment: {"load": LOAD, "allot": allotment.Allot.IN_BLOCKS, "block_tokens": 4, "requests": 4},
    allotment.most_that_fit: {"load": LOAD, "allot": allotment.Allot.AS_IT_GROWS, "slots": 64, "block_tokens": 4},
    allotment.most_unused: {"load": LOAD, "allot": allotment.Allot.MAXIMUM, "block_tokens": 4},
    attention.causal_pairs: {"new_tokens": 4, "context": 8, "window": 6},
    reads.compute_crossover: {"device": step_time.device(), "context": 128},
    step_time.executed_plan: {"new_tokens": 4, "context": 8},
    step_time.decode_plan: {"batch": 4, "context": 2048},
    reads.kv_crossover: {"weight_bytes": 10**6, "context": 8, "kv_bytes_per_token": 10},
    reads.reads_in_pieces: {"weight_bytes": 10**6, "pieces": 2},
    reads.reads_per_output: {"weight_bytes": 10**6, "batch": 4, "context": 8, "kv_bytes_per_token": 10},
    reads.resident_bytes: {"all_weight_bytes": 10**6, "batch": 4, "stored_tokens": 9, "kv_bytes_per_token": 10},
    reads.step_reads: {"weight_bytes": 10**6, "batch": 4, "context": 8, "kv_bytes_per_token": 10},
    reads.weight_intensity: {"batch": 4, "bytes_per_weight": 2},
    state_cache.cached_text: {"tokens": 100, "spacing": 16, "last": 2},
    state_cache.mean_between_snapshots: {"spacing": 16},
    window_state.window_reach: {"layers": 20, "window": 128},
    window_state.recover: {
        "prefix_tokens": 100, "new_tokens": 10, "global_kv": window_state.Lookup.HIT,
        "window_state": window_state.Lookup.MISS,
    },
    window_state.long_lived_share: {"window_share": 0.5, "shrink": 4},
    window_state.recorded_shrink: {"context_tokens": 8192},
    shapes.padded_rows: {"rows": 17, "captured": (16, 32)},
    step_time.device: {"mfu": 0.6, "mbu": 0.6},
    step_time.tokens_that_fit: {"interval_ns": 10**8, "step_time": step_time.FIT, "context": 8},
    five_requests.pool_of: {"blocks": 28, "gate": Gate.FINAL_SIZE, "findable": Findable.NEVER},
    four_requests.four_requests: {
        "r0_outputs": 8, "r1_outputs": 2, "r2_arrival_ns": 20, "r3_arrival_ns": 30, "r2_prompt": 8192,
    },
    four_requests.policy_of: {
        "policy": four_requests.Batching.CHUNKED, "max_running": 2, "wait_to_fill_ns": 5, "chunk": 8,
        "token_budget": 16, "order": scheduling.Order.DECODES_FIRST,
    },
    slo.trace_grid: {
        "requests": [scheduling.Request(0, 8, 4)], "token_budgets": (8,), "chunks": (4, 8), "max_running": 2,
        "slo": slo.Slo(1, 0.1),
    },
    agent_replay.blocks_in: {"pool_bytes": 2**30, "block_tokens": 16},
    agent_replay.found_if_all_lives: {"block_tokens": 16},
    agent_replay.engine_replay: {"setup": agent_replay.Setup(196), "gap_ns": 10},
    agent_replay.time_to_make: {"first": 0, "beyond": 16},
    prefix_tree.prefix_tree: {"rounds": 4, "block_tokens": 16},
    agent_replay.first_token_ns: {"tokens": 512, "found": 16},
    prefix_value.recompute_time: {"tokens": 2048, "efficiency": 0.622},
    prefix_value.transfer_time: {"size_bytes": 10**9, "link_bytes_s": 64 * 10**9},
    prefix_value.net_saving: {"probability": 0.5, "recompute_s": 0.3, "fetch_s": 0.01, "write_s": 0.01},
    prefix_value.prefix_of: {"tokens": 2048, "link_bytes_s": 64 * 10**9, "efficiency": 0.622},
    prefix_value.break_even_link: {"prefix": PREFIX, "probability": 0.5},
    prefix_value.switching_probability: {"a": PREFIX, "b": PREFIX, "b_count": 3, "b_probability": 0.5},
    prefix_value.best_choice: {"candidates": [prefix_value.Candidate(PREFIX, 0.5)], "room_bytes": 10**9},
    prefix_value.greedy_choice: {"candidates": [prefix_value.Candidate(PREFIX, 0.5)], "room_bytes": 10**9},
    exercise_8_1.drawn_outputs: {"random": Random(8), "page_tokens": 16},
    design_problem.prefill_alone: {"prompt": Prompt.SHORT},
    design_problem.foreign_delay: {"inserted_as": InsertedAs.OWN_PASS},
    design_problem.timed_request: {
        "queue": 0.1, "interval": 0.02, "outputs": 10, "inserted": 1, "inserted_as": InsertedAs.OWN_PASS,
        "prompt": Prompt.LONG, "deadline": 7,
    },
    step_time.equal_requests: {"batch": 4, "plan": step_time.NOBODY},
    step_time.verifying: {"plan": step_time.step_plan((5, 8)), "drafted": 4},
    speculation_setup.blocks_beside_draft: {
        "memory_bytes": 10**6, "draft_weight_bytes": 10**5, "kv_bytes_per_token": 100, "draft_kv_bytes_per_token": 10,
        "block_tokens": 16,
    },
    greedy_check.take_room: {"pool": POOL, "sequence": POOL.admit([1]), "draft_tokens": 1},
    greedy_check.example: {"draft_tokens": 4, "differs_at": 3},
    confirmed_state.plain_text: {"tokens": 9, "seed": 8},
    confirmed_state.text_through_drafts: {"tokens": 9, "seed": 8, "draft_tokens": 2},
    rejection_sampling.acceptance_probability: {"target": TARGET, "draft": ALWAYS_A, "token": 0},
    rejection_sampling.position_law: {"target": TARGET, "draft": ALWAYS_A, "rule": Rule.FROM_TARGET},
    rejection_sampling.output_law: {"target": TARGET, "draft": ALWAYS_A, "rule": Rule.FROM_TARGET},
    rejection_sampling.round_law: {"target": lambda _: TARGET, "draft": lambda _: ALWAYS_A, "draft_tokens": 2},
    rejection_sampling.text_law: {
        "target": lambda _: TARGET, "draft": lambda _: ALWAYS_A, "draft_tokens": 2, "tokens": 2,
    },
    rejection_sampling.sample_round: {
        "target": lambda _: TARGET, "draft": lambda _: ALWAYS_A, "draft_tokens": 2,
        "generator": np.random.default_rng(8),
    },
    rejection_sampling.sample_positions: {
        "target": TARGET, "draft": ALWAYS_A, "samples": 9, "seed": 8, "rule": Rule.RESIDUAL,
    },
    speculation.at_every_position: {"acceptance": 0.5, "draft_tokens": 4},
    speculation.expected_rounds: {"acceptance": (0.5,), "outputs": 9},
    speculation.plain_time: {"outputs": 9, "plain_s": 0.02},
    speculation.extra_verify_flops: {"draft_tokens": 4, "context": 2048},
    speculation.extra_verify_s: {"draft_tokens": 4, "context": 2048},
    draft_sources.passes: {"order": Order.SERIAL, "draft_tokens": 4},
    draft_sources.pass_time: {"weight_bytes": 10**9, "bytes_s": 10**11},
    draft_sources.drafting_time: {
        "order": Order.SERIAL, "draft_tokens": 4, "weight_bytes": 10**9, "bytes_s": 10**11,
    },
    dflash.recorded_rounds: {"draft_tokens": 7, "task": "short_math"},
    dflash.traced_rounds: {"draft_tokens": 7},
    dflash.delivered: {"draft_tokens": 7, "task": "short_math"},
    draft_length.s_per_output: {"acceptance": (0.5, 0.5), "round_time": ROUND, "draft_tokens": 2},
    draft_length.one_more: {"acceptance": (0.5, 0.5), "round_time": ROUND, "draft_tokens": 1},
    draft_length.next_length: {"history": [], "longest": 4, "round_time": ROUND, "window": 4},
    draft_length.draw_rounds: {
        "passages": [draft_length.Passage(9, (0.5, 0.5))], "length_after": lambda _: 2, "seed": 8,
    },
    ngram_draft.write: {"text": ngram_draft.serving_text(), "last": 2, "draft_tokens": 4, "known": 500},
    step_time.equal_requests: {"batch": 4, "plan": step_time.NOBODY},
    step_time.verifying: {"plan": step_time.step_plan((5, 8)), "drafted": 4},
    kv_compression.read_time: {"read_bytes": 10**9, "bandwidth_bytes_s": 1e12},
    kv_compression.net_saving: {"saved_bytes": 10**9, "bandwidth_bytes_s": 1e12, "conversion_s": 0.0002},
    kv_compression.compression: {
        "kv_format": quantization.Q8_0, "conversion": kv_compression.LinearTime(0.0002), "bandwidth_bytes_s": 1e12,
    },
    file_budget.file_parts: {"types": file_budget.stored_types(), "other_bytes": 10},
    file_budget.bits_per_weight: {"file_bytes": 10**11},
    file_budget.file_budget: {"variant": "Q2_K", "context": 8192},
    mapped_pages.pages_read: {"steps": [[0, 1]], "room_pages": 4, "pinned_pages": 2},
    quality.formats_changed: {"before": quality.Config.BF16_KV, "after": quality.Config.FP8_DEFAULT},
    quality.recorded_answers: {"weights": quality.Weights.BF16, "config": quality.Config.BF16_KV},
    quality.sign_test: {"better": 1, "worse": 1},
    quality.share_interval: {"share_right": 0.5, "trials": 8},
    quality.time_ratio: {"weights": quality.Weights.BF16, "document_records": 128, "concurrency": 4},
    retries.recorded_runs: {"documents": retries.Documents.KNOWN},
    retries.expected_task_time: {"first_s": 1, "wrong_share": 0.25, "retry_s": 1},
    model.weight_bytes_per_layer: {"model": model.QWEN3_8B, "bytes_per_element": 2},
    offload.bytes_of_set: {"model": model.QWEN3_8B, "part": offload.Part.LAYER, "bytes_per_element": 2},
    offload.every_nth: {"layers": 36, "every": 4},
    offload.least_step_time: {"offload": OFFLOAD, "compute_s": 0.026, "link_bytes_s": 64 * 10**9},
    offload.decode_steps: {"outputs": 256, "tokens_per_step": 3},
    offload.lowest_link: {"offload": OFFLOAD, "steps": 255, "limit_s": 7},
    offload.compressed_transfer_time: {
        "size_bytes": 10**8, "compressed_to": 0.25, "link_bytes_s": 64 * 10**9, "decompress_bytes_s": 10**11,
    },
    offload.break_even_decompression: {"link_bytes_s": 64 * 10**9, "compressed_to": 0.25},
    prefetch.split_evenly: {"step_ns": 26_260_000, "layers": 36},
    prefetch.copy_time_ns: {"set_bytes": 10**9, "link_bytes_s": 64 * 10**9},
    prefetch.prefetch: {"offload": OFFLOAD, "step_ns": 26_260_000, "link_bytes_s": 64 * 10**9},
    prefetch.is_recorded: {"requests": 4},
    prefetch.plain_step_ns: {"kind": prefetch.StepKind.DECODE, "requests": 4, "prompt_tokens": 1024},
    prefetch.hiding_link: {"offload": OFFLOAD, "step_ns": 26_260_000},
    prefetch.hiding_step_ns: {"offload": OFFLOAD, "copy_ns": 4_718_592},
    prefetch.hiding_prompt: {"offload": OFFLOAD, "link_bytes_s": 64 * 10**9, "step_time": step_time.FIT},
    prefetch.hiding_distance: {"offload": OFFLOAD, "step_ns": 26_260_000, "link_bytes_s": 64 * 10**9},
    whole_task.task_speedup: {"part": 0.5, "speedup": 4, "preparation": 0.08},
    whole_task.ceiling: {"part": 0.5, "preparation": 0.08},
    float_formats.encode_e4m3: {"values": np.ones(2, np.float32), "scale": 0.5},
    float_formats.decode_e4m3: {"codes": np.ones(2, np.uint8), "scale": 0.5},
    codecs.fp8: {"scale": 0.5},
    attention_error.attention_error: {"data": attention_error.Data.NORMAL},
    arrivals.arrival_rate: {"rate_per_s": 4},
    arrivals.even: {"rate_per_s": 4, "count": 3},
    arrivals.poisson: {"rate_per_s": 4, "count": 3, "seed": 8},
    arrivals.spaced: {"arrivals": arrivals.Arrivals.POISSON, "rate_per_s": 4, "count": 3, "seed": 8},
    arrivals.at_once: {"count": 3},
    arrivals.at_rate: {"requests": ARRIVING, "rate_per_s": 4},
    admission.time_used: {"queue_ns": 1, "prefill_ns": 2, "outputs": 3, "interval_ns": 4},
    admission.verdict: {"used_ns": 6, "left_ns": 7, "blocks": 1, "free_blocks": 2, "pool_blocks": 3},
    admission.deadline_ns: {"deadline_s": 7},
    admission.decide: {"requests": ARRIVING, "engines": (ENGINE,), "deadline_s": 7},
    overload.let_all_in: {"requests": ARRIVING, "engine": ENGINE, "deadline_s": 7},
    overload.cancel_at_deadline: {"requests": ARRIVING, "deadline_s": 7},
    overload.refuse_late: {"requests": ARRIVING, "engines": (ENGINE,), "deadline_s": 7},
    service_overload.service_engine: {"guess": service_overload.Guess.ALONE, "acceptance": (0.5,)},
    service_overload.overloaded: {
        "way": service_overload.Way.REFUSE, "rate_per_s": 4, "deadline_s": 3, "guess": service_overload.Guess.FULL,
        "arrivals": arrivals.Arrivals.EVEN, "requests": 4,
    },
    goodput.completion_throughput: {"completed": 16, "length_s": 8.0},
    goodput.goodput: {"correct": (True, False), "in_time": (True, True), "length_s": 8.0},
    goodput.energy_per_qualified: {"energy_j": 4500.0, "qualified": 7},
    goodput.gpu_time_per_qualified: {"gpu_s": 9.0, "qualified": 16},
    load_curve.simulated_window: {
        "admission": Admission.CONTINUOUS, "rate_per_s": 4.0, "requests": 4, "number": 2,
        "arrivals": arrivals.Arrivals.POISSON, "refuse_beyond_s": 3.0,
    },
    load_curve.tasks_of: {"requests": 4, "number": 2},
    service_calibration.serve: {
        "tasks": ("n128-r2",), "arrivals_ns": (0,), "admission": Admission.ONE_AT_A_TIME, "deadline_s": 3.0,
    },
    little.requests_in_system: {"rate_per_s": 4, "mean_stay_s": 0.5},
    little.mean_in_window: {"stays": [(0, 0.5)], "start_s": 0, "end_s": 1},
    little.kv_held: {"schedule": SCHEDULE, "block_tokens": 16},
    little.seen: {"schedule": SCHEDULE, "start_ns": 0, "end_ns": 10},
    efficiency.batches: {"condition": efficiency.Condition.OWN},
    efficiency.measured: {"condition": efficiency.Condition.SHARED, "batch": 16},
    efficiency.printed_mfu: {"condition": efficiency.Condition.SHARED, "batch": 16},
    efficiency.share_of_peak: {"amount": 10**12, "time_s": 0.01, "peak": 5e14},
    efficiency.prefill_flop: {"requests": 16, "new_tokens": 2048, "cached": 6144},
    efficiency.read_bound: {"read_bytes": 10**10},
    efficiency.estimated_prefill: {"flop": 10**14, "mfu": 0.5},
    efficiency.estimated_round: {"read_bytes": 10**10, "mbu": 0.5},
    efficiency.gpu_time: {"new_tokens": 2048, "outputs": 256, "prefill_rate": 16000, "decode_rate": 585},
    efficiency.read_plan: {"requests": 16, "context": 8192, "read_once": 6144},
    serving.recorded_memory: {"draft_tokens": 7},
    serving.recorded_first_token: {"draft_tokens": 7},
    serving.rounds_needed: {"outputs": 256, "outputs_per_round": 3},
    serving.verify_time: {"requests": 16, "positions": 8, "context": 8192, "mfu": 0.578},
    serving_run.rounds_of_slowest: {"draft": serving.DFLASH, "outputs": 16, "requests": 2},
    serving_run.slowest_total_s: {"pass_s": 0.003},
    flip_distance.flip: {"moved": flip_distance.Input.DEADLINE},
}  # fmt: skip
ASKS_OTHERWISE = {"lib.checks", "lib.model_types", "lib.units"}  # their own tests say what they refuse

NO_COUNTS = (-1, 2.5, 2.0, math.nan, math.inf, "2", True, None)
NO_TIMES = (-1, -1e-9, math.nan, math.inf, -math.inf, 1e300, 10**400, "2", True, None)
NO_CHOICES = ("no such choice", math.nan, 0, None)

ZERO_MAKES_NO_SENSE = (
    (allotment.wasted_slots, "block_tokens"),
    (allotment.shared_blocks, "tokens"),
    (allotment.shared_blocks, "block_tokens"),
    (allotment.allotment, "block_tokens"),
    (allotment.allotment, "requests"),
    (allotment.most_that_fit, "slots"),
    (allotment.most_unused, "block_tokens"),
    (latency.slack, "deadline_s"),
    (latency.delay_of_inserted_prefill, "tokens"),
    (latency.evenly_timed_request, "outputs"),
    (latency.evenly_timed_request, "deadline"),
    (latency.prefills_that_fit, "delay_s"),
    (memory.left_for_activations, "capacity_bytes"),
    (memory.left_for_activations, "weight_bytes"),
    (model.kv_bytes, "tokens"),
    (model.kv_bytes, "bytes_per_element"),
    (model.kv_bytes_by_kind, "tokens"),
    (model.kv_elements, "tokens"),
    (model.matrix_flops, "new_tokens"),
    (model.paged_kv_bytes, "tokens"),
    (model.paged_kv_bytes, "page_tokens"),
    (model.streamed_weight_bounds, "batch_tokens"),
    (model.weight_bytes, "bytes_per_element"),
    (reads.kv_crossover, "context"),
    (reads.reads_per_output, "batch"),
    (reads.reads_in_pieces, "pieces"),
    (scheduling.fixed_batch, "max_running"),
    (scheduling.continuous, "max_running"),
    (scheduling.chunked, "max_running"),
    (scheduling.chunked, "chunk"),
    (five_requests.pool_of, "blocks"),
    (four_requests.four_requests, "r0_outputs"),
    (four_requests.four_requests, "r1_outputs"),
    (four_requests.four_requests, "r2_prompt"),
    (four_requests.policy_of, "max_running"),
    (four_requests.policy_of, "chunk"),
    (four_requests.policy_of, "token_budget"),
    (slo.trace_grid, "max_running"),
    (shapes.padded_rows, "rows"),
    (paged_attention.paged_attend, "length"),
    (block_history.play_history, "block_tokens"),
    (broken_engine.pool_with, "blocks"),
    (shortest_script.search, "most_events"),
    (copy_on_write.write_in_branches, "tail_tokens"),
    (block_reuse.story, "sharers"),
    (cancellation.cancel, "step_time"),
    (cancellation.cancel, "in_flight"),
    (cancellation.cancel, "needs_blocks"),
    (state_cache.cached_text, "spacing"),
    (state_cache.mean_between_snapshots, "spacing"),
    (window_state.window_reach, "window"),
    (window_state.recover, "new_tokens"),
    (window_state.long_lived_share, "shrink"),
    (window_state.recorded_shrink, "context_tokens"),
    (context_edit.reusable_tokens, "tokens"),
    (context_edit.append, "history"),
    (context_edit.append, "block_tokens"),
    (context_edit.rewrite, "history"),
    (context_edit.summarise, "summary"),
    (context_edit.summarise, "history"),
    (step_time.device, "mfu"),
    (step_time.device, "mbu"),
    (step_time.tokens_that_fit, "interval_ns"),
    (agent_replay.blocks_in, "block_tokens"),
    (agent_replay.found_if_all_lives, "block_tokens"),
    (prefix_tree.prefix_tree, "rounds"),
    (prefix_tree.prefix_tree, "block_tokens"),
    (agent_replay.first_token_ns, "tokens"),
    (prefix_value.recompute_time, "tokens"),
    (prefix_value.recompute_time, "efficiency"),
    (prefix_value.transfer_time, "link_bytes_s"),
    (prefix_value.prefix_of, "tokens"),
    (prefix_value.prefix_of, "link_bytes_s"),
    (prefix_value.prefix_of, "efficiency"),
    (design_problem.timed_request, "outputs"),
    (design_problem.timed_request, "deadline"),
    (speculation_setup.blocks_beside_draft, "memory_bytes"),
    (speculation_setup.blocks_beside_draft, "kv_bytes_per_token"),
    (speculation_setup.blocks_beside_draft, "block_tokens"),
    (greedy_check.take_room, "draft_tokens"),
    (greedy_check.example, "draft_tokens"),
    (greedy_check.example, "differs_at"),
    (confirmed_state.plain_text, "tokens"),
    (confirmed_state.text_through_drafts, "tokens"),
    (confirmed_state.text_through_drafts, "draft_tokens"),
    (rejection_sampling.round_law, "draft_tokens"),
    (rejection_sampling.text_law, "draft_tokens"),
    (rejection_sampling.text_law, "tokens"),
    (rejection_sampling.sample_round, "draft_tokens"),
    (rejection_sampling.sample_positions, "samples"),
    (speculation.at_every_position, "draft_tokens"),
    (speculation.expected_rounds, "outputs"),
    (speculation.plain_time, "outputs"),
    (speculation.extra_verify_s, "draft_tokens"),
    (draft_sources.passes, "draft_tokens"),
    (draft_sources.pass_time, "weight_bytes"),
    (draft_sources.pass_time, "bytes_s"),
    (draft_length.s_per_output, "draft_tokens"),
    (draft_length.one_more, "draft_tokens"),
    (draft_length.next_length, "longest"),
    (draft_length.next_length, "window"),
    (ngram_draft.write, "last"),
    (ngram_draft.write, "draft_tokens"),
    (ngram_draft.write, "known"),
    (kv_compression.read_time, "bandwidth_bytes_s"),
    (kv_compression.net_saving, "bandwidth_bytes_s"),
    (kv_compression.compression, "bandwidth_bytes_s"),
    (file_budget.file_budget, "context"),
    (mapped_pages.pages_read, "room_pages"),
    (quality.share_interval, "trials"),
    (model.weight_bytes_per_layer, "bytes_per_element"),
    (offload.every_nth, "layers"),
    (offload.every_nth, "every"),
    (offload.least_step_time, "link_bytes_s"),
    (offload.decode_steps, "outputs"),
    (offload.decode_steps, "tokens_per_step"),
    (offload.lowest_link, "limit_s"),
    (offload.compressed_transfer_time, "compressed_to"),
    (offload.compressed_transfer_time, "decompress_bytes_s"),
    (offload.break_even_decompression, "compressed_to"),
    (prefetch.split_evenly, "step_ns"),
    (prefetch.copy_time_ns, "set_bytes"),
    (prefetch.copy_time_ns, "link_bytes_s"),
    (prefetch.plain_step_ns, "requests"),
    (prefetch.plain_step_ns, "prompt_tokens"),
    (prefetch.hiding_link, "step_ns"),
    (prefetch.hiding_step_ns, "copy_ns"),
    (prefetch.hiding_prompt, "link_bytes_s"),
    (whole_task.task_speedup, "speedup"),
    (efficiency.measured, "batch"),
    (efficiency.share_of_peak, "time_s"),
    (efficiency.share_of_peak, "peak"),
    (efficiency.prefill_flop, "requests"),
    (efficiency.prefill_flop, "new_tokens"),
    (efficiency.estimated_prefill, "mfu"),
    (efficiency.estimated_round, "mbu"),
    (efficiency.gpu_time, "new_tokens"),
    (efficiency.gpu_time, "outputs"),
    (efficiency.gpu_time, "prefill_rate"),
    (efficiency.gpu_time, "decode_rate"),
    (efficiency.read_plan, "requests"),
    (serving.rounds_needed, "outputs"),
    (serving.rounds_needed, "outputs_per_round"),
    (serving.verify_time, "requests"),
    (serving.verify_time, "positions"),
    (serving.verify_time, "mfu"),
    (serving_run.rounds_of_slowest, "outputs"),
    (serving_run.rounds_of_slowest, "requests"),
    (float_formats.encode_e4m3, "scale"),
    (float_formats.decode_e4m3, "scale"),
    (codecs.fp8, "scale"),
    (little.mean_in_window, "end_s"),
    (little.kv_held, "block_tokens"),
    (little.seen, "end_ns"),
    (arrivals.arrival_rate, "rate_per_s"),
    (arrivals.even, "rate_per_s"),
    (arrivals.even, "count"),
    (arrivals.poisson, "rate_per_s"),
    (arrivals.poisson, "count"),
    (arrivals.at_once, "count"),
    (arrivals.at_rate, "rate_per_s"),
    (admission.time_used, "outputs"),
    (admission.verdict, "left_ns"),
    (admission.deadline_ns, "deadline_s"),
    (admission.decide, "deadline_s"),
    (overload.let_all_in, "deadline_s"),
    (overload.cancel_at_deadline, "deadline_s"),
    (overload.refuse_late, "deadline_s"),
    (service_overload.overloaded, "rate_per_s"),
    (service_overload.overloaded, "deadline_s"),
    (service_overload.overloaded, "requests"),
    (goodput.completion_throughput, "length_s"),
    (goodput.goodput, "length_s"),
    (goodput.energy_per_qualified, "qualified"),
    (goodput.gpu_time_per_qualified, "qualified"),
)


def public_functions() -> Iterator[Callable[..., Any]]:
    for found in pkgutil.walk_packages(lib.__path__, "lib."):
        module = importlib.import_module(found.name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ == module.__name__ and not name.startswith("_"):
                yield function


def asked_of(function: Callable[..., Any]) -> dict[str, tuple[object, ...]]:
    """What each parameter must refuse, by its type."""
    hints = get_type_hints(function)
    refused: dict[str, tuple[object, ...]] = {}
    for name in inspect.signature(function).parameters:
        if hints[name] is int:
            refused[name] = NO_COUNTS
        elif hints[name] is float:
            refused[name] = NO_TIMES
        elif inspect.isclass(hints[name]) and issubclass(hints[name], StrEnum):
            refused[name] = NO_CHOICES
    return refused


WRONG = [
    (function, name, value) for function in RIGHT for name, values in asked_of(function).items() for value in values
]
WRONG += [(function, name, 0) for function, name in ZERO_MAKES_NO_SENSE]


def named(value: object) -> str:
    return value.__qualname__ if inspect.isfunction(value) else repr(value)[:20]


@pytest.mark.parametrize("function", RIGHT, ids=named)
def test_the_right_call_is_right(function: Callable[..., Any]) -> None:
    function(**RIGHT[function])


@pytest.mark.parametrize(("function", "parameter", "value"), WRONG, ids=named)
def test_a_wrong_value_is_refused_by_name(function: Callable[..., Any], parameter: str, value: object) -> None:
    with pytest.raises(InputError) as refusal:
        function(**RIGHT[function] | {parameter: value})
    assert refusal.value.parameter == parameter
    assert refusal.value.value is value
    assert refusal.value.allowed


def test_no_function_is_forgotten() -> None:
    asking = {
        function for function in public_functions() if asked_of(function) and function.__module__ not in ASKS_OTHERWISE
    }
    missing = sorted(named(function) for function in asking - RIGHT.keys())
    assert not missing, f"add a right call of each to RIGHT: {', '.join(missing)}"


@pytest.mark.parametrize("intervals", [(0.02, math.nan), (-0.01,), (0.02, "x"), (None,), (True,)], ids=repr)
def test_one_wrong_interval_refuses_the_request(intervals: Any) -> None:
    with pytest.raises(InputError, match=r"^interval.* is .*; allowed: a time from 0 s to 1e9 s$"):
        latency.request_time(0.1, intervals)


def test_more_than_one_prefill_an_interval_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^inserted is 10; allowed: at most 9, one in each interval between 10 outputs$"
    ):
        latency.evenly_timed_request(queue=0, prefill=0.1, interval=0.02, outputs=10, deadline=7, inserted=10)


def test_too_many_outputs_are_refused_before_any_is_made() -> None:
    with pytest.raises(InputError, match=r"^outputs is 1000000000000; allowed: a whole number from 1 to 100,000$"):
        latency.evenly_timed_request(queue=0, prefill=0.1, interval=0.02, outputs=10**12, deadline=7)


@pytest.mark.parametrize("long", [{"queue": 6e8, "prefill": 6e8}, {"interval": 2e8}, {"delay": 6e8}], ids=repr)
def test_a_request_longer_than_any_time_is_refused_when_it_is_made(long: dict[str, float]) -> None:
    right = RIGHT[latency.evenly_timed_request] | long
    with pytest.raises(InputError, match=r"allowed: a time from 0 s to 1e9 s$"):
        latency.evenly_timed_request(**right)


def test_a_delay_of_next_to_nothing_fits_often_and_breaks_nothing() -> None:
    assert latency.prefills_that_fit(REQUEST, 5e-324) > 10**15


def test_a_prompt_too_long_for_any_time_is_refused() -> None:
    with pytest.raises(InputError, match=r"^tokens is "):
        latency.delay_of_inserted_prefill(10**200, 0.1, InsertedAs.INSIDE_STEP)


def test_the_memory_that_is_too_much_is_named() -> None:
    with pytest.raises(InputError, match=r"^kv_pool_bytes is 17; allowed: .*\b16\b"):
        memory.left_for_activations(capacity_bytes=32, weight_bytes=16, kv_pool_bytes=17)
    with pytest.raises(InputError, match=r"^weight_bytes is 33; allowed: .*\b32\b"):
        memory.left_for_activations(capacity_bytes=32, weight_bytes=33, kv_pool_bytes=0)
