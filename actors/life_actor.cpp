#include "actors/life_actor.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe::actors {

namespace {

using LifeSelf = Self<LifeActor, LifeState>;

LifeDone joined(const std::vector<LifeDone>& parts) {
  LifeDone all = parts.front();
  all.peaks.clear();
  for (const auto& part : parts) {
    all.peaks.insert(all.peaks.end(), part.peaks.begin(), part.peaks.end());
    all.device_bytes = std::max(all.device_bytes, part.device_bytes);
    all.begin_ns = std::min(all.begin_ns, part.begin_ns);
    all.busy_ns = std::max(all.busy_ns, part.busy_ns);
  }
  return all;
}

caf::result<LifeDone> change(LifeSelf self, const Context& context,
                             const LifeOrder& order) {
  const LifeSetup& setup = self->state.setup;
  std::vector<ShardActor> shards;
  std::vector<AskSpec> specs;
  for (const auto& member : setup.members) {
    shards.push_back(member.shard);
    specs.push_back(
      {.name = fmt::format("{} in step {} on {}", self->state.name,
                           step_number(context.step), member.name),
       .worker = member.worker});
  }
  Answer<LifeDone> answer{self, context};
  ask_all<LifeDone>(
    self, shards, life_atom::value, context, std::vector(shards.size(), order),
    std::move(specs),
    [answer](const std::vector<LifeDone>& parts) mutable {
      answer.deliver(joined(parts));
    },
    [answer](const Failure& failure) mutable { answer.fail(failure); });
  return answer.promise();
}

} // namespace

LifeActor::behavior_type life_actor(LifeSelf self, LifeSetup setup) {
  self->state.name = "life of " + setup.name;
  self->state.asks = Asks{setup.asks};
  self->state.setup = std::move(setup);
  return {
    [=](run_atom, const Context& context, const LifeOrder& order) {
      return change(self, context, order);
    },
    [=](fail_atom, std::uint64_t id, const Trouble& trouble) {
      self->state.asks.fail(id, to_failure(trouble));
    },
  };
}

} // namespace troupe::actors
