#!/usr/bin/env bash
# The tests of another build or in another environment, made in build/variants/NAME:
#
#     .github/scripts/variant.sh NAME [pytest arguments]
#
# plain           as it is, of the interpreter PYTHON (python3)
# oldest          the lowest versions of the dependencies
# avx2            kernels and BLAS of a processor with AVX2 and without AVX-512
# clang           compiled with Clang (CC, where it is not called clang)
# boundscheck     every index in the Cython kernels checked
# sanitized       address and undefined-behaviour sanitizers of GCC: the kernels' tests and the algorithms', unless others are named
# free-threaded   an interpreter without the GIL (PYTHON): no limited API, the GIL kept off
# parallel        the same, and each test runs in four threads at once
# nightlies       built and tested with what the index NIGHTLY_INDEX has of tomorrow's NumPy, SciPy, scikit-learn and Cython
set -euo pipefail
cd "$(dirname "$0")/../.."
name=$1 && shift
environment=build/variants/$name build=(--prefer-binary) packages=(--group test) settings=(PYTHONSAFEPATH=1) tests=()
case $name in
  plain) ;;
  oldest) mkdir -p "$environment" && python3 .github/scripts/lowest.py >"$environment/lowest.txt"
          packages+=(--constraint "$environment/lowest.txt") ;;
  avx2) settings+=(SPARSERF_LEVEL=x86-64-v3 OPENBLAS_CORETYPE=Haswell) ;;
  clang) export CC=${CC:-clang} ;;
  boundscheck) build+=(-Csetup-args=-Dboundscheck=true) ;;
  sanitized) build+=(-Csetup-args=-Db_sanitize=address,undefined -Csetup-args=-Db_lundef=false)
             settings+=("LD_PRELOAD=$(gcc -print-file-name=libasan.so)" ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1)
             tests=(tests/core/test_kernels.py tests/features/test_maps.py tests/features/test_taylor.py tests/features/test_feature_set.py tests/features/test_dictionaries.py tests/rows/test_rows_in_memory.py tests/base/test_csr_checks.py tests/core/test_levels.py tests/features/test_projections.py tests/model/test_model.py tests/model/test_file.py tests/algorithms/test_drp.py tests/algorithms/test_harfe.py tests/algorithms/test_mfga.py tests/algorithms/test_sparse_rf.py tests/algorithms/test_default_promises.py tests/rows/test_chunks.py tests/rows/test_same_fit_anywhere.py) ;;
  free-threaded) build+=(-Csetup-args=-Dpython.allow_limited_api=false) settings+=(PYTHON_GIL=0)
                 packages=(pytest hypothesis mpmath scikit-learn)  # the others' wheels are not all there: kernels and algorithms
                 tests=(tests/core/test_kernels.py tests/rows/test_rows_in_memory.py tests/base/test_csr_checks.py tests/test_determinism.py tests/algorithms/test_drp.py tests/algorithms/test_harfe.py tests/algorithms/test_mfga.py tests/algorithms/test_prune.py tests/algorithms/test_sparse_rf.py tests/sums/test_sums.py tests/project/test_wheel.py) ;;
  parallel) build+=(-Csetup-args=-Dpython.allow_limited_api=false) settings+=(PYTHON_GIL=0)
            packages=(pytest pytest-run-parallel hypothesis mpmath scikit-learn)
            # no tests that fork, measure memory or replace a part of the library for a while
            tests=(tests/core/test_kernels.py tests/base/test_csr_checks.py tests/sums/test_sums.py tests/algorithms/test_drp.py tests/algorithms/test_harfe.py)
            set -- --parallel-threads=4 --deselect=tests/sums/test_sums.py::test_no_matrix_of_all_features_is_held "$@" ;;
  nightlies) export PIP_PRE=1 PIP_EXTRA_INDEX_URL=${NIGHTLY_INDEX:?is to be the address of the index of nightly wheels (SPEC 4)} ;;
  *) echo "$name: no such variant" >&2; exit 2 ;;
esac
python=$environment/bin/python
if [ "${OS-}" = Windows_NT ]; then  # where the build finds the linker of Visual Studio itself
  python=$environment/Scripts/python.exe build+=(-Csetup-args=--vsenv)
  export CC=clang-cl
fi
[[ " $*" == *" tests/"* ]] || set -- ${tests[@]+"${tests[@]}"} "$@"
"${PYTHON:-python3}" -m venv "$environment"
"$python" -m pip install --quiet --upgrade pip
"$python" -m pip install --quiet . "${build[@]}" "${packages[@]}"
env "${settings[@]}" "$python" -P -c 'import sparserf; sparserf.show_versions()'
env "${settings[@]}" "$python" -m pytest "$@"
