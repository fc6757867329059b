"""The numbers of section 8.5 and of the footnotes that belong to it."""

from tests.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = ()
