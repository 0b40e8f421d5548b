#!/usr/bin/env bash
# The demo: data, SFT, reward model, PPO, summary. `make run` calls it.
#
#   examples/tiny/run.sh [--seed N] [--folder DIR] [key=value ...]
#
# Everything goes into DIR/runs (default: the repository's); runs of an earlier
# demo there are replaced. key=value goes to the PPO run only. Exit code 1 if
# the demo did not learn what it promises (summary.py says what).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
troupe=${TROUPE:-$root/build/troupe}
tiny_data=${TINY_DATA:-$root/build/tiny_data}
tiny=$root/examples/tiny

seed=1 folder=$root
while [[ ${1:-} == --* ]]; do
  case $1 in
    --seed) seed=$2 ;;
    --folder) folder=$2 ;;
    *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
mkdir -p "$folder"
cd "$folder"
rm -rf runs/tiny_data runs/tiny_sft runs/tiny_reward runs/tiny_ppo

begin=$(date +%s)
headline() {
  printf '\n=== %s (%d s)\n' "$1" "$(($(date +%s) - begin))"
}

headline "1/5 data: reviews, preference pairs, prompts, an untrained model"
"$tiny_data" --out runs/tiny_data --seed "$seed"
headline "2/5 SFT: learn the language"
"$troupe" train "$tiny/sft.yaml" run.seed="$seed"
headline "3/5 reward model: learn what is kinder"
"$troupe" train "$tiny/reward.yaml" run.seed="$seed"
headline "4/5 PPO: write kinder reviews"
"$troupe" train "$tiny/ppo.yaml" run.seed="$seed" \
  plan="$tiny/plans/groups.yaml" "$@"
headline "5/5 what was learned"
python3 -B "$tiny/summary.py" --troupe "$troupe"
headline "done"
