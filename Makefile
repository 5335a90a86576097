# Two commands are all that a newcomer needs: `make demo` and `make test`. Both set up their own environment.

PYTHON ?= python3
PYTHONS ?= 3.12 3.13 3.14
BEAMS ?= 2.72 2.73 2.74 2.75 2.76
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test nightly test-cluster clients test-clients test-kernels test-lowest test-beams test-pythons test-wheel lint bench bench-flink guard docs fuzz mutants sbom audit release clean

help: ## Show the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

setup: $(READY) ## Make .venv and install the project with everything that tests and reports need.

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: Python 3.11 or newer is needed; name one with: make PYTHON=python3.11 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[report,export,serve,dev]'
	@touch $@

demo: $(READY) ## Run the main job live on check-ins in Manhattan; writes build/demo/report.html.
	$(BIN)/uldp demo --out build/demo

test: $(READY) ## Run all tests, or those of some folders: make test FOLDERS=tests/schemas
	$(BIN)/python -m pytest -n auto --dist loadgroup $(FOLDERS)

nightly: $(READY) ## Run what .ci/run leaves out: tests that take minutes each, with a cluster too, fuzz, mutants, kernels, versions.
	.ci/nightly

test-cluster: $(READY) ## Run the tests that start brokers and a Flink cluster, or need an extra; needs Java 17, Maven and Go.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[report,export,serve,dev,kafka,gcp]'
	ULDP_CLUSTER=1 $(BIN)/python -m pytest -n 3 --dist loadgroup --no-loadscope-reorder --durations=12 tests/cluster tests/deploy \
	  tests/pipelines/jobs/test_dataflow_request.py tests/transforms/io/test_bigquery.py

clients: ## Build the clients in TypeScript and Kotlin, and run their own tests; needs Node, Java 17 and Maven.
	cd clients/typescript && npm ci --prefer-offline --no-audit --no-fund --silent && npm run --silent build && npm test --silent
	mvn --batch-mode --quiet --file clients/kotlin package

test-clients: $(READY) clients ## Run the tests of the clients, or those of one name: make test-clients ONLY=vectors; needs a C compiler too.
	ULDP_CLIENTS=1 $(BIN)/python -m pytest -n auto tests/clients $(if $(ONLY),-k '$(ONLY)')

test-kernels: $(READY) ## Run the tests that compute with floats under two kernels of OpenBLAS that few developers have.
	tests/kernels.sh $(BIN)/python Haswell Zen

test-lowest: build/lowest/.ready ## Run the tests, but slow ones and those of benchmarks, with the lowest versions that pyproject.toml allows.
	build/lowest/bin/python -m pytest -n auto --dist loadgroup -m 'not slow' --ignore tests/benchmarks $(FOLDERS)

build/lowest/.ready: pyproject.toml $(READY)
	$(PYTHON) -m venv --clear build/lowest
	$(BIN)/uv pip install --quiet --python build/lowest --resolution lowest-direct --editable '.[report,export,serve,dev,kafka,gcp]'
	@touch $@

test-beams: $(READY) ## Run the tests of transforms and jobs with each Beam that is supported but the newest, which all other tests have.
	for beam in $(BEAMS); do \
	  $(PYTHON) -m venv --clear build/beam && \
	  $(BIN)/uv pip install --quiet --python build/beam --editable '.[report,export,serve,dev,kafka,gcp]' "apache-beam==$$beam.*" && \
	  build/beam/bin/python -m pytest -n auto -m 'not slow' tests/transforms tests/pipelines/jobs || exit 1; \
	done

test-pythons: ## Run the demo, and the tests but slow ones, under Python 3.12, 3.13 and 3.14; as root on Debian, the last two are fetched if need be.
	tests/pythons.sh $(PYTHONS)

test-wheel: $(READY) ## Install the wheel alone, and use it as README does, under this Python, 3.12, 3.13 and 3.14.
	rm -rf build/wheel
	$(BIN)/python -m build --installer uv --wheel --outdir build/wheel .
	$(PYTHON) -m tests.release build/wheel wheel
	tests/pythons.sh --wheel build/wheel $(PYTHONS)

lint: $(READY) ## Check style and types.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(READY) ## Run the benchmarks, against other libraries too; writes build/bench/bench.md and bench.png.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[beam,report,bench]'
	$(BIN)/python -m benchmarks

bench-flink: $(READY) ## Measure a Flink cluster on this machine beside the local runner; needs Java 17 and Maven.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[report,export,serve,dev,kafka,gcp]'
	$(BIN)/python -m benchmarks.flink

guard: $(READY) ## Fail if a ratio of rates is below its margin.
	$(BIN)/python -m benchmarks --guard

docs: $(READY) ## Build the site of docs into build/site, and fail at a warning; then: python -m http.server --directory build/site
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[beam,report,export,serve,dev,docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --config-file deploy/site/mkdocs.yml

fuzz: $(READY) ## Feed the decoder and the reader of containers 60,000 inputs that a coverage-guided fuzzer makes; Linux only.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[beam,fuzz]'
	mkdir -p build/fuzz build/fuzz-containers
	$(BIN)/python -m tests.fuzz decoder -runs=50000 -seed=1 -max_len=512 -artifact_prefix=build/ build/fuzz tests/fuzz/corpus
	$(BIN)/python -m tests.fuzz container -runs=10000 -seed=1 -max_len=2048 -artifact_prefix=build/ build/fuzz-containers tests/fuzz/containers

mutants: $(READY) ## Change 200 lines in a copy, which the date decides, and fail if no quick test notices one of them.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[report,export,serve,dev,mutants]'
	$(BIN)/python -m pytest tests/mutants
	$(BIN)/python -m tests.mutants

sbom: $(READY) ## Write what the image installs into build/sbom.json, as CycloneDX, from the lock.
	mkdir -p build
	$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements deploy/image/requirements.lock \
	  --pyproject pyproject.toml --output-reproducible --spec-version 1.6 --output-file build/sbom.json

audit: $(READY) ## Ask for known vulnerabilities of what the locks pin, and fail at one; says so if no service answers.
	tests/audit.sh $(BIN)/uv tool run --quiet pip-audit==2.10.1 --vulnerability-service osv --progress-spinner off \
	  --disable-pip --require-hashes --requirement deploy/image/requirements.lock --requirement deploy/image/build.lock

release: ## Build what a release publishes into dist, and try each artefact; see deploy/releasing.md.
	deploy/release.sh

clean: ## Remove the environment and what was built.
	rm -rf $(VENV) build dist
