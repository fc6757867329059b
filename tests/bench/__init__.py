"""How fast the project is, each thing measured beside something to compare it with: `python -m tests.bench`."""
