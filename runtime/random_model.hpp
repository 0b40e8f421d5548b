// A model with random weights and a tokenizer of bytes as Hugging Face folders,
// made on the spot: for benchmarks, for tests of own programs and for the moves
// of `troupe doctor`. The end token exists but can never be drawn, so every
// answer has the greatest length.
#pragma once

#include "config/model_shape.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::runtime {

/// Size of the smallest vocabulary: each byte, <pad> and <eos>.
inline constexpr std::int64_t byte_tokens = 258;

void write_byte_tokenizer(const std::filesystem::path& folder);

/// With the tokenizer of the folder `tokenizer`; empty: without one.
void write_random_model(const std::filesystem::path& folder, ModelShape shape,
                        const std::filesystem::path& tokenizer,
                        std::uint32_t seed);

} // namespace troupe::runtime
