"""Numbers of section 8.6.3, of the summary and of the footnotes that belong to them."""

from tests.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = ()
