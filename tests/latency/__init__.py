"""How long a reader waits for an explorer, in the kernel and in a browser: `python -m tests.latency [figure ...]`."""
