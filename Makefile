# The verbs of this project; make help lists them. Each does its own set-up.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all check bench mutants fmt lock clean

PYTHON ?= python3
BIN := .venv/bin
RUN := .venv/.oikos-run
DEV := .venv/.oikos-dev
# Tests run in this many processes; the lab's share one of them.
JOBS ?= 2
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup --inline-snapshot=disable --color=no

help: ## list these targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

setup: $(DEV) ## Debian packages, virtual environment, Python packages, Oikos itself

INPUTS := requirements/debian.txt pyproject.toml tools/setup.py

$(DEV): requirements/dev.txt $(INPUTS)
	@$(PYTHON) tools/setup.py dev
	@touch $(RUN) $(DEV)

$(RUN): requirements/run.txt requirements/build.txt $(INPUTS)
	@$(PYTHON) tools/setup.py run
	@touch $(RUN)

demo: $(RUN) ## the whole story on a real host, in a lab made for it (root or sudo)
	@if [ "$$(id -u)" != 0 ] && sudo -n true 2>/dev/null; then exec sudo -n $(BIN)/python -B $(BIN)/oikos demo; fi; exec $(BIN)/oikos demo

test: $(DEV) ## the quick tests (everything but those marked slow)
	@$(PYTEST) -m "not slow"

test-all: $(DEV) ## every test
	@$(PYTEST)

check: $(DEV) ## style, types, layers, house rules
	@$(BIN)/python tools/check.py

bench: $(DEV) ## measures the loop beside its peers
	@bench/run

mutants: $(DEV) ## how many of mutmut's mutants of the consent rules the tests kill
	@$(BIN)/python tools/mutate.py

fmt: $(DEV) ## formats the code
	@$(BIN)/ruff check -q --fix-only . && $(BIN)/ruff format -q .

lock: ## writes requirements/*.txt anew from pyproject.toml
	@$(PYTHON) tools/lock.py

clean: ## removes what setup and the tools made here
	@rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache mutants build dist
