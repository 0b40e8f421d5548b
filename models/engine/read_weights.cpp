#include "models/engine/read_weights.hpp"

#include "models/hf/float_convert.hpp"
#include "models/hf/stored_parameters.hpp"
#include "models/parallel/local_model.hpp"
#include "models/parallel/parameters.hpp"
#include "net/base/staged_copy.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace troupe::models {

namespace {

/// Numbers of a box that are read at a time: 64 MiB of them in fp32.
constexpr std::int64_t numbers_at_once = std::int64_t{16} << 20;

void write_bytes(const net::BlockMemory* memory,
                 std::span<const std::byte> from, TypedPtr to) {
  auto* const target = static_cast<std::byte*>(to.data());
  if (memory == nullptr)
    std::memcpy(target, from.data(), from.size());
  else
    net::write_block(*memory, from.data(), {target, from.size()});
}

/// Host memory for rows on their way from a file to a plane.
class RowsOfFile {
public:
  /// Reads these rows of a box; zeros if there is no tensor.
  void read(const StoredTensor* tensor, const ParameterShape& whole,
            const plans::Box& rows) {
    const auto count = static_cast<std::size_t>(rows.num_elements());
    if (tensor == nullptr)
      return values_.assign(count, 0.0F);
    values_.resize(count);
    read_stored_box(*tensor, whole, rows.row0, rows.row1, rows.col0, rows.col1,
                    values_.data());
  }
  void write(const net::BlockMemory* memory, TypedPtr to) {
    const auto values = std::as_bytes(std::span<const float>(values_));
    if (to.type() == DType::f32)
      return write_bytes(memory, values, to);
    rounded_.resize(values_.size() * size_bytes(to.type()));
    convert(DType::f32, values, to.type(), rounded_);
    write_bytes(memory, rounded_, to);
  }

private:
  std::vector<float> values_;
  std::vector<std::byte> rounded_;
};

void read_without_masters(const StoredWeights& stored, const LocalModel& part,
                          const Parameters& parameters) {
  RowsOfFile rows;
  for (std::size_t i = 0; i < part.held.boxes.size(); ++i) {
    const plans::Box& box = part.held.boxes[i];
    const ParameterShape& whole = part.parameters[box.parameter];
    const StoredTensor* const tensor = find_stored(stored, whole);
    const std::int64_t cols = box.col1 - box.col0;
    const std::int64_t at_once
      = std::max<std::int64_t>(numbers_at_once / cols, 1);
    for (plans::Box some = box; some.row0 < box.row1; some.row0 = some.row1) {
      some.row1 = std::min(some.row0 + at_once, box.row1);
      rows.read(tensor, whole, some);
      rows.write(parameters.memory(),
                 parameters.stored_at(i) + (some.row0 - box.row0) * cols);
    }
  }
}

} // namespace

void read_weights(const StoredWeights& stored, const LocalModel& part,
                  Parameters& parameters) {
  if (parameters.has_no_masters()) {
    read_without_masters(stored, part, parameters);
  } else {
    const auto plane = parameters.overwrite(Plane::weight);
    read_held_boxes(stored, part.parameters, part.held, plane.floats());
    plane.put_back();
  }
  parameters.changed();
}

} // namespace troupe::models
