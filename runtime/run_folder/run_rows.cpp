#include "runtime/run_folder/run_rows.hpp"

#include "actors/checkpoint/checkpoint_files.hpp"
#include "actors/worker_base/worker_context.hpp"
#include "config/base/clock.hpp"
#include "config/base/log.hpp"
#include "models/data/dataset.hpp"
#include "models/text/tokenizer.hpp"
#include "runtime/run_folder/build_identity.hpp"
#include "runtime/run_folder/session_inputs.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <iostream>

namespace troupe::runtime {

namespace fs = std::filesystem;

namespace {

using RowsClock = std::chrono::steady_clock;

/// Period of the progress reports of a long pass.
constexpr std::chrono::seconds pass_report_period{5};

/// Files of a model folder that decide which tokens a text has, and which ids
/// are allowed (models/text/tokenizer.hpp).
constexpr std::array tokenizer_files{
  "tokenizer.json",      "tokenizer.model",        "added_tokens.json",
  "config.json",         "tokenizer_config.json",  "generation_config.json",
  "chat_template.jinja", "special_tokens_map.json"};

/// Returns a key of everything on which the index depends. The program is part
/// of it: a later one may tokenize better.
std::string index_key(const Settings& settings, const fs::path& tokenizer,
                      const RunInputs& inputs) {
  const auto options = models::train_options(settings);
  nlohmann::json key{{"program", build_identity()},
                     {"data", inputs.at(data_file_input)},
                     {"kind", static_cast<int>(options.kind)},
                     {"fields", options.fields},
                     {"chat", static_cast<int>(options.chat)},
                     {"max_tokens", options.max_tokens},
                     {"overlong", options.overlong},
                     {"on_bad_row", options.on_bad_row},
                     {"ends_answers", options.ends_responses}};
  std::error_code ignored;
  for (const auto* name : tokenizer_files)
    if (const auto file = tokenizer / name; fs::is_regular_file(file, ignored))
      key["tokenizer"][name] = file_mark(file);
  return key.dump();
}

/// Reports progress on standard error, as programs may read standard output.
models::OnRows tells_progress() {
  return [next = RowsClock::now() + pass_report_period](
           std::uint64_t done, std::uint64_t rows) mutable {
    if (RowsClock::now() < next)
      return;
    next = RowsClock::now() + pass_report_period;
    std::cerr << fmt::format("reads data.train, row {} of {}\n", done, rows);
  };
}

} // namespace

RunRows open_rows(const Settings& settings, const plans::Workflow& workflow,
                  const std::map<std::string, ModelShape>& shapes,
                  const RunInputs& inputs, const RunFolder& folder) {
  const Stopwatch watch;
  const auto tokenizer = tokenizer_folder(settings, workflow);
  RunRows rows;
  rows.key = index_key(settings, tokenizer, inputs);
  rows.data = std::make_shared<const models::Dataset>(
    models::Dataset::open(settings, models::Tokenizer::load(tokenizer),
                          {.index_file = folder.index_file(),
                           .index_key = rows.key,
                           .on_rows = tells_progress()}));
  rows.seconds = watch.seconds();
  check_rows(settings, workflow, shapes, *rows.data);
  return rows;
}

void keep_index(const RunRows& rows, const RunFolder& folder) {
  std::error_code ignored;
  const auto file = folder.index_file();
  if (!rows.data
      || !(rows.data->was_read() || !fs::is_regular_file(file, ignored)))
    return;
  try {
    rows.data->keep_index(file, rows.key);
  } catch (const FailureError& error) { // the run is slower without an index,
                                        // but correct
    log::runtime.warn(error.failure().what
                      + ": each worker and each start reads data.train again");
  }
}

std::string rows_sentence(const RunRows& rows) {
  const auto count = rows.data->report().rows;
  return rows.data->was_read()
           ? fmt::format("{} rows of data.train read in {:.1f} s, kept in {}",
                         count, rows.seconds, models::data_index_file)
           : fmt::format("{} rows of data.train taken from {} in {:.1f} s",
                         count, models::data_index_file, rows.seconds);
}

} // namespace troupe::runtime
