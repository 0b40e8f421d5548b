#include "models/parallel/parameters.hpp"

#include "config/base/error.hpp"
#include "models/parallel/local_model.hpp"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

namespace troupe::models {

namespace {

constexpr std::int64_t parameters_grain = 16; // floats: 64 bytes

} // namespace

plans::LayoutKind layout_kind(Plane plane) {
  return plane == Plane::m || plane == Plane::v ? plans::LayoutKind::optimizer
                                                : plans::LayoutKind::weights;
}

PaddedOffsets padded_offsets(const std::vector<ParameterShape>& shapes) {
  PaddedOffsets padded;
  for (const ParameterShape& shape : shapes) {
    padded.offsets.push_back(padded.size);
    padded.size += (shape.num_elements() + parameters_grain - 1)
                   / parameters_grain * parameters_grain;
  }
  return padded;
}

Parameters::Parameters(std::vector<ParameterShape> shapes, bool trainable,
                       const net::BlockMemory* memory, DType products)
  : shapes_(std::move(shapes)),
    trainable_(trainable),
    memory_(memory) {
  index_names();
  PaddedOffsets padded = padded_offsets(shapes_);
  offsets_ = std::move(padded.offsets);
  for (std::size_t p = 0; p < (trainable_ ? num_planes : 1); ++p)
    allocate(static_cast<Plane>(p), padded.size);
  rounded_ = RoundedWeights(padded.size, products, memory_);
}

Parameters::Parameters(const LocalModel& part, bool trainable,
                       const net::BlockMemory* memory, net::PageSharing sharing,
                       DType products)
  : shapes_(part.local_parameters),
    trainable_(trainable),
    memory_(memory),
    sharing_(sharing) {
  index_names();
  const bool windows = plans::cuts_weights(part.strategy);
  offsets_ = windows ? part.windows.offsets : padded_offsets(shapes_).offsets;
  for (std::size_t p = 0; p < (trainable_ ? num_planes : 1); ++p) {
    const auto plane = static_cast<Plane>(p);
    const bool moment = layout_kind(plane) == plans::LayoutKind::optimizer;
    const plans::Shard& shard = moment ? part.optimizer : part.held;
    allocate(plane,
             static_cast<std::int64_t>(shard.size_bytes / sizeof(float)));
    if (windows && !moment)
      windows_[p].allocate(part.windows.size, memory_);
  }
  rounded_ = RoundedWeights(has_windows() ? windows_[0].size
                                          : memory_of(Plane::weight).size,
                            products, memory_);
}

/// Moves and checkpoints read all planes but gradients, from other processes
/// too.
void Parameters::allocate(Plane plane, std::int64_t count) {
  PlaneMemory& memory = planes_[static_cast<std::size_t>(plane)];
  memory.exists = true;
  memory.size = count;
  const std::size_t bytes = memory.size_bytes();
  memory.device
    = memory_ != nullptr
        ? net::PageBlock(bytes, *memory_)
        : net::PageBlock(bytes, plane == Plane::grad ? net::PageSharing::none
                                                     : sharing_);
  memory.move_to(Where::device);
}

void Parameters::PlaneMemory::move_to(Where there) {
  where = there;
  charge.set(there == Where::device ? size_bytes() : 0);
}

void Parameters::leave_device(PlaneMemory& memory, Where there) {
  if (&memory == planes_ && !has_windows())
    rounded_.leave_device();
  if (memory_ != nullptr)
    memory.device = {};
  else
    memory.device.release_pages();
  memory.move_to(there);
}

void Parameters::return_to_device(PlaneMemory& memory) {
  if (memory.device.data() == nullptr)
    memory.device = net::PageBlock(memory.size_bytes(), *memory_);
  memory.move_to(Where::device);
  if (&memory == planes_)
    rounded_.return_to_device();
}

void Parameters::Window::allocate(std::int64_t count,
                                  const net::BlockMemory* memory) {
  size = count;
  floats = AlignedFloats(memory);
  float* const data = floats.reserve(std::max<std::int64_t>(count, 1));
  if (memory == nullptr) // a device's is zeroed
    std::fill_n(data, count, 0.0F);
}

std::int64_t Parameters::find(std::string_view name) const {
  const auto found = index_of_.find(name);
  return found == index_of_.end() ? -1 : found->second;
}

void Parameters::index_names() {
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    index_of_.emplace(shapes_[i].name, static_cast<std::int64_t>(i));
}

const Parameters::PlaneMemory& Parameters::memory_of(Plane plane) const {
  const PlaneMemory& memory = planes_[static_cast<std::size_t>(plane)];
  TROUPE_CHECK(memory.exists, "this model is not trained: no such plane");
  return memory;
}

Parameters::PlaneMemory& Parameters::memory_of(Plane plane) {
  return const_cast<PlaneMemory&>(std::as_const(*this).memory_of(plane));
}

void Parameters::make_stale(Plane plane) {
  if (plane == Plane::weight)
    rounded_.make_stale();
}

bool Parameters::has_windows() const {
  return windows_[0].size > 0;
}

void Parameters::offload(Plane plane) {
  PlaneMemory& memory = memory_of(plane);
  if (memory.where != Where::device)
    return;
  if (memory.host.data() == nullptr)
    memory.host = net::PageBlock(memory.size_bytes(), sharing_);
  if (!std::exchange(memory.host_is_current, true))
    copy_to_host(memory);
  leave_device(memory, Where::host);
}

void Parameters::changed() {
  rounded_.make_stale();
  changed_by_optimizer();
}

void Parameters::changed_by_optimizer() {
  for (PlaneMemory& memory : planes_)
    if (memory.where == Where::device)
      memory.host_is_current = false;
}

void Parameters::reload(Plane plane) {
  PlaneMemory& memory = memory_of(plane);
  if (memory.where == Where::device)
    return;
  TROUPE_CHECK(memory.where == Where::host, "a dropped plane has no values");
  return_to_device(memory);
  if (memory_ != nullptr)
    memory_->write(memory.host.data(), memory.device.data(),
                   memory.size_bytes());
  else
    std::memcpy(memory.device.data(), memory.host.data(), memory.size_bytes());
}

void Parameters::copy_to_host(PlaneMemory& memory) const {
  const std::size_t size_bytes = memory.size_bytes();
  if (memory_ != nullptr)
    memory_->read(memory.device.data(), memory.host.data(), size_bytes);
  else
    std::memcpy(memory.host.data(), memory.device.data(), size_bytes);
}

void Parameters::drop(Plane plane) {
  PlaneMemory& memory = memory_of(plane);
  memory.host_is_current = false;
  leave_device(memory, Where::nowhere);
}

void Parameters::drop_masters() {
  TROUPE_CHECK(rounded_.exist() && rounded_.is_current() && !has_windows(),
               "nothing would be left of the weights");
  RoundedWeights kept = std::exchange(rounded_, {});
  drop(Plane::weight);
  rounded_ = std::move(kept);
}

void Parameters::expect(Plane plane) {
  PlaneMemory& memory = memory_of(plane);
  memory.host_is_current = false;
  return_to_device(memory);
}

const net::PageBlock& Parameters::published(Plane plane) const {
  const PlaneMemory& memory = memory_of(plane);
  return memory.host.data() != nullptr ? memory.host : memory.device;
}

const net::PageBlock& Parameters::newest(Plane plane) const {
  const PlaneMemory& memory = memory_of(plane);
  return memory.where == Where::host ? memory.host : memory.device;
}

std::uint64_t Parameters::device_bytes() const {
  std::uint64_t bytes = 0;
  for (const PlaneMemory& memory : planes_)
    if (memory.exists && memory.where == Where::device)
      bytes += memory.size_bytes();
  return has_windows() ? bytes : bytes + rounded_.num_bytes();
}

net::HostRead Parameters::read(Plane plane) const {
  const PlaneMemory& memory = memory_of(plane);
  TROUPE_CHECK(memory.where != Where::nowhere, "a dropped plane has no values");
  const bool of_device = memory.where != Where::host;
  return {of_device ? memory_ : nullptr, newest(plane).data(),
          static_cast<std::size_t>(memory.size) * sizeof(float)};
}

net::HostWrite Parameters::change(Plane plane) {
  make_stale(plane);
  const PlaneMemory& memory = memory_of(plane);
  const bool of_device = memory.where != Where::host;
  return {of_device ? memory_ : nullptr, newest(plane).data(),
          static_cast<std::size_t>(memory.size) * sizeof(float),
          net::OldContent::needed};
}

net::HostWrite Parameters::overwrite(Plane plane) {
  const std::span<float> floats = this->plane(plane);
  return {memory_, floats.data(), floats.size_bytes(),
          net::OldContent::ignored};
}

at::Tensor Parameters::view(std::size_t index, Plane plane) const {
  return fused_view(index, 1, plane);
}

std::vector<std::int64_t> Parameters::fused_sizes(std::size_t index,
                                                  std::size_t count) const {
  const ParameterShape& first = shapes_[index];
  std::int64_t rows = 0;
  std::int64_t end = offsets_[index];
  for (std::size_t i = index; i < index + count; ++i) {
    const ParameterShape& shape = shapes_[i];
    if (offsets_[i] != end || shape.cols != first.cols
        || shape.vector != first.vector)
      return {};
    rows += shape.rows;
    end += shape.num_elements();
  }
  if (first.vector)
    return {rows};
  return {rows, first.cols};
}

at::Tensor Parameters::fused_view(std::size_t index, std::size_t count,
                                  Plane plane) const {
  const auto sizes = fused_sizes(index, count);
  if (sizes.empty())
    return {};
  return at::from_blob(seen(plane) + offsets_[index], sizes, at::kFloat);
}

at::Tensor Parameters::product_view(std::size_t index,
                                    std::size_t count) const {
  if (!rounded_.exist())
    return fused_view(index, count, Plane::weight);
  const auto sizes = fused_sizes(index, count);
  if (sizes.empty())
    return {};
  return at::from_blob((rounded_.data() + offsets_[index]).data(), sizes,
                       at::kBFloat16);
}

std::span<const float> Parameters::plane(Plane plane) const {
  const PlaneMemory& memory = memory_of(plane);
  return {reinterpret_cast<const float*>(memory.device.data()),
          static_cast<std::size_t>(memory.size)};
}

std::span<float> Parameters::plane(Plane plane) {
  make_stale(plane);
  const PlaneMemory& memory = memory_of(plane);
  return {reinterpret_cast<float*>(memory.device.data()),
          static_cast<std::size_t>(memory.size)};
}

bool Parameters::has_rounded() const {
  return rounded_.exist();
}

void Parameters::refresh_rounded(Backend& backend) {
  if (!has_windows())
    rounded_.refresh(seen(Plane::weight), backend);
}

void Parameters::round_window(std::int64_t begin, std::int64_t count,
                              Backend& backend) {
  TROUPE_CHECK(has_windows(), "the weights have no window");
  rounded_.round(seen(Plane::weight), begin, count, backend);
}

std::pair<float*, TypedPtr> Parameters::updated_weights() {
  float* const weights
    = reinterpret_cast<float*>(memory_of(Plane::weight).device.data());
  return {weights, has_windows() ? TypedPtr{} : rounded_.data()};
}

float* Parameters::seen(Plane plane) const {
  const auto index = static_cast<std::size_t>(plane);
  if (index < std::size(windows_) && windows_[index].size > 0)
    return windows_[index].floats.data();
  return reinterpret_cast<float*>(memory_of(plane).device.data());
}

std::span<float> Parameters::window(Plane plane) {
  const auto index = static_cast<std::size_t>(plane);
  if (index >= std::size(windows_) || windows_[index].size == 0)
    return this->plane(plane);
  const Window& window = windows_[index];
  return {window.floats.data(), static_cast<std::size_t>(window.size)};
}

std::uint64_t Parameters::num_bytes() const {
  std::int64_t elements = 0;
  for (const PlaneMemory& memory : planes_)
    elements += memory.size;
  for (const Window& window : windows_)
    elements += window.size;
  return static_cast<std::uint64_t>(elements) * sizeof(float)
         + rounded_.num_bytes();
}

} // namespace troupe::models
