# Every target sets up what it needs in .venv; all that has to be there is Python, make and git.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test mutations kills lint bench fuzz-bundle docs clean

demo: $(VENV)/.core
	$(BIN)/counterpoise demo --out demo-release

# The tests' workers share the cores already; threads within each would get in the way.
test: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest

# Breaks the vault line by line, and sees that a test notices each time; see tests/mutations.
mutations: $(VENV)/.test
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.mutations.run $(OPTIONS)

# Releases on the command line, killed at random moments until they come out.
kills: $(VENV)/.test
	$(BIN)/python -m tests.curation.kill_runs $(OPTIONS)

lint: $(VENV)/.lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/coding.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/out_of_core.py

# 10,000 random edits of a saved release: found, or without effect, or legal and working.
fuzz-bundle: $(VENV)/.test
	$(BIN)/python -m tests.bundle.fuzz_bundle $(OPTIONS)

# Longer studies: make study-growth, study-bins, study-synthesizers, study-tstr, study-weights,
# study-toys, study-coverage, study-posterior, and every other script in benchmarks/ by its name. Those
# that need public data sets take their directory from COUNTERPOISE_DATA.
study-%: $(VENV)/.bench
	$(BIN)/python benchmarks/$*.py $(OPTIONS)

# Not --quiet: that would hide the warnings from --strict too.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "documentation: site/index.html"

clean:
	rm -rf $(VENV) site build dist demo-release .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# A stamp an extra, made again when the dependencies change.
$(VENV)/.core: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[$*]'
	@touch $@
