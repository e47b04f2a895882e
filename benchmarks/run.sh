#!/bin/sh
# `make bench`: set up the peers, then measure them and ourselves, and write docs/arena.md. Needs our own environment in
# .venv, or PYTHON set to one. Everything in one thread; JOBS tables at a time for the simulations, which take MINUTES.
# With arguments, only those parts of speed.py: imports, diagonal, fits, draw, lasso, pipeline, defaults.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
today=$(date +%F)
results=benchmarks/results/arena-$today
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1 PYTHONPATH=src
benchmarks/setup_peers.sh
if [ $# -gt 0 ]; then
    exec "$python" -m benchmarks.arena.speed --parts "$(echo "$@" | tr ' ' ,)" --out "$results-speed.csv"
fi
"$python" -m benchmarks.arena.speed --out "$results-speed.csv"
"$python" -m benchmarks.arena.checks --all "$results-checks.csv"
"$python" -m benchmarks.arena.growth --out "$results-growth.csv"
"$python" -m benchmarks.arena.growth --out "$results-growth.csv" --plot docs/arena_growth.svg
"$python" -m benchmarks.arena.profiles --out "$results-profiles.csv"
for peer in default knockpy hidimstat trex boruta; do # each with its own Python; Boruta is slow: ten tables a design
    own=.benchmarks/$peer/bin/python
    [ $peer = default ] && own=$python
    [ -x "$own" ] && "$own" -m benchmarks.arena.quality --methods $peer --out "$results-quality.csv" \
        --jobs "${JOBS:-1}" --minutes "${MINUTES:-30}" --repetitions "$([ $peer = boruta ] && echo 10 || echo 100)"
done
"$python" -m benchmarks.arena.page
"$python" benchmarks/tree_paths.py --peer .benchmarks/knockpy/bin/python
"$python" benchmarks/neural_paths.py --device cpu --peer .benchmarks/knockpy/bin/python
if benchmarks/setup_snpknock.sh; then # built from source, with the headers of Debian's libarmadillo-dev
    "$python" benchmarks/hmm.py
fi
