#!/usr/bin/env bash
# Speed, errors and terms of this tree beside those of a commit, COMMIT; both are built, and records and tables go to DIR:
#
#     .github/scripts/beside.sh DIR COMMIT
set -euo pipefail
cd "$(dirname "$0")/../.."
rm -rf "$1" && mkdir -p "$1/old" && dir=$(realpath "$1")
git archive "$2" | tar -x -C "$dir/old"
for which in old new; do
  python3 -m venv "$dir/$which-venv"
  source=. && [ $which = new ] || source=$dir/old
  "$dir/$which-venv/bin/python" -m pip install --quiet --prefer-binary "$source" scikit-learn matplotlib
done
"$dir/new-venv/bin/python" tools/run.py --only beside --sets '500 × 10' '133 × 13, 3 classes' --seeds 5 --threads 1 \
  --to "$dir" --interpreters old="$dir/old-venv/bin/python" new="$dir/new-venv/bin/python"
cat "$dir/tables/beside.md"
