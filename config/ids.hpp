// Strong integer ids: a device's rank is not a worker's number and neither is a
// step. They compare, hash and print, and convert to nothing by accident.
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

/// A device of the run, 0 .. devices-1 in node order.
using Rank = Id<struct RankTag>;
/// A worker process of the run, 0 .. workers-1.
using WorkerId = Id<struct WorkerTag>;
/// One pass of the workflow over one batch, from 0.
using StepId = Id<struct StepTag>;
/// Number of committed steps in which a role was trained.
using Version = Id<struct VersionTag>;
/// A sample within its step, 0 .. batch_size*n-1, in data order.
using SampleId = Id<struct SampleTag>;
/// A replica: index into `plans::Replicas`.
using ReplicaId = Id<struct ReplicaTag>;
/// Raised by each recovery; messages of an older incarnation are refused.
using Incarnation = Id<struct IncarnationTag>;

template <class Tag>
std::string to_string(Id<Tag> id) {
  return std::to_string(id.value);
}

/// A step's number for people and their files, who count from 1.
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
