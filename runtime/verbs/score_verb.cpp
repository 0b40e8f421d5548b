// score: log-probabilities and entropies of given tokens; scores and values of
// models with a scalar head.
#include "config/error.hpp"
#include "config/model_shape.hpp"
#include "models/engine.hpp"
#include "models/tokenizer.hpp"
#include "net/rows.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/verbs/model_options.hpp"
#include "runtime/verbs/row_file.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

struct ScoreOptions : VerbOptions {
  ModelOptions model;
  std::string data;
  std::string out;
};

net::Rows score_rows(const std::vector<RowTokens>& rows, std::size_t first,
                     std::size_t last) {
  std::vector<SampleId> samples;
  std::vector<std::uint32_t> lengths;
  std::vector<std::int32_t> packed;
  for (std::size_t i = first; i < last; ++i) {
    samples.emplace_back(i);
    lengths.push_back(static_cast<std::uint32_t>(rows[i].ids.size()));
    packed.insert(packed.end(), rows[i].ids.begin(), rows[i].ids.end());
  }
  std::vector<net::Column> columns;
  columns.push_back(net::make_column("sequence_ids", DType::i32,
                                     std::move(lengths), packed.data()));
  return {std::move(samples), std::move(columns)};
}

/// Elements `skip` .. of the i-th sample of a column, as a JSON list.
Json elements(const net::Column& column, std::size_t i, std::size_t skip) {
  const auto offsets = column.offsets();
  return column.as<float>().subspan(offsets[i] + skip,
                                    offsets[i + 1] - offsets[i] - skip);
}

std::string scored_lines(const std::vector<RowTokens>& rows, std::size_t first,
                         const net::Rows& results) {
  std::string text;
  for (std::size_t i = 0; i < results.num_samples(); ++i) {
    const auto& row = rows[first + i];
    Json line = Json::parse(row.json);
    line["ids"] = row.ids;
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

int score(const ScoreOptions& options) {
  const auto shape = open_shape(options.model);
  const auto tokenizer = models::Tokenizer::load(options.model.model);
  tokenizer.check_fits(shape, options.model.model);
  const auto rows = read_sequences(options.data, tokenizer);
  for (const auto& row : rows)
    if (static_cast<std::int64_t>(row.ids.size()) > shape.max_positions)
      throw ConfigError(
        {.place = {options.data, row.line},
         .path = "ids",
         .expected = fmt::format("at most {} tokens", shape.max_positions),
         .got = std::to_string(row.ids.size()),
         .hint = ""});
  const auto engine = open_engine(options.model, shape, 0);
  std::string text;
  for (std::size_t first = 0; first < rows.size();) {
    const auto last = std::min(first + verb_batch_samples, rows.size());
    const auto results
      = score_batch(*engine, shape, score_rows(rows, first, last));
    text += scored_lines(rows, first, results);
    first = last;
  }
  replace_file(options.out, text);
  print_note(options, fmt::format("{}: {} rows", options.out, rows.size()));
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
