#!/usr/bin/env bash
# tests/fuzz/run.sh [SECONDS] [TARGET...]: fuzzes all parsers, or those named,
# with libFuzzer and sanitizers for SECONDS of wall time in all. Builds the preset
# fuzz (clang: ./setup.sh --fuzz). Inputs that reach new code are kept in
# build-fuzz/fuzz/TARGET/corpus, findings beside it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
test -f build-fuzz/build.ninja || cmake --preset fuzz
cmake --build --preset fuzz --parallel "$(nproc)" --target troupe_fuzz
cd build-fuzz
targets=("${@:2}")
((${#targets[@]})) || mapfile -t targets < <(./troupe_fuzz)
export share=$(((${1:-30} * $(nproc) + ${#targets[@]} - 1) / ${#targets[@]}))
export ASAN_OPTIONS=detect_odr_violation=0:allow_addr2line=1 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
fuzz_one() { # fuzz_one TARGET
  mkdir -p "fuzz/$1/corpus" "fuzz/$1/seeds"
  cd "fuzz/$1"
  if TROUPE_FUZZ=$1 ../../troupe_fuzz corpus seeds -max_total_time="$share" -timeout=20 \
    -max_len=65536 -rss_limit_mb=4096 -print_final_stats=1 >log 2>&1; then
    printf '%s: %s inputs, no finding\n' "$1" \
      "$(sed -n 's/^stat::number_of_executed_units: *//p' log)"
  else
    tail -n 40 log
    printf '%s: a finding, see build-fuzz/fuzz/%s\n' "$1" "$1"
    return 1
  fi
}
export -f fuzz_one
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -c 'fuzz_one {}'
