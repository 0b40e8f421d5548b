#!/usr/bin/env bash
# An environment with verifiers and OpenEnv for the tests of their adapters:
# .deps/environments, 800 MB. Does nothing the second time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=.deps/environments wanted=tests/python/environments.txt
cmp -s "$wanted" "$folder/wanted.txt" && exit
echo "environments: installing $wanted into $folder (800 MB)"
rm -rf "$folder"
# Debian's venv has no pip of its own without another package
python3 -m venv --without-pip "$folder"
python3 -m pip --python "$folder/bin/python" install --quiet \
  --disable-pip-version-check -r "$wanted"
cp "$wanted" "$folder/wanted.txt"
