#include "models/transformer/pass_table.hpp"

#include <cstring>

namespace troupe::models {

namespace {

constexpr std::int64_t row_floats
  = (sizeof(DrawKey) + sizeof(DecodeToken)) / sizeof(float);

} // namespace

void PassTable::reserve(std::int64_t rows) {
  block_.reserve(rows * row_floats);
}

void PassTable::write(std::span<const DecodeToken> tokens,
                      std::span<const DrawKey> keys) {
  key_bytes_ = keys.size_bytes();
  on_host_.resize(key_bytes_ + tokens.size_bytes());
  if (key_bytes_ > 0)
    std::memcpy(on_host_.data(), keys.data(), key_bytes_);
  std::memcpy(on_host_.data() + key_bytes_, tokens.data(), tokens.size_bytes());
  backend_.write(on_host_.data(), block_.data(), on_host_.size());
}

const DecodeToken* PassTable::tokens() const {
  return reinterpret_cast<const DecodeToken*>(
    reinterpret_cast<const std::byte*>(block_.data()) + key_bytes_);
}

const DrawKey* PassTable::keys() const {
  return reinterpret_cast<const DrawKey*>(block_.data());
}

} // namespace troupe::models
