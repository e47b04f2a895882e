#!/usr/bin/env bash
# SNPknock 0.8.3 (C++, the peer of benchmarks/hmm.py) in an environment of its own under .benchmarks/snpknock.
# It needs the headers of Armadillo alone, which are unpacked from Debian's package into that environment (no root, nothing
# is installed), an archive of the library's name to link against, and a setuptools that still carries pkg_resources.
set -euo pipefail
cd "$(dirname "$0")/.."
python="${PYTHON:-python3}"
home=$PWD/.benchmarks/snpknock
if [ -x "$home/bin/python" ] && "$home/bin/python" -c "import SNPknock, scipy" 2>/dev/null; then
  echo "SNPknock is there: $home"
  exit 0
fi
"$python" -m venv "$home"
mkdir -p "$home/armadillo"
if ! echo '#include <armadillo>' | g++ -x c++ -fsyntax-only - 2>/dev/null; then
  (cd "$home/armadillo" && apt-get download -qq libarmadillo-dev && dpkg -x libarmadillo-dev_*.deb .)
fi
ar rcs "$home/armadillo/libarmadillo.a"
"$home/bin/pip" install -q "setuptools<81" wheel cython numpy scipy  # SciPy for benchmarks/arena/checks.py
CPLUS_INCLUDE_PATH=$home/armadillo/usr/include LIBRARY_PATH=$home/armadillo \
  CFLAGS="-DARMA_DONT_USE_WRAPPER -DARMA_DONT_USE_LAPACK -DARMA_DONT_USE_BLAS" \
  "$home/bin/pip" install -q --no-build-isolation "SNPknock==0.8.3"
"$home/bin/python" -c "import SNPknock; print('SNPknock installed')"
