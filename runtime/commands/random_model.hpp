// A model with random weights and a byte tokenizer as Hugging Face folders,
// generated on the spot: for benchmarks, for tests of user-defined programs and
// for the moves of `troupe doctor`. The end token exists but can never be
// drawn, so every response has the greatest length.
#pragma once

#include "config/model/model_shape.hpp"

#include <cstdint>
#include <filesystem>

namespace troupe::runtime {

/// Size of the smallest vocabulary: each byte, <pad> and <eos>.
inline constexpr std::int64_t byte_tokens = 258;

void write_byte_tokenizer(const std::filesystem::path& folder);

/// Writes the folder with the tokenizer of the folder `tokenizer`; empty:
/// without one.
void write_random_model(const std::filesystem::path& folder, ModelShape shape,
                        const std::filesystem::path& tokenizer,
                        std::uint32_t seed);

} // namespace troupe::runtime
