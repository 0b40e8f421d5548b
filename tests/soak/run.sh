#!/usr/bin/env bash
# What needs long or a quiet machine: make soak. Prints a line a part with its
# seconds; goes on after a failure; exit code 1 if any part failed.
#   - the demo learns with seeds 1, 2 and 3
#   - ten minutes of fuzzing for each reader of files, ten for all parsers
#   - the end-to-end tests ten times (a race shows here or nowhere)
#   - 200 PPO steps with flat memory
#   - the page: 10,000 tasks at 50 frames/s, events in a quarter of a second,
#     a death within one second, a silent worker within two
#   - an hour of 5,000 events/s with a flat master below 500 MB
#   - exact plan searches against walks given 100 times their time
#   - every unit test under ASan and UBSan (CI leaves out the runtime's)
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=build/soak
mkdir -p "$folder"
failed=0
part() { # part <title> <command>...
  local title=$1 begin=$SECONDS log
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
part "sanitizer build of the fuzzer" sh -c 'make build PRESET=asan &&
  cmake --build --preset asan --target troupe_fuzz'
for readers in "safetensors tensors shard_index" "json_lines model_shape" \
  "tokenizer tokenizer_parts chat_template"; do
  # shellcheck disable=SC2086
  part "fuzzing $readers, 600 s" tests/fuzz/run.sh 600 $readers
done
part "fuzzing every parser, 600 s" tests/fuzz/run.sh 600
part "end to end, ten times" \
  ctest --test-dir build -L 'e2e|dist' --repeat until-fail:10 --output-on-failure
part "memory over 200 steps" env TROUPE_SOAK=1 TROUPE_BUILD=build \
  python3 -B tests/e2e/memory_test.py
part "the page in a browser" env TROUPE_SOAK=1 TROUPE_BUILD=build \
  python3 -B tests/e2e/page_test.py
part "master memory over an hour" env TROUPE_BUILD=build \
  python3 -B tests/soak/master_memory.py --out "$folder/master_memory.jsonl"
part "no walk beats an exact search" sh -c \
  'cmake --build build --target exactness_bench && build/tests/bench/exactness_bench'
part "all unit tests under sanitizers" \
  sh -c 'make build PRESET=asan && cmake --build --preset asan && ctest --preset asan -L unit'
exit $failed
