#!/usr/bin/env bash
# Packs first light for a machine without a network and without Debian's libraries
# (bundle.py says what is in it).
#
#   tests/gpu/bundle.sh OUT.tar.gz [--build DIR]
set -euo pipefail
exec python3 -B "$(dirname "${BASH_SOURCE[0]}")/bundle.py" "$@"
