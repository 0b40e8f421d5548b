#include "models/hf/float_convert.hpp"

#include "config/base/error.hpp"
#include "config/base/float16.hpp"

#include <array>
#include <cstring>
#include <string>

namespace troupe::models {

namespace {

/// Converts in blocks: a fixed inner count lets -O2 vectorize; memcpy permits
/// any alignment.
template <class From, class To, class Function>
void convert_blocks(std::span<const std::byte> source,
                    std::span<std::byte> target, Function one) {
  constexpr std::size_t block = 64;
  const std::size_t count = source.size() / sizeof(From);
  std::size_t done = 0;
  std::array<From, block> in{};
  std::array<To, block> out{};
  while (done < count) {
    const std::size_t now = count - done < block ? count - done : block;
    std::memcpy(in.data(), source.data() + done * sizeof(From),
                now * sizeof(From));
    for (std::size_t i = 0; i < block; ++i)
      out[i] = one(in[i]);
    std::memcpy(target.data() + done * sizeof(To), out.data(),
                now * sizeof(To));
    done += now;
  }
}

template <class From, class Function>
void convert_to(std::span<const std::byte> source, DType to,
                std::span<std::byte> target, Function up) {
  switch (to) {
  case DType::bf16:
    return convert_blocks<From, std::uint16_t>(
      source, target, [up](From x) { return f32_to_bf16(up(x)); });
  case DType::f16:
    return convert_blocks<From, std::uint16_t>(
      source, target, [up](From x) { return f32_to_f16(up(x)); });
  case DType::f32:
    return convert_blocks<From, float>(source, target, up);
  case DType::f64:
    return convert_blocks<From, double>(
      source, target, [up](From x) { return static_cast<double>(up(x)); });
  default:
    TROUPE_CHECK(false, "cannot convert to " + std::string(to_string(to)));
  }
}

} // namespace

void convert(DType from, std::span<const std::byte> source, DType to,
             std::span<std::byte> target) {
  const std::size_t count = source.size() / size_bytes(from);
  TROUPE_CHECK(count * size_bytes(from) == source.size(), "ragged source");
  TROUPE_CHECK(count * size_bytes(to) == target.size(), "sizes differ");
  if (count == 0)
    return;
  if (from == to) {
    std::memcpy(target.data(), source.data(), source.size());
    return;
  }
  switch (from) {
  case DType::bf16:
    return convert_to<std::uint16_t>(
      source, to, target, [](std::uint16_t x) { return bf16_to_f32(x); });
  case DType::f16:
    return convert_to<std::uint16_t>(
      source, to, target, [](std::uint16_t x) { return f16_to_f32(x); });
  case DType::f32:
    return convert_to<float>(source, to, target, [](float x) { return x; });
  case DType::f64:
    return convert_to<double>(source, to, target,
                              [](double x) { return static_cast<float>(x); });
  default:
    TROUPE_CHECK(false, "cannot convert from " + std::string(to_string(from)));
  }
}

} // namespace troupe::models
