// The header of a safetensors file as data, checked against the file's size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace troupe::models::internal {

struct HeaderTensor {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0; ///< bytes from the start of the data
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::uint64_t data_offset = 0;     ///< start of the data in the file
  std::vector<HeaderTensor> tensors; ///< sorted by offset; they tile the data
  std::map<std::string, std::string> metadata;
};

/// Reads and checks the header. Throws SafetensorsError naming `file` and the
/// tensor.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> bytes,
                                           const std::string& file);

/// Returns the bits of one element; 0 for an unknown type name.
unsigned bits_of_dtype(const std::string& dtype) noexcept;

} // namespace troupe::models::internal
