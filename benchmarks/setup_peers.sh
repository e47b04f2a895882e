#!/bin/sh
# Make one virtual environment for each peer, and one for us, under .benchmarks/, once. Called by `make bench`; needs a
# C compiler.
# The peers stay out of our own environment: their pins are not ours. One that does not install is named and left out.
set -u
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

start() { # make the environment of a peer
    echo "setting up .benchmarks/$1"
    rm -rf ".benchmarks/$1"
    "$python" -m venv ".benchmarks/$1" && ".benchmarks/$1/bin/pip" install --quiet --upgrade pip
}

knockpy() {
    start knockpy || return 1
    # DSDP, knockpy's SDP solver, is built from source and asks for -lblas -llapack. SciPy 1.11 is the last whose wheel
    # holds an OpenBLAS with plain symbol names: linked against that one, DSDP needs no BLAS of the system, and is not
    # slowed down by a reference BLAS. speed.py puts .benchmarks/knockpy/blas on LD_LIBRARY_PATH.
    blas=$PWD/.benchmarks/knockpy/blas
    pip=.benchmarks/knockpy/bin/pip
    $pip install --quiet --no-deps --target .benchmarks/knockpy/old --python-version 3.11 \
        --only-binary :all: "scipy==1.11.4" || return 1
    mv .benchmarks/knockpy/old/scipy.libs "$blas"
    rm -r .benchmarks/knockpy/old
    for name in libblas.so liblapack.so; do
        ln -s "$blas"/libopenblas*.so "$blas/$name"
    done
    $pip install --quiet --upgrade numpy scipy cython "setuptools>=77,<81" wheel || return 1
    LIBRARY_PATH=$blas LD_LIBRARY_PATH=$blas $pip install --quiet --no-build-isolation "knockpy[fast]==1.3.5" ||
        $pip install --quiet --no-build-isolation "knockpy==1.3.5" || return 1 # without DSDP: SDP by cvxpy
    [ -n "${WITHOUT_TORCH:-}" ] || $pip install --quiet "torch==2.13.0" # for DeepPINK
}

hidimstat() {
    start hidimstat && .benchmarks/hidimstat/bin/pip install --quiet "hidimstat==0.4.0" packaging # imported, not asked for
}

boruta() {
    start boruta && .benchmarks/boruta/bin/pip install --quiet "Boruta==0.4.3"
}

trex() { # T-Rex selector: the port to Python is called trexselector
    start trex && .benchmarks/trex/bin/pip install --quiet "trexselector==0.6.18"
}

ours() { # what pip brings with this package, and no more: for the time of an import
    start ours && .benchmarks/ours/bin/pip install --quiet .
}

for peer in ${*:-ours knockpy hidimstat boruta trex}; do
    [ -f ".benchmarks/$peer/ready" ] && continue
    if $peer; then touch ".benchmarks/$peer/ready"; else echo "$peer does not install here: its rows stay empty"; fi
done
