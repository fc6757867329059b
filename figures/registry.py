"""Which figures there are: number, name, section, the function that draws each, and how it is explored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from matplotlib.figure import Figure

from figures.admissions import ADMISSION_EXPLORATION, admission
from figures.agent_rounds import AGENT_ROUNDS_EXPLORATION, agent_rounds
from figures.allotments import BLOCKS_EXPLORATION, MAXIMUM_EXPLORATION, SHARING_EXPLORATION, slots_of_four
from figures.answer_grids import (
    BF16_KV_EXPLORATION,
    FP8_DEFAULT_EXPLORATION,
    FP8_KV_BF16_Q_EXPLORATION,
    Compare,
    answer_grid,
)
from figures.atlases import ATLAS_EXPLORATION, atlas_of_errors
from figures.bills import BILL_EXPLORATION, the_bill
from figures.block_maps import COPY_EXPLORATION, TABLE_EXPLORATION, block_table, write_to_tails
from figures.broken import BROKEN_EXPLORATION, broken_engine
from figures.capacity import FITS_EXPLORATION, what_fits
from figures.chunks import CHUNKS_EXPLORATION, chunk_times
from figures.configurations import CONFIGURATIONS_EXPLORATION, configurations
from figures.context_edits import EDITS_EXPLORATION, context_edits
from figures.curves import READS_EXPLORATION, STORE_EXPLORATION, reads_per_output, separate_weight_store
from figures.draft_loads import LOAD_EXPLORATION, speculation_under_load
from figures.exploration import Exploration
from figures.file_budgets import FILE_BESIDE_KV_EXPLORATION, file_beside_kv
from figures.greedy_checks import GREEDY_EXPLORATION, greedy_check
from figures.grids import ROWS_EXPLORATION, rows_and_state
from figures.group_formats import GROUP_FORMATS_EXPLORATION, group_formats
from figures.in_system import SYSTEM_EXPLORATION, requests_in_system
from figures.load_curves import LOAD_CURVE_EXPLORATION, load_curve
from figures.offloads import COPY_TIME_EXPLORATION, OFFLOAD_MEMORY_EXPLORATION, copy_time, offload_memory
from figures.own_engine import ENGINE_EXPLORATION, your_engine
from figures.pairs import BEHIND_CONTEXT_EXPLORATION, FIRST_CHUNK_EXPLORATION, pairs_of_chunk
from figures.pools import POOL_SIZE_EXPLORATION, pool_size
from figures.prefetches import COPY_AND_COMPUTE_EXPLORATION, copy_and_compute
from figures.prefix_trees import TREE_EXPLORATION, agent_prefix_tree
from figures.prefix_values import PREFIX_VALUE_EXPLORATION, prefix_value
from figures.query_costs import QUERY_COST_EXPLORATION, query_cost
from figures.recovery import RECOVERY_EXPLORATION, recovery_paths
from figures.rejections import DRAFT_A_EXPLORATION, DRAFT_B_EXPLORATION, draft_and_target
from figures.releases import CANCEL_EXPLORATION, COUNTS_EXPLORATION, cancel_and_release, reference_counts
from figures.schedules import (
    CHUNKED_EXPLORATION,
    CONTINUOUS_EXPLORATION,
    FIXED_EXPLORATION,
    schedule_of_four,
)
from figures.scrubber import SCRUBBER_EXPLORATION, run_scrubber
from figures.service_windows import COMPLETION_EXPLORATION, GOODPUT_EXPLORATION, Counted, service_windows
from figures.snapshots import SNAPSHOTS_EXPLORATION, resume_from_snapshot
from figures.steps import BUDGET_EXPLORATION, ROWS_EXECUTED_EXPLORATION, rows_executed, tokens_in_interval
from figures.task_speedups import TASK_SPEEDUP_EXPLORATION, task_speedups
from figures.timelines import TIMELINE_EXPLORATION, request_timeline
from lib.allotment import COMMON_TOKENS, Allot
from lib.attention import EXAMPLE_CONTEXT
from lib.checks import InputError
from lib.four_requests import Batching
from lib.quality import Config
from lib.rejection_sampling import ALWAYS_B, A


@dataclass(frozen=True)
class Entry:
    """One figure. `arguments` set it apart in its family; `may_overlap` pairs texts, with the reason.

    A figure that the book does not have has no number.
    """

    number: str | None
    slug: str
    section: str
    draw: Callable[..., Figure]
    exploration: Exploration
    arguments: Mapping[str, Any] = field(default_factory=dict)
    may_overlap: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What a reader calls it: its number in the book, or else its name."""
        return f"Figure {self.number}" if self.number else self.slug.replace("-", " ").capitalize()

    def figure(self, **settings: Any) -> Figure:
        """The figure with these settings; without any, the book's figure."""
        return self.draw(**(dict(self.arguments) | settings))


