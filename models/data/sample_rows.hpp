// Converts between rows and the Samples that user-defined functions and actors
// see. Texts are u8 columns of bytes; `response` is decoded from the tokens
// unless a call writes it.
#pragma once

#include "models/data/dataset.hpp"
#include "models/text/tokenizer.hpp"
#include "net/base/rows.hpp"

#include "troupe/sample.hpp"

namespace troupe::models {

/// Returns a Sample per row with the keys of `reads`; `samples_per_group`
/// consecutive ids share a group.
std::vector<Sample> samples_of_rows(const net::Rows& rows,
                                    std::span<const KeyInfo> reads,
                                    std::uint32_t samples_per_group,
                                    const Tokenizer& tokenizer);

/// Returns the columns `writes` of samples. Throws FailureError (bad_input)
/// naming a key that `who` did not set on a sample.
net::Rows rows_of_samples(std::span<const Sample> samples,
                          std::span<const KeyInfo> writes,
                          const std::string& who);

/// Returns the keys of a data set that are fields of rows rather than tokens.
std::vector<std::string> text_keys(std::span<const std::string> keys);

/// Returns columns of the text keys from the data set, one row per sample.
std::vector<net::Column> text_columns(const Dataset& dataset,
                                      std::span<const std::uint32_t> rows,
                                      std::span<const std::string> keys);

} // namespace troupe::models
