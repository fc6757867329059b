"""The table of claims: every number of the chapter, as printed, against a call into `lib`.

An entry is one quantity. It lists the ids of the printed numbers it answers (section and place in reading order), how
they are printed, and the tolerance: 0 where the result is exact, otherwise half a unit of the last printed digit.
"""

from tests.claims import (
    section_8_0,
    section_8_1,
    section_8_2,
    section_8_3,
    section_8_4_errors,
    section_8_4_offload,
    section_8_4_quality,
    section_8_4_quantization,
    section_8_5,
    section_8_6_choice,
    section_8_6_curve,
    section_8_6_load,
    section_8_7,
)
from tests.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    *section_8_0.CLAIMS,
    *section_8_1.CLAIMS,
    *section_8_2.CLAIMS,
    *section_8_3.CLAIMS,
    *section_8_4_quantization.CLAIMS,
    *section_8_4_errors.CLAIMS,
    *section_8_4_offload.CLAIMS,
    *section_8_4_quality.CLAIMS,
    *section_8_5.CLAIMS,
    *section_8_6_load.CLAIMS,
    *section_8_6_choice.CLAIMS,
    *section_8_7.CLAIMS,
    *section_8_6_curve.CLAIMS,
)

# How many numbers a section prints; a section stands here once all of them are answered.
ANSWERED = {
    "8.0": 26, "8.1.1": 23, "8.1.2": 42, "8.1.3": 12,
    "8.2.1": 66, "8.2.2": 40, "8.2.3": 27, "8.2.4": 27,
    "8.3.1": 44, "8.3.2": 54, "8.3.3": 39, "8.3.4": 60,
    "8.4.1": 23, "8.4.2": 59, "8.4.3": 54, "8.4.4": 33,
    "8.5.1": 18, "8.5.2": 48, "8.5.3": 18, "8.5.4": 27,
    "fn01": 3, "fn03": 3, "fn05": 4, "fn06": 4, "fn08": 1, "fn09": 1, "fn13": 2,
    "fn16": 4, "fn18": 1, "fn19": 2, "fn22": 3, "fn23": 5, "fn27": 6, "fn29": 2,
    "8.6.1": 9, "8.6.2": 23, "8.6.3": 155, "fn24": 8, "fn25": 2, "fn28": 4, "summary": 3,
}  # fmt: skip
