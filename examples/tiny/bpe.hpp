// Trains a byte-level BPE tokenizer the way GPT-2's was made, on a corpus of a
// few hundred kilobytes, and writes it as Hugging Face's tokenizer.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tiny {

/// Ids: [0, 256) the bytes in GPT-2's order, then one per merge, then the
/// specials.
struct Bpe {
  std::vector<std::pair<std::string, std::string>> merges; ///< printable bytes
  std::vector<std::string> vocabulary;                     ///< by id
  std::vector<std::string> specials; ///< their ids follow the vocabulary's

  std::size_t size() const {
    return vocabulary.size() + specials.size();
  }
};

/// Greedy merges of the most frequent pair (ties: the smaller pair of strings)
/// until vocabulary and specials together have `size` entries or nothing is
/// left to merge; then the vocabulary is filled up with unused names so that
/// the size is exact. `text` is ASCII.
Bpe train_bpe(std::string_view text, std::size_t size,
              std::vector<std::string> specials);

/// Writes tokenizer.json and tokenizer_config.json; the first special ends a
/// text, the second pads.
void write_tokenizer(const Bpe& bpe, const std::filesystem::path& folder);

} // namespace tiny
