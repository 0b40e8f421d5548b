#include "net/collectives/reduce.hpp"

#include "config/base/error.hpp"
#include "config/base/float16.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace troupe::net {

namespace {

/// Elements summed at a time: partial sums stay in the L1 cache. The inner
/// loops have a constant trip count, so that -O2 vectorizes them.
constexpr std::size_t kSumBlock = 1024;
constexpr std::size_t kSumUnroll = 32;

struct Bf16 {
  std::uint16_t bits;
};

/// Type in which signed overflow wraps instead of being undefined.
template <class T>
using SumType = std::conditional_t<
  std::is_same_v<T, std::int32_t>, std::uint32_t,
  std::conditional_t<std::is_same_v<T, std::int64_t>, std::uint64_t,
                     std::conditional_t<std::is_same_v<T, Bf16>, float, T>>>;

float widen_one(Bf16 value) {
  return bf16_to_f32(value.bits);
}

Bf16 narrow_one(float value) {
  return {f32_to_bf16(value)};
}

template <class T>
void load_block(const T* from, SumType<T>* sums, std::size_t count) {
  if constexpr (std::is_same_v<T, Bf16>) {
    for (std::size_t i = 0; i < count; ++i)
      sums[i] = widen_one(from[i]);
  } else {
    std::memcpy(sums, from, count * sizeof(T));
  }
}

template <class T>
SumType<T> element_of(const T* from, std::size_t i) {
  if constexpr (std::is_same_v<T, Bf16>)
    return widen_one(from[i]);
  else
    return static_cast<SumType<T>>(from[i]);
}

template <class T>
void add_block(const T* __restrict from, SumType<T>* __restrict sums,
               std::size_t count) {
  std::size_t i = 0;
  for (; i + kSumUnroll <= count; i += kSumUnroll)
    for (std::size_t j = 0; j < kSumUnroll; ++j)
      sums[i + j] += element_of(from, i + j);
  for (; i < count; ++i)
    sums[i] += element_of(from, i);
}

/// Computes sums = a + b: the first two sources in one pass.
template <class T>
void add_two(const T* __restrict a, const T* __restrict b,
             SumType<T>* __restrict sums, std::size_t count) {
  std::size_t i = 0;
  for (; i + kSumUnroll <= count; i += kSumUnroll)
    for (std::size_t j = 0; j < kSumUnroll; ++j)
      sums[i + j] = element_of(a, i + j) + element_of(b, i + j);
  for (; i < count; ++i)
    sums[i] = element_of(a, i) + element_of(b, i);
}

template <class T>
void store_block(const SumType<T>* sums, T* to, std::size_t count) {
  if constexpr (std::is_same_v<T, Bf16>) {
    for (std::size_t i = 0; i < count; ++i)
      to[i] = narrow_one(sums[i]);
  } else {
    std::memcpy(to, sums, count * sizeof(T));
  }
}

template <class T>
void sum_typed(std::span<const std::byte* const> sources,
               std::span<std::byte* const> targets, std::size_t count) {
  alignas(64) SumType<T> sums[kSumBlock];
  for (std::size_t done = 0; done < count; done += kSumBlock) {
    const std::size_t part = std::min(kSumBlock, count - done);
    const auto source = [&](std::size_t rank) {
      return reinterpret_cast<const T*>(sources[rank]) + done;
    };
    std::size_t rank = 2;
    if (sources.size() >= 2)
      add_two(source(0), source(1), sums, part);
    else
      load_block(source(0), sums, part);
    for (; rank < sources.size(); ++rank)
      add_block(source(rank), sums, part);
    for (std::byte* target : targets)
      store_block(sums, reinterpret_cast<T*>(target) + done, part);
  }
}

template <class T>
void add_before_typed(const std::byte* before, std::byte* data,
                      std::size_t count) {
  const T* __restrict first = reinterpret_cast<const T*>(before);
  T* __restrict second = reinterpret_cast<T*>(data);
  std::size_t i = 0;
  for (; i + kSumUnroll <= count; i += kSumUnroll)
    for (std::size_t j = 0; j < kSumUnroll; ++j)
      second[i + j] = first[i + j] + second[i + j];
  for (; i < count; ++i)
    second[i] = first[i] + second[i];
}

[[noreturn]] void no_sum(DType dtype) {
  throw InvariantError("no sums of " + std::string(to_string(dtype)));
}

} // namespace

bool can_sum(DType dtype) noexcept {
  return dtype != DType::u8 && dtype != DType::f16;
}

void sum_in_rank_order(std::span<const std::byte* const> sources,
                       std::span<std::byte* const> targets, std::size_t count,
                       DType dtype) {
  switch (dtype) {
  case DType::f32:
    return sum_typed<float>(sources, targets, count);
  case DType::f64:
    return sum_typed<double>(sources, targets, count);
  case DType::bf16:
    return sum_typed<Bf16>(sources, targets, count);
  case DType::i32:
    return sum_typed<std::int32_t>(sources, targets, count);
  case DType::i64:
    return sum_typed<std::int64_t>(sources, targets, count);
  default:
    no_sum(dtype);
  }
}

void add_before(const std::byte* before, std::byte* data, std::size_t count,
                DType dtype) {
  switch (dtype) {
  case DType::f32:
    return add_before_typed<float>(before, data, count);
  case DType::f64:
    return add_before_typed<double>(before, data, count);
  case DType::i32:
    return add_before_typed<std::uint32_t>(before, data, count);
  case DType::i64:
    return add_before_typed<std::uint64_t>(before, data, count);
  default:
    no_sum(dtype);
  }
}

void widen_bf16(const std::byte* from, float* to, std::size_t count) {
  load_block(reinterpret_cast<const Bf16*>(from), to, count);
}

void narrow_bf16(const float* from, std::byte* to, std::size_t count) {
  store_block(from, reinterpret_cast<Bf16*>(to), count);
}

} // namespace troupe::net
