# Each target makes the virtual environment it needs, and renews it when what is installed changes.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --constraint constraints.txt --editable
RUN ?= runs/reverse
IMAGE_STORE ?= /var/tmp/dragoman-image
PROTOC := .venv-protos
OPTIMUM := .venv-optimum
DIST := .venv-dist
DOCS := .venv-docs
SBOM := .venv-sbom
SERVED := .venv-served
BENCH ?= runs/bench

.PHONY: run toy test test-slow test-deploy test-image lint format protos dashboard options settings \
	bench bench-quick bench-real bench-parts bench-scaling dist docs sbom clean

## run: serve the default model on this machine, and translate with it; PORT=50052 for another port
run: $(VENV)/.run
	@PORT=$(PORT) bash scripts/run.sh $(BIN) models/en-pt

## toy: train a toy model in about a minute, translate with it, draw its attention
toy: $(VENV)/.toy
	$(BIN)/dragoman train recipes/reverse.toml --output $(RUN)
	$(BIN)/dragoman evaluate $(RUN) --beam-size 4 --show 5 \
		--source $(RUN)/data/toy/test.source --reference $(RUN)/data/toy/test.target
	$(BIN)/dragoman plot $(RUN)
	$(BIN)/dragoman attention $(RUN) "d r a g o m a n" --output $(RUN)/attention.png

## test: the test suite
test: $(VENV)/.dev
	$(BIN)/pytest --numprocesses 2 --dist worksteal

## test-slow: what the test suite leaves out because it takes minutes
test-slow: $(VENV)/.dev
	$(BIN)/pytest -m slow

## test-deploy: of the suite, what is about deploy/; fails where a tool is missing instead of skipping
test-deploy: $(VENV)/.dev
	DRAGOMAN_ALL_TOOLS=1 $(BIN)/pytest -m "slow or not slow" tests/deploy

## test-image: build the image and run it, without Docker; as root, in a directory that is kept
test-image:
	$(PYTHON) deploy/image/prove.py $(IMAGE_STORE)
	$(PYTHON) deploy/image/prove.py $(IMAGE_STORE) --target gpu

## lint: formatting, lint and types
lint: $(VENV)/.dev
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy

## format: put the code into shape
format: $(VENV)/.dev
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

## protos: generate the stubs of the wire contract again
protos: $(PROTOC)/.done
	cd protos && ../$(PROTOC)/bin/python -m grpc_tools.protoc \
		--proto_path=. --proto_path=$$(../$(PROTOC)/bin/python -c \
		'import google.rpc, pathlib; print(pathlib.Path(google.rpc.__path__[0]).parents[1])') \
		--python_out=. --pyi_out=. --grpc_python_out=. dragoman/v1/translation.proto

## dashboard: generate Grafana's dashboard again
dashboard: $(VENV)/.dev
	$(BIN)/python deploy/grafana/dashboard.py > dashboard.json.new
	mv dashboard.json.new deploy/grafana/dashboards/dragoman.json

## options: write the tables of docs/options.md again
options: $(VENV)/.dev
	$(BIN)/python scripts/options_page.py

## settings: write docs/settings.md again, which lists all settings of a recipe
settings: $(VENV)/.dev
	$(BIN)/python scripts/settings_page.py

## bench: Dragoman beside its peers, under load, and where its time goes; writes docs/benchmarks.md
bench: $(VENV)/.peers
	mkdir -p $(BENCH)
	-$(MAKE) --no-print-directory $(OPTIMUM)/.done
	$(BIN)/python benchmarks/compare.py --json $(BENCH)/compare.json \
		$$(test -e $(OPTIMUM)/.done && echo --optimum $(OPTIMUM)/bin/python)
	$(BIN)/python benchmarks/shortlist.py --subjects opus --json $(BENCH)/shortlist.json
	-$(BIN)/python benchmarks/under_load.py latency --json $(BENCH)/latency.json
	-$(BIN)/python benchmarks/under_load.py latency --model en-pt-wide \
		--json $(BENCH)/latency_wide.json
	-$(BIN)/python benchmarks/under_load.py overload --json $(BENCH)/overload.json
	-$(BIN)/python benchmarks/under_load.py memory --json $(BENCH)/memory.json
	$(BIN)/python benchmarks/served_sentence.py --json $(BENCH)/served_sentence.json
	$(BIN)/python benchmarks/report.py $(BENCH) docs/benchmarks.md

