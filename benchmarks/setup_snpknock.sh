#!/usr/bin/env bash
# SNPknock 0.8.3 (C++, the peer of benchmarks/hmm.py) in an environment of its own under .benchmarks/snpknock.
# It needs the headers of Armadillo, which Debian has, and a setuptools that still carries pkg_resources.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-python3}"
home=.benchmarks/snpknock
if [ -x "$home/bin/python" ] && "$home/bin/python" -c "import SNPknock" 2>/dev/null; then
  echo "SNPknock is there: $home"
  exit 0
fi
if ! echo '#include <armadillo>' | g++ -x c++ -fsyntax-only - 2>/dev/null; then
  apt-get update -qq && apt-get install -y -qq libarmadillo-dev g++
fi
"$python" -m venv "$home"
"$home/bin/pip" install -q "setuptools<81" wheel cython numpy
"$home/bin/pip" install -q --no-build-isolation "SNPknock==0.8.3"
"$home/bin/python" -c "import SNPknock; print('SNPknock installed')"
