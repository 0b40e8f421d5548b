#include "runtime/planning/profiler.hpp"

#include "plans/check/plan_check.hpp"
#include "plans/cost/profile_fit.hpp"
#include "plans/plan/strategy_rules.hpp"
#include "runtime/base/host_memory.hpp"
#include "runtime/planning/model_profiler.hpp"
#include "runtime/planning/profile_links.hpp"
#include "runtime/planning/resolve_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

namespace troupe::runtime {

using Clock = std::chrono::steady_clock;

namespace {

/// Weights, gradients and two moments, fp32.
constexpr double trained_bytes_a_parameter = 16;
constexpr double bytes_a_parameter = 4;

bool same_shape(const ModelShape& a, const ModelShape& b) {
  return num_parameters(a) == num_parameters(b)
         && a.scalar_head == b.scalar_head;
}

void add_call(ProfiledModel& model, const plans::Call& call) {
  const auto take = [&](const plans::Call*& place) {
    place = place == nullptr ? &call : place;
  };
  switch (call.kind) {
  case plans::CallKind::generate:
    return take(model.generate);
  case plans::CallKind::inference:
    return take(model.inference);
  case plans::CallKind::train:
    return take(model.train);
  case plans::CallKind::function:
    return;
  }
}

/// Returns the models of a workflow, each shape once, with all that is done
/// with it.
std::vector<ProfiledModel>
models_of(const plans::Workflow& workflow,
          const std::map<std::string, ModelShape>& shapes) {
  std::vector<ProfiledModel> models;
  for (const auto& role : workflow.roles) {
    const auto& shape = shapes.at(role.name);
    auto model = std::ranges::find_if(
      models, [&](const auto& m) { return same_shape(m.shape, shape); });
    if (model == models.end()) {
      models.push_back({.role = &role, .shape = shape});
      model = std::prev(models.end());
    }
    if (role.trained)
      model->role = &role;
    for (const auto& call : workflow.calls)
      if (call.role == role.name
          || std::ranges::find(call.by.with, role.name) != call.by.with.end())
        add_call(*model, call);
  }
  return models;
}

bool fits_on_all(const ProfiledModel& model, std::uint32_t devices) {
  const auto free_bytes = static_cast<double>(available_memory_bytes());
  const auto each
    = static_cast<double>(num_parameters(model.shape))
      * (model.train ? trained_bytes_a_parameter : bytes_a_parameter);
  return free_bytes == 0 || each * devices < 0.8 * free_bytes;
}

/// A model in one layout.
struct ProfileJob {
  const ProfiledModel* model;
  std::uint32_t tp;
};

std::vector<ProfileJob> jobs_of(const std::vector<ProfiledModel>& models,
                                std::uint32_t devices) {
  std::vector<ProfileJob> jobs;
  for (std::uint32_t tp = 1; tp <= devices; tp *= 2)
    for (const auto& model : models)
      if (plans::is_legal_tp(model.shape, tp) && fits_on_all(model, devices))
        jobs.push_back({&model, tp});
  return jobs;
}

void set_source(plans::Hardware& hardware, const char* path, double& number,
                double value, const std::string& source) {
  number = value;
  hardware.sources[path] = source;
}

void set_rates(plans::Hardware& hardware, const ProfileFindings& findings,
               std::uint32_t devices) {
  if (findings.best_flops > 0) {
    const auto source = fmt::format(
      "measured: the fastest inference, {} devices at once", devices);
    set_source(hardware, "device.gemm_flops", hardware.gemm_flops,
               findings.best_flops, source);
    set_source(hardware, "device.attn_flops", hardware.attn_flops,
               findings.best_flops, source);
  }
  if (findings.optimizer.empty())
    return;
  const auto line = plans::fit_work(findings.optimizer);
  const auto source
    = fmt::format("fitted to the optimizer's steps of {} models and layouts",
                  findings.optimizer.size());
  set_source(hardware, "device.optimizer_Bps", hardware.optimizer_Bps,
             line.rate, source);
  set_source(hardware, "host.opt_step_s", hardware.opt_step_s, line.fixed_s,
             source);
}

/// Sets the launch cost from inference on one device: what a pass costs however
/// few tokens it has.
void set_launches(plans::Hardware& hardware, const ProfileFindings& findings,
                  const ProfiledModel& model) {
  std::vector<plans::TimedWork> passes;
  for (const auto& entry : findings.entries)
    if (entry.op == plans::ProfileOp::forward && entry.tp == 1
        && entry.parameters == num_parameters(model.shape))
      passes.push_back({entry.tokens, entry.median_s});
  const auto line = plans::fit_work(passes);
  if (line.fixed_s > 0)
    set_source(hardware, "host.launch_layer_s", hardware.launch_layer_s,
               line.fixed_s / static_cast<double>(model.shape.num_layers),
               fmt::format("fitted to {} sizes of inference: as long as {:.0f} "
                           "tokens take",
                           passes.size(), line.knee()));
}

} // namespace

MachineProfile measure_machine(const Settings& settings,
                               const plans::Workflow& workflow,
                               const std::map<std::string, ModelShape>& shapes,
                               const plans::Cluster& cluster,
                               const ProfileEffort& effort) {
  const auto begin = Clock::now();
  const auto devices = cluster.devices_per_node;
  const auto here = with_cluster(settings, cluster);
  const auto sizes = plans::make_check_context(here, workflow, {}).sizes;
  const ProfileSubject subject{.settings = here,
                               .workflow = workflow,
                               .sizes = sizes,
                               .lengths = run_lengths(here, workflow)};
  const auto models = models_of(workflow, shapes);
  double model_bytes = 0;
  for (const auto& model : models)
    model_bytes = std::max(
      model_bytes,
      bytes_a_parameter * static_cast<double>(num_parameters(model.shape)));

  MachineProfile profile{.hardware = plans::load_hardware("laptop"),
                         .table = {}};
  profile.hardware.name = profiled_name();
  profile.hardware.devices_per_node = devices;
  if (const auto cores = std::max(1U, std::thread::hardware_concurrency());
      devices > cores)
    set_source(
      profile.hardware, "device.crowded_share", profile.hardware.crowded_share,
      double(cores) / double(devices),
      fmt::format("measured: {} cores for {} devices", cores, devices));
  ProfilePool pool(cluster, effort.least_s);
  measure_links(pool, model_bytes, profile.hardware);

  ProfileFindings findings;
  std::vector<ProfileJob> jobs;
  for (int sweep = 0; sweep < effort.sweeps; ++sweep)
    std::ranges::copy(jobs_of(models, devices), std::back_inserter(jobs));
  const auto end = begin
                   + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(effort.seconds));
  for (std::size_t i = 0; i < jobs.size() && Clock::now() < end; ++i) {
    const auto left = end - Clock::now();
    ModelProfiler profiler(subject, *jobs[i].model, jobs[i].tp, pool, findings);
    profiler.measure(Clock::now()
                     + left / static_cast<std::int64_t>(jobs.size() - i));
  }
  set_rates(profile.hardware, findings, devices);
  for (const auto& model : models)
    set_launches(profile.hardware, findings, model);
  profile.table = plans::ProfileTable(std::move(findings.entries));
  return profile;
}

} // namespace troupe::runtime
