// generate: responses to prompts, one line per sample.
#include "config/base/error.hpp"
#include "config/model/model_shape.hpp"
#include "models/data/dataset.hpp"
#include "models/generate/generate_options.hpp"
#include "models/text/tokenizer.hpp"
#include "net/base/rows.hpp"
#include "runtime/base/human_text.hpp"
#include "runtime/base/stream_files.hpp"
#include "runtime/commands/command.hpp"
#include "runtime/commands/command_session.hpp"
#include "runtime/commands/model_options.hpp"
#include "runtime/commands/row_options.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

namespace troupe::runtime {

namespace {

struct GenerateCommandOptions : CommandOptions {
  ModelOptions model;
  RowOptions rows;
  std::string prompts;
  std::string out;
  models::GenerateOptions sampling;
  int n = 1;
  std::vector<std::string> stop;
  std::string logprobs = "unfiltered";
  std::optional<int> max_sequences;
  std::optional<double> kv_cache_gb;
  bool max_new_tokens_given = false;
};

struct Lengths { ///< tokens
  std::int64_t longest_prompt = 0;
  std::int64_t max_new_tokens = 0;
};

/// Checks, before any work, that every prompt leaves room for its response.
/// Without --max-new-tokens, responses may be as long as the longest prompt
/// leaves room for, up to the default.
Lengths settle_lengths(const GenerateCommandOptions& options,
                       const ModelShape& shape,
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
  auto wanted = options.sampling.max_new_tokens;
  const auto room = shape.context_tokens() - longest;
  if (!options.max_new_tokens_given)
    wanted = std::min(wanted, std::max<std::int64_t>(room, 1));
  if (wanted <= room)
    return {longest, wanted};
  throw ConfigError(
    {.place = {options.prompts, prompts.text(longest_row).line},
     .path = "prompt",
     .expected
     = fmt::format("at most {} tokens with --max-new-tokens {} (the model "
                   "has {} positions)",
                   std::max<std::int64_t>(shape.context_tokens() - wanted, 0),
                   wanted, shape.context_tokens()),
     .got = std::to_string(longest),
     .hint = room > 0 ? fmt::format("--max-new-tokens {}", room)
                      : "a shorter prompt"});
}

void fill_settings(Settings& settings, const DataSettings& rows,
                   const GenerateCommandOptions& options,
                   const Lengths& lengths) {
  const auto& sampling = options.sampling;
  settings.run.seed = sampling.seed;
  settings.data.train = rows.train;
  settings.data.fields = rows.fields;
  settings.data.chat = rows.chat;
  settings.data.max_prompt_tokens = static_cast<int>(lengths.longest_prompt);
  settings.data.overlong = "error";
  auto& rollout = settings.rollout;
  rollout.n = options.n;
  rollout.max_new_tokens = static_cast<int>(lengths.max_new_tokens);
  rollout.min_new_tokens = static_cast<int>(sampling.min_new_tokens);
  // greedy log-probabilities are those of the plain logits
  rollout.command.greedy = sampling.greedy || sampling.temperature == 0;
  rollout.temperature = sampling.temperature > 0 ? sampling.temperature : 1;
  rollout.top_k = static_cast<int>(sampling.top_k);
  rollout.top_p = sampling.top_p;
  rollout.min_p = sampling.min_p;
  rollout.repetition_penalty = sampling.repetition_penalty;
  rollout.command.ignore_eos = sampling.ignore_eos;
  rollout.stop = options.stop;
  rollout.logprobs = options.logprobs;
  rollout.max_batch_tokens = static_cast<int>(sampling.max_batch_tokens);
  rollout.max_sequences = options.max_sequences;
  rollout.kv_cache_gb = options.kv_cache_gb;
}

void check_lengths(const models::GenerateOptions& sampling) {
  if (sampling.min_new_tokens > sampling.max_new_tokens)
    throw ConfigError({.place = {"command line", 0},
                       .path = "--min-new-tokens",
                       .expected = fmt::format("at most --max-new-tokens ({})",
                                               sampling.max_new_tokens),
                       .got = std::to_string(sampling.min_new_tokens),
                       .hint = std::to_string(sampling.max_new_tokens)});
}

int generate(const GenerateCommandOptions& options) {
  check_out_file(options.out);
  check_lengths(options.sampling);
  const auto shape = open_shape(options.model);
  if (shape.scalar_head)
    throw ConfigError({.place = {options.model.model, 0},
                       .path = "",
                       .expected = "a language model",
                       .got = "one with a scalar head, which cannot generate",
                       .hint = "`troupe score`"});
  const auto tokenizer = models::Tokenizer::load_if_any(options.model.model);
  if (!options.stop.empty())
    tokenizer.need_vocabulary();
  tokenizer.check_fits(shape, options.model.model);
  const RowInput input(options.prompts, "--prompts");
  const auto rows = row_settings("generate", input.file(), options.rows);
  const auto prompts = input.naming([&] {
    return std::make_shared<const models::Dataset>(
      models::Dataset::open(row_dataset_options(rows), tokenizer));
  });
  models::warn_of_lost(*prompts);
  CommandSession session("generate", options.model, shape, options.out);
  fill_settings(session.settings(), rows.data, options,
                settle_lengths(options, shape, *prompts));
  const auto outcome = session.run_rows(prompts);
  if (outcome.code != ExitCode::done)
    return static_cast<int>(outcome.code);
  session.keep_rows();
  const auto num_tokens = static_cast<double>(outcome.made_tokens);
  print_note(options, fmt::format("{}: {} samples of {} rows, {} tokens in {} "
                                  "({} tok/s)",
                                  options.out,
                                  static_cast<std::uint64_t>(options.n)
                                    * prompts->size(),
                                  prompts->size(), outcome.made_tokens,
                                  duration_text(outcome.seconds),
                                  count_text(num_tokens / outcome.seconds)));
  return static_cast<int>(ExitCode::done);
}

CLI::Validator share_above_zero() {
  return CLI::Validator{[](std::string& text) {
                          const auto refusal = CLI::Range(0.0, 1.0)(text);
                          if (!refusal.empty())
                            return refusal;
                          return std::stod(text) > 0
                                   ? std::string{}
                                   : std::string{"Value 0 leaves no token"};
                        },
                        "FLOAT in (0 - 1]"};
}

void add_sampling_options(CLI::App& command, GenerateCommandOptions& options) {
  auto& sampling = options.sampling;
  command
    .add_option("--max-new-tokens", sampling.max_new_tokens,
                "Longest answer; without it, at most what the model has room "
                "for")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  command
    .add_option("--min-new-tokens", sampling.min_new_tokens,
                "No end token before this many tokens")
    ->check(CLI::NonNegativeNumber)
    ->capture_default_str();
  command
    .add_option("--temperature", sampling.temperature,
                "Divides the logits; 0 is greedy")
    ->check(CLI::NonNegativeNumber)
    ->check(refuse_nan)
    ->capture_default_str();
  command
    .add_option("--top-k", sampling.top_k,
                "Keep the k likeliest tokens; 0: off")
    ->check(CLI::NonNegativeNumber)
    ->capture_default_str();
  command
    .add_option("--top-p", sampling.top_p,
                "Keep the likeliest tokens up to this probability; 1: off")
    ->check(share_above_zero())
    ->capture_default_str();
  command
    .add_option("--min-p", sampling.min_p,
                "Keep tokens with this share of the likeliest; 0: off")
    ->check(CLI::Range(0.0, 1.0))
    ->check(refuse_nan)
    ->capture_default_str();
  command.add_option("--n", options.n, "Samples of each prompt")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  command.add_option("--seed", sampling.seed, "Of the sampling noise")
    ->check(CLI::NonNegativeNumber)
    ->capture_default_str();
  command.add_flag("--greedy", sampling.greedy, "Take the likeliest token");
  command.add_flag("--ignore-eos", sampling.ignore_eos,
                   "Go on to --max-new-tokens whatever comes");
}

void add_limit_options(CLI::App& command, GenerateCommandOptions& options) {
  auto& sampling = options.sampling;
  command
    .add_option("--repetition-penalty", sampling.repetition_penalty,
                "Of logits of tokens that occurred; 1: off")
    ->check(CLI::PositiveNumber)
    ->check(refuse_nan)
    ->capture_default_str();
  command
    .add_option("--stop", options.stop,
                "A text that ends an answer; may be given again")
    ->allow_extra_args(false)
    ->check([](const std::string& text) {
      return text.empty() ? "an empty text ends nothing" : "";
    });
  command
    .add_option("--logprobs", options.logprobs,
                "Of the model, or of what was sampled from")
    ->check(CLI::IsMember({"unfiltered", "sampled"}))
    ->capture_default_str();
  command
    .add_option("--max-batch-tokens", sampling.max_batch_tokens,
                "Tokens of one pass through the model")
    ->check(CLI::PositiveNumber)
    ->capture_default_str();
  command
    .add_option("--max-sequences", options.max_sequences,
                "Most answers under way at once on a device (default: 64 on "
                "CPUs, as many as the cache holds on GPUs)")
    ->check(CLI::PositiveNumber);
  command
    .add_option("--kv-cache-gb", options.kv_cache_gb,
                "Most memory of a device's cache (default: what is free on "
                "GPUs, a quarter of the memory on CPUs)")
    ->check(CLI::PositiveNumber)
    ->check(refuse_nan);
}

} // namespace

void add_generate(CLI::App& app, CommandRun& chosen) {
  auto* command
    = app.add_subcommand("generate", "Answer the prompts of a JSONL file");
  auto options = std::make_shared<GenerateCommandOptions>();
  add_model_options(*command, options->model);
  command
    ->add_option("--prompts", options->prompts,
                 "JSONL rows with prompt, prompt_ids or messages; a file or a "
                 "pipe")
    ->required();
  command->add_option("--out", options->out, "JSONL file to write, or a pipe")
    ->required();
  add_row_options(*command, options->rows);
  add_sampling_options(*command, *options);
  add_limit_options(*command, *options);
  add_quiet_option(*command, *options);
  command->callback([options, command, &chosen] {
    options->max_new_tokens_given = command->count("--max-new-tokens") > 0;
    chosen = [options] { return generate(*options); };
  });
}

} // namespace troupe::runtime
