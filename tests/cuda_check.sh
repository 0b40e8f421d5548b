#!/usr/bin/env bash
# Builds with CUDA, links, and starts on this machine, with a GPU or without:
# what can be known of a CUDA build anywhere setup.sh --cuda's libraries are; our
# kernels where nvcc is. With a GPU it runs the tests that need one.
#
#   tests/cuda_check.sh [cmake arguments, such as -DCMAKE_BUILD_TYPE=Debug]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build-cuda
cmake --preset cuda "$@"
targets=(troupe models_test)
command -v nvcc >/dev/null && targets+=(gpu_kernels_test)
cmake --build "$build" --target "${targets[@]}"

echo "--- links"
ldd "$build/troupe" | grep -E 'libtorch_cuda|libc10_cuda|libcudart'
if ldd "$build/troupe" | grep 'not found'; then
  echo "cuda_check: libraries are missing" >&2
  exit 1
fi

echo "--- starts"
"$build/troupe" --version
"$build/troupe" doctor || true # says what this machine lacks

echo "--- kernels that the libraries have, GPU or not"
"$build/tests/models_test" --gtest_brief=1 --gtest_filter='*FusedAttention*:FusedTraining*:FixedOrder*:Recorded.*'

echo "--- tests that need a GPU"
(cd "$build" && ctest -L gpu --output-on-failure --no-tests=error)
