#!/usr/bin/env bash
# An environment with the packages of tests/python/NAME.txt for the tests that run
# beside them: .deps/NAME. Does nothing the second time.
#
#   tests/python/packages.sh trackers|environments
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=.deps/$1 wanted=tests/python/$1.txt
cmp -s "$wanted" "$folder/wanted.txt" && exit
echo "$1: installing $wanted into $folder"
rm -rf "$folder"
# Debian's venv has no pip of its own without another package
python3 -m venv --without-pip "$folder"
python3 -m pip --python "$folder/bin/python" install --quiet \
  --disable-pip-version-check -r "$wanted"
cp "$wanted" "$folder/wanted.txt"