## bench-quick: the server beside CTranslate2 only, in minutes; fails where it falls behind
bench-quick: $(VENV)/.peers
	@$(BIN)/python benchmarks/compare.py --quick

## bench-real: published models on your text beside Bergamot and CTranslate2; BENCH_REAL says on which
bench-real: $(VENV)/.peers
	mkdir -p $(BENCH)
	$(BIN)/python benchmarks/real.py --json $(BENCH)/real.json $(BENCH_REAL)

## bench-parts: training beside a plain loop, the engine and its graphs beside the machine's limits
bench-parts: $(VENV)/.peers
	$(BIN)/python benchmarks/learning/training_speed.py
	$(BIN)/python benchmarks/graphs.py
	$(BIN)/python benchmarks/engine.py

## bench-scaling: how many workers one front keeps busy, on a machine of 32 cores that is simulated
bench-scaling: $(VENV)/.peers
	$(BIN)/python benchmarks/scaling.py

## dist: the source distribution and the wheel, checked, in dist/
dist: $(DIST)/.done
	rm -rf dist
	$(DIST)/bin/python -m build --no-isolation --outdir dist .
	$(DIST)/bin/python -m twine check --strict dist/*

## sbom: what a server is made of, as CycloneDX, in dist/; the tool is in none of its environments
sbom: $(SBOM)/.done $(SERVED)/.done
	mkdir -p dist
	$(SBOM)/bin/cyclonedx-py environment --pyproject pyproject.toml --mc-type application \
		--output-reproducible --output-format JSON --output-file dist/dragoman-server.cdx.json \
		$(SERVED)/bin/python

## docs: the documentation as a site, in site/; a broken link fails
docs: $(DOCS)/.done
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --strict --site-dir site

## clean: remove the virtual environment and what tools left behind
clean:
	rm -rf $(VENV) $(PROTOC) $(OPTIMUM) $(DIST) $(DOCS) $(SBOM) $(SERVED) dist site
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) '.[server]'
	touch $@

$(VENV)/.toy: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) '.[training]'
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) '.[dev]'
	touch $@ $(VENV)/.run $(VENV)/.toy

$(VENV)/.peers: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) '.[peers]'
	touch $@ $(VENV)/.dev $(VENV)/.run $(VENV)/.toy

# Optimum-ONNX wants an older transformers than the one that is compared beside it. All else it
# finds where the others are, which its own packages go before.
$(OPTIMUM)/.done: $(VENV)/.peers
	$(PYTHON) -m venv $(OPTIMUM)
	$(OPTIMUM)/bin/python -m pip --disable-pip-version-check install --quiet --no-deps \
		optimum==2.1.0 optimum-onnx==0.1.0 transformers==4.57.6 huggingface_hub==0.36.2 \
		tokenizers==0.22.2 requests==2.34.2 urllib3==2.8.0 certifi==2026.10.18 \
		charset-normalizer==3.5.2
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' > \
		$$($(OPTIMUM)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/rest.pth
	touch $@

# The oldest compiler whose stubs load with all versions of protobuf that pyproject.toml allows: a
# stub loads with the version it was made for, and with the next major one.
$(PROTOC)/.done:
	$(PYTHON) -m venv $(PROTOC)
	$(PROTOC)/bin/python -m pip --disable-pip-version-check install --quiet \
		grpcio-tools==1.72.2 protobuf==6.30.2 googleapis-common-protos==1.70.0 setuptools==80.9.0
	touch $@

# The build backend is installed here, with its version pinned, so that no isolated environment has to
# be made for each build.
$(DIST)/.done: constraints.txt
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint constraints.txt build hatchling twine
	touch $@

$(SBOM)/.done: constraints.txt
	$(PYTHON) -m venv $(SBOM)
	$(SBOM)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint constraints.txt cyclonedx-bom
	touch $@

# The packages of the image for CPUs, and like there without pip.
$(SERVED)/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(SERVED)
	$(SERVED)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint constraints.txt '.[server]'
	$(SERVED)/bin/python -m pip uninstall --quiet --yes pip setuptools
	touch $@

# The theme would print at each build that it is maintained until May 2027 and has a successor.
$(DOCS)/.done: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip --disable-pip-version-check install --quiet \
		--constraint constraints.txt --editable '.[docs]'
	touch $@
