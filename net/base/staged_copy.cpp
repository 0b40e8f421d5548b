#include "net/base/staged_copy.hpp"

#include "net/base/copy_stream.hpp"
#include "net/base/page_block.hpp"
#include "net/base/page_lock.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace troupe::net {

namespace {

/// Host memory that one copy at a time uses.
class StagingHalf {
public:
  StagingHalf(const BlockMemory& memory, std::size_t size_bytes)
    : memory_(&memory),
      block_(size_bytes, PageSharing::none),
      lock_(memory, {block_.data(), size_bytes}) {}
  ~StagingHalf() {
    finish_copy(copy_);
  }
  StagingHalf(const StagingHalf&) = delete;
  StagingHalf& operator=(const StagingHalf&) = delete;

  void start_read(std::span<const std::byte> from) {
    size_bytes_ = from.size();
    if (memory_->copies != nullptr)
      copy_ = memory_->copies->start_read(from.data(), block_.data(),
                                          from.size(), nullptr);
    else
      memory_->read(from.data(), block_.data(), from.size());
  }
  void start_write(std::span<std::byte> to) {
    if (memory_->copies == nullptr)
      return memory_->write(block_.data(), to.data(), to.size());
    copy_ = memory_->copies->start_write(block_.data(), to.data(), to.size(),
                                         nullptr);
    copy_->before_kernels();
  }
  /// Returns what was read, when it is there.
  std::span<const std::byte> read() {
    return room(size_bytes_);
  }
  /// Returns the memory when no copy uses it.
  std::span<std::byte> room(std::size_t size_bytes) {
    if (copy_)
      copy_->wait();
    copy_ = nullptr;
    return {block_.data(), size_bytes};
  }

private:
  const BlockMemory* memory_;
  PageBlock block_;
  PageLock lock_;
  std::size_t size_bytes_ = 0; ///< of what is read
  std::shared_ptr<PendingCopy> copy_;
};

/// Two halves that take turns.
class Staging {
public:
  Staging(const BlockMemory& memory, std::size_t half_bytes)
    : halves_{StagingHalf(memory, half_bytes),
              StagingHalf(memory, half_bytes)} {}
  StagingHalf& half_of(std::size_t chunk) {
    return halves_[chunk % halves_.size()];
  }

private:
  std::array<StagingHalf, 2> halves_;
};

template <class Byte>
std::span<Byte> chunk_of(std::span<Byte> all, std::size_t chunk,
                         std::size_t chunk_bytes) {
  const std::size_t begin = chunk * chunk_bytes;
  return all.subspan(begin, std::min(chunk_bytes, all.size() - begin));
}

std::size_t num_chunks(std::size_t size_bytes, std::size_t chunk_bytes) {
  return (size_bytes + chunk_bytes - 1) / chunk_bytes;
}

bool is_staged(const BlockMemory& memory, std::size_t size_bytes,
               std::size_t half_bytes) {
  return memory.copies != nullptr && size_bytes > 2 * half_bytes;
}

} // namespace

void read_staged(const BlockMemory& memory, std::span<const std::byte> from,
                 const TakeChunk& take, std::size_t half_bytes) {
  if (from.empty())
    return;
  half_bytes = std::min(half_bytes, from.size());
  const std::size_t chunks = num_chunks(from.size(), half_bytes);
  Staging staging(memory, half_bytes);
  staging.half_of(0).start_read(chunk_of(from, 0, half_bytes));
  for (std::size_t i = 0; i < chunks; ++i) {
    if (i + 1 < chunks)
      staging.half_of(i + 1).start_read(chunk_of(from, i + 1, half_bytes));
    take(staging.half_of(i).read(), i * half_bytes);
  }
}

bool write_staged(const BlockMemory& memory, std::span<std::byte> to,
                  const FillChunk& fill, std::size_t half_bytes) {
  if (to.empty())
    return true;
  half_bytes = std::min(half_bytes, to.size());
  Staging staging(memory, half_bytes);
  for (std::size_t i = 0; i < num_chunks(to.size(), half_bytes); ++i) {
    const auto chunk = chunk_of(to, i, half_bytes);
    StagingHalf& half = staging.half_of(i);
    if (!fill(half.room(chunk.size()), i * half_bytes))
      return false;
    half.start_write(chunk);
  }
  return true;
}

void read_block(const BlockMemory& memory, std::span<const std::byte> from,
                std::byte* to, std::size_t half_bytes) {
  if (!is_staged(memory, from.size(), half_bytes))
    return memory.read(from.data(), to, from.size());
  read_staged(
    memory, from,
    [&](std::span<const std::byte> chunk, std::size_t offset) {
      std::memcpy(to + offset, chunk.data(), chunk.size());
    },
    half_bytes);
}

void write_block(const BlockMemory& memory, const std::byte* from,
                 std::span<std::byte> to, std::size_t half_bytes) {
  if (!is_staged(memory, to.size(), half_bytes))
    return memory.write(from, to.data(), to.size());
  write_staged(
    memory, to,
    [&](std::span<std::byte> chunk, std::size_t offset) {
      std::memcpy(chunk.data(), from + offset, chunk.size());
      return true;
    },
    half_bytes);
}

} // namespace troupe::net
