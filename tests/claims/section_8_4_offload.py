"""The numbers of section 8.4.3."""

from tests.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = ()
