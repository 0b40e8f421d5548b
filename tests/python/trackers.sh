#!/usr/bin/env bash
# An environment with Weights & Biases and MLflow for their tests: .deps/trackers,
# 210 MB. Does nothing the second time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=.deps/trackers wanted=tests/python/trackers.txt
cmp -s "$wanted" "$folder/wanted.txt" && exit
echo "trackers: installing $wanted into $folder (210 MB)"
rm -rf "$folder"
# Debian's venv has no pip of its own without another package
python3 -m venv --without-pip "$folder"
python3 -m pip --python "$folder/bin/python" install --quiet \
  --disable-pip-version-check -r "$wanted"
cp "$wanted" "$folder/wanted.txt"
