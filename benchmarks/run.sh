#!/bin/sh
# `make bench`: set up the peers, then measure. Needs our own environment in .venv, or PYTHON set to one.
# With arguments, only those parts of core.py: diagonal, draw, lasso, pipeline (hidimstat's pipeline takes minutes).
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1 PYTHONPATH=src
benchmarks/setup_peers.sh
"$python" benchmarks/core.py "$@"
[ $# -eq 0 ] || exit 0
"$python" benchmarks/tree_paths.py --peer .benchmarks/knockpy/bin/python
"$python" benchmarks/neural_paths.py --device cpu --peer .benchmarks/knockpy/bin/python
if benchmarks/setup_snpknock.sh; then # SNPknock is built from source, against Debian's libarmadillo-dev
    "$python" benchmarks/hmm.py
fi
