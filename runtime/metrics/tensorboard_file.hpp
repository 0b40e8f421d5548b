// metrics.tensorboard: the numbers of each step as scalars of an event file.
// Format: TFRecords (length, masked CRC-32C of it, data, masked CRC-32C of
// that) of tensorflow.Event messages; source:
// tensorflow/core/lib/io/record_writer.h and core/util/event.proto.
#pragma once

#include "runtime/metrics/step_metrics.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace troupe::runtime {

/// Returns the CRC-32C (Castagnoli, reflected), as in RFC 3720.
std::uint32_t crc32c(std::string_view bytes);
/// Returns one TFRecord.
std::string tf_record(std::string_view data);
/// Returns a tensorflow.Event with one scalar per metric; numbers that are not
/// finite are omitted.
std::string scalar_event(const StepMetrics& metrics, double wall_time_s);

class TensorboardFile {
public:
  /// Creates `folder` and a new event file in it, which sorts after older ones.
  /// Throws FailureError (io) if it cannot.
  explicit TensorboardFile(const std::filesystem::path& folder);
  ~TensorboardFile();
  TensorboardFile(const TensorboardFile&) = delete;
  TensorboardFile& operator=(const TensorboardFile&) = delete;

  void write(const StepMetrics& metrics);

private:
  void append(std::string_view event);

  std::filesystem::path path_;
  int fd_ = -1;
};

} // namespace troupe::runtime
