# Everything sets itself up: a machine with Python ≥ 3.11 is enough.
#   make demo    the main job, in process
#   make test    ruff, mypy --strict, and the tests, on an installed copy; Spark and a Java for it come from PyPI
#   make bench   the benchmarks: ratios from one run
#   make bench-figure4   Figure 4 of the MVIVM paper, measured: docs/figure4.png and .svg
#   make docs    the documentation site in site/

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SOURCES := pyproject.toml $(shell find dsl core ies spark_backend everlog programs bench -type f -not -path '*/__pycache__/*')
PYTEST_FLAGS ?=

.PHONY: demo test bench bench-figure4 docs clean

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
	$(BIN)/pytest -n 2 --dist loadfile $(PYTEST_FLAGS)

bench: $(STAMP)
	$(BIN)/python -P bench/__main__.py

bench-figure4: $(STAMP)
	$(BIN)/python -m pip install --quiet 'matplotlib>=3.8'
	$(BIN)/python -P bench/figure4.py --plot docs

docs: $(STAMP)
	$(BIN)/python -m pip install --quiet '.[docs]'
	$(BIN)/mkdocs build --strict --quiet
	@echo "the documentation is in site/index.html"

clean:
	rm -rf $(VENV) build everlog.egg-info site .pytest_cache .mypy_cache .ruff_cache .hypothesis
