# Everything a newcomer types. Each target sets up what it needs; `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
STAMP := $(VENV)/.ready
WEB_STAMP := src/misstep/hub/static/index.html
NODE_STAMP := web/node_modules/.package-lock.json
WEB_SOURCES := $(shell find web -type f -not -path 'web/node_modules/*' 2>/dev/null)
export PYTHONPATH := $(CURDIR)/src

.DEFAULT_GOAL := help
.PHONY: fuzz fuzz-night soak kills help setup native native-aarch64 web browser demo test test-most test-fast postgres tune-kills compiled-sweep lint bench bench-web api-map docs wheel changelog hooks clean

help:  ## list the targets
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: $(STAMP) ## make .venv with both frameworks, and build the native kernels

# torch first and by exact version: letting pip resolve it freely downloads gigabytes of CUDA packages.
$(STAMP): pyproject.toml constraints.txt setup.py $(wildcard native/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip setuptools wheel
	$(PIP) torch==2.13.0 'numpy<2'
	$(PIP) mindspore==2.10.0 'numpy<2'
	$(PIP) --no-build-isolation --editable '.[torch,mindspore,tune,ray,ui,docs,dev]'
	touch $(STAMP)

native: $(STAMP) ## build the native kernels again
	$(BIN)/python setup.py --quiet build_ext --inplace --force

native-aarch64: ## check the kernels on aarch64, under qemu (Debian: g++-aarch64-linux-gnu, qemu-user)
	mkdir -p build && aarch64-linux-gnu-g++ -std=c++17 -O3 -fno-math-errno -fno-trapping-math -static \
	  native/plain.cpp native/tables.cpp native/selfcheck.cpp -o build/selfcheck-aarch64
	qemu-aarch64 build/selfcheck-aarch64

web: $(WEB_STAMP) ## build the web front end into the package

$(NODE_STAMP): web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.package-lock.json

$(WEB_STAMP): $(NODE_STAMP) $(WEB_SOURCES)
	cd web && npm run --silent build

browser: ## install Debian's Chromium and CJK fonts, for the browser tests
	test -x /usr/bin/chromium && fc-list 2>/dev/null | grep -qi 'noto.*cjk' || \
	  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk fontconfig)

postgres: ## install Debian's PostgreSQL and MariaDB, for the tests of tuning
	command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql)
	command -v mariadbd >/dev/null || ls /usr/sbin/mariadbd >/dev/null 2>&1 || \
	  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	  mariadb-server-core mariadb-client-core)

demo: $(STAMP) web ## train an example with a planted fault under misstep and read the verdict
	$(BIN)/misstep run --level guard --name demo $(BIN)/python examples/torch_log_of_negative.py
	$(BIN)/misstep show last --most 5
	@echo "look around in a browser:  $(BIN)/misstep ui --open"

# Worksteal: a worker that has nothing left takes tests from the other, so that neither core idles at the end.
PYTEST := $(BIN)/python -m pytest tests -n 2 --dist worksteal

test: $(STAMP) web browser postgres lint ## everything CI runs
	$(PYTEST)

test-most: $(STAMP) postgres ## all but the browser and the slow stories
	$(PYTEST) -m 'not ui and not slow'

test-fast: $(STAMP) ## without stories, MindSpore and the browser
	$(PYTEST) -m 'not story and not mindspore and not ui'

fuzz: $(STAMP) ## damaged input to every reader, grammar and message; at most 20 minutes (options in ARGS)
	$(BIN)/python -m tests.fuzz $(ARGS)

soak: $(STAMP) ## 200,000 real training steps: memory, descriptors and disk stay flat (bench/soak.py)
	$(BIN)/python bench/soak.py $(ARGS)

kills: $(STAMP) ## 1,000 times kill -9 of a recording process at random points: no finished step is lost (bench/kills.py)
	$(BIN)/python bench/kills.py $(ARGS)

fuzz-night: $(STAMP) ## the same for eight hours
	$(BIN)/python -m tests.fuzz --cases 20000000 --minutes 480

lint: $(STAMP) $(NODE_STAMP) ## ruff, mypy, tsc and Biome
	$(BIN)/ruff check src tests bench examples
	$(BIN)/ruff format --check src tests bench examples
	$(BIN)/mypy
	cd web && npm run --silent check

BENCHES := $(basename $(notdir $(shell grep -l __main__ bench/*.py)))

bench: $(BENCHES:%=bench-%) ## every benchmark, as ratios

bench-%: $(STAMP) ## one benchmark, bench/%.py; options in ARGS: make bench-overhead ARGS=--json
	@echo "== $*" >&2
	@$(BIN)/python bench/$*.py $(ARGS)

bench-web: web browser $(STAMP) ## figures of the web front end in a real browser
	cd web && npm run --silent bench -- $(ARGS)

tune-kills: $(STAMP) postgres ## kill the workers of a study fifty times, on a journal, PostgreSQL and MariaDB
	$(BIN)/python tests/tuning/killing.py --kills 50 --trials 150
	$(BIN)/python tests/tuning/killing.py --kills 50 --trials 150 --on postgresql
	$(BIN)/python tests/tuning/killing.py --kills 50 --trials 150 --on mariadb

compiled-sweep: $(STAMP) ## six planted faults in every form of torch.compile, at every level (about an hour)
	$(BIN)/python tests/compiled/sweep.py $(ARGS)

api-map: $(STAMP) ## execute every function of both frameworks side by side, and write the map of calls (resumes)
	$(BIN)/python -m misstep.migration.apimap.generate --workers 2 --write $(ARGS)

docs: $(STAMP) ## write the reference pages from the code, and build the site into site/
	$(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

wheel: $(STAMP) web ## build sdist and wheel into dist/, with the page inside
	$(BIN)/python -m build --no-isolation --outdir dist .

changelog: $(STAMP) ## assemble CHANGELOG.md from changes.d (ARGS=--draft only shows it)
	$(BIN)/towncrier build --yes --version $$($(BIN)/python -c 'import misstep; print(misstep.__version__)') $(ARGS)

hooks: $(STAMP) $(NODE_STAMP) ## check every commit with ruff, mypy and Biome before it is made
	$(BIN)/pre-commit install

clean: ## remove what was built, not what was recorded
	rm -rf build dist site web/node_modules src/misstep/hub/static src/misstep/kernels/*.so $(VENV)
