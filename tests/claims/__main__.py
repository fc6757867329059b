"""Print value and truth of every claim as JSON."""

import json

from tests.claims import CLAIMS

print(json.dumps([(float(claim.value()), claim.holds()) for claim in CLAIMS]))
