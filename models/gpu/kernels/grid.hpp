// One body per kernel, for nvcc and for g++. A body is a function object whose
// operator()(block, shared) consists of phases: block.each(f) runs f(lane) for
// every lane of the block and ends in a barrier. What outlives a phase is in
// `Shared`, in a Lane, or the same for all lanes (uniform). Rules: no barrier
// inside a phase or a branch, loops around phases have the same bounds for all
// lanes, blocks do not wait for each other, and the only atomics are sums of
// integers, whose order does not matter. .cu files are compiled without fused
// multiply-adds, and bodies use host_math.hpp for exp and log, so that both
// sides compute the same bits.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define TROUPE_KERNEL __device__ __forceinline__
#else
#include "models/gpu/kernels/lane_order.hpp"

#include <array>
#include <memory>
#include <vector>
#define TROUPE_KERNEL inline
#endif

namespace troupe::models::gpu {

/// A block of N threads, its lanes.
template <int N>
struct Block {
  std::int64_t index; ///< in [0, count)
  std::int64_t count;
#ifdef __CUDACC__
  template <class F>
  TROUPE_KERNEL void each(F f) const {
    f(static_cast<int>(threadIdx.x));
    __syncthreads();
  }
  /// Returns a value of shared memory to all lanes between two phases; the next
  /// phase may overwrite it.
  template <class T>
  TROUPE_KERNEL T uniform(const T& shared) const {
    const T value = shared;
    __syncthreads();
    return value;
  }
#else
  LaneOrder* order;

  template <class F>
  void each(F f) const {
    std::array<int, N> lanes;
    order->next(lanes);
    for (const int lane : lanes)
      f(lane);
  }
  template <class T>
  T uniform(const T& shared) const {
    return shared;
  }
#endif
};

/// A variable of each lane that outlives a phase: on a GPU, a register.
template <class T, int N>
class Lane {
public:
#ifdef __CUDACC__
  TROUPE_KERNEL T& operator[](int) {
    return value_;
  }

private:
  T value_;
#else
  T& operator[](int lane) {
    return values_[static_cast<std::size_t>(lane)];
  }

private:
  std::array<T, N> values_;
#endif
};

/// Reduces part [N] to part[0] in a fixed tree: part[i] becomes
/// combine(part[i], part[i + half]).
template <class T, int N, class Combine>
TROUPE_KERNEL void reduce(Block<N> block, T* part, Combine combine) {
  static_assert((N & (N - 1)) == 0, "a tree of two halves each");
  for (int half = N / 2; half > 0; half /= 2)
    block.each([&](int lane) {
      if (lane < half)
        part[lane] = combine(part[lane], part[lane + half]);
    });
}

/// Sums part [N] to part[0] in a fixed tree.
template <class T, int N>
TROUPE_KERNEL void sum(Block<N> block, T* part) {
  reduce(block, part, [](T a, T b) { return a + b; });
}

/// Adds to a number in a block's shared memory, from any lane of a phase.
/// Integers only: the result is the same for every order.
TROUPE_KERNEL void add_shared(std::uint64_t* to, std::uint64_t value) {
#ifdef __CUDACC__
  static_assert(sizeof(unsigned long long) == sizeof(std::uint64_t));
  atomicAdd(reinterpret_cast<unsigned long long*>(to), value);
#else
  *to += value;
#endif
}

/// Returns how many pieces of `size` cover `count`.
constexpr std::int64_t pieces_of(std::int64_t count, std::int64_t size) {
  return (count + size - 1) / size;
}

#ifndef __CUDACC__

/// Runs a kernel on the calling thread, blocks and lanes in this order. Shared
/// memory begins as what the block before left, as on a GPU.
template <class Body>
void run_on_host(const Body& body, std::int64_t blocks,
                 LaneOrder order = LaneOrder::forward()) {
  std::vector<int> indices(static_cast<std::size_t>(blocks));
  order.next(indices);
  const auto shared = std::make_unique<typename Body::Shared>();
  for (const int index : indices)
    body(Block<Body::threads>{index, blocks, &order}, *shared);
}

#endif

} // namespace troupe::models::gpu
