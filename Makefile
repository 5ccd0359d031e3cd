# Each target sets up what it needs by itself. Only Python >= 3.11 and make are assumed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONFORMANCE_KIT ?= ../shared/conformance
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTEST := -m pytest -n auto --dist loadgroup --no-loadscope-reorder
QUICK_TESTS := $(filter-out tests/unit/__%, $(filter-out tests/unit/pipeline, $(wildcard tests/unit/*))) tests/scenarios tests/rules
# PYPY_TESTS run on PyPy: their imports are there, and none measures turns in milliseconds, as those of broker/network do. PYPY_CLIENTS run on CPython, with a broker on PyPy.
PYPY_TESTS := $(addprefix tests/, unit/broker unit/coordinator unit/protocol unit/security $(addprefix broker/, log settings \
  test_cluster_apis.py test_memory.py test_share_fetch.py test_topics.py test_transactions.py))
PYPY_CLIENTS := $(wildcard tests/conformance/broker/test_clients_*.py) $(addprefix tests/conformance/broker/, \
  shares test_consumer_protocol.py test_durability.py test_pypy.py test_transactions.py)
# What runs on the compiled build.
COMPILED_TESTS := $(addprefix tests/, unit/protocol unit/coordinator unit/broker scenarios broker)
export PIP_REQUIRE_VIRTUALENV := 1
unexport PYTHONDONTWRITEBYTECODE # compiled once, not once for each process that the tests start

.DEFAULT_GOAL := help
.PHONY: help setup demo quick test browser pypy compiled compiledtests check conformance lake bench measures docs pictures site dist fmt lock clean

help: ## This list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | awk -F'|' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: $(VENV)/.dev ## A .venv in the checkout with everything that developing needs; commands in .venv/bin
	@echo "setup: ready, the commands are in $(BIN)"

demo: $(VENV)/.demo ## A tour on real input: broker, producers, consumers, and the commands on their groups
	@$(BIN)/python -m groupkeeper.demo

test: $(VENV)/.dev ## The tests that need neither Java nor network; the long ones: -m long
	@echo "test: running pytest"
	@$(BIN)/python $(PYTEST) $(PYTEST_ARGS)

quick: $(VENV)/.dev ## Unit tests but for slow ones and the pipeline's, and scenarios: about a minute on two processors
	@$(BIN)/python $(PYTEST) $(QUICK_TESTS) -m "not slow and not long and not conformance" -q

browser: $(VENV)/.dev ## A headless Chromium, Playwright and axe-core for tests/browser, where they can be had (says so otherwise)
	@tools/browser.sh $(PIP)

pypy: $(VENV)/.dev ## The broker's tests on PyPy, and real clients with it, where PyPy can be had (says so otherwise)
	@$(BIN)/python tools/pypy.py || { status=$$?; [ $$status -eq 3 ] && exit 0; exit $$status; }; \
	if [ -n "$(PYPY_TESTS)" ]; then build/pypy/bin/python $(PYTEST) $(PYPY_TESTS) || exit 1; fi; \
	if [ -n "$(PYPY_CLIENTS)" ]; then BROKER_UNDER_TEST=pypy $(BIN)/python $(PYTEST) $(PYPY_CLIENTS); fi

compiled: $(VENV)/.dev ## The modules of compiled.txt as machine code, in build/compiled, where there is a C compiler (says so otherwise)
	@tools/compiled.sh $(BIN)/python || { status=$$?; [ $$status -eq 3 ] && exit 0; exit $$status; }

compiledtests: compiled ## The broker's tests on the compiled build, and kills of it under load
	@[ ! -e build/compiled/.made ] || { build/compiled/bin/python $(PYTEST) $(COMPILED_TESTS) && \
	  $(BIN)/python -m tests.durability --broker compiled --kills 5; }

check: $(VENV)/.dev ## Lint, format, types, import layers, size limits
	@echo "check: ruff (lint)"
	@$(BIN)/ruff check .
	@echo "check: ruff (format)"
	@$(BIN)/ruff format --check .
	@echo "check: mypy --strict"
	@$(BIN)/mypy
	@echo "check: tidy, and import layers"
	@$(BIN)/python -m pytest -q tests/test_tidy.py

conformance: $(VENV)/.dev ## Real clients, Apache's own tools and tests (Java and Maven; says so when they are missing)
	@echo "conformance: kit $(CONFORMANCE_KIT)"
	@CONFORMANCE_KIT="$(CONFORMANCE_KIT)" $(BIN)/python tools/conformance.py $(CONFORMANCE_ARGS)

lake: $(VENV)/.dev build/spark41 build/spark42 build/moto ## Tables of Delta Lake and Iceberg, each with the Spark that it is made for (Maven Central)
	@for name in spark41 spark42; do \
	  echo "lake: $$name"; \
	  PYTHONPATH=build/$$name $(BIN)/python -m pytest -q -m "long or not long" tests/lake $(LAKE_ARGS) || exit 1; \
	done

build/spark41 build/spark42 build/moto build/site-tools: build/%: requirements/%.txt | $(VENV)/.dev
	@echo "installing $<"
	@rm -rf $@.new
	@$(PIP) install --require-hashes --target $@.new -r $<
	@rm -rf $@ && mv $@.new $@ && touch $@

bench: $(VENV)/.dev ## Benchmarks, beside other implementations
	@echo "bench: running tools/bench.py"
	@$(BIN)/python tools/bench.py $(BENCH_ARGS)

measures: $(VENV)/.dev ## What the sources and the costs were before the rooms, and are now (MEASURES_ARGS: two revisions)
	@$(BIN)/python tools/measures.py $(MEASURES_ARGS)

docs: $(VENV)/.dev ## Write the generated references again
	@sed '/^## Words of the code/,$$d' docs/glossary.md > src/groupkeeper/web/files/glossary.md
	@$(BIN)/python tools/broker_settings.py
	@$(BIN)/python tools/broker_metrics.py
	@$(BIN)/python tools/cli_reference.py
	@$(BIN)/python tools/grafana_dashboard.py
	@$(BIN)/python tools/serve_metrics.py
	@$(BIN)/python tools/pipeline_tables.py
	@$(BIN)/python tools/sync_admin.py

pictures: $(VENV)/.dev ## Make the pictures of the documents again (most need a Chromium)
	@$(BIN)/python tools/pictures.py
	@$(BIN)/python tools/page_pictures.py

site: $(VENV)/.dev build/site-tools ## The documentation as a site, in build/site, with a reference of the API
	@PATH="$(BIN):$$PATH" PYTHONPATH=build/site-tools NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "site: build/site/index.html"

dist: $(VENV)/.dev ## A wheel and a source distribution to publish: make dist HOME_URL=https://… (where the sources are kept)
	@$(BIN)/python tools/release.py "$(HOME_URL)"

fmt: $(VENV)/.dev ## Format and apply safe lint fixes
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format .

lock: $(VENV)/.lock ## Resolve requirements/*.txt again (hashes, every Python >= 3.11, no index address)
	@for name in lock serve demo dev browser compile pypy spark41 spark42 moto site-tools; do \
	  case $$name in \
	    lock|browser|compile|spark*|moto|site-tools) from="requirements/$$name.in" ;; \
	    pypy) from="pyproject.toml --extra security requirements/pypy.in" ;; \
	    serve) from="pyproject.toml --extra api --extra mcp --extra oidc --extra security --extra serve requirements/build.in" ;; \
	    demo) from="pyproject.toml --extra demo --extra serve --extra spark requirements/build.in" ;; \
	    dev) from="pyproject.toml --extra api --extra demo --extra mcp --extra metrics --extra oidc --extra security --extra serve \
	      --extra spark \
	      requirements/build.in requirements/dev.in" ;; \
	  esac; \
	  echo "lock: requirements/$$name.txt"; \
	  $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	    --custom-compile-command "make lock" $(LOCK_ARGS) --output-file requirements/$$name.txt $$from || exit 1; \
	done

clean: ## Remove the environment and the caches
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "setup: Python 3.11 or newer is needed; name one with 'make PYTHON=/path/to/python3 ...'"; exit 1; }
	@echo "setup: making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# A stamp is newer than what it was made from. The project itself is installed editable and without dependencies,
# so that nothing comes in beside the locked requirements.
$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "setup: installing the locked requirements (requirements/dev.txt)"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@echo "setup: installing groupkeeper (editable)"
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src  # as pip does for what isn't editable: commands start twice as fast
	@touch $(VENV)/.demo $@

$(VENV)/.demo: requirements/demo.txt pyproject.toml | $(BIN)/python
	@echo "setup: installing the locked requirements (requirements/demo.txt)"
	@$(PIP) install --require-hashes -r requirements/demo.txt
	@echo "setup: installing groupkeeper (editable)"
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src  # as pip does for what isn't editable: commands start twice as fast
	@touch $@

$(VENV)/.lock: requirements/lock.txt | $(BIN)/python
	@$(PIP) install --require-hashes -r requirements/lock.txt
	@touch $@
