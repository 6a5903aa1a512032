# Two commands, each enough on a bare machine with Python (3.11 or newer, for the pins) and make:
#   make report   which heads of the embedded model track what; prints the page's path
#   make test     everything a change must pass
# make docs writes the documentation to out/site, where it is read from the disk; a test of make test-all does so, too.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out/report
PARALLEL := --numprocesses auto --dist loadfile --no-loadscope-reorder

.PHONY: report test test-all docs lint dist clean

report: $(VENV)/.installed
	$(BIN)/interp heads --out $(OUT)

test: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest -m "not slow" $(PARALLEL)

test-all: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest $(PARALLEL)
	$(BIN)/python .ci/audit.py constraints.txt

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo $(CURDIR)/out/site/index.html

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The wheel and the sdist, in dist/; what is in them is held by tests/packaging.
dist: $(VENV)/.installed-dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation

# torch first and by itself: with the exact version in place, nothing asks for another build of it.
$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) out dist
