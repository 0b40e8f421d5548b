// score: log-probabilities and entropies of given tokens; scores and values of
// models with a scalar head.
#include "config/base/error.hpp"
#include "config/model/model_shape.hpp"
#include "models/data/dataset.hpp"
#include "models/text/tokenizer.hpp"
#include "net/base/rows.hpp"
#include "runtime/base/stream_files.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/commands/command_session.hpp"
#include "runtime/commands/model_options.hpp"
#include "runtime/commands/row_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>

namespace troupe::runtime {

namespace {

struct ScoreOptions : CommandOptions {
  ModelOptions model;
  RowOptions rows;
  std::string data;
  std::string out;
};

/// Returns the length of the longest sequence in tokens; throws ConfigError for
/// one that the model has no positions for.
std::uint32_t check_lengths(const ScoreOptions& options,
                            const ModelShape& shape,
                            const models::Dataset& data) {
  std::uint32_t longest = 0;
  for (std::uint32_t row = 0; row < data.size(); ++row) {
    const auto length = data.rows(std::span(&row, 1), SampleId{0})
                          .at("sequence_ids")
                          .lengths.front();
    longest = std::max(longest, length);
    if (length > shape.context_tokens())
      throw ConfigError(
        {.place = {options.data, data.text(row).line},
         .path = "",
         .expected = fmt::format("at most {} tokens", shape.context_tokens()),
         .got = std::to_string(length),
         .hint = ""});
  }
  return longest;
}

int score(const ScoreOptions& options) {
  check_out_file(options.out);
  const auto shape = open_shape(options.model);
  const auto tokenizer = models::Tokenizer::load_if_any(options.model.model);
  tokenizer.check_fits(shape, options.model.model);
  const RowInput input(options.data, "--data"); // a pipe may take long
  CommandSession session("score", options.model, shape, options.out);
  auto rows = row_settings("score", input.file(), options.rows);
  rows.models = session.settings().models;
  const auto data = input.naming([&] {
    return std::make_shared<const models::Dataset>(
      models::Dataset::open(row_dataset_options(rows), tokenizer));
  });
  models::warn_of_lost(*data);
  auto& settings = session.settings();
  settings.data.train = rows.data.train;
  settings.data.fields = rows.data.fields;
  settings.data.chat = rows.data.chat;
  settings.data.max_tokens
    = static_cast<int>(std::max(2U, check_lengths(options, shape, *data)));
  const auto outcome = session.run_rows(data);
  if (outcome.code != ExitCode::done)
    return static_cast<int>(outcome.code);
  session.keep_rows();
  print_note(options, fmt::format("{}: {} rows", options.out, data->size()));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_score(CLI::App& app, CommandRun& chosen) {
  auto* command = app.add_subcommand(
    "score", "Log-probabilities and entropies, or scores and values, of rows");
  auto options = std::make_shared<ScoreOptions>();
  add_model_options(*command, options->model);
  command
    ->add_option("--data", options->data,
                 "JSONL rows with ids, text, or prompt and response "
                 "(or response_ids); a file or a pipe")
    ->required();
  command->add_option("--out", options->out, "JSONL file to write, or a pipe")
    ->required();
  add_row_options(*command, options->rows);
  add_quiet_option(*command, *options);
  command->callback(
    [options, &chosen] { chosen = [options] { return score(*options); }; });
}

} // namespace troupe::runtime
