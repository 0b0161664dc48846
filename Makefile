# Everything runs in virtual environments inside this folder; nothing outside is changed.
#
#   make demo     trains with MindSpore on real data through the callback, and shows the curves
#   make test     runs the tests: newest dependencies, oldest ones, NumPy 1, and the installed wheel
#   make lint     ruff, mypy --strict, import-linter, generated code, documentation
#   make docs     builds the documentation: build/docs/index.html
#   make bench    measures what logging costs on this machine
#   make gallery  fills every dashboard of TensorBoard and takes its picture; needs Chromium
#
# MindSpore has wheels for Python 3.10 to 3.12; PYTHON=... chooses one.

SHELL := /bin/bash
PYTHON ?= $(shell for p in python3.12 python3.11 python3.10 python3; do \
	"$$p" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null && echo "$$p" && break; done)
PIP_INSTALL := -m pip --disable-pip-version-check install --quiet
NEWEST := .venv
OLDEST := .venv-oldest
NUMPY1 := .venv-numpy1
MINDFORMERS := .venv-mindformers
WHEEL := .venv-wheel
PROTO := .venv-proto
# Two at a time: many tests wait for a clock, a child process or a server.
PYTEST_ARGS ?= -n 2 --dist worksteal
PYTEST_AGAIN ?=

.PHONY: help demo test test-newest test-oldest test-numpy1 test-mindformers test-wheel lint docs format proto bench gallery clean
help:
	@sed -n '3,9s/^#   //p' Makefile

define make_venv
	@test -n "$(PYTHON)" || { echo "needs Python 3.10, 3.11 or 3.12 on the PATH, or PYTHON=/path/to/one"; exit 1; }
	@echo "== $(1): installing ($(2)); the first time takes a few minutes"
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@$(1)/bin/python $(PIP_INSTALL) --upgrade "pip>=25.1"
endef

$(NEWEST)/demo.done: pyproject.toml
	$(call make_venv,$(NEWEST),MindSpore TensorBoard scikit-learn)
	@$(NEWEST)/bin/python $(PIP_INSTALL) --editable . --group demo
	@touch $@

$(NEWEST)/dev.done: pyproject.toml
	$(call make_venv,$(NEWEST),newest dependencies and development tools)
	@$(NEWEST)/bin/python $(PIP_INSTALL) --editable . --group dev $(if $(CI),--group peers)
	@if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix $(NEWEST) azurite@3; fi
	@touch $@

$(OLDEST)/dev.done: pyproject.toml tests/oldest.txt
	$(call make_venv,$(OLDEST),oldest dependencies: tests/oldest.txt)
	@$(OLDEST)/bin/python $(PIP_INSTALL) --constraint tests/oldest.txt --editable ".[mindspore]" --group test
	@touch $@

$(NUMPY1)/dev.done: pyproject.toml
	$(call make_venv,$(NUMPY1),newest MindSpore with NumPy 1.26)
	@$(NUMPY1)/bin/python $(PIP_INSTALL) --editable . --group test "mindspore>=2.10,<2.11" "numpy>=1.26,<2" "scipy<1.14"
	@touch $@

$(PROTO)/dev.done: proto/requirements.txt
	$(call make_venv,$(PROTO),protoc)
	@$(PROTO)/bin/python $(PIP_INSTALL) --requirement proto/requirements.txt
	@touch $@

demo: $(NEWEST)/demo.done
	@GLOG_v=3 $(NEWEST)/bin/python demo/digits.py

test: test-newest test-oldest test-numpy1 test-wheel
	@echo "== all tests passed"

test-newest: $(NEWEST)/dev.done
	@echo "== newest dependencies: all tests"
	GLOG_v=3 $(NEWEST)/bin/python -m pytest $(PYTEST_ARGS) $(PYTEST_AGAIN)

test-oldest: $(OLDEST)/dev.done
	@echo "== oldest dependencies: core and bridge (TensorBoard's readers need newer ones)"
	GLOG_v=3 $(OLDEST)/bin/python -m pytest tests/unit tests/golden tests/conformance tests/stateful tests/packaging tests/crash tests/cli tests/msbridge -m "not slow" $(PYTEST_ARGS) $(PYTEST_AGAIN)

# Not a part of `make test`: MindFormers brings 2.7 GB of packages. CI runs it.
$(MINDFORMERS)/dev.done: pyproject.toml tests/with_mindformers/requirements.txt
	$(call make_venv,$(MINDFORMERS),MindFormers 1.9 and MindSpore 2.9)
	@$(MINDFORMERS)/bin/python $(PIP_INSTALL) --editable . --group test --requirement tests/with_mindformers/requirements.txt
	@touch $@

test-mindformers: $(MINDFORMERS)/dev.done
	@echo "== MindFormers: its registry, its monitors, its writer"
	GLOG_v=3 $(MINDFORMERS)/bin/python -m pytest tests/with_mindformers $(PYTEST_ARGS) $(PYTEST_AGAIN)

test-numpy1: $(NUMPY1)/dev.done
	@echo "== newest MindSpore with NumPy 1.26: values and bridge"
	GLOG_v=3 $(NUMPY1)/bin/python -m pytest tests/unit tests/msbridge -m "not slow" $(PYTEST_ARGS) $(PYTEST_AGAIN)

# The tests run from another folder, so that they import what the wheel installed and not this checkout.
test-wheel:
	$(call make_venv,$(WHEEL),the wheel alone)
	@rm -rf dist && $(WHEEL)/bin/python -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .
	@$(WHEEL)/bin/python $(PIP_INSTALL) --group test
	@$(WHEEL)/bin/python $(PIP_INSTALL) --force-reinstall --no-deps dist/*.whl
	@$(WHEEL)/bin/python $(PIP_INSTALL) dist/*.whl
	@echo "== the installed wheel: core without extras"
	@rm -rf build/wheel-tests && mkdir -p build && cp -r tests build/wheel-tests && cp pyproject.toml build/
	cd build && ../$(WHEEL)/bin/python -m pytest -p no:cacheprovider wheel-tests/packaging wheel-tests/unit wheel-tests/conformance wheel-tests/stateful $(PYTEST_ARGS) $(PYTEST_AGAIN)

lint: $(NEWEST)/dev.done $(PROTO)/dev.done
	$(NEWEST)/bin/ruff check .
	$(NEWEST)/bin/ruff format --check .
	$(NEWEST)/bin/mypy
	$(NEWEST)/bin/lint-imports
	$(PROTO)/bin/python proto/generate.py --check
	@$(MAKE) --no-print-directory docs

# -W -n: a warning, and a name that leads nowhere, is an error. -E: all pages anew, or unchanged ones would not warn.
docs: $(NEWEST)/dev.done
	GLOG_v=3 $(NEWEST)/bin/sphinx-build -W -n -E --keep-going --quiet --builder html docs build/docs
	@echo "== documentation: build/docs/index.html"

format: $(NEWEST)/dev.done
	$(NEWEST)/bin/ruff check --fix .
	$(NEWEST)/bin/ruff format .

proto: $(PROTO)/dev.done
	$(PROTO)/bin/python proto/generate.py

bench: $(NEWEST)/dev.done
	@$(NEWEST)/bin/python $(PIP_INSTALL) --group bench
	$(NEWEST)/bin/python -m benchmarks --full
	$(NEWEST)/bin/python -m benchmarks report

gallery: $(NEWEST)/dev.done
	PICTURES=docs/gallery $(NEWEST)/bin/python -m pytest -rs tests/integration/test_gallery_pages.py
	$(NEWEST)/bin/python demo/gallery.py

clean:
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
