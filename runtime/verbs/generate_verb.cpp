// generate: answers to prompts, one line a sample.
#include "config/error.hpp"
#include "config/model_shape.hpp"
#include "models/dataset.hpp"
#include "models/engine.hpp"
#include "models/generate_options.hpp"
#include "models/tokenizer.hpp"
#include "net/rows.hpp"
#include "runtime/jsonl_file.hpp"
#include "runtime/metrics/console.hpp"
#include "runtime/verbs/model_options.hpp"
#include "runtime/verbs/verb.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <span>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

struct GenerateVerbOptions : VerbOptions {
  ModelOptions model;
  std::string prompts;
  std::string out;
  models::GenerateOptions sampling;
  int n = 1;
  bool max_new_tokens_given = false;
};

/// Every prompt must leave room for its answer; found out before any work.
/// Without --max-new-tokens, answers may be as long as the longest prompt
/// leaves room for, up to the default.
void settle_lengths(GenerateVerbOptions& options, const ModelShape& shape,
                    const models::Dataset& prompts) {
  std::uint32_t longest_row = 0;
  std::int64_t longest = 0;
  for (std::uint32_t row = 0; row < prompts.size(); ++row) {
    const auto rows = prompts.rows(std::span(&row, 1), SampleId{0});
    const std::int64_t length = rows.at("prompt_ids").lengths.front();
    if (length > longest) {
      longest = length;
      longest_row = row;
    }
  }
  auto& wanted = options.sampling.max_new_tokens;
  const auto room = shape.max_positions - longest;
  if (!options.max_new_tokens_given)
    wanted = std::min(wanted, std::max<std::int64_t>(room, 1));
  if (wanted <= room)
    return;
  throw ConfigError({.place = {options.prompts, prompts.text(longest_row).line},
                     .path = "prompt",
                     .expected = fmt::format(
                       "at most {} tokens with --max-new-tokens {} (the model "
                       "has {} positions)",
                       std::max<std::int64_t>(shape.max_positions - wanted, 0),
                       wanted, shape.max_positions),
                     .got = std::to_string(longest),
                     .hint = room > 0 ? fmt::format("--max-new-tokens {}", room)
                                      : "a shorter prompt"});
}

