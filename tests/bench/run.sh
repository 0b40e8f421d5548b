#!/usr/bin/env bash
# make bench: builds and runs every benchmark, one after the other, puts the
# JSON documents into build/bench/ and prints a table. With BENCH_VENV=FOLDER (a
# Python environment as shared/bench/README.md makes it) the peers of
# shared/bench run in between, and the table shows the ratios.
#   BENCH_CARDS="tiny small"  BENCH_THREADS=2  BENCH_RUNS=5  BENCH_CLOCK=wall
#   BENCH_ONLY="ppo train"    of control trace data_plane collectives move
#                             simulate search generate train ppo grpo
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${BENCH_BUILD:-build}
out=$build/bench
export TROUPE_SHARED=${TROUPE_SHARED:-$PWD/../shared}
cards=${BENCH_CARDS:-tiny small}
threads=${BENCH_THREADS:-$(nproc)}
runs=${BENCH_RUNS:-5}
clock=${BENCH_CLOCK:-wall}
only=${BENCH_ONLY:-control trace data_plane collectives move simulate search \
  generate train ppo grpo}
python=${BENCH_VENV:+$BENCH_VENV/bin/python}
peers=$TROUPE_SHARED/bench

wanted() { [[ " $only " == *" $1 "* ]]; }
say() { printf '%s\n' "-- $*" >&2; }

# NAME COMMAND..: its last line, the document, goes to NAME.json
keep() {
  local name=$1
  shift
  say "$name"
  if ! "$@" >"$out/$name.log" 2>&1; then
    say "$name failed: $(tail -n 1 "$out/$name.log")"
    return 0
  fi
  tail -n 1 "$out/$name.log" >"$out/$name.json"
}

# NAME BENCH CARD [ARGUMENTS..]: our document of a card
ours() {
  local name=$1 bench=$2 card=$3
  shift 3
  keep "$name" "$build/troupe-bench" "$bench" --card "$card" \
    --threads "$threads" --runs "$runs" --clock "$clock" "$@"
}

# BENCH CARD PEER [ARGUMENTS..]: the document of the peer's script
theirs() {
  local bench=$1 card=$2 peer=$3
  shift 3
  [[ -z $python ]] || keep "peer-$bench-$card" "$python" "$peers/$peer.py" \
    --models "$out/models" --card "$card" --threads "$threads" \
    --runs "$runs" --clock "$clock" "$@"
}

beside() {
  ours "$1-$2" "$1" "$2"
  theirs "$@"
}

# An iteration on one device with all threads (weights are packed, summed and
# stepped once) and on a device a thread (fewer barriers): which is faster
# depends on the model's size.
under_plans() {
  ours "$1-$2" "$1" "$2" --plan data_parallel
  ours "$1-$2-single" "$1" "$2" --plan single
  theirs "$@"
}

cmake --build "$build" --target bench_build
mkdir -p "$out"
rm -f "$out"/*.json "$out"/*.log
if [[ -n $python ]]; then
  for card in $cards; do
    [[ -d $out/models/$card ]] || "$python" "$peers/make_models.py" \
      --models "$out/models" --card "$card" >/dev/null
  done
fi

wanted control && keep control "$build/troupe-bench" control --threads "$threads"
wanted trace && keep trace "$build/troupe-bench" trace --threads "$threads"
wanted data_plane && keep data_plane "$build/tests/bench/data_plane_bench"
for bench in collectives move simulate search; do
  wanted "$bench" && keep "$bench" "$build/troupe-bench" "$bench"
done
for card in $cards; do
  wanted generate && beside generate "$card" hf_generate --variants hf
  wanted train && beside train "$card" hf_train --variants packed
  wanted ppo && under_plans ppo "$card" trl_ppo
  wanted grpo && under_plans grpo "$card" trl_grpo
done
python3 tests/bench/table.py "$out"
