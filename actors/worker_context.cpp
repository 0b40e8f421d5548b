#include "actors/worker_context.hpp"

#include "actors/call_options.hpp"
#include "actors/recording.hpp"
#include "actors/reward_work.hpp"
#include "config/error.hpp"
#include "config/log.hpp"
#include "models/evaluation.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <numeric>

namespace troupe::actors {

void LocalWeights::lend(std::uint64_t id, std::span<const std::byte> bytes) {
  const std::lock_guard lock{mutex_};
  spans_[id] = bytes;
}

std::span<const std::byte> LocalWeights::find(std::uint64_t id) const {
  const std::lock_guard lock{mutex_};
  const auto found = spans_.find(id);
  return found == spans_.end() ? std::span<const std::byte>{} : found->second;
}

WorkerContext::WorkerContext() = default;

WorkerContext::~WorkerContext() {
  rewards.reset(); // its thread uses the rest
}

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

models::OnRows WorkerContext::counts_rows(const char* setting) {
  return [this, setting](std::uint64_t done, std::uint64_t rows) {
    ++host->progress();
    const std::lock_guard lock{reading_mutex_};
    reading_ = done == rows
                 ? ""
                 : fmt::format("reads {}, row {} of {}", setting, done, rows);
  };
}

std::string WorkerContext::reading() const {
  const std::lock_guard lock{reading_mutex_};
  return reading_;
}

const models::Dataset& WorkerContext::evaluation() {
  std::call_once(evaluation_opened_, [this] {
    evaluation_.emplace(open_evaluation(settings, workflow,
                                        {.index_file = {},
                                         .index_key = {},
                                         .on_rows = counts_rows("eval.data")}));
  });
  return *evaluation_;
}

const models::Dataset& WorkerContext::dataset() {
  std::call_once(dataset_opened_, [this] {
    dataset_.emplace(
      open_dataset(settings, workflow,
                   {.index_file = run_folder / models::data_index_file,
                    .index_key = data_key,
                    .on_rows = counts_rows("data.train")}));
    const auto rows = dataset_->report().rows;
    if (!dataset_->was_read())
      log::runtime.info(fmt::format("takes {} rows of data.train from {}", rows,
                                    models::data_index_file));
    else if (!data_key.empty())
      log::runtime.warn(fmt::format(
        "read {} rows of data.train again: {} is not what the start of this "
        "run wrote",
        rows, (run_folder / models::data_index_file).string()));
  });
  return *dataset_;
}

/// Samples of an evaluation are of its file's rows in their order.
std::vector<std::uint32_t> WorkerContext::data_rows(const plans::Call& call,
                                                    StepId step) {
  if (call.evaluates) {
    std::vector<std::uint32_t> rows(evaluation().size());
    std::iota(rows.begin(), rows.end(), 0U);
    return rows;
  }
  const auto num_rows = dataset().size();
  const std::lock_guard lock{order_mutex_};
  if (!order_)
    order_ = models::data_order(settings, num_rows);
  return order_->batch(step.value);
}

std::uint32_t WorkerContext::data_row(const plans::Call& call, StepId step,
                                      SampleId sample) {
  const auto a_row = samples_per_row(settings, workflow, call.evaluates);
  return data_rows(call, step).at(sample.value / a_row);
}

const models::Tokenizer& WorkerContext::tokenizer() {
  std::call_once(tokenizer_opened_, [this] {
    // every role's tokenizer means the same, and where texts are needed there
    // is one (checked before the start)
    const auto& role = workflow.roles.front().name;
    tokenizer_ = models::Tokenizer::load_if_any(settings.models.at(role).path);
  });
  return *tokenizer_;
}

std::shared_ptr<WorkerContext> make_worker_context(const Welcome& welcome) {
  auto context = std::make_shared<WorkerContext>();
  context->worker = welcome.worker;
  context->incarnation = welcome.incarnation;
  context->run_id = welcome.run_id;
  context->who
    = fmt::format("worker {} (pid {})", welcome.worker.value, getpid());
  context->settings = parse_settings(welcome.settings_yaml, "config.yaml");
  auto calls = run_calls(plans::make_workflow(context->settings),
                         plans::parse_plan(welcome.plan_yaml, "plan.yaml"),
                         context->settings, welcome.only_evaluates);
  context->workflow = std::move(calls.workflow);
  context->plan = std::move(calls.plan);
  context->replicas = plans::replicas_of(context->workflow, context->plan);
  for (const auto& [call, room] : welcome.rooms)
    context->rooms[call]
      = {.answers = room.answers, .cache_bytes = room.cache_bytes};
  context->run_folder = welcome.run_folder;
  context->data_key = welcome.data_key;
  for (const auto& role : context->workflow.roles) {
    const std::filesystem::path folder
      = context->settings.models.at(role.name).path;
    auto shape = read_model_shape(folder / "config.json");
    shape.scalar_head = role.scalar_head;
    context->shapes[role.name] = shape;
  }
  if (!context->settings.run.replay.empty())
    context->replay = std::make_unique<models::RolloutReplay>(
      context->settings.run.replay, recorded_keys(context->workflow));
  return context;
}

} // namespace troupe::actors
