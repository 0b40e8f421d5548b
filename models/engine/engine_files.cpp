// Engine and files: loads and saves HF folders and optimizer state.
#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "models/engine/engine.hpp"
#include "models/engine/engine_impl.hpp"
#include "models/engine/plane_file.hpp"
#include "models/engine/read_weights.hpp"
#include "models/engine/snapshot.hpp"
#include "models/hf/hf_folder.hpp"
#include "models/hf/safetensors.hpp"
#include "models/hf/stored_parameters.hpp"

#include <algorithm>

namespace troupe::models {

namespace {

std::vector<std::int64_t> engine_file_shape(const ParameterShape& shape) {
  if (shape.vector)
    return {shape.rows};
  return {shape.rows, shape.cols};
}

std::string engine_shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (const std::int64_t size : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

// Reads a box of optimizer state, whose tensors have the parameters' shapes.
void engine_read_state(const StoredTensor& stored, const plans::Box& box,
                       float* data) {
  stored.copy_box_to(box.row0, box.row1, box.col0, box.col1, DType::f32,
                     std::as_writable_bytes(std::span<float>(
                       data, static_cast<std::size_t>(box.num_elements()))));
}

// Returns true on the one device that writes whole tensors.
bool engine_writes(const LocalModel& part) {
  return part.where == Coordinate{};
}

void engine_check_shape(const StoredTensor& stored,
                        const ParameterShape& want) {
  const std::vector<std::int64_t> shape = engine_file_shape(want);
  if (stored.shape == shape)
    return;
  throw ConfigError(ConfigError::Parts{
    Place{stored.file, 0}, stored.name, "shape " + engine_shape_text(shape),
    "shape " + engine_shape_text(stored.shape),
    "check that config.json and the weights belong together"});
}

std::string engine_plane_name(const ParameterShape& shape, Plane plane) {
  if (plane == Plane::weight)
    return "w." + shape.name;
  return (plane == Plane::m ? "m." : "v.") + shape.name;
}

} // namespace

void Engine::load_frozen() {
  if (!impl_->frozen)
    return;
  impl_->frozen->load(impl_->spec.folder);
}

std::shared_ptr<const FrozenWeights> Engine::whole_frozen() const {
  TROUPE_CHECK(impl_->frozen, "a model without adapters has no frozen weights");
  const auto& strategy = impl_->part.strategy;
  if (strategy.tp == 1 && strategy.pp == 1
      && !impl_->frozen->parameters.has_no_masters())
    return impl_->frozen;
  const auto whole = std::make_shared<FrozenWeights>(
    impl_->part.whole, Strategy{}, Coordinate{}, nullptr, DType::f32);
  whole->load(impl_->spec.folder);
  return whole;
}

void Engine::load_weights() {
  const LocalModel& part = impl_->part;
  if (impl_->frozen) {
    impl_->frozen->load(impl_->spec.folder);
    if (impl_->spec.adapters.folder.empty())
      start_adapters(part, impl_->spec.seed, *impl_->frozen, impl_->parameters);
    else
      load_adapters(impl_->spec.adapters.folder, part, impl_->parameters);
    return;
  }
  bool missing_head = false;
  const StoredWeights stored
    = open_model_weights(impl_->spec.folder, part.whole, &missing_head);
  refuse_unknown_tensors(stored, part.parameters);
  read_weights(stored, part, impl_->parameters);
  if (missing_head && engine_writes(part))
    log::models.warn("role " + impl_->spec.role + ": "
                     + impl_->spec.folder.string()
                     + " has no scalar head; starting from a zero head");
}

void Engine::describe(Snapshot& snapshot, bool with_moments) const {
  snapshot.describe({.part = impl_->part,
                     .folder = impl_->spec.folder,
                     .optimizer_steps = impl_->steps.optimizer_steps,
                     .applied_steps = impl_->steps.applied_steps,
                     .device = impl_->backend.memory()},
                    with_moments);
}

void Engine::copy_to(Snapshot& snapshot, bool with_moments,
                     const Groups& groups) const {
  describe(snapshot, with_moments);
  snapshot.fill(impl_->part, impl_->parameters, groups);
}

void Engine::save_hf(const std::filesystem::path& folder, DType dtype,
                     const Groups& groups) const {
  Snapshot snapshot;
  copy_to(snapshot, /*with_moments=*/false, groups);
  if (engine_writes(impl_->part))
    snapshot.save_hf(folder, {.dtype = dtype});
}

void Engine::save_state(const std::filesystem::path& file,
                        const Groups& groups) const {
  TROUPE_CHECK(impl_->spec.trainable, "an untrained role has no state");
  Snapshot snapshot;
  copy_to(snapshot, /*with_moments=*/true, groups);
  if (engine_writes(impl_->part))
    snapshot.save_state(file, /*with_weights=*/false);
}

std::uint64_t Engine::write_planes(int file, std::uint64_t id) const {
  return models::write_planes(file, id, impl_->parameters, impl_->steps);
}

bool Engine::read_planes(int file, std::uint64_t id) {
  const auto counts = models::read_planes(file, id, impl_->parameters);
  if (!counts)
    return false;
  impl_->steps = *counts;
  weights_changed();
  return true;
}

void Engine::load_state(const std::filesystem::path& file) {
  const SafetensorsFile stored = SafetensorsFile::open(file);
  const auto number = [&](const char* key) {
    const auto found = stored.metadata().find(key);
    if (found == stored.metadata().end()
        || found->second.find_first_not_of("0123456789") != std::string::npos
        || found->second.empty())
      throw ConfigError(Place{file.string(), 0},
                        std::string("no step count '") + key
                          + "' in this optimizer state");
    return std::stoull(found->second);
  };
  const LocalModel& part = impl_->part;
  std::vector<std::pair<Plane, const plans::Shard*>> planes;
  if (impl_->spec.trainable)
    planes = {{Plane::m, &part.optimizer}, {Plane::v, &part.optimizer}};
  // for folders that hold fewer bits than the weights have
  if (stored.find(engine_plane_name(part.parameters.front(), Plane::weight))
      != nullptr)
    planes.emplace_back(Plane::weight, &part.held);
  for (const auto& [plane, shard] : planes) {
    const auto values = impl_->parameters.overwrite(plane);
    for (const plans::Box& box : shard->boxes) {
      const ParameterShape& shape = part.parameters[box.parameter];
      const StoredTensor& tensor = stored.at(engine_plane_name(shape, plane));
      engine_check_shape(tensor, shape);
      engine_read_state(tensor, box,
                        values.floats() + box.offset_bytes / sizeof(float));
    }
    values.put_back();
  }
  impl_->steps.optimizer_steps = number("optimizer_steps");
  impl_->steps.applied_steps = number("applied_steps");
  weights_changed();
}

} // namespace troupe::models
