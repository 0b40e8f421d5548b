#!/usr/bin/env bash
# What needs long or a quiet machine: make soak, a night of two cores. Prints a
# line per part with its seconds; goes on after a failure; exit code 1 if any part
# failed. With words only the parts whose titles have one: make soak PARTS="kill demo".
#   - the demo learns with seeds 1, 2 and 3
#   - ten minutes of fuzzing for each reader of files, ten for all parsers
#   - the end-to-end tests ten times (a race shows here or nowhere)
#   - 100 kills of random processes at random moments, to the same bits
#   - 30 minutes with a kill every 20 s: 0.8 of the time is in steps that survive
#   - 20,000 random failure scripts without processes
#   - a Slurm job that is requeued at its time limit until it is done
#   - 200 PPO steps with flat memory
#   - the page: a death within one second, a silent worker within two
#   - the limits of the page: 10,000 tasks at 50 frames/s, 50,000 events/s in a
#     quarter of a second, 50 M events opened in 3 s, a map of 1,024 actors
#   - an hour of 5,000 events/s with a flat master below 500 MB
#   - exact plan searches against walks given 100 times their time
#   - GRPO with the real vLLM for CPUs, a server of it killed
#   - 1,000 orders of streams of pretended GPUs
#   - every step of first light on one and on two pretended GPUs
#   - every unit test under ASan and UBSan (CI leaves out the runtime's)
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=build/soak
mkdir -p "$folder"
failed=0
words=("$@")
is_wanted() { # is_wanted <title>
  local word
  for word in "${words[@]}"; do
    [[ $1 != *"$word"* ]] || return 0
  done
  ((${#words[@]} == 0))
}
part() { # part <title> <command>...
  local title=$1 begin=$SECONDS log
  is_wanted "$title" || return 0
  log="$folder/${title//[^a-z0-9]/_}.log"
  shift
  if "$@" >"$log" 2>&1; then
    echo "ok      $((SECONDS - begin)) s  $title"
  else
    failed=1
    echo "FAILED  $((SECONDS - begin)) s  $title (see $log)"
  fi
}

for seed in 1 2 3; do
  part "demo, seed $seed" \
    examples/tiny/run.sh --seed "$seed" --folder "$folder/demo$seed"
done
part "set-up of fuzzing" ./setup.sh --fuzz
for readers in "safetensors tensors shard_index" "json_lines model_shape" \
  "tokenizer tokenizer_parts chat_template"; do
  # shellcheck disable=SC2086
  part "fuzzing $readers, 600 s" tests/fuzz/run.sh 600 $readers
done
part "fuzzing every parser, 600 s" tests/fuzz/run.sh 600
part "end to end, ten times" \
  ctest --test-dir build -L 'e2e|dist' --repeat until-fail:10 --output-on-failure
part "100 kills at random" env TROUPE_KILLS=100 TROUPE_BUILD=build \
  python3 -B tests/e2e/kills_test.py
part "100 kills at random, checkpoints on disk" env TROUPE_KILLS=100 \
  TROUPE_SAVES=disk TROUPE_BUILD=build python3 -B tests/e2e/kills_test.py
part "a kill every 20 s" env TROUPE_BUILD=build python3 -B tests/soak/ettr.py
part "failure scripts" sh -c 'cmake --build build --target actors_test \
  && TROUPE_SCRIPTS=20000 build/tests/actors_test --gtest_filter=FailureScripts.*'
part "memory over 200 steps" env TROUPE_SOAK=1 TROUPE_BUILD=build \
  python3 -B tests/e2e/memory_test.py
part "Slurm jobs over their time limits" env TROUPE_SOAK=1 TROUPE_BUILD=build \
  python3 -B tests/e2e/slurm_test.py
part "the page in a browser" env TROUPE_SOAK=1 TROUPE_BUILD=build \
  python3 -B tests/e2e/page_test.py
part "the limits of the page" env TROUPE_SOAK=1 TROUPE_BUILD=build \
  python3 -B tests/e2e/page_limits_test.py
part "master memory over an hour" env TROUPE_BUILD=build \
  python3 -B tests/soak/master_memory.py --out "$folder/master_memory.jsonl"
part "no walk beats an exact search" sh -c \
  'cmake --build build --target exactness_bench && build/tests/bench/exactness_bench'
part "the real vLLM" sh -c \
  './setup.sh --engines && TROUPE_BUILD=build python3 -B tests/soak/real_vllm.py'
part "1,000 orders of streams" env TROUPE_TEST_COMPUTE=gpu TROUPE_ORDERS=1000 \
  STANDIN_BUILD=build/standin tests/gpu/standin.sh --gpus 2 -- \
  build/tests/gpu/standin_models_test --gtest_filter='Orders.*'
part "first light on pretended GPUs" env TROUPE_BUILD=build STANDIN_BUILD=build/standin \
  python3 -B tests/soak/first_light.py
part "all unit tests under sanitizers" \
  sh -c 'make build PRESET=asan && cmake --build --preset asan && ctest --preset asan -L unit'
exit $failed
