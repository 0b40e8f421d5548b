#include "actors/calls/residency_actor.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

using ResidencySelf = Self<ResidencyActor, ResidencyState>;

ResidencyDone joined(const std::vector<ResidencyDone>& parts) {
  ResidencyDone all = parts.front();
  all.peaks.clear();
  for (const auto& part : parts) {
    all.peaks.insert(all.peaks.end(), part.peaks.begin(), part.peaks.end());
    all.device_bytes = std::max(all.device_bytes, part.device_bytes);
    all.begin_ns = std::min(all.begin_ns, part.begin_ns);
    all.busy_ns = std::max(all.busy_ns, part.busy_ns);
  }
  return all;
}

caf::result<ResidencyDone> change(ResidencySelf self, const Context& context,
                                  const ResidencyOrder& order) {
  const ResidencySetup& setup = self->state.setup;
  Reply<ResidencyDone> reply{self, context};
  ask_local_meshes<ResidencyDone>(
    self, setup.local_meshes, residency_atom::value, context,
    MeshOrder<ResidencyOrder>{{order}},
    [&](const LocalMesh& local_mesh) {
      return fmt::format("{} in step {} on {}", self->state.name,
                         step_number(context.step), local_mesh.name);
    },
    [reply](const std::vector<ResidencyDone>& parts) mutable {
      reply.deliver(joined(parts));
    },
    [reply](const Failure& failure) mutable { reply.fail(failure); });
  return reply.promise();
}

} // namespace

ResidencyActor::behavior_type residency_actor(ResidencySelf self,
                                              ResidencySetup setup) {
  self->state.name = "life of " + setup.name;
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](run_atom, const Context& context, const ResidencyOrder& order) {
      return change(self, context, order);
    },
    [=](fail_atom, std::uint64_t id, const FailureMessage& message) {
      self->state.asks.fail(id, to_failure(message));
    },
  };
}

} // namespace troupe::actors
