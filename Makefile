# Needs git, make and Python 3.11 or newer; everything else is installed here, locked and with hashes.
# Another Python: make test PYTHON=python3.12

PYTHON ?= >=3.11
# an old uv does not know dependency groups, so a new one is fetched beside it
UV := $(shell uv pip install --help 2>/dev/null | grep -q -e --group && command -v uv || echo .uv/bin/uv)
VENV := .venv
BIN := $(VENV)/bin
JUPYTER := .venv-jupyter

# Without bytecode every process takes 2 s longer to import altair; containers often switch it off, and uv does not write it unless told.
export UV_COMPILE_BYTECODE := 1
unexport PYTHONDONTWRITEBYTECODE

# A company's own certificate authority is known to the system, not to uv; a bare system knows none and leaves uv its own.
ifneq ($(wildcard /etc/ssl/certs/* /etc/ssl/cert.pem),)
export UV_SYSTEM_CERTS ?= 1
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help report postmortem training weekly test lint notebook bench golden docs lock clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

report: $(VENV)/.ok ## report of the split-server case: reports/sweep_review.html
	$(BIN)/pdkit report sweep_review data/split-l4-qwen3-8b --out reports

postmortem: $(VENV)/.ok ## post-mortem of the split server that "won": reports/postmortem.html
	$(BIN)/pdkit report postmortem data/split-l4-qwen3-8b/open-loop/split --out reports \
		-p 'baseline=["data/split-l4-qwen3-8b/open-loop/baseline"]' \
		-p 'claim=751.85 beats 728.61' -p claimed_tok_per_s=751.85 -p baseline_tok_per_s=728.61

training: $(VENV)/.ok ## cases for interviews and workshops: reports/training-self-study.html, -trainee and -interviewer
	$(BIN)/pdkit report training --out reports --as training-self-study
	$(BIN)/pdkit report training --out reports --as training-trainee -p audience=trainee
	$(BIN)/pdkit report training --out reports --as training-interviewer -p audience=interviewer

weekly: $(VENV)/.ok ## weekly review of twelve made-up weeks: reports/weekly_review.html
	@rm -rf reports/weekly-store
	$(BIN)/pdkit ingest data/weekly-synthetic --store reports/weekly-store
	$(BIN)/pdkit report weekly_review --store reports/weekly-store --out reports \
		-p targets=data/weekly-synthetic/targets.toml

test: $(VENV)/.ok ## all tests
	$(BIN)/python -m pytest -q -n auto

lint: $(VENV)/.ok ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

notebook: $(JUPYTER)/.ok ## JupyterLab on notebooks/
	$(JUPYTER)/bin/jupyter lab notebooks

bench: $(VENV)/.ok ## speed and memory
	$(BIN)/python benchmarks/run.py

golden: $(VENV)/.ok ## renew the golden files of the tests, then look at the diff
	$(BIN)/python -m pytest -q --renew-golden

docs: $(VENV)/.ok ## renew the generated pages of docs/
	$(BIN)/python -m pdkit.catalogue

lock: | $(UV) ## renew requirements.lock
	$(UV) pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" --all-extras --group dev pyproject.toml -o requirements.lock

clean: ## remove what was installed and built here
	rm -rf $(VENV) $(JUPYTER) .uv .hypothesis .mypy_cache .pytest_cache .ruff_cache dist

# The lock serves as a list of constraints: one file for both environments, and a package that it does not name with a hash is refused.
# JupyterLab has an environment of its own because beside it everything else starts 1.1 s later.
$(JUPYTER)/.ok: EXTRA := --extra jupyter
$(VENV)/.ok $(JUPYTER)/.ok: requirements.lock pyproject.toml | $(UV)
	@echo "Installing into $(@D) (once; half a minute)" >&2
	@$(UV) venv -q --allow-existing --python '$(PYTHON)' $(@D)
	@$(UV) pip install -q --exact --python $(@D)/bin/python --require-hashes -c requirements.lock -r pyproject.toml --group dev $(EXTRA)
	@$(UV) pip install -q --python $(@D)/bin/python --no-deps --no-build-isolation -e .
	@touch $@

.uv/bin/uv:
	@rm -rf .uv
	@PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 python3 -m pip install -qq --target .uv uv \
		|| { python3 -m venv --clear .uv && .uv/bin/python -m pip install -qq uv; } \
		|| { echo "make: this Python can fetch nothing; install pip for it (Debian: python3-pip) or uv" >&2; exit 1; }
