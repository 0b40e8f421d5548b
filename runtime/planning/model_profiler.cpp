#include "runtime/planning/model_profiler.hpp"

#include "actors/worker_base/call_options.hpp"
#include "config/base/defaults.hpp"
#include "models/engine/engine.hpp"
#include "models/engine/random_weights.hpp"
#include "models/generate/generate_options.hpp"
#include "models/losses/loss.hpp"
#include "models/parallel/run_context.hpp"
#include "plans/cost/cost_model.hpp"
#include "runtime/planning/device_memory.hpp"

#include <algorithm>
#include <limits>

namespace troupe::runtime {

using plans::CallKind;
using plans::ProfileOp;
using Clock = std::chrono::steady_clock;

namespace {

/// All samples in one pass, so that a size is a pass.
constexpr auto one_pass = std::numeric_limits<std::int64_t>::max();
/// Decoded tokens that are timed, where they take longer than the prompts.
constexpr std::uint32_t least_decoded = 32;
/// Rounds that a measurement takes at least, including its warm-up.
constexpr double rounds_at_least = 4;

bool of_pairs(const plans::Call& call) {
  return std::ranges::any_of(call.reads, [&](const auto& key) {
    return call.argument(key) == "chosen_ids";
  });
}

} // namespace

void ProfileFindings::add(const plans::ProfileEntry& entry) {
  for (auto& known : entries) {
    auto other = entry;
    other.median_s = known.median_s;
    if (known != other)
      continue;
    known.median_s = std::min(known.median_s, entry.median_s);
    return;
  }
  entries.push_back(entry);
}

void ProfileFindings::add_optimizer(const plans::TimedWork& step) {
  for (auto& known : optimizer)
    if (known.amount == step.amount) {
      known.seconds = std::min(known.seconds, step.seconds);
      return;
    }
  optimizer.push_back(step);
}

struct ModelProfiler::Device {
  explicit Device(models::Engine::Spec spec) : engine(std::move(spec)) {}
  models::Engine engine;
  models::RunContext context = {};
};

ModelProfiler::ModelProfiler(const ProfileSubject& subject,
                             const ProfiledModel& model, std::uint32_t tp,
                             ProfilePool& pool, ProfileFindings& findings)
  : subject_(subject),
    model_(model),
    tp_(tp),
    pool_(pool),
    findings_(findings),
    devices_(pool.num_devices() / tp * tp) {
  const auto groups = pool.groups_of(tp);
  pool.together(static_cast<std::uint32_t>(devices_.size()),
                [&](std::uint32_t i) { make_engine(i, groups[i]); });
}

ModelProfiler::~ModelProfiler() = default;

void ModelProfiler::make_engine(std::uint32_t device,
                                std::shared_ptr<net::Collectives> group) {
  const auto& settings = subject_.settings;
  auto spec = actors::engine_spec(settings, subject_.workflow, *model_.role,
                                  settings.models.at(model_.role->name).path);
  spec.trainable = model_.train != nullptr;
  spec.strategy.tp = tp_;
  spec.where.tp = device % tp_;
  spec.optimizer.lr = 0; // random weights remain finite
  auto& backend = pool_.backend(device);
  spec.backend = &backend;
  auto made = std::make_unique<Device>(std::move(spec));
  made->context.groups.tp = std::move(group);
  models::fill_weights(made->engine.parameters(), backend);
  made->engine.weights_changed();
  devices_[device] = std::move(made);
}

void ModelProfiler::measure(Clock::time_point deadline) {
  const auto begin = Clock::now();
  const auto share = [&](int part, int parts) {
    return begin + (deadline - begin) * part / parts;
  };
  if (model_.train != nullptr) {
    optimizer();
    measure_sizes(CallKind::train, &ModelProfiler::train, share(1, 3));
  }
  if (model_.generate != nullptr)
    measure_sizes(CallKind::generate, &ModelProfiler::generate, share(2, 3));
  if (model_.inference != nullptr)
    measure_sizes(CallKind::inference, &ModelProfiler::forward, deadline);
}

/// Returns the most samples of a pass: a device alone with the whole batch,
/// within the limit of one pass. Plans are predicted for the longest samples,
/// so as many of these lengths as have the tokens of those.
std::uint32_t ModelProfiler::most_samples(CallKind kind) const {
  const auto& sizes = subject_.sizes;
  double samples = sizes.samples_per_step;
  if (kind == CallKind::generate)
    return sizes.max_sequences > 0
             ? std::min(sizes.samples_per_step, sizes.max_sequences)
             : sizes.samples_per_step;
  if (kind == CallKind::train)
    samples = std::max(1.0, samples / sizes.mini_batches);
  const auto budget = sizes.micro_batch_tokens > 0
                        ? sizes.micro_batch_tokens
                        : defaults::micro_batch_tokens;
  const auto tokens
    = std::min(samples * static_cast<double>(sizes.max_sequence_tokens),
               static_cast<double>(budget));
  return std::max(
    1U, static_cast<std::uint32_t>(tokens / subject_.lengths.sequence()));
}

void ModelProfiler::measure_sizes(CallKind kind, Measurement measurement,
                                  Clock::time_point deadline) {
  double sample_s = 0;
  for (const auto samples : plans::profile_sizes(most_samples(kind))) {
    const auto left = std::chrono::duration<double>(deadline - Clock::now());
    if (left.count() <= rounds_at_least * sample_s * samples)
      continue;
    sample_s = (this->*measurement)(samples) / samples;
  }
}

void ModelProfiler::add(ProfileOp op, double tokens, double seconds) {
  findings_.add({.op = op,
                 .parameters = num_parameters(model_.shape),
                 .tp = tp_,
                 .tokens = tokens,
                 .median_s = std::max(seconds, 1e-7)});
}

double ModelProfiler::train_s(const models::TrainSpec& spec,
                              const net::Rows& rows) {
  return pool_.seconds(
    static_cast<std::uint32_t>(devices_.size()), [&](std::uint32_t i) {
      devices_[i]->engine.train(spec, rows, devices_[i]->context);
    });
}

/// Measures the optimizer's step alone, as a mini-batch without samples.
void ModelProfiler::optimizer() {
  auto spec = actors::train_spec(subject_.settings, *model_.train, {});
  spec.mini_batches.resize(1);
  optimizer_s_ = train_s(spec, {});
  const auto parameters = static_cast<double>(num_parameters(model_.shape));
  findings_.add_optimizer(
    {plans::optimizer_bytes_a_parameter * parameters / tp_, optimizer_s_});
}

double ModelProfiler::train(std::uint32_t samples) {
  const auto& call = *model_.train;
  const ProfileRows maker(subject_.lengths, model_.shape.vocab_size);
  const bool pairs = of_pairs(call);
  auto rows = maker.sequences(samples, pairs);
  for (const auto& column : models::losses().find(call.fn).columns) {
    maker.add_floats(rows, pairs ? "chosen_" + column : column);
    if (pairs)
      maker.add_floats(rows, "rejected_" + column);
  }
  auto spec = actors::train_spec(subject_.settings, call, {});
  spec.micro_batches = 1;
  spec.micro_batch_tokens = one_pass;
  spec.mini_batches = {rows.samples};
  const auto seconds = train_s(spec, rows);
  add(ProfileOp::train, samples * subject_.lengths.sequence(),
      std::max(seconds - optimizer_s_, seconds / 4));
  return seconds;
}

double ModelProfiler::forward(std::uint32_t samples) {
  const auto& call = *model_.inference;
  const ProfileRows maker(subject_.lengths, model_.shape.vocab_size);
  const auto rows = maker.sequences(samples, of_pairs(call));
  auto options = actors::infer_options(subject_.settings, call, {});
  options.micro_batch_tokens = one_pass;
  const auto seconds = pool_.seconds(
    static_cast<std::uint32_t>(devices_.size()), [&](std::uint32_t i) {
      devices_[i]->engine.infer(call.fn, rows, devices_[i]->context, options);
    });
  const double length = subject_.lengths.sequence();
  add(ProfileOp::forward, samples * length, seconds);
  const auto flops
    = forward_flops(model_.shape, samples * length, samples * length * length)
      / tp_;
  findings_.best_flops = std::max(findings_.best_flops, flops / seconds);
  return seconds;
}

/// Returns a share of memory, like `auto` on CPUs; on GPUs half of what plans
/// may use beside the planes, which leaves as much for passes.
plans::ResponseRoom ModelProfiler::room_for(std::size_t responses) const {
  constexpr std::uint64_t cache_divisor = 4, free_divisor = 2;
  const auto& settings = subject_.settings;
  const auto bytes = device_memory_bytes(settings, pool_.num_devices());
  const auto planes = devices_.front()->engine.device_bytes();
  const auto usable = std::max(plans::usable_bytes(settings, bytes), planes);
  const auto count = static_cast<std::uint32_t>(responses);
  return {.responses = count,
          .sequences = count,
          .cache_bytes = pool_.kind() == PoolDevices::gpus
                           ? (usable - planes) / free_divisor
                           : bytes / cache_divisor};
}

double ModelProfiler::generate_s(const net::Rows& prompts,
                                 std::int64_t tokens) {
  auto options
    = actors::generate_options(subject_.settings, *model_.generate,
                               model_.shape, room_for(prompts.samples.size()));
  options.max_new_tokens = tokens;
  options.min_new_tokens = 0;
  options.ignore_eos = true;
  return pool_.seconds(
    static_cast<std::uint32_t>(devices_.size()), [&](std::uint32_t i) {
      devices_[i]->engine.generate(prompts, options, devices_[i]->context);
    });
}

/// Measures the prompts, then decode steps with as much context as the run's
/// steps have on average.
double ModelProfiler::generate(std::uint32_t samples) {
  auto lengths = subject_.lengths;
  const auto prompts
    = ProfileRows(lengths, model_.shape.vocab_size).prompts(samples);
  const auto prefill_s = generate_s(prompts, 1);
  add(ProfileOp::prefill, samples * lengths.prompt, prefill_s);
  if (lengths.response < 2)
    return prefill_s;
  const auto steps = std::min(lengths.response - 1, least_decoded);
  const auto before = (lengths.response - 1 - steps) / 2;
  lengths.prompt += before;
  const auto rows
    = ProfileRows(lengths, model_.shape.vocab_size).prompts(samples);
  const auto first_s = before == 0 ? prefill_s : generate_s(rows, 1);
  return decode(rows, first_s, steps, lengths.response - 1 - before);
}

/// Times more and more steps, up to `most`, until they are a good part of the
/// whole: the difference of two long times would be noise.
double ModelProfiler::decode(const net::Rows& prompts, double first_s,
                             std::uint32_t steps, std::uint32_t most) {
  constexpr double good_part = 0.3;
  auto all_s = generate_s(prompts, steps + 1);
  while (all_s - first_s < good_part * all_s && steps < most) {
    steps = std::min(2 * steps, most);
    all_s = generate_s(prompts, steps + 1);
  }
  if (all_s > first_s)
    add(ProfileOp::decode, static_cast<double>(prompts.samples.size()),
        (all_s - first_s) / steps);
  return all_s;
}

} // namespace troupe::runtime