/// The row plus what was answered to it.
std::string answer_line(const std::string& row, std::size_t sample,
                        std::span<const std::int32_t> response_ids,
                        std::span<const float> logprobs, bool truncated,
                        const models::Tokenizer& tokenizer) {
  Json line = Json::parse(row);
  line["sample"] = sample;
  line["response"] = tokenizer.decode(response_ids);
  line["response_ids"] = response_ids;
  line["logprobs"] = logprobs;
  line["finish_reason"] = truncated ? "length" : "eos";
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Rows go in one by one, so that sample i answers row i / n.
class Answers {
public:
  Answers(const models::Dataset& prompts, const models::Tokenizer& tokenizer,
          std::size_t n)
    : prompts_(prompts),
      tokenizer_(tokenizer),
      n_(n) {}

  void add(const net::Rows& prompts, const net::Rows& answers) {
    const auto& sequences = answers.at("sequence_ids");
    const auto ids_T = sequences.as<std::int32_t>();                     // [T]
    const auto logprobs_T = answers.at("logprobs").as<float>();          // [T]
    const auto truncated_N = answers.at("truncated").as<std::uint8_t>(); // [N]
    const auto& prompt_lengths = prompts.at("prompt_ids").lengths;       // [N]
    const auto offsets = sequences.offsets();
    TROUPE_CHECK(answers.samples == prompts.samples, "answers keep the order");
    for (std::size_t i = 0; i < answers.num_samples(); ++i) {
      const std::size_t sample = answers.samples[i].value;
      const auto begin = offsets[i] + prompt_lengths[i];
      const auto count = offsets[i + 1] - begin;
      const auto row = static_cast<std::uint32_t>(sample / n_);
      num_tokens_ += count;
      text_ += answer_line(
        prompts_.text(row).json, sample % n_, ids_T.subspan(begin, count),
        logprobs_T.subspan(begin, count), truncated_N[i] != 0, tokenizer_);
    }
  }
  const std::string& text() const {
    return text_;
  }
  std::uint64_t num_tokens() const {
    return num_tokens_;
  }

private:
  const models::Dataset& prompts_;
  const models::Tokenizer& tokenizer_;
  std::size_t n_;
  std::string text_;
  std::uint64_t num_tokens_ = 0;
};

/// The model's end tokens, else the tokenizer's.
std::vector<std::int32_t> stop_ids(const ModelShape& shape,
                                   const models::Tokenizer& tokenizer) {
  if (shape.eos.empty() && tokenizer.eos_id() >= 0)
    return {tokenizer.eos_id()};
  return shape.eos;
}

int generate(GenerateVerbOptions options) {
  check_out_file(options.out);
  const auto shape = open_shape(options.model);
  if (shape.scalar_head)
    throw ConfigError({options.model.model, 0},
                      "this model has a scalar head and cannot generate; try "
                      "`troupe score`");
  const auto tokenizer = models::Tokenizer::load(options.model.model);
  tokenizer.check_fits(shape, options.model.model);
  const auto prompts = models::Dataset::open(
    {.file = options.prompts, .kind = models::DataKind::prompts}, tokenizer);
  settle_lengths(options, shape, prompts);
  options.sampling.stop_ids = stop_ids(shape, tokenizer);
  const auto engine = open_engine(options.model, shape, options.sampling.seed);

  const auto started = std::chrono::steady_clock::now();
  const auto n = static_cast<std::uint32_t>(options.n);
  const auto rows_a_batch = std::max(1u, verb_batch_samples / n);
  Answers answers(prompts, tokenizer, n);
  models::RunContext context;
  context.seed = options.sampling.seed;
  for (std::uint32_t first = 0; first < prompts.size();) {
    const auto last = std::min(first + rows_a_batch, prompts.size());
    std::vector<std::uint32_t> indices(last - first);
    std::iota(indices.begin(), indices.end(), first);
    const auto rows
      = prompts.rows(indices, SampleId{std::uint64_t{first} * n}, n);
    answers.add(rows, engine->generate(rows, options.sampling, context));
    first = last;
  }
  replace_file(options.out, answers.text());
  const std::chrono::duration<double> took
    = std::chrono::steady_clock::now() - started;
  const auto num_tokens = static_cast<double>(answers.num_tokens());
  print_note(options,
             fmt::format("{}: {} samples of {} rows, {} tokens in {} "
                         "({} tok/s)",
                         options.out, std::uint64_t{n} * prompts.size(),
                         prompts.size(), answers.num_tokens(),
                         duration_text(took.count()),
                         count_text(num_tokens / took.count())));
  return static_cast<int>(ExitCode::done);
}

void add_sampling_options(CLI::App& verb, GenerateVerbOptions& options) {
  auto& sampling = options.sampling;
  sampling.max_new_tokens = 256;
  verb
    .add_option("--max-new-tokens", sampling.max_new_tokens,
                "Longest answer; without it, at most what the model has room "
                "for")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  verb
    .add_option("--min-new-tokens", sampling.min_new_tokens,
                "No end token before so many tokens")
    ->check(CLI::NonNegativeNumber)
    ->capture_default_str();
  verb
    .add_option("--temperature", sampling.temperature,
                "Divides the logits; 0 is greedy")
    ->check(CLI::NonNegativeNumber)
    ->capture_default_str();
  verb
    .add_option("--top-k", sampling.top_k,
                "Keep the k likeliest tokens; 0: off")
    ->check(CLI::NonNegativeNumber)
    ->capture_default_str();
  verb
    .add_option("--top-p", sampling.top_p,
                "Keep the likeliest tokens up to this probability; 1: off")
    ->check(CLI::Range(0.0, 1.0))
    ->capture_default_str();
  verb
    .add_option("--min-p", sampling.min_p,
                "Keep tokens with this share of the likeliest; 0: off")
    ->check(CLI::Range(0.0, 1.0))
    ->capture_default_str();
  verb.add_option("--n", options.n, "Samples of each prompt")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  verb.add_option("--seed", sampling.seed, "Of the sampling noise")
    ->capture_default_str();
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
                 "JSONL rows with prompt or prompt_ids")
    ->required();
  verb->add_option("--out", options->out, "JSONL file to write")->required();
  add_sampling_options(*verb, *options);
  add_verb_options(*verb, *options, false);
  verb->callback([options, verb, &chosen] {
    options->max_new_tokens_given = verb->count("--max-new-tokens") > 0;
    chosen = [options] { return generate(*options); };
  });
}

} // namespace troupe::runtime
