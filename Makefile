# Every target installs what it needs; only Python ≥ 3.11 is required.
#   make demo            a guided demonstration
#   make test            ruff, mypy --strict and the tests, on an installed copy; PyPI provides Spark
#                        and a Java
#   make bench           measures everlog beside other systems, which it installs; an hour or more
#                        (FLAGS="--small": a minute or two; FLAGS="--only bars": the goals)
#   make bench-docs      the same, and regenerates docs/performance.md with its figures and plots
#   make bench-figure4   measures Figure 4 of the MVIVM paper: docs/figure4.png and .svg
#   make docs            builds the documentation site in site/, with the playground where npm is there
#   make playground      builds everlog for browsers in playground/: any server of static files serves
#                        it (needs Node with npm, which brings Pyodide)

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SOURCES := pyproject.toml $(shell find dsl core ies spark_backend everlog programs bench -type f -not -path '*/__pycache__/*')
PYTEST_FLAGS ?=

FLAGS ?=

.PHONY: demo test bench bench-docs bench-figure4 docs playground clean

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "everlog needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# The package is installed as for a user, not editable, and -P keeps this folder out of Python's
# path: so the installed copy runs and is tested.
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

# A competitor without a wheel for this machine is skipped, and the benchmark says so.
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
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory playground OUT=site/try; \
	else echo "without npm the site has no playground, and its examples cannot be run"; fi
	@echo "the documentation is in site/index.html"

OUT := playground

playground: $(STAMP)
	@command -v npm >/dev/null || { echo "make playground needs Node with npm (Debian: apt-get install npm)"; exit 1; }
	cd web/playground && npm ci --no-audit --no-fund --ignore-scripts --silent
	$(BIN)/python -P web/playground/build.py $(OUT)

clean:
	rm -rf $(VENV) build everlog.egg-info site playground .pytest_cache .mypy_cache .ruff_cache .hypothesis
