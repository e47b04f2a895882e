#!/bin/sh
# `make bench`: set up the peers, then measure. Needs our own environment in .venv, or PYTHON set to one.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
benchmarks/setup_peers.sh
PYTHONPATH=src "$python" benchmarks/core.py "$@"
