#include "models/weight_move.hpp"

#include "config/error.hpp"
#include "models/blend.hpp"
#include "models/stream_copy.hpp"
#include "net/data_plane.hpp"
#include "net/memory_count.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

namespace troupe::models {

namespace {

/// Of a device's part of a move: more than its share of the caches.
constexpr std::uint64_t stream_from_bytes = std::uint64_t{16} << 20;

/// Bytes on their way.
struct Pull {
  const PlaneSource* source;
  net::PulledRuns runs;
};

/// Counts sources that have not sent all and keeps the first failure.
class PullsUnderWay {
public:
  /// Pulls of one source are behind each other and asked for together.
  PullsUnderWay(net::DataPlane& plane, std::span<const Pull> pulls) {
    for (std::size_t i = 0; i < pulls.size(); ++i)
      missing_ += i == 0 || pulls[i].source != pulls[i - 1].source ? 1 : 0;
    while (!pulls.empty()) {
      const PlaneSource* source = pulls.front().source;
      std::vector<net::PulledRuns> parts;
      while (!pulls.empty() && pulls.front().source == source) {
        parts.push_back(pulls.front().runs);
        pulls = pulls.subspan(1);
      }
      plane.pull_memory(
        source->worker, source->id, std::move(parts),
        [this](std::optional<Failure> failure) { ended(std::move(failure)); });
    }
  }

  void wait() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return missing_ == 0; });
    if (failed_)
      throw FailureError{*failed_};
  }

private:
  void ended(std::optional<Failure> failure) {
    const std::lock_guard lock{mutex_};
    if (failure && !failed_)
      failed_ = std::move(failure);
    if (--missing_ == 0)
      changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t missing_ = 0;
  std::optional<Failure> failed_;
};

/// Calls land(target, source) for each run of the part.
template <class Land>
void for_each_run(const plans::Transfer& part,
                  std::span<const std::byte> source,
                  std::span<std::byte> target, Land land) {
  for (std::uint64_t i = 0; i < part.runs; ++i)
    land(
      target.subspan(part.target_offset + i * part.target_stride, part.bytes),
      source.subspan(part.source_offset + i * part.source_stride, part.bytes));
}

CopyRuns runs_of(const plans::Transfer& part, std::span<const std::byte> source,
                 std::span<std::byte> target) {
  return {.target = target.data() + part.target_offset,
          .source = source.data() + part.source_offset,
          .bytes = part.bytes,
          .runs = part.runs,
          .target_stride = part.target_stride,
          .source_stride = part.source_stride};
}

void blend_bytes(std::span<std::byte> target,
                 std::span<const std::byte> incoming, double decay) {
  blend(
    {reinterpret_cast<float*>(target.data()), target.size() / sizeof(float)},
    {reinterpret_cast<const float*>(incoming.data()),
     incoming.size() / sizeof(float)},
    decay);
}

} // namespace

WeightMove::WeightMove(std::vector<plans::Transfer> receives,
                       const FindPlane& find, net::DataPlane& plane)
  : plane_(&plane) {
  std::map<Rank, std::size_t> index;
  for (const auto& run : receives)
    if (index.try_emplace(run.from, sources_.size()).second)
      sources_.push_back(find(run.from));
  for (const auto& run : receives) {
    const PlaneSource& source = sources_[index.at(run.from)];
    (source.bytes.empty() ? pulls_ : copies_).push_back({&source, run});
    size_bytes_ += run.total_bytes();
    moved_bytes_ += run.from == run.to ? 0 : run.total_bytes();
  }
  std::ranges::stable_sort(pulls_, {},
                           [](const Part& part) { return part.source; });
}

void WeightMove::run(std::span<std::byte> target) const {
  std::vector<Pull> pulls;
  for (const auto& [source, part] : pulls_)
    pulls.push_back({source,
                     {.source_offset = part.source_offset,
                      .into = target.data() + part.target_offset,
                      .run_bytes = part.bytes,
                      .runs = part.runs,
                      .source_stride = part.source_stride,
                      .into_stride = part.target_stride}});
  PullsUnderWay under_way(*plane_, pulls);
  const bool streams = size_bytes_ >= stream_from_bytes;
  for (const auto& [source, part] : copies_)
    if (streams)
      stream_copy(runs_of(part, source->bytes, target));
    else
      for_each_run(part, source->bytes, target, [](auto into, auto from) {
        std::memcpy(into.data(), from.data(), from.size());
      });
  end_stream_copies();
  under_way.wait();
}

void WeightMove::blend(std::span<std::byte> target, double decay,
                       std::uint64_t staging_bytes) const {
  for (const auto& [source, part] : copies_)
    for_each_run(part, source->bytes, target,
                 [&](auto into, auto from) { blend_bytes(into, from, decay); });
  if (!pulls_.empty())
    blend_pulled(target, decay, staging_bytes);
}

/// As often as the staging is full.
void WeightMove::blend_pulled(std::span<std::byte> target, double decay,
                              std::uint64_t staging_bytes) const {
  std::vector<std::byte> staging(std::min(staging_bytes, size_bytes_));
  net::MemoryCharge charge;
  charge.set(staging.size());
  std::vector<Pull> pulls;
  std::vector<std::span<std::byte>> targets;
  std::span<std::byte> room = staging;
  const auto land = [&] {
    PullsUnderWay(*plane_, pulls).wait();
    for (std::size_t i = 0; i < pulls.size(); ++i)
      blend_bytes(targets[i], {pulls[i].runs.into, targets[i].size()}, decay);
    pulls.clear();
    targets.clear();
    room = staging;
  };
  const auto add = [&](const PlaneSource* source, std::uint64_t offset,
                       std::span<std::byte> into) {
    while (!into.empty()) {
      const auto bytes = std::min(room.size(), into.size());
      pulls.push_back(
        {source,
         {.source_offset = offset, .into = room.data(), .run_bytes = bytes}});
      targets.push_back(into.first(bytes));
      offset += bytes;
      into = into.subspan(bytes);
      room = room.subspan(bytes);
      if (room.empty())
        land();
    }
  };
  for (const auto& [source, part] : pulls_)
    for (std::uint64_t i = 0; i < part.runs; ++i)
      add(source, part.source_offset + i * part.source_stride,
          target.subspan(part.target_offset + i * part.target_stride,
                         part.bytes));
  land();
}

std::uint64_t WeightMove::foreign_bytes(WorkerId self) const {
  std::uint64_t bytes = 0;
  for (const auto* parts : {&copies_, &pulls_})
    for (const auto& part : *parts)
      bytes += part.source->worker == self ? 0 : part.run.total_bytes();
  return bytes;
}

} // namespace troupe::models
