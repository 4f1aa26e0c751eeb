# make run: set up and run the main job.  make test: set up and test.  make help: the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
MINUTES ?= 30
COUNT ?= 1000000
SEED ?= 1
VERSIONS ?=
EXTRAS ?=
WITH ?= $(PYTHON)
# Three on two cores: many tests wait, for servers, for browsers, for what was killed to be missed.
PYTEST := $(VENV)/bin/pytest -n 3 --dist loadgroup
# Where it is set, each of the hundreds of programs that the tests start would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq

.PHONY: run paper check test test-all coverage test-flower-versions docs kills kills-postgres kills-own-loop power-cuts misfortune thorough lint bench format lock audit release clean help

run: $(READY)  ## one federated training on embedded data; leaves a report to open
	@$(BIN)/bara run

paper: $(READY)  ## the paper's figures and tables on embedded data, small, claimed beside measured; about ten minutes
	@$(BIN)/bara paper fig1 fig2 fig3 fig4 table1 table2 --data digits --seeds 5 --searched 5

check: lint  ## while working: style, types, rooms, and every test within one process
	$(PYTEST) -m "not path and not full"

test: lint  ## before a commit: check, and each main path from end to end
	$(PYTEST) -m "not full"

test-all: lint  ## everything, as CI: also every page, kills, PostgreSQL, a browser (root, Debian), the oldest and the newest Flower
	@echo "== the circle of make check"
	$(PYTEST) -m "not path and not full" --durations=10
	@echo "== what make test adds"
	$(PYTEST) -m path --durations=10
	@echo "== what make test-all adds"
	scripts/with_programs.sh scripts/with_postgres.sh $(PYTEST) -m full --durations=10
	$(BIN)/python scripts/flower_versions.py --quick

coverage: $(READY)  ## which branches the tests of make test take, room by room; writes the table in CONTRIBUTING.md
	$(BIN)/coverage erase
	$(BIN)/coverage run $(PYTEST) -m "not full"
	$(BIN)/coverage combine -q
	$(BIN)/python scripts/coverage_table.py

test-flower-versions: $(READY)  ## every release of Flower there is support for, each in an environment of its own (VERSIONS="1.38.0 1.42.0")
	$(BIN)/python scripts/flower_versions.py $(VERSIONS)

docs: $(READY)  ## the documentation as a site, in site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

kills: $(READY)  ## the long kill test: kills, copies, restored backups, operators, at random (MINUTES=30)
	$(BIN)/python tests/e2e/machine.py --minutes $(MINUTES)

kills-postgres: $(READY)  ## the same on a PostgreSQL server (root and Debian packages)
	scripts/with_postgres.sh $(BIN)/python tests/e2e/machine.py --minutes $(MINUTES) --store postgres
	scripts/with_postgres.sh $(BIN)/python tests/e2e/own_loop_kills.py --kills 200 --url '$$BARA_TEST_POSTGRES'

kills-own-loop: $(READY)  ## 200 kills of a program of one's own and of who pays out its batches
	$(BIN)/python tests/e2e/own_loop_kills.py --kills 200

power-cuts: $(READY)  ## 200 power cuts that lose what was not synced, without and with models
	$(BIN)/python tests/e2e/power_cuts.py --cuts 200
	$(BIN)/python tests/e2e/power_cuts.py --cuts 50 --engine simulator

misfortune: $(READY)  ## a million schedules of crashes, errors, contests and restored disks (COUNT=20000 SEED=1)
	$(BIN)/python tests/e2e/misfortune.py --count $(COUNT) --seed $(SEED)

thorough: $(READY)  ## junk in 2,000 configurations and 1,000 ledger files; 100,000 examples of every property; cents
	$(BIN)/python tests/e2e/fuzz.py configurations --cases 2000
	$(BIN)/python tests/e2e/fuzz.py ledgers --cases 1000
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest tests/mechanisms tests/reference
	BARA_TEST_ROUNDS=10000 $(BIN)/pytest tests/ledger/test_payouts.py -k adds_up

lint: $(READY)  ## formatting, style, types, rooms
	$(BIN)/ruff format --check -q .
	$(BIN)/ruff check -q .
	$(BIN)/mypy
	$(BIN)/lint-imports --verbose > $(VENV)/imports.log || (cat $(VENV)/imports.log; exit 1)

bench: $(READY)  ## the benchmarks, each beside a rival in the same run
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

format: $(READY)  ## put the code into shape
	$(BIN)/ruff format -q .
	$(BIN)/ruff check -q --fix .

lock: $(READY)  ## write requirements.lock anew: every release of constraints.txt with the hashes of its files
	$(BIN)/uv pip compile -q --extra dev --generate-hashes --no-annotate --no-emit-package torch \
		--custom-compile-command "make lock" -c constraints.txt -o requirements.lock pyproject.toml

audit:  ## known vulnerabilities in what is pinned; asks pip-audit's service, and says so where it does not answer
	@test -x .audit-venv/bin/pip-audit || ($(PYTHON) -m venv .audit-venv && \
		.audit-venv/bin/python -m pip --disable-pip-version-check -qq install pip-audit)
	@$(PYTHON) scripts/audit.py .audit-venv/bin/pip-audit

release: $(READY)  ## sdist and wheel in dist/: metadata checked, the wheel tried with each extra in a clean environment (EXTRAS="bank" WITH=python3.13)
	@test -x .release-venv/bin/twine || ($(PYTHON) -m venv .release-venv && \
		.release-venv/bin/python -m pip --disable-pip-version-check -qq install twine)
	@$(BIN)/python scripts/release.py --python $(WITH) .release-venv/bin/twine $(EXTRAS)

clean:  ## remove what set-up made
	rm -rf $(VENV) .bench-venv .audit-venv .release-venv dist site

help:
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

# torch first and exactly as pinned: anything that asks for "torch" alone would bring gigabytes of CUDA. Python compiles
# what it imports; compiling everything would take another minute and a half.
$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV) (once, about two minutes)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "bara needs Python 3.11 or newer")'
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --no-compile -c constraints.txt torch==2.13.0
	@$(PIP) install --no-compile -c constraints.txt -e '.[dev]'
	@touch $(READY)
