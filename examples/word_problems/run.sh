#!/usr/bin/env bash
# A small real model learns to solve word problems: fetches it, writes problems,
# trains, and prints how many of 200 unseen problems it solves before and after.
#
#   examples/word_problems/run.sh [--seed N] [--folder DIR] [key=value ...]
#
# `make real` calls it. Needs 6 GB for a Python with torch and transformers
# (.deps/golden), 1 GB in DIR (default: build/word_problems) and 4 GiB of memory.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/examples/word_problems
troupe=${TROUPE:-$root/build/troupe}
seed=1 folder=$root/build/word_problems
while [[ ${1:-} == --* ]]; do
  case $1 in
    --seed) seed=$2 ;;
    --folder) folder=$2 ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
mkdir -p "$folder"
cd "$folder"

if [[ ! -f smollm2/model.safetensors ]]; then
  python=$(python3 -B "$root/tests/golden/make_golden.py" --python)
  "$python" -m pip install --quiet --disable-pip-version-check --target gguf \
    --no-deps gguf==0.19.0 requests urllib3 idna certifi charset_normalizer
  PYTHONPATH=gguf "$python" -B "$here/model.py" --out smollm2
fi
python3 -B "$here/problems.py" --rows 2000 --seed 1 --out train.jsonl
python3 -B "$here/problems.py" --rows 200 --seed 2 --without train.jsonl --out eval.jsonl
"$troupe" train "$here/grpo.yaml" run.seed="$seed" "$@"
