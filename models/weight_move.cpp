#include "models/weight_move.hpp"

#include "config/error.hpp"
#include "net/data_plane.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>

namespace troupe::models {

namespace {

/// Counts pulls that have not ended and keeps the first failure.
class PullsUnderWay {
public:
  explicit PullsUnderWay(std::size_t count) : missing_(count) {}

  void ended(std::optional<Failure> failure) {
    const std::lock_guard lock{mutex_};
    if (failure && !failed_)
      failed_ = std::move(failure);
    if (--missing_ == 0)
      changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return missing_ == 0; });
    if (failed_)
      throw FailureError{*failed_};
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t missing_;
  std::optional<Failure> failed_;
};

void copy(const plans::Transfer& part, std::span<const std::byte> source,
          std::span<std::byte> target) {
  for (std::uint64_t i = 0; i < part.runs; ++i)
    std::memcpy(
      target.subspan(part.target_offset + i * part.target_stride, part.bytes)
        .data(),
      source.subspan(part.source_offset + i * part.source_stride, part.bytes)
        .data(),
      part.bytes);
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
  }
}

void WeightMove::run(std::span<std::byte> target) const {
  std::size_t num_pulls = 0;
  for (const auto& [source, part] : pulls_)
    num_pulls += part.runs;
  PullsUnderWay under_way(num_pulls);
  for (const auto& [source, part] : pulls_)
    for (std::uint64_t i = 0; i < part.runs; ++i)
      plane_->pull_memory(
        source->worker, source->id, part.source_offset + i * part.source_stride,
        target.subspan(part.target_offset + i * part.target_stride, part.bytes),
        [&](std::optional<Failure> failure) {
          under_way.ended(std::move(failure));
        });
  for (const auto& [source, part] : copies_)
    copy(part, source->bytes, target);
  under_way.wait();
}

std::uint64_t WeightMove::foreign_bytes(WorkerId self) const {
  std::uint64_t bytes = 0;
  for (const auto* parts : {&copies_, &pulls_})
    for (const auto& part : *parts)
      bytes += part.source->worker == self ? 0 : part.run.total_bytes();
  return bytes;
}

} // namespace troupe::models
