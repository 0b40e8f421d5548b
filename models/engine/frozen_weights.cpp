#include "models/engine/frozen_weights.hpp"

#include "models/data/philox.hpp"
#include "models/hf/hf_folder.hpp"
#include "models/hf/peft_folder.hpp"
#include "models/hf/stored_parameters.hpp"
#include "models/kernels/backend.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <utility>

namespace troupe::models {

namespace {

// Keeps draws of adapters apart from those of samples under the same seed.
constexpr std::uint32_t adapter_draws = 0x4c6f5241;

float uniform(std::uint64_t seed, std::uint32_t parameter,
              std::uint64_t element, float bound) {
  const auto low
    = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const PhiloxBlock block = philox4x32_10(
    {low(seed), low(seed >> 32)},
    {low(element), low(element >> 32), parameter, adapter_draws});
  constexpr float steps = 1 << 24; // exact in fp32
  const float share = static_cast<float>(block[0] >> 8) / steps;
  return bound * (2 * share - 1);
}

void draw_box(const plans::Box& box, std::int64_t cols, std::uint64_t seed,
              float* data) {
  const float bound = 1.0F / std::sqrt(static_cast<float>(cols));
  for (std::int64_t row = box.row0; row < box.row1; ++row)
    for (std::int64_t col = box.col0; col < box.col1; ++col)
      *data++ = uniform(seed, box.parameter,
                        static_cast<std::uint64_t>(row * cols + col), bound);
}

} // namespace

FrozenWeights::FrozenWeights(const ModelShape& shape, const Strategy& strategy,
                             const Coordinate& where,
                             const net::BlockMemory* memory, DType products)
  : part(frozen_shape(shape), strategy, where),
    parameters(part, /*trainable=*/false, memory, net::PageSharing::none,
               products) {}

void FrozenWeights::load(const std::filesystem::path& folder) {
  bool missing_head = false;
  const StoredWeights stored
    = open_model_weights(folder, part.whole, &missing_head);
  refuse_unknown_tensors(stored, part.parameters);
  fp32.reset();
  parameters.expect(Plane::weight);
  const auto plane = parameters.overwrite(Plane::weight);
  read_held_boxes(stored, part.parameters, part.held, plane.floats());
  plane.put_back();
  parameters.changed();
}

void FrozenWeights::drop_masters(Backend& backend) {
  if (!parameters.has_rounded() || !has_masters())
    return;
  parameters.refresh_rounded(backend);
  std::vector<ParameterShape> kept;
  std::ranges::copy_if(part.local_parameters, std::back_inserter(kept),
                       std::not_fn(read_by_products));
  fp32.emplace(std::move(kept), /*trainable=*/false, backend.memory());
  const float* from = std::as_const(parameters).plane(Plane::weight).data();
  float* to = fp32->plane(Plane::weight).data();
  for (std::size_t i = 0; i < fp32->shapes().size(); ++i) {
    const ParameterShape& shape = fp32->shapes()[i];
    const auto index = static_cast<std::size_t>(parameters.find(shape.name));
    backend.copy(from + parameters.offset(index), to + fp32->offset(i),
                 shape.num_elements());
  }
  backend.wait();
  parameters.drop_masters();
}

void start_adapters(const LocalModel& part, std::uint64_t seed,
                    const FrozenWeights& frozen, Parameters& adapters) {
  const auto plane = adapters.overwrite(Plane::weight);
  const auto base = frozen.parameters.read(Plane::weight);
  for (const plans::Box& box : part.held.boxes) {
    const ParameterShape& shape = part.parameters[box.parameter];
    float* data = plane.floats() + box.offset_bytes / sizeof(float);
    const auto same = frozen.parameters.find(shape.name);
    if (same >= 0)
      std::copy_n(base.floats()
                    + frozen.parameters.offset(static_cast<std::size_t>(same)),
                  box.num_elements(), data);
    else if (shape.name.ends_with(".lora_A.weight"))
      draw_box(box, shape.cols, seed, data);
    else
      std::fill_n(data, box.num_elements(), 0.0F);
  }
  plane.put_back();
  adapters.changed();
}

void load_adapters(const std::filesystem::path& folder, const LocalModel& part,
                   Parameters& adapters) {
  const StoredWeights stored = open_peft_weights(folder, part.whole);
  const auto plane = adapters.overwrite(Plane::weight);
  read_held_boxes(stored, part.parameters, part.held, plane.floats());
  plane.put_back();
  adapters.changed();
}

} // namespace troupe::models
