#!/usr/bin/env bash
# Runs a command on pretended GPUs: the real libtorch_cuda over stand-ins for
# CUDA's runtime and driver, cuBLAS, cuBLASLt and NCCL (tests/support/cuda/standin,
# docs/gpu_tests.md). Needs no driver and no nvcc, only CUDA's toolkit (headers and
# the libraries that libtorch_cuda loads) and what ./setup.sh --standin fetches.
#
#   tests/gpu/standin.sh [--gpus N] [--mb N] [--seed N] [--print] -- COMMAND..
#   tests/gpu/standin.sh [..] --test [ARGUMENTS..]    builds and runs tests/gpu/standin*_test.cpp
#
# --gpus   pretended GPUs (2)           --mb     memory of each in MiB (16384)
# --seed   order in which streams run   --print  what was launched, at the end
#
# TROUPE_STANDIN_HOST of a process: a number; other hosts have other GPUs (0).
# CUDA_HOME: the toolkit (/usr/local/cuda). TORCH_FOLDER: libtorch (.deps/wheels/torch).
# STANDIN_BUILD: where the stand-ins are built (build-standin). STANDIN_LIBRARIES:
# more folders with libraries of NVIDIA. STANDIN_CXX: the compiler (g++).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
source=$root/tests/support/cuda/standin
torch=${TORCH_FOLDER:-$root/.deps/wheels/torch}
cuda=${CUDA_HOME:-/usr/local/cuda}
build=${STANDIN_BUILD:-$root/build-standin}
read -ra cxx <<<"${STANDIN_CXX:-g++}"
libraries=$cuda/lib64$(printf ':%s' "$root"/.deps/standin/nvidia/*/lib)${STANDIN_LIBRARIES:+:$STANDIN_LIBRARIES}
stand_ins=(libcudart.so.13 libcuda.so.1 libcublas.so.13 libcublasLt.so.13 libnccl.so.2)

skip() { printf 'skipped: %s\n' "$*"; exit 0; }

gpus=2 mb=16384 seed=0 is_test=0 print=()
while (($#)); do
  case $1 in
    --gpus) gpus=$2; shift 2 ;;
    --mb) mb=$2; shift 2 ;;
    --seed) seed=$2; shift 2 ;;
    --print) print=(TROUPE_STANDIN_PRINT=1); shift ;;
    --test) is_test=1; shift; break ;;
    --) shift; break ;;
    -h | --help) sed -n '2,19s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) printf 'standin: unknown argument %s (try --help)\n' "$1" >&2; exit 2 ;;
  esac
done
((is_test || $#)) || { printf 'standin: no command (try --help)\n' >&2; exit 2; }

[[ -e $cuda/include/cublasLt.h ]] || skip "no cublasLt.h on this machine"
[[ -e $torch/lib/libtorch_cuda.so ]] || skip "no libtorch_cuda.so on this machine"
missing=$(LD_LIBRARY_PATH=$libraries ldd "$torch/lib/libtorch_cuda.so" | awk '/not found/ {print $1; exit}')
[[ -z $missing ]] || skip "no $missing on this machine"

compile() { # compile OBJECT SOURCE [flags]: unless it is newer than all sources
  local object=$build/$1 from=$source/$2
  shift 2
  [[ -e $object && -z $(find "$source" "$root/tests/support/nccl" "$from" -newer "$object" \
    \( -name '*.hpp' -o -path "$from" \)) ]] && return
  printf 'standin: compiles %s\n' "${from##*/}" >&2
  "${cxx[@]}" -std=c++20 -O2 -g1 -Wall -Wextra -fPIC -c "$from" -o "$object" "$@"
}

library() { # library NAME OBJECTS.. [flags]: unless it is newer than them
  local name=$1 object inputs=()
  shift
  for object; do [[ $object == -* ]] || inputs+=("$build/$object"); done
  if [[ -e $build/$name ]]; then
    local newer=0
    for object in "${inputs[@]}"; do [[ $object -nt $build/$name ]] && newer=1; done
    ((newer)) || return 0
  fi
  local flags=()
  for object; do [[ $object == -* ]] && flags+=("$object"); done
  "${cxx[@]}" -shared "${inputs[@]}" -o "$build/$name" "-Wl,-soname,$name" "${flags[@]}"
}

mkdir -p "$build"
exec 9>"$build/.lock"
flock 9
headers=(-I"$cuda/include")
tensors=(-DUSE_CUDA -idirafter "$torch/include" -idirafter "$torch/include/torch/csrc/api/include"
  -idirafter "$cuda/include")
runtime=(queue state memory streams cudart_streams cudart_graphs cudart_memory cudart_device
  cudart_refused)
for file in "${runtime[@]}" product cublas cublas_refused cublaslt libcuda; do
  compile "$file.o" "$file.cpp" "${headers[@]}"
done
for file in own_kernels nccl nccl_between nccl_numbers ../../nccl/rank_hub; do
  compile "${file##*/}.o" "$file.cpp" "${headers[@]}" -I"$root"
done
for file in aten_route aten_cpu aten_flash; do
  compile "$file.o" "$file.cpp" "${tensors[@]}"
done
library libcudart.so.13 "${runtime[@]/%/.o}" own_kernels.o "-Wl,--version-script=$source/cudart.map"
library libcuda.so.1 libcuda.o
library libcublas.so.13 product.o cublas.o cublas_refused.o "-Wl,--version-script=$source/cublas.map"
library libcublasLt.so.13 product.o cublaslt.o "-Wl,--version-script=$source/cublaslt.map"
library libnccl.so.2 nccl.o nccl_between.o nccl_numbers.o rank_hub.o
library libtroupe_standin_aten.so aten_route.o aten_cpu.o aten_flash.o \
  "-L$torch/lib" -lc10_cuda -ltorch_cpu -lc10 "-Wl,-rpath,$torch/lib"
if ((is_test)); then
  test=$build/standin_test
  tests=("$root"/tests/gpu/standin*_test.cpp)
  if [[ ! -e $test || -n $(find "${tests[@]}" "$source/standin.hpp" -newer "$test") ]]; then
    printf 'standin: compiles %s\n' "${tests[@]##*/}" >&2
    "${cxx[@]}" -std=c++20 -O1 -g1 -Wall -Wextra "${tests[@]}" -o "$test" \
      -I"$root/tests/support" "${tensors[@]}" "$build/libcudart.so.13" "$build/libnccl.so.2" \
      "-L$torch/lib" -Wl,--no-as-needed -ltorch_cuda -lc10_cuda -ltorch_cpu -lc10 -lgtest_main \
      -lgtest -ldl -Wl,--disable-new-dtags,-rpath,"$torch/lib" \
      -Wl,--unresolved-symbols=ignore-in-shared-libs
  fi
  set -- "$test" "$@"
fi
exec 9>&-

exec env LD_PRELOAD="$(printf "$build/%s " "${stand_ins[@]}")${LD_PRELOAD:-}" \
  LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
  TROUPE_STANDIN_OPERATORS="$build/libtroupe_standin_aten.so" \
  TROUPE_STANDIN_GPUS="$gpus" TROUPE_STANDIN_MB="$mb" TROUPE_STANDIN_SEED="$seed" "${print[@]}" "$@"
