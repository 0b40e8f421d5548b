#include "models/engine/frozen_weights.hpp"

#include "models/data/philox.hpp"
#include "models/engine/read_weights.hpp"
#include "models/hf/hf_folder.hpp"
#include "models/hf/peft_folder.hpp"
#include "models/hf/stored_parameters.hpp"

#include <algorithm>
#include <cmath>

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

/// Returns weights that are stored in fp32 for the host to read.
net::HostRead read_view(const Parameters& parameters, std::size_t index) {
  const at::Tensor view = parameters.view(index, Plane::weight);
  return {parameters.memory(), view.const_data_ptr<float>(), view.nbytes()};
}

} // namespace

FrozenWeights::FrozenWeights(const ModelShape& shape, const Strategy& strategy,
                             const Coordinate& where,
                             const net::BlockMemory* memory, DType products)
  : part(frozen_shape(shape), strategy, where),
    parameters(part, /*trainable=*/false, memory, net::PageSharing::none,
               products, Masters::none) {}

void FrozenWeights::load(const std::filesystem::path& folder) {
  bool missing_head = false;
  const StoredWeights stored
    = open_model_weights(folder, part.whole, &missing_head);
  refuse_unknown_tensors(stored, part.parameters);
  read_weights(stored, part, parameters);
}

void start_adapters(const LocalModel& part, std::uint64_t seed,
                    const FrozenWeights& frozen, Parameters& adapters) {
  const auto plane = adapters.overwrite(Plane::weight);
  const Parameters& base = frozen.parameters;
  for (const plans::Box& box : part.held.boxes) {
    const ParameterShape& shape = part.parameters[box.parameter];
    float* data = plane.floats() + box.offset_bytes / sizeof(float);
    const auto same = base.find(shape.name);
    if (same >= 0)
      std::ranges::copy(read_view(base, static_cast<std::size_t>(same)).bytes(),
                        reinterpret_cast<std::byte*>(data));
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
  read_weights(open_peft_weights(folder, part.whole), part, adapters);
}

} // namespace troupe::models
