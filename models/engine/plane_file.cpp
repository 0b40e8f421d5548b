#include "models/engine/plane_file.hpp"

#include "config/base/error.hpp"
#include "models/parallel/parameters.hpp"
#include "net/base/staged_copy.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

namespace troupe::models {

namespace {

constexpr std::uint64_t plane_file_magic = 0x3153'454E'414C'5054; // "TPLANES1"

struct PlaneFileHeader {
  std::uint64_t magic = plane_file_magic;
  std::uint64_t id = 0; ///< 0: not whole
  std::uint64_t plane_bytes = 0;
  std::uint64_t moment_bytes = 0; ///< of each of the two; 0: none
  OptimizerCounts counts;
};

[[noreturn]] void fail_plane_file(const char* doing) {
  throw FailureError(
    {Errc::io, "snapshot",
     fmt::format("cannot {} it: {}", doing, std::strerror(errno)), ""});
}

void write_at(int file, std::span<const std::byte> bytes,
              std::uint64_t offset) {
  while (!bytes.empty()) {
    const auto done
      = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      fail_plane_file("write");
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
}

/// Returns whether the file has all these bytes.
bool read_at(int file, std::span<std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const auto done
      = ::pread(file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      fail_plane_file("read");
    if (done == 0)
      return false;
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return true;
}

/// Writes a block where it is; one of a device is staged.
void write_block_at(int file, const net::BlockBytes& block,
                    std::uint64_t offset) {
  if (block.memory == nullptr)
    return write_at(file, block.bytes, offset);
  net::read_staged(*block.memory, block.bytes,
                   [&](std::span<const std::byte> chunk, std::size_t at) {
                     write_at(file, chunk, offset + at);
                   });
}

/// Reads a block likewise; returns whether the file has all of it.
bool read_block_at(int file, const net::BlockMemory* memory,
                   std::span<std::byte> block, std::uint64_t offset) {
  if (memory == nullptr)
    return read_at(file, block, offset);
  return net::write_staged(*memory, block,
                           [&](std::span<std::byte> chunk, std::size_t at) {
                             return read_at(file, chunk, offset + at);
                           });
}

std::span<const std::byte> bytes_of(const PlaneFileHeader& header) {
  return std::as_bytes(std::span(&header, 1));
}

std::vector<Plane> stored_planes(const Parameters& parameters) {
  if (parameters.trainable())
    return {Plane::weight, Plane::m, Plane::v};
  return {Plane::weight};
}

PlaneFileHeader header_of(std::uint64_t id, const Parameters& parameters) {
  PlaneFileHeader header;
  header.id = id;
  header.plane_bytes = parameters.plane(Plane::weight).size_bytes();
  if (parameters.trainable())
    header.moment_bytes = parameters.plane(Plane::m).size_bytes();
  return header;
}

} // namespace

std::uint64_t write_planes(int file, std::uint64_t id,
                           const Parameters& parameters,
                           const OptimizerCounts& counts) {
  TROUPE_CHECK(id != 0, "0 says that a snapshot is not whole");
  write_at(file, bytes_of(header_of(0, parameters)), 0);
  std::uint64_t offset = plane_file_start;
  for (const Plane plane : stored_planes(parameters)) {
    const net::BlockBytes values = parameters.values(plane);
    write_block_at(file, values, offset);
    offset += values.bytes.size();
  }
  auto header = header_of(id, parameters);
  header.counts = counts;
  write_at(file, bytes_of(header), 0);
  return offset;
}

std::optional<OptimizerCounts> read_planes(int file, std::uint64_t id,
                                           Parameters& parameters) {
  PlaneFileHeader header;
  header.magic = 0;
  const auto wanted = header_of(id, parameters);
  if (!read_at(file, std::as_writable_bytes(std::span(&header, 1)), 0)
      || header.magic != wanted.magic || header.id != id
      || header.plane_bytes != wanted.plane_bytes
      || header.moment_bytes != wanted.moment_bytes)
    return std::nullopt;
  std::uint64_t offset = plane_file_start;
  for (const Plane plane : stored_planes(parameters)) {
    const auto into = std::as_writable_bytes(parameters.plane(plane));
    if (!read_block_at(file, parameters.memory(), into, offset))
      return std::nullopt;
    offset += into.size();
  }
  return header.counts;
}

std::optional<std::uint64_t> plane_file_bytes(std::span<const std::byte> start,
                                              std::uint64_t id) {
  PlaneFileHeader header;
  header.magic = 0;
  if (start.size() >= sizeof(header))
    std::memcpy(&header, start.data(), sizeof(header));
  if (header.magic != plane_file_magic || header.id != id)
    return std::nullopt;
  return plane_file_start + header.plane_bytes + 2 * header.moment_bytes;
}

} // namespace troupe::models
