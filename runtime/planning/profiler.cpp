#include "runtime/planning/profiler.hpp"

#include "config/base/log.hpp"
#include "models/gpu/gpu_budget.hpp"
#include "plans/check/plan_check.hpp"
#include "plans/cost/profile_fit.hpp"
#include "plans/plan/strategy_rules.hpp"
#include "runtime/base/host_memory.hpp"
#include "runtime/planning/device_memory.hpp"
#include "runtime/planning/machine_hardware.hpp"
#include "runtime/planning/model_profiler.hpp"
#include "runtime/planning/profile_gpu_kernels.hpp"
#include "runtime/planning/profile_gpu_links.hpp"
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

constexpr double bytes_per_parameter = 4;
/// Share of a device's memory that a model's planes may take.
constexpr double planes_share = 0.8;

bool is_of_gpus(const Settings& settings) {
  return settings.cluster.device == "gpu";
}

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

/// Returns the bytes that the planes of a device may take; 0: not known.
/// Devices of a CPU share what is free of the host's memory.
double planes_room(const Settings& settings, std::uint32_t devices) {
  const auto bytes
    = is_of_gpus(settings)
        ? plans::usable_bytes(settings, device_memory_bytes(settings, devices))
        : available_memory_bytes() / std::max(1U, devices);
  return planes_share * static_cast<double>(bytes);
}

/// A model in one layout.
struct ProfileJob {
  const ProfiledModel* model;
  std::uint32_t tp;
};

/// Returns the bytes of a model's planes on one device: weights, and gradients
/// and two moments of what trains, in fp32; on GPUs weights also as products
/// read them.
double planes_bytes(const ProfileJob& job, const plans::CheckContext& context) {
  const auto planes = plans::weight_planes(
    context.sizes.engine.storage, context.dtypes.at(job.model->role->name));
  const double rounded = planes.rounded ? size_bytes(*planes.rounded) : 0;
  const auto each
    = bytes_per_parameter * (job.model->train != nullptr ? 4 : 1) + rounded;
  return static_cast<double>(num_parameters(job.model->shape)) * each / job.tp;
}

std::vector<ProfileJob> jobs_of(const std::vector<ProfiledModel>& models,
                                const Settings& settings,
                                const plans::CheckContext& context,
                                std::uint32_t devices) {
  const auto room = planes_room(settings, devices);
  std::vector<ProfileJob> jobs;
  for (std::uint32_t tp = 1; tp <= devices; tp *= 2)
    for (const auto& model : models) {
      const ProfileJob job{&model, tp};
      if (plans::is_legal_tp(model.shape, tp)
          && (room == 0 || planes_bytes(job, context) < room))
        jobs.push_back(job);
    }
  return jobs;
}

/// Sets the rates that models show. Products of GPUs are measured apart: a pass
/// of theirs is more launches and traffic than products.
void set_rates(plans::Hardware& hardware, const ProfileFindings& findings,
               const ProfilePool& pool) {
  if (pool.kind() == PoolDevices::cores && findings.best_flops > 0) {
    const auto source
      = fmt::format("measured: the fastest inference, {} devices at once",
                    pool.num_devices());
    set_number(hardware, "device.gemm_flops", findings.best_flops, source);
    set_number(hardware, "device.attn_flops", findings.best_flops, source);
  }
  if (findings.optimizer.empty())
    return;
  const auto line = plans::fit_work(findings.optimizer);
  const auto source
    = fmt::format("fitted to the optimizer's steps of {} models and layouts",
                  findings.optimizer.size());
  set_number(hardware, "device.optimizer_Bps", line.rate, source);
  set_number(hardware, "host.opt_step_s", line.fixed_s, source);
}

/// Sets the launch cost from inference on one device: what a pass costs however
/// few tokens it has.
void set_launches(plans::Hardware& hardware,
                  const std::vector<plans::ProfileEntry>& entries,
                  const ProfiledModel& model) {
  std::vector<plans::TimedWork> passes;
  for (const auto& entry : entries)
    if (entry.op == plans::ProfileOp::forward && entry.tp == 1
        && entry.parameters == num_parameters(model.shape))
      passes.push_back({entry.tokens, entry.median_s});
  const auto line = plans::fit_work(passes);
  if (line.fixed_s > 0)
    set_number(hardware, "host.launch_layer_s",
               line.fixed_s / static_cast<double>(model.shape.num_layers),
               fmt::format("fitted to {} sizes of inference: as long as {:.0f} "
                           "tokens take",
                           passes.size(), line.knee()));
}

