// generate: answers to prompts, one line a sample.
#include "config/error.hpp"
#include "config/model_shape.hpp"
#include "models/engine.hpp"
#include "models/generate_options.hpp"
#include "models/tokenizer.hpp"
#include "net/rows.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/metrics/console.hpp"
#include "runtime/verbs/model_options.hpp"
#include "runtime/verbs/row_file.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <memory>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

struct GenerateVerbOptions : VerbOptions {
  ModelOptions model;
  std::string prompts;
  std::string out;
  models::GenerateOptions sampling;
  int n = 1;
};

void check_lengths(const GenerateVerbOptions& options, const ModelShape& shape,
                   const std::vector<RowTokens>& rows) {
  for (const auto& row : rows) {
    const auto longest = static_cast<std::int64_t>(row.ids.size())
                         + options.sampling.max_new_tokens;
    if (longest <= shape.max_positions)
      continue;
    throw ConfigError({.place = {options.prompts, row.line},
                       .path = "prompt",
                       .expected = fmt::format(
                         "at most {} tokens with --max-new-tokens {}",
                         shape.max_positions - options.sampling.max_new_tokens,
                         options.sampling.max_new_tokens),
                       .got = std::to_string(row.ids.size()),
                       .hint = "fewer new tokens"});
  }
}

/// Prompts of samples [first, last): sample i answers row i / n.
net::Rows prompt_rows(const std::vector<RowTokens>& rows, std::size_t first,
                      std::size_t last, std::size_t n) {
  std::vector<SampleId> samples;
  std::vector<std::uint32_t> lengths;
  std::vector<std::int32_t> packed;
  for (std::size_t i = first; i < last; ++i) {
    const auto& ids = rows[i / n].ids;
    samples.emplace_back(i);
    lengths.push_back(static_cast<std::uint32_t>(ids.size()));
    packed.insert(packed.end(), ids.begin(), ids.end());
  }
  std::vector<net::Column> columns;
  columns.push_back(net::make_column("prompt_ids", DType::i32,
                                     std::move(lengths), packed.data()));
  return {std::move(samples), std::move(columns)};
}

/// The row plus what was answered to it.
std::string answer_line(const RowTokens& row, std::size_t sample,
                        std::span<const std::int32_t> response_ids,
                        std::span<const float> logprobs, bool truncated,
                        const models::Tokenizer& tokenizer) {
  Json line = Json::parse(row.json);
  line["sample"] = sample;
  line["response"] = tokenizer.decode(response_ids);
  line["response_ids"] = response_ids;
  line["logprobs"] = logprobs;
  line["finish_reason"] = truncated ? "length" : "eos";
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string answer_lines(const net::Rows& answers,
                         const std::vector<RowTokens>& rows, std::size_t n,
                         const models::Tokenizer& tokenizer,
                         std::uint64_t& num_tokens) {
  const auto& sequences = answers.at("sequence_ids");
  const auto& logprobs = answers.at("logprobs");
  const auto ids_T = sequences.as<std::int32_t>();                     // [T]
  const auto logprobs_T = logprobs.as<float>();                        // [T]
  const auto truncated_N = answers.at("truncated").as<std::uint8_t>(); // [N]
  const auto offsets = sequences.offsets();
  std::string text;
  for (std::size_t i = 0; i < answers.num_samples(); ++i) {
    const std::size_t sample = answers.samples[i].value;
    const auto& row = rows[sample / n];
    const auto begin = offsets[i] + row.ids.size();
    const auto count = offsets[i + 1] - begin;
    num_tokens += count;
    text += answer_line(row, sample % n, ids_T.subspan(begin, count),
                        logprobs_T.subspan(begin, count), truncated_N[i] != 0,
                        tokenizer);
  }
  return text;
}

int generate(GenerateVerbOptions options) {
  const auto shape = open_shape(options.model);
  if (shape.scalar_head)
    throw ConfigError({options.model.model, 0},
                      "this model has a scalar head and cannot generate; try "
                      "`troupe score`");
  const auto tokenizer = models::Tokenizer::load(options.model.model);
  tokenizer.check_fits(shape, options.model.model);
  const auto rows = read_prompts(options.prompts, tokenizer);
  check_lengths(options, shape, rows);
  options.sampling.stop_ids = shape.eos;
  if (shape.eos.empty() && tokenizer.eos_id() >= 0)
    options.sampling.stop_ids = {tokenizer.eos_id()};
  const auto engine = open_engine(options.model, shape, options.sampling.seed);

  const auto started = std::chrono::steady_clock::now();
  const auto n = static_cast<std::size_t>(options.n);
  const std::size_t num_samples = rows.size() * n;
  std::string text;
  std::uint64_t num_tokens = 0;
  models::RunContext context;
  context.seed = options.sampling.seed;
  for (std::size_t first = 0; first < num_samples;) {
    const auto last = std::min(first + verb_batch_samples, num_samples);
    const auto answers = engine->generate(prompt_rows(rows, first, last, n),
                                          options.sampling, context);
    text += answer_lines(answers, rows, n, tokenizer, num_tokens);
    first = last;
  }
  replace_file(options.out, text);
  const std::chrono::duration<double> took
    = std::chrono::steady_clock::now() - started;
  print_note(
    options,
    fmt::format("{}: {} samples of {} rows, {} tokens in {} ({} tok/s)",
                options.out, num_samples, rows.size(), num_tokens,
                duration_text(took.count()),
                count_text(static_cast<double>(num_tokens) / took.count())));
  return static_cast<int>(ExitCode::done);
}

void add_sampling_options(CLI::App& verb, GenerateVerbOptions& options) {
  auto& sampling = options.sampling;
  sampling.max_new_tokens = 256;
  verb.add_option("--max-new-tokens", sampling.max_new_tokens)
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  verb.add_option("--min-new-tokens", sampling.min_new_tokens)
    ->check(CLI::NonNegativeNumber)
    ->capture_default_str();
  verb
    .add_option("--temperature", sampling.temperature,
                "Divides the logits; 0 is greedy")
    ->check(CLI::NonNegativeNumber)
    ->capture_default_str();
  verb.add_option("--top-k", sampling.top_k, "0: off")
    ->check(CLI::NonNegativeNumber)
    ->capture_default_str();
  verb.add_option("--top-p", sampling.top_p, "1: off")
    ->check(CLI::Range(0.0, 1.0))
    ->capture_default_str();
  verb.add_option("--min-p", sampling.min_p, "0: off")
    ->check(CLI::Range(0.0, 1.0))
    ->capture_default_str();
  verb.add_option("--n", options.n, "Samples of each prompt")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  verb.add_option("--seed", sampling.seed)->capture_default_str();
  verb.add_flag("--greedy", sampling.greedy, "Take the likeliest token");
  verb.add_flag("--ignore-eos", sampling.ignore_eos,
                "Go on to --max-new-tokens whatever comes");
}

} // namespace

void add_generate(CLI::App& app, VerbRun& chosen) {
  auto* verb
    = app.add_subcommand("generate", "Answer the prompts of a JSONL file");
  auto options = std::make_shared<GenerateVerbOptions>();
  add_model_options(*verb, options->model);
  verb
    ->add_option("--prompts", options->prompts,
                 "JSONL rows with prompt, prompt_ids or messages")
    ->required();
  verb->add_option("--out", options->out, "JSONL file to write")->required();
  add_sampling_options(*verb, *options);
  add_verb_options(*verb, *options, false);
  verb->callback(
    [options, &chosen] { chosen = [options] { return generate(*options); }; });
}

} // namespace troupe::runtime
