#!/bin/sh
# `make bench`: set up the peers, then measure them and ourselves, and write benchmarks/arena.md. Needs our own environment in
# .venv, or PYTHON set to one. Everything in one thread; JOBS tables at a time (as many as there are cores) for the
# simulations, which end after 100 tables a design or MINUTES (120) for each method, and go on where they were ended.
# With arguments, only those parts of speed.py: imports, diagonal, fits, draw, lasso, pipeline, defaults.
# `make bench QUICK=1`: every step once with the smallest settings, to see that all of it runs; its files and its page
# are in build/arena, and say nothing. The peers are set up without PyTorch then.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
today=$(date +%F)
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1 PYTHONPATH=src
folder=benchmarks/results page=benchmarks/arena.md figure=benchmarks/arena_growth.svg
speed="" growth="" quality="" trees="" neural="" hmm=""
if [ -n "${QUICK:-}" ]; then
    folder=build/arena page=build/arena/arena.md figure=build/arena/growth.svg
    mkdir -p $folder
    rm -f $folder/arena-*
    export WITHOUT_TORCH=1
    MINUTES=3
    speed="--parts imports,diagonal --rounds 1 --minutes 3"
    growth="--series lasso,\ draws:draws --minutes 0.5"
    quality="--designs ar_linear --repetitions 1"
    trees="--trees 5"
    neural="--rows 200 --epochs 1"
    hmm="--rows 16 --sites 20 --repeats 1"
fi
results=$folder/arena-$today
benchmarks/setup_peers.sh
if [ $# -gt 0 ]; then
    exec "$python" -m benchmarks.arena.speed --parts "$(echo "$@" | tr ' ' ,)" --out "$results-speed.csv"
fi
eval "\"$python\" -m benchmarks.arena.speed --out $results-speed.csv $speed"
benchmarks/setup_snpknock.sh || rm -rf .benchmarks/snpknock # built from source, with the headers of libarmadillo-dev
"$python" -m benchmarks.arena.checks --all "$results-checks.csv"
eval "\"$python\" -m benchmarks.arena.growth --out $results-growth.csv $growth"
"$python" -m benchmarks.arena.growth --out "$results-growth.csv" --plot "$figure"
"$python" -m benchmarks.arena.profiles --out "$results-profiles.csv"
for peer in default,lasso,boosting oracle knockpy hidimstat trex boruta,boruta_grown; do # each with its own Python
    own=.benchmarks/${peer%%,*}/bin/python # Boruta is slow with the forest of scikit-learn: ten tables a design of those
    case $peer in default,lasso,boosting | oracle) own=$python ;; esac
    [ -x "$own" ] && eval "\"$own\" -m benchmarks.arena.quality --methods $peer --out $results-quality.csv" \
        --jobs "${JOBS:-$(nproc)}" --minutes "${MINUTES:-120}" --limit 600 --fewer boruta=10 "$quality"
done
"$python" -m benchmarks.arena.page "$folder" "$page"
"$python" benchmarks/tree_paths.py --peer .benchmarks/knockpy/bin/python $trees
"$python" benchmarks/neural_paths.py --device cpu --peer .benchmarks/knockpy/bin/python $neural
"$python" benchmarks/hmm.py $hmm # without SNPknock, its column is empty
