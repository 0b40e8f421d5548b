#include "models/parallel/weight_move.hpp"

#include "config/base/error.hpp"
#include "models/kernels/ema_update.hpp"
#include "models/kernels/non_temporal_copy.hpp"
#include "net/base/host_copy.hpp"
#include "net/data_plane/data_plane.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

namespace troupe::models {

namespace {

/// Size of a device's part of a move that exceeds its share of the caches.
constexpr std::uint64_t stream_from_bytes = std::uint64_t{16} << 20;

/// Counts unfinished pulls and keeps the first failure.
class PullsUnderWay {
public:
  /// Starts all pulls without waiting.
  PullsUnderWay(net::DataPlane& plane, std::list<net::MemoryPull>& pulls,
                std::byte* into)
    : missing_(pulls.size()) {
    for (net::MemoryPull& pull : pulls)
      plane.pull_memory(pull, into, [this](std::optional<Failure> failure) {
        ended(std::move(failure));
      });
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
  std::size_t missing_;
  std::optional<Failure> failed_;
};

/// Calls land(target, source) for each run of the part.
template <class Land>
void for_each_run(const ByteRuns& part, std::span<const std::byte> source,
                  std::span<std::byte> target, Land land) {
  for (std::uint64_t i = 0; i < part.runs; ++i)
    land(
      target.subspan(part.target_offset + i * part.target_stride, part.bytes),
      source.subspan(part.source_offset + i * part.source_stride, part.bytes));
}

void ema_update_bytes(std::span<std::byte> target,
                      std::span<const std::byte> incoming, double decay) {
  ema_update(
    {reinterpret_cast<float*>(target.data()), target.size() / sizeof(float)},
    {reinterpret_cast<const float*>(incoming.data()),
     incoming.size() / sizeof(float)},
    decay);
}

} // namespace

WeightMove::WeightMove(std::span<const plans::Transfer> receives,
                       const FindPlane& find, net::DataPlane& plane)
  : plane_(&plane) {
  std::map<Rank, std::size_t> index;
  for (const auto& run : receives)
    if (index.try_emplace(run.from, sources_.size()).second)
      sources_.push_back(find(run.from));
  for (const auto& run : receives) {
    const PlaneSource& source = sources_[index.at(run.from)];
    add(source.bytes.empty() ? pulled_ : copies_, source, run);
    size_bytes_ += run.total_bytes();
    moved_bytes_ += run.from == run.to ? 0 : run.total_bytes();
  }
  pulls_ = pulls_of(pulled_);
}

void WeightMove::add(std::vector<Part>& parts, const PlaneSource& source,
                     const ByteRuns& runs) {
  auto found = std::ranges::find(parts, &source, &Part::source);
  if (found == parts.end())
    found = parts.insert(parts.end(), {&source, {}});
  found->runs.push_back(runs);
}

WeightMove::Pulls WeightMove::pulls_of(std::span<const Part> parts) {
  Pulls pulls;
  for (const auto& [source, runs] : parts)
    pulls.emplace_back(source->worker, source->id, runs);
  return pulls;
}

void WeightMove::run(std::span<std::byte> target) {
  PullsUnderWay under_way(*plane_, pulls_, target.data());
  const bool streams = size_bytes_ >= stream_from_bytes;
  for (const auto& [source, runs] : copies_) {
    if (source->memory != nullptr) {
      source->memory->copy(source->bytes.data(), target.data(), runs);
      continue;
    }
    for (const ByteRuns& part : runs)
      if (streams)
        non_temporal_copy(target.data(), source->bytes.data(), part);
      else
        copy_runs(part, source->bytes.data(), target.data());
  }
  end_stream_copies();
  under_way.wait();
}

void WeightMove::run(const net::BlockMemory& device,
                     std::span<std::byte> target, std::uint64_t staging_bytes) {
  for (const auto& [source, runs] : copies_)
    device.copy(source->bytes.data(), target.data(), runs);
  pull_rounds(staging_bytes, [&](std::span<const ByteRuns> landings) {
    device.copy(staging_.data(), target.data(), landings);
  });
}

void WeightMove::ema_update(std::span<std::byte> target, double decay,
                            std::uint64_t staging_bytes) {
  const auto ema_update_runs
    = [&](std::span<const ByteRuns> parts, std::span<const std::byte> source) {
        for (const ByteRuns& runs : parts)
          for_each_run(runs, source, target, [&](auto into, auto from) {
            ema_update_bytes(into, from, decay);
          });
      };
  for (const auto& [source, runs] : copies_) {
    const net::HostRead incoming(source->memory, source->bytes.data(),
                                 source->bytes.size());
    ema_update_runs(runs, incoming.bytes());
  }
  pull_rounds(staging_bytes, [&](std::span<const ByteRuns> landings) {
    ema_update_runs(landings, staging_);
  });
}

/// Pulls round by round into the staging memory; `land` takes each from there.
template <class Land>
void WeightMove::pull_rounds(std::uint64_t staging_bytes, Land land) {
  if (!pulled_.empty() && staging_bytes != staging_bytes_)
    cut_rounds(staging_bytes);
  for (auto& [pulls, landings] : rounds_) {
    PullsUnderWay(*plane_, pulls, staging_.data()).wait();
    land(landings);
  }
}

/// Cuts all pulled parts into rounds that each fit the staging memory.
void WeightMove::cut_rounds(std::uint64_t staging_bytes) {
  staging_bytes_ = staging_bytes;
  staging_.resize(std::min(staging_bytes, size_bytes_));
  staging_charge_.emplace().set(staging_.size());
  rounds_.clear();
  std::vector<Part> parts;
  std::vector<ByteRuns> landings;
  std::uint64_t used = 0;
  const auto end_round = [&] {
    rounds_.push_back(
      {pulls_of(std::exchange(parts, {})), std::exchange(landings, {})});
    used = 0;
  };
  const auto stage = [&](const PlaneSource& source, ByteRuns rest) {
    while (rest.runs > 0) {
      const auto room = (staging_.size() - used) / rest.bytes;
      if (room == 0) {
        end_round();
        continue;
      }
      auto in = rest.take_first(std::min(rest.runs, room)), out = in;
      in.target_offset = out.source_offset = used;
      in.target_stride = out.source_stride = in.bytes;
      used += in.total_bytes();
      add(parts, source, in);
      landings.push_back(out);
    }
  };
  for (const auto& [source, runs] : pulled_)
    for (const ByteRuns& part : runs)
      part.in_runs_up_to(
        staging_.size(),
        [&, &from = *source](const ByteRuns& some) { stage(from, some); });
  end_round();
}

std::uint64_t WeightMove::foreign_bytes(WorkerId self) const {
  std::uint64_t bytes = 0;
  for (const auto* parts : {&copies_, &pulled_})
    for (const auto& [source, runs] : *parts)
      for (const ByteRuns& part : runs)
        bytes += source->worker == self ? 0 : part.total_bytes();
  return bytes;
}

} // namespace troupe::models
