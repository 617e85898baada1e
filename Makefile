# `make run`: set up, measure this machine, answer. `make test`: set up, test.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.PHONY: run test lint types layers check smoke bench tables calibrations validation docs clean
.DEFAULT_GOAL := help

help:
	@echo "make run     set up, measure this machine and say whether speculation pays"
	@echo "make test    set up and run the tests"
	@echo "make check   lint, types, layers, wheel smoke test and tests"
	@echo "make calibrations   fit the shipped calibrations again, from public kernel tables (make validation: their page)"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rooflinekit needs Python 3.11 or later, this is %d.%d; run make PYTHON=python3.11" % sys.version_info[:2])'
	@echo "setting up $(VENV) (a minute or two; torch is the largest part)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'
	@touch $(READY)

run: $(READY)
	@$(BIN)/rooflinekit demo

# One thread of linear algebra each: two workers that both take every core slow fits down many times over.
test: $(READY)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

smoke: $(READY)
	BIN=$(BIN) sh .ci/smoke-wheel

check: lint types layers smoke test

bench: $(READY)
	$(BIN)/python benchmarks/speed.py

# Measured kernel tables (80 MB, 600 MB unpacked) that the shipped calibrations are fitted to.
TABLES = $(VENV)/.tables
$(TABLES): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[data]'
	@touch $(TABLES)

tables: $(TABLES)

calibrations: $(TABLES)
	OPENBLAS_NUM_THREADS=1 $(BIN)/rooflinekit calibrate --source aiconfigurator --out hardware/calibrations --slice rooflinekit/data/kernels.csv.gz

validation: $(TABLES)
	$(BIN)/python docs/validation.py

docs: $(READY)
	$(BIN)/python docs/figures.py
	$(BIN)/python docs/published.py

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
