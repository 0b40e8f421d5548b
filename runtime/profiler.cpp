#include "runtime/profiler.hpp"

#include "models/engine.hpp"
#include "models/generate_options.hpp"
#include "models/parameters.hpp"
#include "net/rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <random>
#include <set>
#include <vector>

namespace troupe::runtime {

namespace {

constexpr int profile_repeats = 3;
constexpr std::size_t copy_bytes = std::size_t{64} << 20;

double profile_seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
    .count();
}

/// Median after a warm-up.
double profile_median(const std::function<void()>& work) {
  work();
  std::vector<double> all;
  for (int i = 0; i < profile_repeats; ++i)
    all.push_back(profile_seconds(work));
  std::ranges::sort(all);
  return all[all.size() / 2];
}

std::vector<std::int32_t> profile_tokens(std::size_t count,
                                         std::int64_t vocab_size) {
  std::mt19937 random(1);
  std::vector<std::int32_t> ids(count);
  for (auto& id : ids)
    id = 3
         + static_cast<std::int32_t>(
           random()
           % static_cast<std::uint64_t>(
             std::max<std::int64_t>(vocab_size - 3, 1)));
  return ids;
}

net::Rows profile_rows(const ModelShape& shape, std::uint32_t samples,
                       std::uint32_t length, const char* key) {
  net::Rows rows;
  for (std::uint32_t i = 0; i < samples; ++i)
    rows.samples.emplace_back(std::uint64_t{i});
  const std::vector<std::uint32_t> lengths(samples, length);
  const auto ids
    = profile_tokens(std::size_t{samples} * length, shape.vocab_size);
  rows.add(net::make_column(key, DType::i32, lengths, ids.data()));
  return rows;
}

void add_floats(net::Rows& rows, const char* key, std::uint32_t length) {
  const std::vector<std::uint32_t> lengths(rows.samples.size(), length);
  const std::vector<float> zeros(rows.samples.size() * length, 0.0F);
  rows.add(net::make_column(key, DType::f32, lengths, zeros.data()));
}

void add_mask(net::Rows& rows, std::uint32_t length) {
  const std::vector<std::uint32_t> lengths(rows.samples.size(), length);
  const std::vector<std::uint8_t> ones(rows.samples.size() * length, 1);
  rows.add(net::make_column("loss_mask", DType::u8, lengths, ones.data()));
}

class ModelProfiler {
public:
  ModelProfiler(const ProfiledModel& model,
                std::vector<plans::ProfileEntry>& entries)
    : model_(model),
      entries_(entries),
      engine_({.folder = model.folder,
               .role = "profile",
               .scalar_head = model.shape.scalar_head,
               .trainable = model.trained,
               .strategy = {},
               .where = {},
               .optimizer = {.lr = 0.0, .warmup = 0.0}}),
      length_(static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(model.shape.max_positions / 2, 8, 128))) {
    std::mt19937 random(2);
    std::normal_distribution<float> normal(0.0F, 0.02F);
    for (auto& weight :
         engine_.parameters().plane(troupe::models::Plane::weight))
      weight = normal(random);
    engine_.weights_changed();
  }

  /// Returns the FLOP/s it reached.
  double forward(std::uint32_t samples) {
    auto rows = profile_rows(model_.shape, samples, length_, "sequence_ids");
    add_mask(rows, length_);
    const char* fn = model_.shape.scalar_head ? "values" : "logprobs";
    const auto seconds
      = profile_median([&] { engine_.infer(fn, rows, context_); });
    const double tokens = samples * length_;
    add(plans::ProfileOp::forward, tokens, seconds);
    return forward_flops(model_.shape, tokens, tokens * length_) / seconds;
  }

  void train(std::uint32_t samples) {
    auto rows = profile_rows(model_.shape, samples, length_, "sequence_ids");
    add_mask(rows, length_);
    models::TrainSpec spec;
    spec.fn = model_.shape.scalar_head ? "ppo_critic_loss" : "sft_loss";
    spec.mini_batches = {rows.samples};
    if (model_.shape.scalar_head) {
      add_floats(rows, "values", length_ + 1);
      add_floats(rows, "returns", length_);
    }
    add(plans::ProfileOp::train, samples * length_,
        profile_median([&] { engine_.train(spec, rows, context_); }));
  }

  /// A step of `answers` answers: what 16 more tokens take.
  void decode(std::uint32_t answers) {
    const auto rows
      = profile_rows(model_.shape, answers, length_ / 2, "prompt_ids");
    models::GenerateOptions options;
    options.ignore_eos = true;
    const auto seconds = [&](std::int64_t tokens) {
      options.max_new_tokens = tokens;
      return profile_median([&] { engine_.generate(rows, options, context_); });
    };
    const auto first = seconds(1);
    add(plans::ProfileOp::decode, answers,
        std::max(1e-7, (seconds(17) - first) / 16));
  }

private:
  void add(plans::ProfileOp op, double tokens, double median_s) {
    entries_.push_back({.op = op,
                        .parameters = num_parameters(model_.shape),
                        .tp = 1,
                        .tokens = tokens,
                        .median_s = median_s});
  }

  const ProfiledModel& model_;
  std::vector<plans::ProfileEntry>& entries_;
  models::Engine engine_;
  models::RunContext context_;
  std::uint32_t length_;
};

void measure_copies(plans::Hardware& hardware) {
  std::vector<char> from(copy_bytes, 1), to(copy_bytes, 0);
  const auto seconds
    = profile_median([&] { std::memcpy(to.data(), from.data(), copy_bytes); });
  const auto rate = static_cast<double>(copy_bytes) / seconds;
  // a copy reads and writes
  const std::string source = "measured: memcpy of 64 MiB";
  hardware.mem_Bps = 2 * rate;
  hardware.intra_Bps = rate;
  hardware.host_Bps = rate;
  hardware.zero_Bps = rate;
  for (const char* path : {"device.mem_Bps", "links.intra_Bps",
                           "links.host_Bps", "links.zero_Bps"})
    hardware.sources[path] = source;
}

} // namespace

std::string profiled_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      return "profiled on " + line.substr(line.find(':') + 2);
  return "profiled on an unknown processor";
}

MachineProfile
measure_machine(const std::map<std::string, ProfiledModel>& models,
                double seconds) {
  const auto begin = std::chrono::steady_clock::now();
  const auto in_time = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now()
                                         - begin)
             .count()
           < seconds;
  };
  MachineProfile profile{.hardware = plans::load_hardware("laptop"),
                         .table = {}};
  profile.hardware.name = profiled_name();
  measure_copies(profile.hardware);
  std::vector<plans::ProfileEntry> entries;
  double flops = 0;
  std::set<std::pair<std::uint64_t, bool>> seen;
  for (const auto& [role, model] : models) {
    if (!seen.emplace(num_parameters(model.shape), model.shape.scalar_head)
           .second)
      continue;
    ModelProfiler profiler(model, entries);
    for (const std::uint32_t samples : {1u, 4u, 16u, 64u}) {
      if (in_time())
        flops = std::max(flops, profiler.forward(samples));
      if (model.trained && in_time())
        profiler.train(samples);
      if (!model.shape.scalar_head && model.trained && in_time())
        profiler.decode(samples);
    }
  }
  profile.hardware.gemm_flops = profile.hardware.attn_flops = flops;
  for (const char* path : {"device.gemm_flops", "device.attn_flops"})
    profile.hardware.sources[path] = "measured: the fastest forward";
  profile.table = plans::ProfileTable(std::move(entries));
  return profile;
}

} // namespace troupe::runtime
