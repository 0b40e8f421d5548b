#!/usr/bin/env bash
# First light on the GPUs of this machine, two to eight: sums beside nccl-tests where
# they are installed, tensor peers, z3, moves, PPO under four presets, a killed worker.
#
#   tests/gpu/first_light_many.sh [--gpus N] [as first_light.sh]
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true)
((gpus >= 2)) || gpus=2 # first_light.py says that they are missing
((gpus <= 8)) || gpus=8
exec python3 -B "$here/first_light.py" --gpus "$gpus" "$@"
