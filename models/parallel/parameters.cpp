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

std::size_t value_bytes(const PlaneMemory& memory) {
  return static_cast<std::size_t>(memory.size()) * sizeof(float);
}

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
                       DType products, Masters masters)
  : shapes_(part.local_parameters),
    trainable_(trainable),
    memory_(memory),
    sharing_(sharing) {
  index_names();
  const bool windows = plans::cuts_weights(part.strategy);
  PaddedOffsets padded = padded_offsets(shapes_);
  offsets_ = windows ? part.windows.offsets : std::move(padded.offsets);
  if (masters == Masters::none && products == DType::bf16) {
    TROUPE_CHECK(!trainable && !windows, "training and z3 need masters");
    frozen_layout_ = frozen_layout(shapes_, padded.size);
    allocate(Plane::weight, frozen_layout_.size);
    return;
  }
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
                                          : memory_of(Plane::weight).size(),
                            products, memory_);
}

/// Moves and checkpoints read all planes but gradients, from other processes
/// too.
void Parameters::allocate(Plane plane, std::int64_t count) {
  planes_[static_cast<std::size_t>(plane)].emplace(
    count, memory_,
    PlaneMemory::Sharing{.device = plane == Plane::grad ? net::PageSharing::none
                                                        : sharing_,
                         .host = sharing_});
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

const PlaneMemory& Parameters::memory_of(Plane plane) const {
  const auto& memory = planes_[static_cast<std::size_t>(plane)];
  TROUPE_CHECK(memory, "this model is not trained: no such plane");
  return *memory;
}

PlaneMemory& Parameters::memory_of(Plane plane) {
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
  if (!memory.is_on_device())
    return;
  memory.offload();
  rounded_leave(plane);
}

void Parameters::changed() {
  rounded_.make_stale();
  changed_by_optimizer();
}

void Parameters::changed_by_optimizer() {
  for (auto& memory : planes_)
    if (memory)
      memory->changed();
}

void Parameters::reload(Plane plane) {
  PlaneMemory& memory = memory_of(plane);
  if (memory.is_on_device())
    return;
  memory.reload();
  rounded_return(plane);
}

void Parameters::finish_offload(Plane plane) const {
  static_cast<void>(memory_of(plane).published());
}

void Parameters::drop(Plane plane) {
  memory_of(plane).drop();
  rounded_leave(plane);
}

void Parameters::rounded_leave(Plane plane) {
  if (plane == Plane::weight && !has_windows())
    rounded_.leave_device();
}

void Parameters::rounded_return(Plane plane) {
  if (plane == Plane::weight)
    rounded_.return_to_device();
}

void Parameters::expect(Plane plane) {
  memory_of(plane).expect();
  rounded_return(plane);
}

const net::PageBlock& Parameters::published(Plane plane) const {
  return memory_of(plane).published();
}

const net::PageBlock& Parameters::newest(Plane plane) const {
  return memory_of(plane).newest();
}

std::uint64_t Parameters::device_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& memory : planes_)
    if (memory && memory->is_on_device())
      bytes += memory->size_bytes();
  return has_windows() ? bytes : bytes + rounded_.num_bytes();
}

void Parameters::check_masters(Plane plane) const {
  TROUPE_CHECK(plane != Plane::weight || !has_no_masters(),
               "these weights have no fp32 masters");
}

net::BlockBytes Parameters::values(Plane plane) const {
  check_masters(plane);
  const PlaneMemory& memory = memory_of(plane);
  TROUPE_CHECK(memory.has_values(), "a dropped plane has no values");
  const net::PageBlock& block = memory.newest();
  return {{block.data(), value_bytes(memory)}, block.memory()};
}

net::HostRead Parameters::read(Plane plane) const {
  const net::BlockBytes found = values(plane);
  return {found.memory, found.bytes.data(), found.bytes.size()};
}

net::HostWrite Parameters::change(Plane plane) {
  check_masters(plane);
  make_stale(plane);
  const PlaneMemory& memory = memory_of(plane);
  const net::PageBlock& block = memory.newest();
  return {block.memory(), block.data(), value_bytes(memory),
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
  if (plane == Plane::weight && has_no_masters()) {
    TROUPE_CHECK(count == 1, "what is read in fp32 is read one by one");
    return at::from_blob(stored_at(index).floats(), sizes, at::kFloat);
  }
  return at::from_blob(seen(plane) + offsets_[index], sizes, at::kFloat);
}

at::Tensor Parameters::product_view(std::size_t index,
                                    std::size_t count) const {
  if (!has_rounded())
    return fused_view(index, count, Plane::weight);
  const auto sizes = fused_sizes(index, count);
  if (sizes.empty())
    return {};
  const TypedPtr first
    = has_no_masters() ? stored_at(index) : rounded_.data() + offsets_[index];
  return at::from_blob(first.data(), sizes, at::kBFloat16);
}

TypedPtr Parameters::stored_at(std::size_t index) const {
  float* const plane = memory_of(Plane::weight).data();
  const std::int64_t offset = frozen_layout_.fp32_offsets.at(index);
  if (offset != FrozenLayout::in_bf16)
    return plane + offset;
  return TypedPtr(plane, DType::bf16) + offsets_[index];
}

std::span<const float> Parameters::plane(Plane plane) const {
  check_masters(plane);
  const PlaneMemory& memory = memory_of(plane);
  return {memory.data(), static_cast<std::size_t>(memory.size())};
}

std::span<float> Parameters::plane(Plane plane) {
  check_masters(plane);
  make_stale(plane);
  const PlaneMemory& memory = memory_of(plane);
  return {memory.data(), static_cast<std::size_t>(memory.size())};
}

bool Parameters::has_rounded() const {
  return rounded_.exist() || has_no_masters();
}

void Parameters::refresh_rounded(RowKernels& backend) {
  if (!has_windows())
    rounded_.refresh(seen(Plane::weight), backend);
}

void Parameters::rounded_gathered() {
  rounded_.make_current();
}

std::pair<float*, TypedPtr> Parameters::updated_weights() {
  float* const weights = memory_of(Plane::weight).data();
  return {weights, has_windows() ? TypedPtr{} : rounded_.data()};
}

float* Parameters::seen(Plane plane) const {
  const auto index = static_cast<std::size_t>(plane);
  if (index < std::size(windows_) && windows_[index].size > 0)
    return windows_[index].floats.data();
  return memory_of(plane).data();
}

std::span<float> Parameters::window(Plane plane) {
  const auto index = static_cast<std::size_t>(plane);
  if (index >= std::size(windows_) || windows_[index].size == 0)
    return this->plane(plane);
  const Window& window = windows_[index];
  return {window.floats.data(), static_cast<std::size_t>(window.size)};
}

TypedPtr Parameters::product_window() {
  return rounded_.exist() ? rounded_.data() : window(Plane::weight).data();
}

std::uint64_t Parameters::num_bytes() const {
  std::int64_t elements = 0;
  for (const auto& memory : planes_)
    elements += memory ? memory->size() : 0;
  for (const Window& window : windows_)
    elements += window.size;
  return static_cast<std::uint64_t>(elements) * sizeof(float)
         + rounded_.num_bytes();
}

} // namespace troupe::models
