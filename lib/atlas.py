"""The atlas of disagreement: each measured number of the chapter beside every model of `lib` that claims to predict it.

`lib.atlas_times` and `lib.atlas_counts` say how each model is asked; here the answers stand together. Section 8.7.
"""

from functools import cache

from lib.atlas_counts import counts
from lib.atlas_times import times
from lib.checks import one_of
from lib.comparison import Comparison, Group
from lib.records import names, record


@cache
def atlas() -> tuple[Comparison, ...]:
    """All comparisons, those of times first."""
    return (*times(), *counts())


@cache
def of_group(group: Group) -> tuple[Comparison, ...]:
    """The comparisons of one group; raises InputError for an unknown one."""
    known = one_of("group", group, Group)
    return tuple(one for one in atlas() if one.seen.group == known)


def judged(compared: tuple[Comparison, ...]) -> tuple[Comparison, ...]:
    """Those that say something about their model: of a time, and not fitted to the number itself."""
    return tuple(one for one in compared if one.seen.clock and not one.is_fitted)


def left_out() -> tuple[str, ...]:
    """The measured records of which no number stands here: a model takes them in, or none claims to know them."""
    used = {one.seen.record for one in atlas()}
    return tuple(name for name in names() if record(name).kind == "measured" and name not in used)