FIGURES = (
    Entry("8-1", "rows-and-state", "8.1.1", rows_and_state, ROWS_EXPLORATION),
    Entry("8-2", "request-timeline", "8.1.1", request_timeline, TIMELINE_EXPLORATION),
    Entry(None, "what-fits", "8.1.2", what_fits, FITS_EXPLORATION),
    Entry("8-3", "reads-per-output", "8.2.1", reads_per_output, READS_EXPLORATION),
    Entry("8-4", "separate-weight-store", "8.2.1", separate_weight_store, STORE_EXPLORATION),
    Entry(
        "8-5", "fixed-batch", "8.2.2", schedule_of_four, FIXED_EXPLORATION,
        {"slug": "fixed-batch", "policy": Batching.FIXED},
    ),
    Entry(
        "8-6", "continuous-batching", "8.2.2", schedule_of_four, CONTINUOUS_EXPLORATION,
        {"slug": "continuous-batching", "policy": Batching.CONTINUOUS},
    ),
    Entry(
        "8-7", "chunked-prefill", "8.2.2", schedule_of_four, CHUNKED_EXPLORATION,
        {"slug": "chunked-prefill", "policy": Batching.CHUNKED},
    ),
    Entry(None, "the-bill", "8.2.2", the_bill, BILL_EXPLORATION),
    Entry("8-8", "pairs-first-chunk", "8.2.3", pairs_of_chunk, FIRST_CHUNK_EXPLORATION),
    Entry(
        "8-9", "pairs-behind-context", "8.2.3", pairs_of_chunk, BEHIND_CONTEXT_EXPLORATION,
        {"slug": "pairs-behind-context", "context": EXAMPLE_CONTEXT},
    ),
    Entry(None, "chunk-times", "8.2.3", chunk_times, CHUNKS_EXPLORATION),
    Entry(None, "padded-rows", "8.2.4", rows_executed, ROWS_EXECUTED_EXPLORATION),
    Entry(None, "interval-to-budget", "8.2.4", tokens_in_interval, BUDGET_EXPLORATION),
    Entry("8-10", "block-table", "8.3.1", block_table, TABLE_EXPLORATION),
    Entry("8-11", "reserved-maximum", "8.3.1", slots_of_four, MAXIMUM_EXPLORATION),
    Entry(
        "8-12", "paged-allotment", "8.3.1", slots_of_four, BLOCKS_EXPLORATION,
        {"slug": "paged-allotment", "allot": Allot.IN_BLOCKS},
    ),
    Entry(
        "8-13", "shared-prefix-blocks", "8.3.1", slots_of_four, SHARING_EXPLORATION,
        {"slug": "shared-prefix-blocks", "allot": Allot.IN_BLOCKS, "common_tokens": COMMON_TOKENS},
    ),
    Entry("8-14", "reference-counts", "8.3.2", reference_counts, COUNTS_EXPLORATION),
    Entry("8-15", "copy-on-write", "8.3.2", write_to_tails, COPY_EXPLORATION),
    Entry("8-16", "cancel-and-release", "8.3.2", cancel_and_release, CANCEL_EXPLORATION),
    Entry(None, "pool-size", "8.3.2", pool_size, POOL_SIZE_EXPLORATION),
    Entry(None, "run-scrubber", "8.3.2", run_scrubber, SCRUBBER_EXPLORATION),
    Entry(None, "broken-engine", "8.3.2", broken_engine, BROKEN_EXPLORATION),
    Entry("8-17", "prefix-tree", "8.3.3", agent_prefix_tree, TREE_EXPLORATION),
    Entry("8-18", "agent-rounds", "8.3.3", agent_rounds, AGENT_ROUNDS_EXPLORATION),
    Entry("8-19", "snapshot-resume", "8.3.3", resume_from_snapshot, SNAPSHOTS_EXPLORATION),
    Entry("8-20", "context-edits", "8.3.3", context_edits, EDITS_EXPLORATION),
    Entry("8-21", "recovery-paths", "8.3.3", recovery_paths, RECOVERY_EXPLORATION),
    Entry("8-22", "prefix-value", "8.3.4", prefix_value, PREFIX_VALUE_EXPLORATION),
    Entry(None, "file-in-memory", "8.4.1", file_beside_kv, FILE_BESIDE_KV_EXPLORATION),
    Entry("8-23", "group-formats", "8.4.2", group_formats, GROUP_FORMATS_EXPLORATION),
    Entry("8-24", "offload-memory", "8.4.3", offload_memory, OFFLOAD_MEMORY_EXPLORATION),
    Entry("8-25", "copy-time", "8.4.3", copy_time, COPY_TIME_EXPLORATION),
    Entry(None, "copy-and-compute", "8.4.3", copy_and_compute, COPY_AND_COMPUTE_EXPLORATION),
    Entry("8-26", "bf16-kv-answers", "8.4.4", answer_grid, BF16_KV_EXPLORATION),
    Entry(
        "8-27", "fp8-default-answers", "8.4.4", answer_grid, FP8_DEFAULT_EXPLORATION,
        {"slug": "fp8-default-answers", "config": Config.FP8_DEFAULT, "compare": Compare.BF16_KV},
    ),
    Entry(
        "8-28", "fp8-kv-bf16-q-answers", "8.4.4", answer_grid, FP8_KV_BF16_Q_EXPLORATION,
        {"slug": "fp8-kv-bf16-q-answers", "config": Config.FP8_KV_BF16_Q, "compare": Compare.BF16_KV},
    ),
    Entry("8-29", "greedy-check", "8.5.1", greedy_check, GREEDY_EXPLORATION),
    Entry("8-30", "draft-always-a", "8.5.1", draft_and_target, DRAFT_A_EXPLORATION),
    Entry(
        "8-31", "draft-always-b", "8.5.1", draft_and_target, DRAFT_B_EXPLORATION,
        {"slug": "draft-always-b", "q_a": float(ALWAYS_B[A])},
    ),
    Entry("8-32", "query-cost", "8.5.2", query_cost, QUERY_COST_EXPLORATION),
    Entry(None, "speculation-under-load", "8.5.4", speculation_under_load, LOAD_EXPLORATION),
    Entry(None, "requests-in-system", "8.6.1", requests_in_system, SYSTEM_EXPLORATION),
    Entry(None, "admission", "8.6.1", admission, ADMISSION_EXPLORATION),
    Entry("8-33", "completion-throughput", "8.6.2", service_windows, COMPLETION_EXPLORATION),
    Entry(
        "8-34", "goodput", "8.6.2", service_windows, GOODPUT_EXPLORATION, {"slug": "goodput", "counted": Counted.GOOD}
    ),
    Entry(None, "load-curve", "8.6.2", load_curve, LOAD_CURVE_EXPLORATION),
    Entry(None, "your-engine", "8.6.2", your_engine, ENGINE_EXPLORATION),
    Entry("8-35", "configurations", "8.6.3", configurations, CONFIGURATIONS_EXPLORATION),
    Entry("8-36", "task-speedup", "8.6.3", task_speedups, TASK_SPEEDUP_EXPLORATION),
    Entry(None, "atlas", "8.7", atlas_of_errors, ATLAS_EXPLORATION),
)  # fmt: skip


def entry(name: str) -> Entry:
    """The figure of this slug or number; raises InputError, which lists the slugs, for any other name."""
    for candidate in FIGURES:
        if name and name in (candidate.slug, candidate.number):
            return candidate
    raise InputError(
        "figure", name, "one of " + ", ".join(f"{known.slug} ({known.number or known.section})" for known in FIGURES)
    )
