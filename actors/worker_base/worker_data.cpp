#include "actors/worker_base/worker_data.hpp"

#include "actors/worker_base/call_options.hpp"
#include "actors/worker_base/sample_log.hpp"
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/settings/data_files.hpp"
#include "models/data/ptx_data.hpp"
#include "models/kernels/threads.hpp"
#include "models/records/evaluation.hpp"

#include <fmt/format.h>

#include <numeric>

namespace troupe::actors {

models::Dataset open_dataset(const Settings& settings,
                             const plans::Workflow& workflow,
                             const models::DatasetOpening& opening) {
  const auto& role = workflow.roles.front().name;
  return models::Dataset::open(
    settings, models::Tokenizer::load_if_any(settings.models.at(role).path),
    opening);
}

models::Dataset open_evaluation(const Settings& settings,
                                const plans::Workflow& workflow,
                                const models::DatasetOpening& opening) {
  const auto& role = workflow.roles.front().name;
  return models::Dataset::open(
    models::evaluation_options(settings),
    models::Tokenizer::load(settings.models.at(role).path), opening);
}

models::OnRows WorkerData::counts_rows(const char* setting) {
  return [this, setting](std::uint64_t done, std::uint64_t rows) {
    ++progress_;
    set_reading(done == rows
                  ? ""
                  : fmt::format("reads {}, row {} of {}", setting, done, rows));
  };
}

void WorkerData::set_reading(std::string text) {
  const std::lock_guard lock{reading_mutex_};
  reading_ = std::move(text);
}

std::string WorkerData::reading() const {
  const std::lock_guard lock{reading_mutex_};
  return reading_;
}

/// Returns the settings with this host's path of the tokenizer.
Settings WorkerData::settings_here() const {
  Settings settings = run_.settings;
  auto& path = settings.models.at(run_.workflow.roles.front().name).path;
  path = run_.files->local(path, ModelFiles::all_but_weights);
  return settings;
}

const models::Dataset& WorkerData::evaluation() {
  std::call_once(evaluation_.opened, [this] {
    const auto threads = static_cast<std::uint32_t>(models::compute_threads());
    auto settings = settings_here();
    settings.eval.data = run_.files->local(settings.eval.data);
    evaluation_.value.emplace(
      open_evaluation(settings, run_.workflow,
                      {.index_file = {},
                       .index_key = {},
                       .on_rows = counts_rows("eval.data"),
                       .num_threads = threads}));
  });
  return *evaluation_.value;
}

const models::Dataset& WorkerData::dataset() {
  std::call_once(dataset_.opened, [this] {
    const auto threads = static_cast<std::uint32_t>(models::compute_threads());
    auto settings = settings_here();
    auto files = train_files(settings.data);
    for (auto& file : files)
      file.path = run_.files->local(file.path).string();
    set_train_files(settings.data, std::move(files));
    dataset_.value.emplace(open_dataset(
      settings, run_.workflow,
      {.index_file = run_.files->local(run_.folder / models::data_index_file),
       .index_key = run_.data_key,
       .on_rows = counts_rows("data.train"),
       .num_threads = threads}));
    const auto rows = dataset_.value->report().rows;
    if (!dataset_.value->was_read())
      log::runtime.info(fmt::format("takes {} rows of data.train from {}", rows,
                                    models::data_index_file));
    else if (!run_.data_key.empty())
      log::runtime.warn(fmt::format(
        "read {} rows of data.train again: {} is not what the start of this "
        "run wrote",
        rows, (run_.folder / models::data_index_file).string()));
  });
  return *dataset_.value;
}

const models::Dataset& WorkerData::ptx() {
  std::call_once(ptx_.opened, [this] {
    auto settings = settings_here();
    settings.data.ptx = run_.files->local(settings.data.ptx);
    ptx_.value.emplace(models::open_ptx(
      settings, tokenizer(),
      {.index_file = {},
       .index_key = {},
       .on_rows = counts_rows("data.ptx"),
       .num_threads = static_cast<std::uint32_t>(models::compute_threads())}));
  });
  return *ptx_.value;
}

std::vector<std::uint32_t> WorkerData::ptx_rows_of(StepId step) {
  const auto num_rows = ptx().size();
  const std::lock_guard lock{order_mutex_};
  if (!ptx_order_)
    ptx_order_ = models::ptx_order(run_.settings, num_rows);
  return ptx_order_->batch(step.value);
}

const models::RolloutReplay* WorkerData::replay() {
  const auto& file = run_.settings.run.replay;
  if (file.empty())
    return nullptr;
  std::call_once(replay_.opened, [&] {
    replay_.value.emplace(
      run_.files->local(file), recorded_keys(run_.workflow), [this](int line) {
        ++progress_;
        set_reading(fmt::format("reads run.replay, line {}", line));
      });
    set_reading("");
  });
  return &*replay_.value;
}

/// Samples of an evaluation follow the rows of its file in order.
std::vector<std::uint32_t> WorkerData::rows_of(const plans::Call& call,
                                               StepId step) {
  if (call.evaluates) {
    std::vector<std::uint32_t> rows(evaluation().size());
    std::iota(rows.begin(), rows.end(), 0U);
    return rows;
  }
  const auto& usable = dataset().report().usable;
  const std::lock_guard lock{order_mutex_};
  if (!order_)
    order_ = models::data_order(run_.settings, usable);
  return order_->batch(step.value);
}

std::uint32_t WorkerData::row_of(const plans::Call& call, StepId step,
                                 SampleId sample) {
  const auto a_row
    = samples_per_row(run_.settings, run_.workflow, call.evaluates);
  return rows_of(call, step).at(sample.value / a_row);
}

const models::Tokenizer& WorkerData::tokenizer() {
  std::call_once(tokenizer_.opened, [this] {
    // every role's tokenizer is equivalent, and where texts are needed there is
    // one (checked before the start)
    const auto& role = run_.workflow.roles.front().name;
    tokenizer_.value
      = models::Tokenizer::load_if_any(settings_here().models.at(role).path);
  });
  return *tokenizer_.value;
}

} // namespace troupe::actors
