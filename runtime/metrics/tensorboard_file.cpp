#include "runtime/metrics/tensorboard_file.hpp"

#include "config/base/clock.hpp"
#include "config/base/error.hpp"
#include "runtime/run_folder/run_status.hpp"

#include <boost/crc.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace troupe::runtime {

namespace {

// -- protobuf's wire format ---------------------------------------------------

enum class Wire : std::uint8_t {
  varint = 0,
  fixed64 = 1,
  bytes = 2,
  fixed32 = 5
};

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, std::uint32_t field, Wire wire) {
  put_varint(out, std::uint64_t{field} << 3 | static_cast<std::uint8_t>(wire));
}

template <class T>
void put_little_endian(std::string& out, T value) {
  static_assert(std::endian::native == std::endian::little);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_bytes(std::string& out, std::uint32_t field, std::string_view bytes) {
  put_key(out, field, Wire::bytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_head(double wall_time_s) {
  std::string event;
  put_key(event, 1, Wire::fixed64); // Event.wall_time
  put_little_endian(event, wall_time_s);
  return event;
}

std::uint32_t masked(std::uint32_t crc) {
  return std::rotr(crc, 15) + 0xa282ead8U;
}

} // namespace

std::uint32_t crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1edc6f41, ~0U, ~0U, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  return crc.checksum();
}

std::string tf_record(std::string_view data) {
  std::string length;
  put_little_endian(length, std::uint64_t{data.size()});
  std::string record = length;
  put_little_endian(record, masked(crc32c(length)));
  record += data;
  put_little_endian(record, masked(crc32c(data)));
  return record;
}

std::string scalar_event(const StepMetrics& metrics, double wall_time_s) {
  std::string summary;
  for (const auto& [name, number] : metrics.values) {
    if (!std::isfinite(number))
      continue;
    std::string value; // Summary.Value
    put_bytes(value, 1, name);
    put_key(value, 2, Wire::fixed32);
    put_little_endian(value, static_cast<float>(number));
    put_bytes(summary, 1, value);
  }
  std::string event = event_head(wall_time_s);
  put_key(event, 2, Wire::varint); // Event.step
  put_varint(event, metrics.step);
  put_bytes(event, 5, summary);
  return event;
}

TensorboardFile::TensorboardFile(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const double now_s = unix_seconds();
  path_
    = folder
      / fmt::format("events.out.tfevents.{:010}.{}.{}",
                    static_cast<std::int64_t>(now_s), host_name(), ::getpid());
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  std::string event = event_head(now_s);
  put_bytes(event, 3, "brain.Event:2"); // Event.file_version
  append(event);
}

TensorboardFile::~TensorboardFile() {
  ::close(fd_);
}

void TensorboardFile::write(const StepMetrics& metrics) {
  append(scalar_event(metrics, unix_seconds()));
}

void TensorboardFile::append(std::string_view event) {
  const std::string record = tf_record(event);
  if (::write(fd_, record.data(), record.size())
      != static_cast<ssize_t>(record.size()))
    throw FailureError{
      {.code = Errc::io,
       .who = "master",
       .what = fmt::format("cannot write {}: {}", path_.string(),
                           std::strerror(errno)),
       .cause = ""}};
}

} // namespace troupe::runtime
