#include "models/engine/snapshot.hpp"

#include "config/base/error.hpp"
#include "models/hf/hf_folder.hpp"
#include "models/hf/peft_folder.hpp"
#include "models/hf/safetensors.hpp"
#include "models/hf/stored_parameters.hpp"
#include "models/parallel/full_parameters.hpp"
#include "models/parallel/parameters.hpp"

#include <algorithm>
#include <utility>

namespace troupe::models {

namespace {

std::vector<std::int64_t> snapshot_shape(const ParameterShape& shape) {
  if (shape.vector)
    return {shape.rows};
  return {shape.rows, shape.cols};
}

constexpr std::int64_t snapshot_grain = 16; // floats: 64 bytes

} // namespace

void Snapshot::describe(const Source& source, bool with_moments) {
  shape_ = source.part.whole;
  folder_ = source.folder;
  shapes_ = source.part.parameters;
  offsets_.clear();
  size_ = 0;
  for (const ParameterShape& shape : shapes_) {
    offsets_.push_back(size_);
    size_ += (shape.num_elements() + snapshot_grain - 1) / snapshot_grain
             * snapshot_grain;
  }
  has_moments_ = with_moments;
  optimizer_steps_ = source.optimizer_steps;
  applied_steps_ = source.applied_steps;
  device_ = source.device;
}

std::span<std::byte> Snapshot::room(Plane plane) {
  Buffer& buffer
    = plane == Plane::weight ? weight_ : (plane == Plane::m ? m_ : v_);
  const bool grows = buffer.floats.capacity() < size_;
  if (grows)
    buffer.lock = {};
  const auto all = std::as_writable_bytes(std::span<float>(
    buffer.floats.reserve(size_), static_cast<std::size_t>(size_)));
  if (grows && device_ != nullptr)
    buffer.lock = net::PageLock(*device_, all);
  return all;
}

std::uint64_t Snapshot::weight_bytes() const {
  return static_cast<std::uint64_t>(size_) * sizeof(float);
}

void Snapshot::fill(const LocalModel& part, const Parameters& parameters,
                    const Groups& groups) {
  const bool keeps = part.where == Coordinate{};
  std::vector<Plane> planes = {Plane::weight};
  if (has_moments_)
    planes.insert(planes.end(), {Plane::m, Plane::v});
  for (const Plane plane : planes) {
    if (!FullParameters::gives(part, plane))
      continue;
    const FullParameters whole(part, parameters, plane, groups, keeps);
    if (!keeps)
      continue;
    auto* to = reinterpret_cast<float*>(room(plane).data());
    for (std::size_t i = 0; i < offsets_.size(); ++i)
      std::ranges::copy(whole.of(i), to + offsets_[i]);
  }
}

std::span<const std::byte> Snapshot::bytes(const Buffer& plane,
                                           std::size_t index) const {
  return std::as_bytes(std::span<const float>(
    plane.floats.data() + offsets_[index],
    static_cast<std::size_t>(shapes_[index].num_elements())));
}

void Snapshot::save_hf(const std::filesystem::path& folder,
                       const HfStore& store) const {
  std::vector<ParameterValues> values;
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    values.push_back({&shapes_[i], bytes(weight_, i)});
  const FileTensors files(values, store.dtype);
  HfFolderOptions options;
  options.store.max_shard_bytes = store.max_shard_bytes;
  options.stored = store.dtype;
  options.source = store.files_from.empty() ? folder_ : store.files_from;
  if (!shape_.lora.exists())
    return save_hf_folder(folder, shape_, files.tensors(), options);
  save_peft_folder(folder, shape_,
                   store.base_model.empty() ? folder_.string()
                                            : store.base_model,
                   files.tensors(), options);
}

void Snapshot::save_state(const std::filesystem::path& file,
                          bool with_weights) const {
  TROUPE_CHECK(has_moments_ || with_weights, "a frozen role has no state");
  std::vector<std::pair<std::string, const Buffer*>> planes;
  if (has_moments_)
    planes = {{"m.", &m_}, {"v.", &v_}};
  if (with_weights)
    planes.emplace_back("w.", &weight_);
  std::vector<TensorToStore> tensors;
  for (const auto& [prefix, plane] : planes)
    for (std::size_t i = 0; i < shapes_.size(); ++i)
      tensors.push_back({prefix + shapes_[i].name, snapshot_shape(shapes_[i]),
                         DType::f32, DType::f32, bytes(*plane, i)});
  StoreOptions options;
  options.metadata = {{"optimizer_steps", std::to_string(optimizer_steps_)},
                      {"applied_steps", std::to_string(applied_steps_)}};
  write_safetensors(file, tensors, options);
}

} // namespace troupe::models
