#include "nccl_numbers.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace troupe::standin {

namespace {

// As in nccl.h 2, which toolkits lack.
enum Type { i8 = 0, u8 = 1, i32 = 2, i64 = 4, f32 = 7, f64 = 8, bf16 = 9 };
enum Operation { sum = 0, highest = 2, lowest = 3, mean = 4 };

double number(const void* data, int type, std::size_t at) {
  switch (type) {
  case i32:
    return static_cast<const std::int32_t*>(data)[at];
  case f64:
    return static_cast<const double*>(data)[at];
  case bf16: {
    const std::uint32_t bits
      = std::uint32_t{static_cast<const std::uint16_t*>(data)[at]} << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  default:
    return static_cast<const float*>(data)[at];
  }
}

void set_number(void* data, int type, std::size_t at, double value) {
  switch (type) {
  case i32:
    static_cast<std::int32_t*>(data)[at] = static_cast<std::int32_t>(value);
    return;
  case f64:
    static_cast<double*>(data)[at] = value;
    return;
  case bf16: {
    const auto narrow = static_cast<float>(value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    static_cast<std::uint16_t*>(data)[at]
      = static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    return;
  }
  default:
    static_cast<float*>(data)[at] = static_cast<float>(value);
  }
}

double joined(double a, double b, int operation) {
  return operation == highest  ? std::max(a, b)
         : operation == lowest ? std::min(a, b)
                               : a + b;
}

} // namespace

std::size_t size_of(int type) {
  return type == f64 || type == i64 ? 8
         : type == bf16             ? 2
         : type == i8 || type == u8 ? 1
                                    : 4;
}

std::vector<char> reduced(const std::map<int, Call>& calls, std::size_t count,
                          int type, int operation) {
  std::vector<char> result(count * size_of(type));
  std::memcpy(result.data(), calls.at(0).from, result.size());
  for (const auto& [rank, call] : calls)
    for (std::size_t i = 0; rank > 0 && i < count; ++i)
      if (type == i64)
        reinterpret_cast<std::int64_t*>(result.data())[i]
          += static_cast<const std::int64_t*>(call.from)[i];
      else
        set_number(result.data(), type, i,
                   joined(number(result.data(), type, i),
                          number(call.from, type, i), operation));
  for (std::size_t i = 0; operation == mean && i < count; ++i)
    set_number(result.data(), type, i,
               number(result.data(), type, i)
                 / static_cast<double>(calls.size()));
  return result;
}

bool can_reduce(int type, int operation) {
  const bool is_number = type == i32 || type == f32 || type == f64
                         || type == bf16 || (type == i64 && operation == sum);
  return is_number
         && (operation == sum || (operation >= highest && operation <= mean));
}

} // namespace troupe::standin
