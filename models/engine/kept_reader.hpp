// Sampling masks as the engine reads them: `kept_counts` of each token and
// `kept_ids` of all of them. A call that reads these keys computes its
// log-probabilities, entropies and their gradient over the kept tokens only;
// a count of 0 stands for the whole vocabulary.
#pragma once

#include "models/engine/row_reader.hpp"
#include "models/transformer/vocab_logprobs.hpp"

#include <cstdint>
#include <span>

namespace troupe::models {

class KeptReader {
public:
  /// Returns whether the rows have masks.
  static bool in(const net::Rows& rows);
  explicit KeptReader(const net::Rows& rows)
    : counts_(rows.at("kept_counts")),
      ids_(rows.at("kept_ids")) {}

  /// Sets the masks of `wanted`, whose entries are tokens of `rows` packed in
  /// this order. Throws ConfigError for masks that lack the token itself, have
  /// ids outside of `vocab` tokens, or another number of ids than they count.
  void read(std::span<const std::size_t> rows, std::int64_t vocab,
            WantedTokens& wanted) const;

private:
  KeptTokens packed(std::span<const std::size_t> rows) const;

  ColumnReader counts_;
  ColumnReader ids_;
};

} // namespace troupe::models
