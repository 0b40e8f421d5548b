// score: log-probabilities and entropies of given tokens; scores and values of
// models with a scalar head.
#include "config/error.hpp"
#include "config/model_shape.hpp"
#include "models/dataset.hpp"
#include "models/engine.hpp"
#include "models/tokenizer.hpp"
#include "net/rows.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/verbs/model_options.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <numeric>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

struct ScoreOptions : VerbOptions {
  ModelOptions model;
  std::string data;
  std::string out;
};

/// Elements `skip` .. of the i-th sample of a column, as a JSON list.
Json elements(const net::Column& column, std::size_t i, std::size_t skip) {
  const auto offsets = column.offsets();
  return column.as<float>().subspan(offsets[i] + skip,
                                    offsets[i + 1] - offsets[i] - skip);
}

/// The rows plus their tokens and what the model thinks of them.
std::string scored_lines(const models::Dataset& data, std::uint32_t first,
                         const net::Rows& rows, const net::Rows& results) {
  const auto& sequences = rows.at("sequence_ids");
  const auto ids_T = sequences.as<std::int32_t>();
  const auto offsets = sequences.offsets();
  std::string text;
  for (std::uint32_t i = 0; i < results.num_samples(); ++i) {
    Json line = Json::parse(data.text(first + i).json);
    line["ids"] = ids_T.subspan(offsets[i], offsets[i + 1] - offsets[i]);
    if (results.has("scores")) {
      line["score"] = results.at("scores").as<float>()[i];
      // the first entry stands for "before any token"
      line["values"] = elements(results.at("values"), i, 1);
    } else {
      line["logprobs"] = elements(results.at("logprobs"), i, 1);
      line["entropy"] = elements(results.at("entropy"), i, 1);
    }
    text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return text;
}

net::Rows score_batch(models::Engine& engine, const ModelShape& shape,
                      const net::Rows& rows) {
  models::RunContext context;
  if (!shape.scalar_head)
    return engine.infer("logprobs", rows, context, {.entropy = true});
  const std::vector<net::Rows> parts{engine.infer("scores", rows, context),
                                     engine.infer("values", rows, context)};
  return net::merge(parts);
}

/// The tokens of rows [first, last); `ids` alone, so that every token counts.
net::Rows score_rows(const models::Dataset& data, std::uint32_t first,
                     std::uint32_t last) {
  std::vector<std::uint32_t> indices(last - first);
  std::iota(indices.begin(), indices.end(), first);
  const std::vector<std::string> keys{"sequence_ids"};
  return net::select_keys(data.rows(indices, SampleId{first}), keys);
}

void check_lengths(const ScoreOptions& options, const ModelShape& shape,
                   const models::Dataset& data) {
  for (std::uint32_t row = 0; row < data.size(); ++row) {
    const auto length
      = score_rows(data, row, row + 1).at("sequence_ids").lengths.front();
    if (length > shape.max_positions)
      throw ConfigError(
        {.place = {options.data, data.text(row).line},
         .path = "",
         .expected = fmt::format("at most {} tokens", shape.max_positions),
         .got = std::to_string(length),
         .hint = ""});
  }
}

int score(const ScoreOptions& options) {
  check_out_file(options.out);
  const auto shape = open_shape(options.model);
  const auto tokenizer = models::Tokenizer::load(options.model.model);
  tokenizer.check_fits(shape, options.model.model);
  const auto data = models::Dataset::open(
    {.file = options.data, .kind = models::DataKind::score}, tokenizer);
  check_lengths(options, shape, data);
  const auto engine = open_engine(options.model, shape, 0);
  std::string text;
  for (std::uint32_t first = 0; first < data.size();) {
    const auto last = std::min(first + verb_batch_samples, data.size());
    const auto rows = score_rows(data, first, last);
    text += scored_lines(data, first, rows, score_batch(*engine, shape, rows));
    first = last;
  }
  replace_file(options.out, text);
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
                 "JSONL rows with ids, text, or prompt and response")
    ->required();
  verb->add_option("--out", options->out, "JSONL file to write")->required();
  add_verb_options(*verb, *options, false);
  verb->callback(
    [options, &chosen] { chosen = [options] { return score(*options); }; });
}

} // namespace troupe::runtime