double largest_bytes(const std::vector<ProfiledModel>& models) {
  double bytes = 0;
  for (const auto& model : models)
    bytes
      = std::max(bytes, bytes_per_parameter
                          * static_cast<double>(num_parameters(model.shape)));
  return bytes;
}

/// Measures what needs no engine: memory, links and, of GPUs, kernels.
void measure_devices(ProfilePool& pool,
                     const std::vector<ProfiledModel>& models,
                     const plans::CheckContext& context,
                     plans::Hardware& hardware) {
  if (pool.kind() == PoolDevices::cores)
    return measure_links(pool, largest_bytes(models), hardware);
  measure_gpu_links(pool, hardware);
  measure_gpu_launches(pool, hardware);
  const auto& widest = *std::ranges::max_element(
    models, {}, [](const auto& model) { return model.shape.hidden_size; });
  measure_gpu_products(pool, widest.shape, context.dtypes.at(widest.role->name),
                       hardware);
}

/// Measures models until `end`. A size that does not fit into a GPU ends its
/// layout.
ProfileFindings measure_models(const ProfileSubject& subject,
                               const std::vector<ProfileJob>& jobs,
                               ProfilePool& pool, Clock::time_point end) {
  ProfileFindings findings;
  for (std::size_t i = 0; i < jobs.size() && Clock::now() < end; ++i) {
    const auto left = end - Clock::now();
    try {
      ModelProfiler profiler(subject, *jobs[i].model, jobs[i].tp, pool,
                             findings);
      profiler.measure(Clock::now()
                       + left / static_cast<std::int64_t>(jobs.size() - i));
    } catch (const std::exception& error) {
      const auto why = models::out_of_memory_text(error);
      if (why.empty())
        throw;
      log::runtime.warn(fmt::format("{} on {} devices is not measured further: "
                                    "{}",
                                    jobs[i].model->role->name, jobs[i].tp,
                                    why));
    }
  }
  return findings;
}

/// Returns what is known of this machine before it is measured.
plans::Hardware begun_hardware(const Settings& here, std::uint32_t devices) {
  auto hardware = machine_hardware(here, devices);
  hardware.name = machine_name(here);
  hardware.devices_per_node = devices;
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  if (!is_of_gpus(here) && devices > cores)
    set_number(
      hardware, "device.crowded_share", double(cores) / double(devices),
      fmt::format("measured: {} cores for {} devices", cores, devices));
  return hardware;
}

} // namespace

MachineProfile measure_machine(const Settings& settings,
                               const plans::Workflow& workflow,
                               const std::map<std::string, ModelShape>& shapes,
                               const plans::Cluster& cluster,
                               const ProfileEffort& effort) {
  const auto devices = cluster.devices_per_node;
  const auto here = with_cluster(settings, cluster);
  const plans::ExecutionPlan no_plan;
  const auto context = plans::make_check_context(
    here, workflow, no_plan, device_memory_bytes(here, devices));
  const ProfileSubject subject{.settings = here,
                               .workflow = workflow,
                               .sizes = context.sizes,
                               .lengths = run_lengths(here, workflow)};
  const auto models = models_of(workflow, shapes);
  MachineProfile profile{.hardware = begun_hardware(here, devices),
                         .table = {}};
  ProfilePool pool(cluster, effort.least_s,
                   is_of_gpus(here) ? PoolDevices::gpus : PoolDevices::cores);
  measure_devices(pool, models, context, profile.hardware);
  // from here on: GPUs may take seconds to open, and to join
  const auto end = Clock::now()
                   + std::chrono::duration_cast<Clock::duration>(
                     std::chrono::duration<double>(effort.seconds));
  std::vector<ProfileJob> jobs;
  for (int sweep = 0; sweep < effort.sweeps; ++sweep)
    std::ranges::copy(jobs_of(models, here, context, devices),
                      std::back_inserter(jobs));
  auto findings = measure_models(subject, jobs, pool, end);
  set_rates(profile.hardware, findings, pool);
  for (const auto& model : models)
    set_launches(profile.hardware, findings.entries, model);
  profile.table = plans::ProfileTable(std::move(findings.entries));
  if (pool.kind() == PoolDevices::gpus)
    models::release_kept_gpu_memory(); // runs may follow
  return profile;
}

} // namespace troupe::runtime
