// Runs a kernel of a backend over buffers of given element types, for tests
// that compare backends, or bf16 in memory with fp32.
#pragma once

#include "config/base/float16.hpp"
#include "models/kernels/backend.hpp"
#include "models/kernels/typed_block.hpp"

#include <cstring>
#include <functional>
#include <vector>

namespace troupe::testing {

/// Numbers, and how a device stores them.
struct TypedNumbers {
  std::vector<float> values;
  DType type = DType::f32;
};

using TypedKernel
  = std::function<void(models::Backend&, const std::vector<models::TypedPtr>&)>;

/// Writes numbers to a device's memory, rounded to its type.
inline void write_typed(models::Backend& backend,
                        const std::vector<float>& numbers,
                        models::TypedPtr to) {
  if (to.type() == DType::f32)
    return backend.write(numbers.data(), to.data(),
                         numbers.size() * sizeof(float));
  std::vector<std::uint16_t> bits;
  for (const float x : numbers)
    bits.push_back(f32_to_bf16(x));
  backend.write(bits.data(), to.data(), bits.size() * sizeof(bits[0]));
}

/// Replaces numbers by those of a device's memory.
inline void read_typed(models::Backend& backend, models::ConstTypedPtr from,
                       std::vector<float>& numbers) {
  const std::size_t bytes = numbers.size() * size_bytes(from.type());
  const auto words = static_cast<std::int64_t>((bytes + 3) / 4);
  const auto read = backend.read(static_cast<const float*>(from.data()), words);
  if (from.type() == DType::f32) {
    std::memcpy(numbers.data(), read.floats(), bytes);
    return;
  }
  std::vector<std::uint16_t> bits(numbers.size());
  std::memcpy(bits.data(), read.floats(), bytes);
  for (std::size_t i = 0; i < bits.size(); ++i)
    numbers[i] = bf16_to_f32(bits[i]);
}

/// Returns all buffers after the kernel.
inline std::vector<std::vector<float>>
after_kernel(models::Backend& backend, const std::vector<TypedNumbers>& buffers,
             const TypedKernel& kernel) {
  backend.enter();
  std::vector<models::TypedBlock> memory;
  std::vector<models::TypedPtr> data;
  for (const TypedNumbers& buffer : buffers) {
    memory.emplace_back(backend.memory(), buffer.type);
    data.push_back(memory.back().reserve(std::ssize(buffer.values)));
    write_typed(backend, buffer.values, data.back());
  }
  kernel(backend, data);
  std::vector<std::vector<float>> after;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    read_typed(backend, data[i], after.emplace_back(buffers[i].values));
  return after;
}

} // namespace troupe::testing
