# Needs CPython 3.11 or newer with pip, and make. Everything is installed into .venv; nothing outside the repo changes.
#   make demo                 the example month: index, one sweep through Dagster, what was promoted and what not, and why
#   make demo WORKSPACE=DIR   the same on a copy of your own workspace
#   make test                 linters, types, ring contracts, tests
#   make bench [ONLY=name] [DATA=DIR] [CORPUS=DIR]   benchmarks; figures go to docs/benchmarks.md
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt
TEST_EXTRAS := assets,minilm,multilingual,mcp,dev
WORKSPACE ?=
ONLY ?=
DATA ?=
CORPUS ?=

# pip's chatter is shown only when it fails
define install
$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '$(1)' >$(VENV)/install.log 2>&1 \
	|| { cat $(VENV)/install.log >&2; exit 1; }
endef

.PHONY: demo test lint pytest bench base example docs clean

demo: $(VENV)/.installed-demo
	@$(BIN)/python scripts/demo.py $(if $(WORKSPACE),--workspace "$(WORKSPACE)")

# side by side, because some tests wait for locks and servers
test: $(VENV)/.installed-test
	@$(MAKE) --no-print-directory -j 2 lint pytest

pytest: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.installed-test
	$(BIN)/python benchmarks/run.py $(if $(ONLY),--only "$(ONLY)") $(if $(DATA),--data "$(DATA)") $(if $(CORPUS),--corpus "$(CORPUS)")

# The base install alone: no Dagster, no DuckDB, and a search that works.
base:
	@$(PYTHON) scripts/base_install.py

example: $(VENV)/.installed-demo
	$(BIN)/python examples/make_example.py

docs: $(VENV)/.installed-demo
	$(BIN)/python scripts/generated_docs.py

clean:
	rm -rf .demo build dist *.egg-info

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "make: $(PYTHON) is older than 3.11; name a newer one with PYTHON=python3.12")'
	@test -x $(BIN)/python || { echo "Creating $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@touch $@

$(VENV)/.installed-demo: $(VENV)/.created $(INPUTS)
	@echo "Installing Dreamline with its pipeline into $(VENV) (a minute the first time)"
	@$(call install,.[assets])
	@touch $@

$(VENV)/.installed-test: $(VENV)/.created $(INPUTS)
	@echo "Installing Dreamline with everything the tests need into $(VENV) (two minutes the first time)"
	@$(call install,.[$(TEST_EXTRAS)])
	@touch $@
