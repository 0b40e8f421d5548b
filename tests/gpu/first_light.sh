#!/usr/bin/env bash
# First light on one GPU, in ten minutes (docs/gpu_tests.md): first_light.py says what and how.
#
#   tests/gpu/first_light.sh [--build DIR] [--out DIR] [--list] [--only WORDS] [--rehearse]
set -euo pipefail
exec python3 -B "$(dirname "${BASH_SOURCE[0]}")/first_light.py" "$@"
