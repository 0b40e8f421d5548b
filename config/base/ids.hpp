// Strong integer ids: a device's rank is neither a worker's number nor a step.
// They compare, hash and print, and never convert implicitly.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace troupe {

template <class Tag>
struct Id {
  std::uint32_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::uint64_t number)
    : value(static_cast<std::uint32_t>(number)) {}
  constexpr auto operator<=>(const Id&) const = default;
};

/// A device of the run, in [0, devices), in node order.
using Rank = Id<struct RankTag>;
/// A worker process of the run, in [0, workers).
using WorkerId = Id<struct WorkerTag>;
/// One pass of the workflow over one batch, counted from 0.
using StepId = Id<struct StepTag>;
/// Number of committed steps in which a role was trained.
using Version = Id<struct VersionTag>;
/// A sample within its step, in [0, batch_size * n), in data order.
using SampleId = Id<struct SampleTag>;
/// A replica: index into `plans::Replicas`.
using ReplicaId = Id<struct ReplicaTag>;
/// Number of recoveries; messages of an older incarnation are refused.
using Incarnation = Id<struct IncarnationTag>;

template <class Tag>
std::string to_string(Id<Tag> id) {
  return std::to_string(id.value);
}

/// Returns a step's number as shown to users and in their files, counted from
/// 1.
constexpr std::uint32_t step_number(StepId step) {
  return step.value + 1;
}

} // namespace troupe

template <class Tag>
struct std::hash<troupe::Id<Tag>> {
  std::size_t operator()(troupe::Id<Tag> id) const noexcept {
    return std::hash<std::uint32_t>{}(id.value);
  }
};
