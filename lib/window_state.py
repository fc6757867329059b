"""How a model of an encoder and a decoder with local windows, DeepSeek V4.1, goes on behind a prefix that it has seen.

Global KV lasts from turn to turn. The windows of the encoder are kept for a while in host memory, those of the decoder
for one turn only. So the encoder has three ways to go on, and the decoder replays the end of the prompt in each.
Source: section 8.3.3, figure 8-21.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from lib.checks import InputError, finite, keep_whole, one_of, whole
from lib.records import record

MOST_TOKENS, MOST_LAYERS, MOST_SHRINK = 2**24, 2**12, 1000


class Lookup(StrEnum):
    """What the cache says when it is asked for a state of the prefix."""

    HIT = "hit"
    MISS = "missed"


class RecoveryPath(StrEnum):
    """How the encoder gets the state of the prefix."""

    GO_ON = "goes on"
    REPLAY = "replays"
    RECOMPUTE = "computes anew"


class Condition(StrEnum):
    """What has to hold for a state of the prefix to be of use."""

    TOKENS_AT_HAND = "the tokens of the prefix, or what stands for them as input, can be had"
    SAME_VERSION = "the model has the same version"
    SAME_POSITIONS = "the tokens have the same positions"
    SAME_INPUTS = "the inputs are the same"


def window_reach(layers: int, window: int) -> int:
    """How many tokens back the outputs of stacked windowed layers depend on their input: layers x (window - 1).

    Each layer sees a token and the `window - 1` before it; the next layer sees those that these have seen.
    Source: section 8.3.3.
    """
    span = whole("window", window, at_least=1, at_most=MOST_TOKENS)
    return whole("layers", layers, at_most=MOST_LAYERS) * (span - 1)


@dataclass(frozen=True)
class WindowedModel:
    """Windowed layers of encoder and decoder, the tokens that each sees, and the bytes it keeps of each of them.

    A token is itself in its window. Sizes are checked: raises InputError.
    """

    encoder_layers: int
    decoder_layers: int
    window: int
    bytes_per_token: int

    def __post_init__(self) -> None:
        keep_whole(self, MOST_LAYERS, encoder_layers=1, decoder_layers=1)
        keep_whole(self, MOST_TOKENS, window=1, bytes_per_token=1)

    @property
    def resident_layers(self) -> int:
        """Layers whose windows a card holds while a request generates."""
        return self.encoder_layers + self.decoder_layers

    @property
    def resident_bytes(self) -> int:
        """Bytes of the full windows of one request during its turn, however long its text is."""
        return self.resident_layers * self.window * self.bytes_per_token


# 40 layers have windows during a turn, 20 of them in the decoder: the others are the encoder's. The bytes of a token
# are concluded from the record deepseek_state.
DEEPSEEK_V41 = WindowedModel(encoder_layers=20, decoder_layers=20, window=128, bytes_per_token=528)


@dataclass(frozen=True)
class Recovery:
    """What runs before the first decode step: tokens of the prefix once more, all of the encoder, all of the decoder.

    A state is exact if it is what a run over the whole prompt would have left, and approximate otherwise; one that was
    kept counts as exact.
    """

    path: RecoveryPath
    rerun_tokens: int
    encoder_tokens: int
    decoder_tokens: int
    encoder_is_exact: bool
    decoder_is_exact: bool


def recover(
    prefix_tokens: int,
    new_tokens: int,
    global_kv: Lookup,
    window_state: Lookup,
    model: WindowedModel = DEEPSEEK_V41,
    broken: Collection[Condition] = (),
) -> Recovery:
    """How a request goes on with new tokens behind a prefix, from what of it is found in the cache.

    A state of another version, other positions or other inputs counts as missed. A replay starts at a token that has
    lost what came before it: its windows are exact only if it covers the prefix or all that windows reach. What the
    encoder computes from approximate windows, new global KV among it, then depends on where the replay started.
    Raises InputError for no new token, and where the prefix has to run again and its tokens are gone.
    Source: section 8.3.3, figure 8-21.
    """
    prefix = whole("prefix_tokens", prefix_tokens, at_most=MOST_TOKENS)
    new = whole("new_tokens", new_tokens, at_least=1, at_most=MOST_TOKENS)
    failed = {one_of("broken", condition, Condition) for condition in broken}
    path = _path(one_of("global_kv", global_kv, Lookup), one_of("window_state", window_state, Lookup), failed)
    rerun = {RecoveryPath.GO_ON: 0, RecoveryPath.REPLAY: min(model.window, prefix), RecoveryPath.RECOMPUTE: prefix}[
        path
    ]
    if rerun and Condition.TOKENS_AT_HAND in failed:
        raise InputError("broken", broken, "no lost tokens where some of the prefix have to run again")
    replayed = min(model.window, prefix + new)
    seen_by_encoder = min(prefix, window_reach(model.encoder_layers, model.window))
    seen_by_decoder = min(prefix + new, window_reach(model.decoder_layers, model.window))
    is_exact = path is RecoveryPath.GO_ON or rerun >= seen_by_encoder
    return Recovery(path, rerun, rerun + new, replayed, is_exact, is_exact and replayed >= seen_by_decoder)


def _path(global_kv: Lookup, window_state: Lookup, failed: Collection[Condition]) -> RecoveryPath:
    if global_kv is Lookup.MISS or set(failed) - {Condition.TOKENS_AT_HAND}:
        return RecoveryPath.RECOMPUTE
    return RecoveryPath.GO_ON if window_state is Lookup.HIT else RecoveryPath.REPLAY


# What DeepSeek V4 keeps from turn to turn, and what V4.1 makes of it: windows were about half of it and are no longer
# kept, and global KV is about a quarter as large.
V4_WINDOW_SHARE, GLOBAL_SHRINK = 0.5, 4


def long_lived_share(window_share: float = V4_WINDOW_SHARE, shrink: float = GLOBAL_SHRINK) -> float:
    """What is kept from turn to turn, against before: without the windows' share, the rest so many times smaller.

    1/2 x 1/4 = 1/8. The windows of a turn are another capacity, `WindowedModel.resident_bytes`. Source: section 8.3.3.
    """
    share = finite("window_share", window_share, 0, "a share from 0 to 1")
    if share > 1:
        raise InputError("window_share", window_share, "a share from 0 to 1")
    times = finite("shrink", shrink, 1, f"a factor from 1 to {MOST_SHRINK}")
    if times > MOST_SHRINK:
        raise InputError("shrink", shrink, f"a factor from 1 to {MOST_SHRINK}")
    return (1 - share) / times


def recorded_shrink(context_tokens: int) -> float:
    """How many times smaller the global KV of V4.1 is than that of V4, at a length of the record deepseek_state."""
    lengths = (row["context_tokens"] for row in record("deepseek_state").rows)
    tokens = one_of("context_tokens", whole("context_tokens", context_tokens), lengths)
    before, after = (
        record("deepseek_state").one(context_tokens=tokens, model=model)["global_history_bytes"]
        for model in ("deepseek_v4", "deepseek_v4.1")
    )
    return float(before / after)
