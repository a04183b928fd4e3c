# Every job of this project. The environment builds itself: `make demo` and `make test` work in a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
# Set aside `pip`'s chatter (--quiet twice keeps only errors) and never let it wait for an answer.
PIP := $(BIN)/python -m pip --quiet --quiet --no-input --disable-pip-version-check
PYTEST_WORKERS ?= 2
PYTEST_OPTIONS ?=
FUZZ_COUNT ?= 500
FUZZ_SEED ?= 0
FUZZ_OPTIONS ?=
SINCE ?= main
MUTANTS ?= 300
SEED ?= 0
# Compiled bytecode halves the time of `import tenfold`: write it, whatever the shell says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all check mutants lint format types stubs bench ecosystem docs fuzz clean r lua node

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: .venv/demo.stamp ## show a small program at every stage, train a network to read digits, time it
	@$(BIN)/tenfold demo --picture build/digits.png

test: lint types .venv/debian.stamp ## lint, types, the layer check, then the tests that are not slow
	@$(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) --dist worksteal -m "not slow" $(PYTEST_OPTIONS)

test-all: lint types .venv/debian.stamp ## the same with the slow tests
	@$(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) --dist worksteal $(PYTEST_OPTIONS)

check: lint types ## lint, types and the tests of what changed since SINCE (main), in minutes
	@changed=$$($(BIN)/python -m tools.affected --since $(SINCE)); \
	if [ -n "$$changed" ]; then $(BIN)/python -m pytest -q -n $(PYTEST_WORKERS) --dist worksteal -m "not slow" $$changed $(PYTEST_OPTIONS); \
	else echo "No test belongs to what changed since $(SINCE)."; fi

mutants: .venv/dev.stamp ## change the sources at random and see whether a test fails (MUTANTS=30 SEED=1)
	@$(BIN)/python -m tools.mutants --count $(MUTANTS) --seed $(SEED)

lint: .venv/dev.stamp ## ruff, and the check that imports point downward
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m tools.layers

format: .venv/dev.stamp ## rewrite the sources in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

types: .venv/dev.stamp ## mypy
	@$(BIN)/mypy

stubs: .venv/runtime.stamp ## write the stubs for editors to build/stubs (an install writes its own)
	@$(BIN)/python -c "from pathlib import Path; from tenfold.command.stubs import write; write(Path('build/stubs'))"

bench: .venv/dev.stamp .venv/debian.stamp ## time Tenfold beside JAX and PyTorch (BENCH_OPTIONS="--only record")
	@$(BIN)/python -m benchmarks --picture build/bench.png --json build/bench.json $(BENCH_OPTIONS)

r: .venv/dev.stamp ## build libtenfold and install the R package into build/r-library
	@$(BIN)/python -m tenfold.capi.r_package

lua: .venv/dev.stamp ## build libtenfold and the Lua rock in build/lua (then: cd build/lua && luarocks make)
	@mkdir -p build/lua && cp -r bindings/lua/. build/lua
	@$(BIN)/python -m tenfold.capi.bindings_lua build/lua

node: .venv/dev.stamp ## build libtenfold and the Node package in build/node (then: npm install build/node)
	@mkdir -p build/node && cp -r bindings/node/. build/node
	@$(BIN)/python -m tenfold.capi.bindings_node build/node
	@cd build/node && npm install --no-audit --no-fund --silent

fuzz: .venv/dev.stamp ## hostile inputs of every format that is read (FUZZ_COUNT=10000 each takes hours)
	@$(BIN)/python -m tests.fuzz --count $(FUZZ_COUNT) --seed $(FUZZ_SEED) $(FUZZ_OPTIONS)

ecosystem: .venv/dev.stamp ## run other packages' programs on Tenfold and PyTorch, and compare (ONLY="gpt2 timm")
	@$(BIN)/python -m ecosystem $(ONLY)

docs: .venv/dev.stamp build/bench.json build/long-runs.json build/explained.html ## build the site of docs/, with pictures of the last `make bench`, and check every link
	@$(BIN)/python -m tools.docs
	@NO_MKDOCS_2_WARNING=1 DOCS_HLO=1 PYTHONPATH=. $(BIN)/python -m mkdocs build --strict --quiet
	@echo "docs: build/docs/index.html"

# What the performance page shows: the last `make bench` and long run, or short ones where there was none.
build/bench.json: | .venv/dev.stamp
	@$(BIN)/python -m benchmarks --repeats 5 --only record --only call --only step-xor --only step-mlp --json $@

build/long-runs.json: | .venv/dev.stamp
	@$(BIN)/python -m benchmarks.long_runs --programs 8000 --steps 10000 --json $@

build/explained.html: examples/python/xor.py $(wildcard src/tenfold/explain/page/*) | .venv/dev.stamp
	@mkdir -p build && $(BIN)/tenfold explain $< -o $@ >/dev/null

clean: ## remove everything that these targets made
	rm -rf .venv build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The demo needs what `pip install tenfold[demo]` brings; the tests need the golden references too. Either set
# comes from constraints.txt whole, the build backend included, so that two machines get the same versions.
.venv/runtime.stamp: pyproject.toml constraints.txt
	@echo "Installing Tenfold into .venv (about 500 MB)"
	$(call install,.)
	@touch $@

.venv/demo.stamp: pyproject.toml constraints.txt
	@echo "Installing Tenfold and matplotlib into .venv (about 550 MB)"
	$(call install,.[demo])
	@touch .venv/runtime.stamp $@

.venv/dev.stamp: pyproject.toml constraints.txt
	@echo "Installing Tenfold and what its tests need into .venv (about 2 GB)"
	$(call install,.[dev])
	@touch .venv/runtime.stamp .venv/demo.stamp $@

# Compilers and the other languages' own programs, where this may install them. Without one, the tests of what it
# is for say so and are skipped.
DEBIAN := g++ clang valgrind luajit luarocks r-base-core r-cran-knitr r-cran-markdown r-cran-bit64 r-cran-waldo cmake pkg-config guile-3.0 chicken-bin chezscheme chromium chromium-driver
.venv/debian.stamp: .venv/dev.stamp
	@missing=$$(for each in $(DEBIAN); do dpkg -s $$each >/dev/null 2>&1 || echo $$each; done); \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing from Debian:" $$missing; \
		(apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends $$missing) \
			>.venv/debian.log 2>&1 || echo "apt-get failed, see .venv/debian.log"; \
	elif [ -n "$$missing" ]; then echo "Not installed, and not for this user to install:" $$missing; fi
	@touch $@

# An install that was interrupted leaves .venv/installing behind, and may leave half a package that looks whole:
# the next one then installs every package again over what is there.
define install
@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
@again=$$(test ! -e .venv/installing || echo --ignore-installed) && touch .venv/installing \
	&& $(PIP) install $$again --constraint constraints.txt setuptools \
	&& $(PIP) install $$again --constraint constraints.txt --no-build-isolation --editable '$(1)' \
	&& $(BIN)/python -m compileall -q src \
	&& rm .venv/installing
endef
