// The lines of the commands `generate` and `score`: each row of the user's
// file, with the model's response or its scores. Rows arrive in batches of
// whole data-set rows in file order; sample i of a batch belongs to row first +
// i / samples_per_row.
#pragma once

#include "net/base/rows.hpp"

#include <cstdint>
#include <string>

namespace troupe::models {

class Dataset;
class Tokenizer;

/// Origin of a batch of rows.
struct LineSource {
  const Dataset& data;
  const Tokenizer& tokenizer;
  std::uint32_t first_row = 0;
  std::uint32_t samples_per_row = 1;
};

/// Returns the row plus sample, response, response_ids, logprobs,
/// finish_reason. Reads sequence_ids, loss_mask, logprobs, truncated.
std::string response_lines(const LineSource& source, const net::Rows& rows);

/// Returns the row plus ids, then logprobs and entropy (one fewer than ids:
/// entry i is for token i+1), or score and values (one per token) of a scalar
/// head.
std::string score_lines(const LineSource& source, const net::Rows& rows);

} // namespace troupe::models
