#include "models/dataset.hpp"

#include "config/log.hpp"
#include "config/workflow_traits.hpp"
#include "models/internal/sample_reader.hpp"
#include "models/jsonl.hpp"

#include <cstring>
#include <utility>

namespace troupe::models {

struct Dataset::State {
  DataKind kind;
  internal::SampleReader reader;
  JsonLines lines;
  std::vector<std::uint32_t> usable; ///< row -> line of `lines`
  DatasetReport report;

  Place place(std::size_t line) const {
    return {lines.file(), lines.line_number(line)};
  }
};

namespace {

constexpr std::size_t bad_row_messages = 5;

void remember_bad_row(DatasetReport& report, const std::string& message) {
  ++report.bad_rows;
  if (report.messages.size() < bad_row_messages)
    report.messages.push_back(message);
}

[[noreturn]] void too_long(const Place& place, const DatasetOptions& options,
                           std::size_t tokens) {
  const bool prompts = options.kind == DataKind::prompts;
  throw ConfigError(ConfigError::Parts{
    place, prompts ? "prompt" : "",
    "at most " + std::to_string(options.max_tokens) + " tokens",
    std::to_string(tokens),
    prompts ? "a larger data.max_prompt_tokens, or data.overlong: skip"
            : "a larger data.max_tokens, or data.overlong: skip"});
}

/// A column of equal type from one list a sample.
template <class T>
net::Column pack_column(const char* key, DType dtype,
                        const std::vector<std::vector<T>>& lists,
                        std::uint32_t n) {
  std::vector<std::uint32_t> lengths;
  lengths.reserve(lists.size() * n);
  for (const auto& list : lists)
    lengths.insert(lengths.end(), n, static_cast<std::uint32_t>(list.size()));
  net::Column column = net::make_column(key, dtype, std::move(lengths));
  std::byte* at = column.data.data();
  for (const auto& list : lists) {
    for (std::uint32_t k = 0; k < n && !list.empty(); ++k) {
      std::memcpy(at, list.data(), list.size() * sizeof(T));
      at += list.size() * sizeof(T);
    }
  }
  return column;
}

} // namespace

DatasetOptions train_options(const Settings& settings) {
  const DataSettings& data = settings.data;
  DatasetOptions options;
  options.file = data.train;
  options.kind = workflow_data(settings.workflow);
  options.fields = data.fields;
  options.places = settings.places;
  if (data.chat != "auto")
    options.chat = data.chat == "true" ? ChatUse::always : ChatUse::never;
  options.max_tokens = options.kind == DataKind::prompts
                         ? data.max_prompt_tokens
                         : data.max_tokens;
  options.overlong = data.overlong;
  options.on_bad_row = data.on_bad_row;
  options.ends_answers
    = options.kind == DataKind::score && settings.models.contains("reward");
  return options;
}

Dataset::Dataset(std::shared_ptr<const State> state)
  : state_(std::move(state)) {}

Dataset Dataset::open(const Settings& settings, const Tokenizer& tokenizer) {
  const std::string& file = settings.data.train;
  if (!std::filesystem::is_regular_file(file))
    throw ConfigError(ConfigError::Parts{
      place_of(settings, "data.train"), "data.train", "a file of JSON lines",
      file.empty() ? "nothing" : "'" + file + "', which is no file", ""});
  return open(train_options(settings), tokenizer);
}

Dataset Dataset::open(const DatasetOptions& options,
                      const Tokenizer& tokenizer) {
  auto state
    = std::make_shared<State>(State{options.kind,
                                    internal::SampleReader(options, tokenizer),
                                    JsonLines::open(options.file),
                                    {},
                                    {}});
  DatasetReport& report = state->report;
  report.rows = state->lines.size();
  for (std::size_t line = 0; line < state->lines.size(); ++line) {
    const Place place = state->place(line);
    internal::SampleTokens tokens;
    try {
      tokens = state->reader.tokens(state->lines.text(line), place);
    } catch (const ConfigError& error) {
      if (options.on_bad_row != "skip")
        throw;
      remember_bad_row(report, error.what());
      continue;
    }
    const auto length = std::max(tokens.ids.size(), tokens.rejected.size());
    if (tokens.overlong && options.overlong == "error")
      too_long(place, options, length);
    if (tokens.overlong && !tokens.truncated) {
      ++report.overlong_rows;
      continue;
    }
    report.truncated_rows += tokens.truncated ? 1 : 0;
    report.unlearned_turns += tokens.unlearned_turns;
    if (length > report.longest) {
      report.longest = length;
      report.longest_line = place.line;
    }
    state->usable.push_back(static_cast<std::uint32_t>(line));
  }
  if (state->usable.empty())
    throw ConfigError(
      {.place = {state->lines.file(), 0},
       .path = "",
       .expected = "a usable row",
       .got = "none (" + std::to_string(report.rows) + " rows, "
              + std::to_string(report.bad_rows) + " bad, "
              + std::to_string(report.overlong_rows) + " overlong"
              + (report.messages.empty() ? "" : ": " + report.messages.front())
              + ")",
       .hint = report.overlong_rows > 0 ? "a larger limit of tokens, or "
                                          "data.overlong: truncate"
                                        : "rows as the README shows them"});
  return Dataset(std::move(state));
}

std::uint32_t Dataset::size() const {
  return static_cast<std::uint32_t>(state_->usable.size());
}

const DatasetReport& Dataset::report() const {
  return state_->report;
}

DataKind Dataset::kind() const {
  return state_->kind;
}

const std::string& Dataset::file() const {
  return state_->lines.file();
}

net::Rows Dataset::rows(std::span<const std::uint32_t> row_indices,
                        SampleId first, std::uint32_t n) const {
  std::vector<std::vector<std::int32_t>> ids, rejected;
  std::vector<std::vector<std::uint8_t>> masks, rejected_masks;
  std::vector<SampleId> samples;
  for (const std::uint32_t row : row_indices) {
    const std::uint32_t line = state_->usable.at(row);
    auto tokens
      = state_->reader.tokens(state_->lines.text(line), state_->place(line));
    masks.push_back(tokens.mask());
    rejected_masks.push_back(tokens.rejected_mask());
    ids.push_back(std::move(tokens.ids));
    rejected.push_back(std::move(tokens.rejected));
    for (std::uint32_t k = 0; k < n; ++k)
      samples.emplace_back(first.value + samples.size());
  }
  std::vector<net::Column> columns;
  if (state_->kind == DataKind::prompts) {
    columns.push_back(pack_column("prompt_ids", DType::i32, ids, n));
  } else if (state_->kind == DataKind::preference) {
    columns.push_back(pack_column("chosen_ids", DType::i32, ids, n));
    columns.push_back(pack_column("chosen_loss_mask", DType::u8, masks, n));
    columns.push_back(pack_column("rejected_ids", DType::i32, rejected, n));
    columns.push_back(
      pack_column("rejected_loss_mask", DType::u8, rejected_masks, n));
  } else {
    columns.push_back(pack_column("sequence_ids", DType::i32, ids, n));
    columns.push_back(pack_column("loss_mask", DType::u8, masks, n));
  }
  return net::Rows(std::move(samples), std::move(columns));
}

RowText Dataset::text(std::uint32_t row) const {
  const std::uint32_t line = state_->usable.at(row);
  return state_->reader.text(state_->lines.text(line), state_->place(line));
}

std::optional<std::string> Dataset::field(std::uint32_t row,
                                          const std::string& name) const {
  const std::uint32_t line = state_->usable.at(row);
  return state_->reader.field(state_->lines.text(line), state_->place(line),
                              name);
}

void warn_of_lost(const Dataset& dataset) {
  const DatasetReport& report = dataset.report();
  const auto warn = [&](std::uint64_t count, const std::string& what) {
    if (count > 0)
      log::data.warn(dataset.file() + ": " + std::to_string(count) + what);
  };
  warn(report.bad_rows,
       " bad rows skipped; the first: "
         + (report.messages.empty() ? "" : report.messages.front()));
  warn(report.overlong_rows, " overlong rows skipped");
  warn(report.truncated_rows, " overlong rows truncated");
  warn(
    report.unlearned_turns,
    " turns of the assistant are left out of the loss, for the chat template "
    "changes them once others follow; try one with {% generation %} blocks");
}

} // namespace troupe::models
