PYTHON ?= python3
ARGS ?=

ifeq ($(OS),Windows_NT)
RUN := .venv/Scripts/python
else
RUN := .venv/bin/python
endif
READY := .venv/in-step

.PHONY: help env lab test check figures sync exercises grade claims bench latency

help: ## these lines
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' Makefile

env: ## build or mend the environment in .venv
	$(PYTHON) tools/environment.py $(ARGS)

$(READY): pyproject.toml requirements.lock
	$(PYTHON) tools/environment.py

lab: $(READY) ## check the environment, then open the chapter in JupyterLab
	$(RUN) -m tools.lab $(ARGS)

test: $(READY) ## what a reader can check in a few minutes
	$(RUN) -m pytest -m "not long" $(ARGS)

check: $(READY) ## style, types and all tests
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m pytest $(ARGS)

figures: $(READY) ## draw all figures into build/figures (ARGS=list shows them)
	$(RUN) -m figures $(or $(ARGS),draw)

sync: $(READY) ## bring scripts and notebooks together, then run the notebooks
	$(RUN) -m tools.sync $(ARGS)

exercises: $(READY) ## derive exercises from solutions (ARGS="--to FOLDER --variant SEED" for a class of its own)
	$(RUN) -m tools.derive $(ARGS)

grade: $(READY) ## grade what a class handed in (ARGS=FOLDER)
	$(RUN) -m tools.grade $(ARGS)

claims: $(READY) ## count the claims, then list constants that none notices (ARGS=--counts, or files of lib: ARGS=step_time.py)
	$(RUN) -m tests.claims $(ARGS)

bench: $(READY) ## time the computing code
	$(RUN) -m tests.bench $(ARGS)

latency: $(READY) ## time the explorers, in the kernel and in a browser
	$(RUN) -m tests.latency $(ARGS)
