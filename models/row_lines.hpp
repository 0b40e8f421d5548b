// The lines of the verbs `generate` and `score`: each row of the user's file,
// with what the model answered or thinks of it. Rows come in batches of whole
// data-set rows in file order; sample i of a batch belongs to row
// first + i / samples_per_row.
#pragma once

#include "net/rows.hpp"

#include <cstdint>
#include <string>

namespace troupe::models {

class Dataset;
class Tokenizer;

/// What a batch of rows belongs to.
struct LineSource {
  const Dataset& data;
  const Tokenizer& tokenizer;
  std::uint32_t first_row = 0;
  std::uint32_t samples_per_row = 1;
};

/// The row plus sample, response, response_ids, logprobs, finish_reason. Reads
/// sequence_ids, loss_mask, logprobs, truncated.
std::string answer_lines(const LineSource& source, const net::Rows& rows);

/// The row plus ids, then logprobs and entropy (one fewer than ids: entry i is
/// of token i+1), or score and values (one a token) of a scalar head.
std::string score_lines(const LineSource& source, const net::Rows& rows);

} // namespace troupe::models
