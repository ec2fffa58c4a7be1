# Two commands do everything on a fresh machine that has Python >= 3.11, git and make:
#
#   make demo    install, run the whole pipeline on data/, print the path of the report
#   make test    install, run the tests; ALL=1: those that need a cluster, a browser or many minutes too
#
# Everything is installed into .venv; nothing outside this folder is touched.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
CONFIG ?= data/decon.toml
COMPILED := decon_core/kernels/compiled

# Containers often set it. Tests start hundreds of processes, and each would compile its imports again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test test-long test-dagster check dev wheel image bench world lock charting screenshots site sbom clean

setup: .venv/installed

.venv/packages: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python >= 3.11 with the venv module is needed (Debian: apt-get install python3-venv)"; exit 1; }
	$(PYTHON) -m venv .venv
	@$(PYTHON) deploy/install.py $(BIN)/python requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q decon_core decon_assets
	@$(BIN)/python deploy/write_byte_code.py
	@touch $@

.venv/installed: .venv/packages
	@$(BIN)/decon-assets warm --small --cache $(COMPILED)
	@touch $@

demo: setup
	$(BIN)/decon-assets scan data/corpus --evals data/evals.yaml --sample 10% --sample-seed 1 --out build/sampled
	$(BIN)/decon-assets demo --config $(CONFIG)

# Kernels are tested compiled, then as plain Python: there numbers that run over say so.
UNCOMPILED := tests/core/alignment/test_blocks.py tests/core/alignment/test_units.py \
	tests/core/text/test_words.py tests/core/corpus/test_batches.py tests/core/corpus/test_prop_json_lines.py \
	tests/core/corpus/test_prop_rows.py \
	tests/core/kernels/test_prefilter.py tests/core/detectors/test_prop_engine.py tests/core/detectors/test_prop_runs.py \
	tests/oracle/test_prop_code.py

# A third of the time goes by in waiting for other processes, so there are two more than cores. A file
# stays in one process: its tests share what was slow to make.
SIDE_BY_SIDE := -n $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 3 ? n + 2 : 4))) --dist loadfile --no-loadscope-reorder

# Left out of `make test`, and part of `make test ALL=1`, which CI runs.
LONG := browser or clusters or kills or postgres or release
SELECTED := $(if $(ALL),,-m "not ($(LONG))")

test: setup
	$(BIN)/pytest $(SIDE_BY_SIDE) $(SELECTED)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest $(SIDE_BY_SIDE) -q -W "ignore:overflow encountered:RuntimeWarning" $(UNCOMPILED)

# The same, and every case of what `test` tries a part of: kills between any two steps, a flipped bit in
# every kind of file. Takes hours.
test-long: setup test-dagster
	DECON_WHOLE_SESSION=1 DECON_KILLS=20 $(BIN)/pytest $(SIDE_BY_SIDE)

# The tests of the assets, also with Postgres, Slurm and Ray, with the oldest Dagster that pyproject.toml
# allows, and with the newest of which all packages are published. Everything else is as locked.
test-dagster: setup
	@for resolution in lowest-direct highest; do \
		venv=build/dagster-$$resolution && \
		$(BIN)/uv venv --quiet --clear --python $(BIN)/python $$venv && \
		$(BIN)/uv pip install --quiet --python $$venv/bin/python -r requirements.lock && \
		grep --only-matching --no-filename '"dagster[^"]*"' pyproject.toml | grep -F '>=' | tr -d '"' | sort -u \
			| $(BIN)/uv pip compile --quiet --no-annotate --no-header --resolution $$resolution - | grep '^dagster' \
			| $(BIN)/uv pip install --quiet --python $$venv/bin/python -r - && \
		$(BIN)/uv pip install --quiet --python $$venv/bin/python --no-deps --no-build-isolation -e . && \
		$(BIN)/uv pip list --python $$venv/bin/python | grep '^dagster ' && \
		PATH=$$PWD/$$venv/bin:$$PATH $$venv/bin/pytest $(SIDE_BY_SIDE) -m "not (browser or kills or release)" tests/assets || exit 1; \
	done

# Needs no kernels: `make -j2 check test` checks types while kernels are compiled.
check: .venv/packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python deploy/lock_audit.py requirements.lock
	env -u DAGSTER_HOME $(BIN)/dagster definitions validate

dev: setup
	$(BIN)/decon-assets dev --config $(CONFIG)

# With the machine code of all kernels, for processors like this one. setuptools takes up what an
# earlier build left; build/site and other outputs stay.
wheel: setup
	rm -rf build/lib build/bdist.* dist $(COMPILED)
	@echo "compiling all kernels: one to three minutes"
	$(BIN)/decon-assets warm --cache $(COMPILED)
	@echo "building the wheel"
	@$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python --out-dir dist .
	@ls dist/*.whl

# The groups that are installed in it, as in `make image EXTRAS=postgres,k8s`.
EXTRAS ?= postgres,s3
image: wheel
	docker build --file deploy/Dockerfile --build-arg EXTRAS=$(EXTRAS) --tag decon-assets:local .

bench: setup
	$(BIN)/python -m bench --peers --out docs/benchmarks.md $(BENCH)

# What is committed and made by a program: the sample world, the lock file, Plotly's script, the pictures.
world: setup
	$(BIN)/python data/make_sample_world.py
	$(BIN)/python data/make_scores.py
	$(BIN)/python data/make_tokenizer.py

lock: setup
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-strip-extras --no-annotate \
		--no-header --group dev --extra hub --extra ray pyproject.toml --output-file requirements.lock

charting: setup
	$(BIN)/python -c "import base64, gzip, hashlib, plotly.offline; from pathlib import Path; \
		script = plotly.offline.get_plotlyjs().encode(); file = Path('decon_core/report/html/plotly.min.js.gz'); \
		file.write_bytes(gzip.compress(script, 6, mtime=0)); \
		digest = base64.b64encode(hashlib.sha256(script).digest()).decode(); \
		file.with_suffix('.sha256').write_text(digest + chr(10))"

screenshots: setup
	DECON_WHOLE_SESSION=1 DECON_KEEP_SCREENSHOTS=docs/images $(BIN)/pytest -m browser

# Strictly: broken links and headings, and pages that the navigation lacks, are errors.
site: setup
	$(BIN)/python -m website --out build/site

# A list of what the lock file installs, in CycloneDX. Asks the package index for the program that writes it.
sbom: setup
	@mkdir -p build
	$(BIN)/uvx --from cyclonedx-bom==7.5.0 cyclonedx-py requirements requirements.lock --pyproject pyproject.toml \
		--output-reproducible --output-file build/sbom.json
	@echo build/sbom.json

clean:
	rm -rf .venv data/.dagster data/.decon $(COMPILED)
