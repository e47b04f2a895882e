#!/bin/sh
# Make one virtual environment for each peer under .benchmarks/, once. Called by `make bench`; needs a C compiler.
# The peers stay out of our own environment: their pins are not ours.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

start() { # make the environment and say where it is
    rm -rf ".benchmarks/$1"
    "$python" -m venv ".benchmarks/$1"
    ".benchmarks/$1/bin/pip" install --quiet --upgrade pip
}

if [ ! -f .benchmarks/knockpy/ready ]; then
    echo "setting up .benchmarks/knockpy"
    start knockpy
    # DSDP, knockpy's SDP solver, is built from source and asks for -lblas -llapack. SciPy 1.11 is the last whose wheel
    # holds an OpenBLAS with plain symbol names: linked against that one, DSDP needs no BLAS of the system, and is not
    # slowed down by a reference BLAS. core.py puts .benchmarks/knockpy/blas on LD_LIBRARY_PATH.
    blas=$PWD/.benchmarks/knockpy/blas
    .benchmarks/knockpy/bin/pip install --quiet --no-deps --target .benchmarks/knockpy/old --python-version 3.11 \
        --only-binary :all: "scipy==1.11.4"
    mv .benchmarks/knockpy/old/scipy.libs "$blas"
    rm -r .benchmarks/knockpy/old
    for name in libblas.so liblapack.so; do
        ln -s "$blas"/libopenblas*.so "$blas/$name"
    done
    .benchmarks/knockpy/bin/pip install --quiet --upgrade numpy scipy cython "setuptools>=77,<81" wheel
    LIBRARY_PATH=$blas LD_LIBRARY_PATH=$blas .benchmarks/knockpy/bin/pip install --quiet --no-build-isolation \
        "knockpy[fast]==1.3.5"
    .benchmarks/knockpy/bin/pip install --quiet "torch==2.13.0" # for DeepPINK
    touch .benchmarks/knockpy/ready
fi

if [ ! -f .benchmarks/hidimstat/ready ]; then
    echo "setting up .benchmarks/hidimstat"
    start hidimstat
    .benchmarks/hidimstat/bin/pip install --quiet "hidimstat==0.4.0" packaging # imported, but not asked for
    touch .benchmarks/hidimstat/ready
fi
