#!/usr/bin/env bash
# tests/fuzz/run.sh [SECONDS] [TARGET...]: fuzzes all parsers, or those named,
# with the sanitizer build if there is one; the seed is new each time and printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=build
[[ -x build-asan/troupe_fuzz ]] && build=build-asan
export ASAN_OPTIONS=detect_leaks=1:detect_odr_violation=0:hard_rss_limit_mb=4096
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1
export LSAN_OPTIONS=suppressions=$PWD/cmake/lsan.supp:print_suppressions=0
cd "$build"
exec ./troupe_fuzz "${1:-30}" "${SEED:-$RANDOM}" "${@:2}"
