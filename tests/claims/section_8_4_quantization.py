"""The numbers of sections 8.4.1 and 8.4.2."""

from tests.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = ()
