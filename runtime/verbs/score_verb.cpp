// score: log-probabilities and entropies of given tokens; scores and values of
// models with a scalar head.
#include "config/error.hpp"
#include "config/model_shape.hpp"
#include "models/dataset.hpp"
#include "models/tokenizer.hpp"
#include "net/rows.hpp"
#include "runtime/verb_session.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>

namespace troupe::runtime {

namespace {

struct ScoreOptions : VerbOptions {
  ModelOptions model;
  std::string data;
  std::string out;
};

/// The longest sequence in tokens; ConfigError for one that the model has no
/// positions for.
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

void check_data_file(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored))
    throw ConfigError({.place = {"command line", 0},
                       .path = "--data",
                       .expected = "a file of JSON lines",
                       .got = "'" + file + "', which is no file",
                       .hint = ""});
}

int score(const ScoreOptions& options) {
  check_out_file(options.out);
  check_data_file(options.data);
  const auto shape = open_shape(options.model);
  const auto tokenizer = models::Tokenizer::load_if_any(options.model.model);
  tokenizer.check_fits(shape, options.model.model);
  VerbSession session("score", options.model, shape, options.out);
  auto& settings = session.settings();
  settings.data.train = options.data;
  settings.data.max_tokens = 0;
  const auto data = models::Dataset::open(settings, tokenizer);
  models::warn_of_lost(data);
  settings.data.max_tokens
    = static_cast<int>(std::max(2U, check_lengths(options, shape, data)));
  const auto outcome = session.run_rows(data.size());
  if (outcome.code != ExitCode::done)
    return static_cast<int>(outcome.code);
  session.keep_rows();
  print_note(options, fmt::format("{}: {} rows", options.out, data.size()));
  return static_cast<int>(ExitCode::done);
}

} // namespace

void add_score(CLI::App& app, VerbRun& chosen) {
  auto* verb = app.add_subcommand(
    "score", "Log-probabilities and entropies, or scores and values, of rows");
  auto options = std::make_shared<ScoreOptions>();
  add_model_options(*verb, options->model);
  verb
    ->add_option("--data", options->data,
                 "JSONL rows with ids, text, or prompt and response "
                 "(or response_ids)")
    ->required();
  verb->add_option("--out", options->out, "JSONL file to write")->required();
  add_quiet_option(*verb, *options);
  verb->callback(
    [options, &chosen] { chosen = [options] { return score(*options); }; });
}

} // namespace troupe::runtime
