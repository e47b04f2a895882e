# Two commands do everything on a machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles a module when it is first imported; pip would compile all of them, in half of its time
PIP := $(BIN)/python -m pip install --no-compile --quiet --disable-pip-version-check --constraint constraints.txt
SOURCES := src tests benchmarks paper examples tools docs/conf.py

.PHONY: demo test check lint types guarantees bench paper house picture docs lowest clean help

help:
	@echo "make demo        set up .venv and run the procedure on an embedded table"
	@echo "make test        set up .venv, then lint, types and all tests"
	@echo "make guarantees  the slow tests: FDR and power by simulation"
	@echo "make house       write the stub of the public names and the picture of docs/architecture.md, print the counts"
	@echo "make picture     draw the pictures of the README and of docs/which_procedure.md"
	@echo "make docs        the documentation site, in build/site (its own environment; no network while it builds)"
	@echo "make lowest      the tests with the smallest versions of all dependencies"
	@echo "make bench       the arena: this package and its peers, each in its own environment; writes benchmarks/arena.md"
	@echo "                 (QUICK=1: every step once with the smallest settings, into build/arena)"
	@echo "make paper       every figure of the paper, and the page paper/README.md (QUICK=1: minutes, into build/paper)"

$(VENV)/.package: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) --editable '.[plots]'
	@touch $@

$(VENV)/.development: $(VENV)/.package
	$(PIP) --editable '.[tables,plots,neural,boosting,genetics,hmm,app,dask]' --requirement requirements-dev.txt
	@touch $@

demo: $(VENV)/.package
	$(BIN)/knockoffs demo

test: $(VENV)/.development check

check: lint types
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal --quiet --durations=10

lint:
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

types:
	$(BIN)/mypy

guarantees: $(VENV)/.development
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --quiet --durations=0 -o addopts="--import-mode=importlib" tests/guarantees

bench: $(VENV)/.development
	QUICK=$(QUICK) bash benchmarks/run.sh

paper: $(VENV)/.development
	$(BIN)/python -m paper $(if $(QUICK),--quick)

# the smallest versions that pyproject.toml promises, in an environment of their own (without PyTorch)
lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints-lowest.txt \
		--editable '.[tables,plots,boosting,genetics,hmm,app,dask]' pytest pytest-xdist hypothesis threadpoolctl
	OMP_NUM_THREADS=1 $(VENV)-lowest/bin/python -m pytest -n 2 --dist worksteal --quiet tests

$(VENV)-docs/.ready: pyproject.toml constraints.txt requirements-docs.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
		--editable '.[tables,plots,boosting,neural]' --requirement requirements-docs.txt pytest
	@touch $@

# pages, docstrings and examples, every warning an error; then what was built is looked through
docs: $(VENV)-docs/.ready
	rm -rf docs/api docs/gallery build/site build/doctrees
	OMP_NUM_THREADS=1 $(VENV)-docs/bin/python -m sphinx --quiet --fail-on-warning --keep-going -b html -d build/doctrees docs build/site
	$(VENV)-docs/bin/python -m pytest --quiet tests/test_site.py
	@echo "build/site/index.html"

house: $(VENV)/.development
	$(BIN)/python tools/house.py

picture: $(VENV)/.development
	OMP_NUM_THREADS=1 $(BIN)/python tools/picture.py
	$(BIN)/python tools/which.py

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-docs .benchmarks build dist docs/api docs/gallery
