# Everything a newcomer types. Each target sets up what it needs; `make` alone lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
STAMP := $(VENV)/.ready
WEB_STAMP := src/misstep/hub/static/index.html
WEB_SOURCES := $(shell find web -type f -not -path 'web/node_modules/*' 2>/dev/null)
export PYTHONPATH := $(CURDIR)/src

.DEFAULT_GOAL := help
.PHONY: help setup native native-aarch64 web browser demo test test-fast lint bench bench-web docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: $(STAMP) ## make .venv with both frameworks, and build the native kernels

# torch first and by exact version: letting pip resolve it freely downloads gigabytes of CUDA packages.
$(STAMP): pyproject.toml constraints.txt setup.py $(wildcard native/*)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade pip setuptools wheel
	$(PIP) torch==2.13.0 'numpy<2'
	$(PIP) mindspore==2.10.0 'numpy<2'
	$(PIP) --no-build-isolation --editable '.[torch,mindspore,tune,ui,dev]'
	touch $(STAMP)

native: $(STAMP) ## build the native kernels again
	$(BIN)/python setup.py --quiet build_ext --inplace --force

native-aarch64: ## check the kernels on aarch64, under qemu (Debian: g++-aarch64-linux-gnu, qemu-user)
	mkdir -p build && aarch64-linux-gnu-g++ -std=c++17 -O3 -fno-math-errno -fno-trapping-math -static \
	  native/plain.cpp native/tables.cpp native/selfcheck.cpp -o build/selfcheck-aarch64
	qemu-aarch64 build/selfcheck-aarch64

web: $(WEB_STAMP) ## build the web front end into the package

$(WEB_STAMP): $(WEB_SOURCES)
	cd web && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build

browser: ## install Debian's Chromium and CJK fonts, for the browser tests
	test -x /usr/bin/chromium && fc-list 2>/dev/null | grep -qi 'noto.*cjk' || \
	  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk fontconfig)

demo: $(STAMP) web ## train an example with a planted fault under misstep and read the verdict
	$(BIN)/misstep run --level guard --name demo $(BIN)/python examples/torch_log_of_negative.py
	$(BIN)/misstep show last --most 5
	@echo "look around in a browser:  $(BIN)/misstep ui --open"

test: $(STAMP) web browser lint ## everything CI runs
	$(BIN)/python -m pytest tests -n 2 --dist loadfile

test-fast: $(STAMP) ## without stories, MindSpore and the browser
	$(BIN)/python -m pytest tests -n 2 --dist loadfile -m 'not story and not mindspore and not ui'

lint: $(STAMP) ## ruff and mypy
	$(BIN)/ruff check src tests bench examples
	$(BIN)/ruff format --check src tests bench examples
	$(BIN)/mypy

bench: $(STAMP) ## every benchmark, as ratios
	@for script in kernels overhead debugger recorder replay compare dump train; do \
	  test -f bench/$$script.py && echo "== $$script" && $(BIN)/python bench/$$script.py; done; true

bench-web: web browser $(STAMP) ## figures of the web front end in a real browser
	cd web && npm run --silent bench

docs: $(STAMP) ## write the reference pages that are generated from the code
	$(BIN)/python docs/generate.py

clean: ## remove what was built, not what was recorded
	rm -rf build dist web/node_modules src/misstep/hub/static src/misstep/kernels/*.so $(VENV)
