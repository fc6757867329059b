"""Ways to go on with windowed states: token counts against plain arithmetic, exactness against windows that run."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lib.checks import InputError
from lib.records import record
from lib.window_state import (
    DEEPSEEK_V41,
    Condition,
    Lookup,
    RecoveryPath,
    WindowedModel,
    long_lived_share,
    recorded_shrink,
    recover,
    window_reach,
)

HIT, MISS = Lookup.HIT, Lookup.MISS
prefixes, news, lookups = st.integers(0, 9000), st.integers(1, 5000), st.sampled_from(Lookup)
models = st.builds(WindowedModel, st.integers(1, 30), st.integers(1, 30), st.integers(1, 300), st.just(528))
Array = NDArray[np.float64]


def test_the_three_paths_of_the_chapter() -> None:
    ways = [recover(8192, 1024, *found) for found in ((HIT, HIT), (HIT, MISS), (MISS, MISS))]
    assert [way.path for way in ways] == list(RecoveryPath)
    assert [way.encoder_tokens for way in ways] == [1024, 128 + 1024, 8192 + 1024]
    assert [way.rerun_tokens for way in ways] == [0, 128, 8192]
    assert [way.decoder_tokens for way in ways] == [128, 128, 128]
    assert [way.encoder_is_exact for way in ways] == [True, False, True]
    assert not any(way.decoder_is_exact for way in ways)


def test_without_global_kv_the_windows_do_not_matter() -> None:
    assert recover(8192, 1024, MISS, HIT) == recover(8192, 1024, MISS, MISS)


@pytest.mark.parametrize(
    ("prefix", "rerun", "is_exact"), [(0, 0, True), (64, 64, True), (128, 128, True), (129, 128, False)]
)
def test_a_short_prefix_is_replayed_whole_and_so_exactly(prefix: int, rerun: int, is_exact: bool) -> None:
    way = recover(prefix, 32, HIT, MISS)
    assert (way.rerun_tokens, way.encoder_is_exact) == (rerun, is_exact)
    assert way.decoder_tokens == min(128, prefix + 32)
    assert way.decoder_is_exact == (prefix + 32 <= 128)


@given(prefixes, news, lookups, lookups, models)
def test_the_decoder_replays_a_window_whatever_is_found(
    prefix: int, new: int, global_kv: Lookup, window_state: Lookup, model: WindowedModel
) -> None:
    way = recover(prefix, new, global_kv, window_state, model)
    assert way.decoder_tokens == min(model.window, prefix + new)
    assert way.encoder_tokens == way.rerun_tokens + new
    assert new <= way.encoder_tokens <= prefix + new
    assert way.encoder_is_exact or not way.decoder_is_exact, "the decoder works on what the encoder gives"
    assert way.encoder_is_exact or way.path is RecoveryPath.REPLAY


@given(prefixes, news, models)
def test_more_found_never_means_more_to_run(prefix: int, new: int, model: WindowedModel) -> None:
    tokens = [recover(prefix, new, *found, model).encoder_tokens for found in ((HIT, HIT), (HIT, MISS), (MISS, MISS))]
    assert tokens == sorted(tokens)


@pytest.mark.parametrize("condition", sorted(set(Condition) - {Condition.TOKENS_AT_HAND}))
def test_a_state_of_another_run_counts_as_missed(condition: Condition) -> None:
    assert recover(8192, 1024, HIT, HIT, broken=[condition]) == recover(8192, 1024, MISS, MISS)


def test_lost_tokens_matter_only_where_they_would_run_again() -> None:
    gone = {Condition.TOKENS_AT_HAND}
    assert recover(8192, 1024, HIT, HIT, broken=gone) == recover(8192, 1024, HIT, HIT)
    assert recover(0, 1024, MISS, MISS, broken=gone).encoder_tokens == 1024
    for found in ((HIT, MISS), (MISS, HIT), (MISS, MISS)):
        with pytest.raises(InputError, match=r"^broken is "):
            recover(8192, 1024, *found, broken=gone)
    with pytest.raises(InputError, match=r"^broken is "):
        recover(8192, 1024, HIT, HIT, broken=gone | {Condition.SAME_VERSION})


# Windows that run: layers of attention over the last few inputs, with a global part that the cache still has.


def layer(inputs: Array, layer_at: int, window: int, global_part: Array) -> Array:
    """Each output mixes the last `window` inputs, its own among them, by their likeness, and adds the global part."""
    turn = np.random.default_rng(layer_at).normal(size=(inputs.shape[1], inputs.shape[1])) / 2
    outputs = np.empty_like(inputs)
    for place in range(len(inputs)):
        seen = inputs[max(0, place - window + 1) : place + 1]
        weights = np.exp(seen @ turn @ inputs[place])
        outputs[place] = np.tanh(inputs[place] + weights @ seen / weights.sum() + global_part[place])
    return outputs


def states(tokens: int, start: int, layers: int, window: int) -> list[Array]:
    """The inputs of each layer, and the outputs of the last, of a run that starts at a token of the prompt."""
    draw = np.random.default_rng(8)
    inputs, global_part = draw.normal(size=(tokens, 3))[start:], draw.normal(size=(tokens, 3))[start:]
    run = [inputs]
    for each in range(layers):
        run.append(layer(run[-1], each, window, global_part))
    return run


def is_same(one: list[Array], other: list[Array], last: int) -> bool:
    """Whether two runs agree in their last so many tokens, in each layer."""
    return not last or all(
        np.allclose(a[-last:], b[-last:], rtol=0, atol=1e-12) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize(("layers", "window"), list(product((1, 2, 3), (1, 2, 3, 4))))
def test_a_replay_is_exact_once_it_covers_what_windows_reach(layers: int, window: int) -> None:
    prefix = 14
    whole = states(prefix, 0, layers, window)[:-1]
    for replay in range(prefix + 1):
        part = states(prefix, prefix - replay, layers, window)[:-1]
        if replay >= window - 1:  # the tokens that the next one sees must be there at all
            is_exact = replay >= min(prefix, window_reach(layers, window))
            assert is_same(whole, part, window - 1) == is_exact


@pytest.mark.parametrize(("layers", "window", "prefix"), list(product((1, 2, 3), (1, 2, 3, 4), (0, 1, 3, 4, 12))))
def test_recovery_says_of_the_encoder_what_its_windows_do(layers: int, window: int, prefix: int) -> None:
    way = recover(prefix, 2, HIT, MISS, WindowedModel(layers, 1, window, 528))
    whole = states(prefix, 0, layers, window)[:-1]
    part = states(prefix, prefix - way.rerun_tokens, layers, window)[:-1]
    assert is_same(whole, part, min(window - 1, prefix)) == way.encoder_is_exact


def test_what_new_tokens_give_depends_on_where_the_replay_started() -> None:
    new, layers, window = 2, 3, 3
    outputs = {start: states(16, start, layers, window)[-1][-new:] for start in (0, 8, 11, 12)}
    assert np.array_equal(outputs[0], outputs[8]), "14 - 3 x 2 = 8: all that the windows reach"
    assert not np.allclose(outputs[0], outputs[11], rtol=0, atol=1e-9)
    assert not np.allclose(outputs[11], outputs[12], rtol=0, atol=1e-9)


def test_a_stack_reaches_further_than_one_window() -> None:
    assert window_reach(20, 128) == 2540
    assert window_reach(1, 128) == 127
    assert window_reach(40, 1) == 0


def test_the_resident_windows_are_the_recorded_bytes_whatever_the_text() -> None:
    rows = record("deepseek_state").where(model="deepseek_v4.1")
    (local,) = {row["local_window_bytes"] for row in rows}
    assert DEEPSEEK_V41.resident_layers == 40
    assert DEEPSEEK_V41.resident_bytes == local == 2_703_360


@pytest.mark.parametrize(
    "row", record("deepseek_state").rows, ids=lambda row: f"{row['model']}-{row['context_tokens']}"
)
def test_the_recorded_bytes_add_up_and_grow_with_the_text(row: Any) -> None:
    assert row["global_history_bytes"] + row["local_window_bytes"] == row["total_bytes"]
    base = record("deepseek_state").one(model=row["model"], context_tokens=8192)
    assert row["global_history_bytes"] * 8192 == base["global_history_bytes"] * row["context_tokens"]


def test_what_lasts_is_an_eighth_or_a_little_more() -> None:
    assert long_lived_share() == 1 / 8
    assert long_lived_share(shrink=3.95) == pytest.approx(0.1266, abs=5e-5)
    assert recorded_shrink(8192) == pytest.approx(3.95, abs=0.005)
    assert recorded_shrink(1048576) == recorded_shrink(8192)


@given(st.floats(0, 1), st.floats(1, 1000))
def test_what_lasts_is_never_more_than_before(share: float, shrink: float) -> None:
    assert 0 <= long_lived_share(share, shrink) <= 1
    assert long_lived_share(share, shrink) * shrink == pytest.approx(1 - share)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"new_tokens": 0}, "new_tokens is 0"),
        ({"prefix_tokens": -1}, "prefix_tokens is -1"),
        ({"global_kv": "perhaps"}, "global_kv is 'perhaps'"),
        ({"window_state": None}, "window_state is None"),
        ({"broken": ["the moon is full"]}, "broken is 'the moon is full'"),
    ],
)
def test_what_makes_no_sense_is_named(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError) as refusal:
        recover(**{"prefix_tokens": 10, "new_tokens": 1, "global_kv": HIT, "window_state": HIT} | wrong)
    assert str(refusal.value).startswith(named)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: WindowedModel(0, 20, 128, 528), "encoder_layers is 0"),
        (lambda: WindowedModel(20, 20, 0, 528), "window is 0"),
        (lambda: WindowedModel(20, 20, 128, 0), "bytes_per_token is 0"),
        (lambda: long_lived_share(window_share=1.5), "window_share is 1.5; allowed: a share from 0 to 1"),
        (lambda: long_lived_share(shrink=0.5), "shrink is 0.5"),
        (lambda: recorded_shrink(4096), "context_tokens is 4096; allowed: one of '8192', '131072'"),
    ],
)
def test_what_makes_no_sense_elsewhere_is_named(call: Any, named: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert str(refusal.value).startswith(named)
