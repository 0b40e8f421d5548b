#include "models/data/ptx_data.hpp"

#include "config/base/error.hpp"
#include "models/data/plain_rows.hpp"

#include <utility>

namespace troupe::models {

namespace {

/// Keeps the order of these rows apart from that of data.train.
constexpr std::uint64_t ptx_stream = 0x7074'7800'0000'0000; // "ptx"

std::vector<std::uint32_t> tokens_of_rows(const Dataset& rows) {
  std::vector<std::uint32_t> tokens;
  for (std::uint32_t row = 0; row < rows.size(); ++row)
    tokens.push_back(rows.num_tokens(row));
  return tokens;
}

} // namespace

DatasetOptions ptx_options(const Settings& settings) {
  DatasetOptions options = train_options(settings);
  options.files = {settings.data.ptx};
  options.kind = DataKind::sft;
  options.fields = {}; // those of data.train
  options.max_tokens
    = settings.data.max_prompt_tokens + settings.rollout.max_new_tokens;
  options.ends_responses = false;
  return options;
}

Dataset open_ptx(const Settings& settings, const Tokenizer& tokenizer,
                 const DatasetOpening& opening) {
  if (!is_data_file(settings.data.ptx))
    throw ConfigError({.place = place_of(settings, "data.ptx"),
                       .path = "data.ptx",
                       .expected = "a file of JSON lines",
                       .got = "'" + settings.data.ptx + "', which is no file",
                       .hint = ""});
  return Dataset::open(ptx_options(settings), tokenizer, opening);
}

DataOrder ptx_order(const Settings& settings, std::uint32_t num_rows) {
  return {num_rows, static_cast<std::uint32_t>(ptx_rows(settings)),
          settings.run.seed ^ ptx_stream, settings.data.shuffle};
}

PtxTokens::PtxTokens(const Settings& settings, const Dataset& rows)
  : PtxTokens(settings, tokens_of_rows(rows)) {}

PtxTokens::PtxTokens(const Settings& settings,
                     std::vector<std::uint32_t> tokens)
  : tokens_(std::move(tokens)),
    order_(ptx_order(settings, static_cast<std::uint32_t>(tokens_.size()))) {}

std::vector<std::uint32_t> PtxTokens::of_step(std::uint64_t step) const {
  std::vector<std::uint32_t> tokens;
  for (const auto row : order_.batch(step))
    tokens.push_back(tokens_[row]);
  return tokens;
}

} // namespace troupe::models
