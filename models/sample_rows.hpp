// Between rows and the Samples that own functions and actors see. Texts are u8
// columns of bytes; `response` is decoded from the tokens where no call writes
// it.
#pragma once

#include "models/dataset.hpp"
#include "models/tokenizer.hpp"
#include "net/rows.hpp"

#include "troupe/sample.hpp"

namespace troupe::models {

/// A Sample of each row with the keys of `reads`; `samples_per_group`
/// consecutive ids have the same group.
std::vector<Sample> samples_of_rows(const net::Rows& rows,
                                    std::span<const KeyInfo> reads,
                                    std::uint32_t samples_per_group,
                                    const Tokenizer& tokenizer);

/// The columns `writes` of samples. Throws FailureError (bad_input) naming a
/// key that `who` did not set on a sample.
net::Rows rows_of_samples(std::span<const Sample> samples,
                          std::span<const KeyInfo> writes,
                          const std::string& who);

/// Of the keys of a data set, those that are fields of rows rather than tokens.
std::vector<std::string> text_keys(std::span<const std::string> keys);

/// Columns of the text keys out of the data set, one row of it a sample.
std::vector<net::Column> text_columns(const Dataset& dataset,
                                      std::span<const std::uint32_t> rows,
                                      std::span<const std::string> keys);

} // namespace troupe::models
