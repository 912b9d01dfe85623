# Everything sets itself up: a machine with Python ≥ 3.11 is enough.
#   make demo    the main job, in process
#   make test    ruff, mypy --strict, and the tests, on an installed copy; Spark and a Java for it come from PyPI
#   make bench   side by side with other systems, which it installs: ratios from one run; an hour or more
#                (FLAGS="--small" is a minute or two; FLAGS="--only bars" has just the bars)
#   make bench-docs      the same, and docs/performance.md made anew with its figures and plots
#   make bench-figure4   Figure 4 of the MVIVM paper, measured: docs/figure4.png and .svg
#   make docs    the documentation site in site/

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SOURCES := pyproject.toml $(shell find dsl core ies spark_backend everlog programs bench -type f -not -path '*/__pycache__/*')
PYTEST_FLAGS ?=

FLAGS ?=

.PHONY: demo test bench bench-docs bench-figure4 docs clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "everlog needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The package is installed as a user would have it, not editable, and -P keeps this folder out of
# Python's path: what runs and what is tested is that copy.
$(STAMP): $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --force-reinstall --no-deps .
	$(BIN)/python -m pip install --quiet .
	rm -rf build everlog.egg-info
	touch $(STAMP)

$(VENV)/.dev: $(STAMP)
	$(BIN)/python -m pip install --quiet '.[dev,spark]'
	rm -rf build everlog.egg-info
	touch $(VENV)/.dev

demo: $(STAMP)
	$(BIN)/python -P -m everlog.demo

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	cd $(VENV) && bin/mypy --config-file ../pyproject.toml --cache-dir .mypy_cache -p everlog
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_FLAGS)

# A competitor that has no wheel for this machine is left out, and the benchmark says so.
$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet '.[bench]' || \
	  for name in duckdb clingo pathway polars networkx rustworkx matplotlib; do \
	    $(BIN)/python -m pip install --quiet $$name || echo "$$name cannot be installed here"; done
	rm -rf build everlog.egg-info
	touch $(VENV)/.bench

bench: $(VENV)/.bench
	$(BIN)/python -P -m everlog bench $(FLAGS)

bench-docs: $(VENV)/.bench
	$(BIN)/python -P -m everlog bench --json docs/performance.json --plot docs/performance --page docs/performance.md $(FLAGS)
	rm -f docs/performance/*.png

bench-figure4: $(STAMP)
	$(BIN)/python -m pip install --quiet 'matplotlib>=3.8'
	$(BIN)/python -P bench/figure4.py --plot docs

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet '.[docs]'
	$(BIN)/mkdocs build --strict --quiet
	@echo "the documentation is in site/index.html"

clean:
	rm -rf $(VENV) build everlog.egg-info site .pytest_cache .mypy_cache .ruff_cache .hypothesis
