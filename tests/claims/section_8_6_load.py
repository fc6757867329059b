"""Numbers of sections 8.6.1 and 8.6.2 and of the footnote that belongs to them."""

from tests.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = ()
