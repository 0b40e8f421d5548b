#include "models/engine.hpp"

#include "config/error.hpp"
#include "config/model_shape.hpp"
#include "models/internal/engine_impl.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace troupe::models {

namespace {

ModelShape engine_shape(const Engine::Spec& spec) {
  ModelShape shape = read_model_shape(spec.folder);
  if (shape.scalar_head && !spec.scalar_head)
    throw ConfigError(
      Place{(spec.folder / "config.json").string(), 0},
      "role " + spec.role
        + " needs a language model, but this is a scalar-head model");
  shape.scalar_head = spec.scalar_head;
  return shape;
}

// What this build runs; the rest of a strategy comes with later parts.
void engine_check_spec(const Engine::Spec& spec) {
  if (spec.strategy.tp > 1 || spec.strategy.pp > 1
      || spec.strategy.zero != Zero::none)
    throw PlanError("role " + spec.role + ": strategy "
                    + to_string(spec.strategy)
                    + " is not supported by this build; use d"
                    + std::to_string(spec.strategy.num_devices()));
  if (spec.dtype != DType::f32)
    throw PlanError("role " + spec.role
                    + ": this build computes in fp32 on the CPU, not "
                    + std::string(to_string(spec.dtype)));
}

// FNV-1a over 64-bit words, four lanes so that it runs at memory speed.
std::uint64_t engine_hash(std::span<const float> floats) {
  constexpr std::uint64_t prime = 0x100000001b3;
  std::uint64_t lanes[4] = {0xcbf29ce484222325, 0x84222325cbf29ce4,
                            0x9ce484222325cbf2, 0x2325cbf29ce48422};
  for (std::size_t i = 0; i + 8 <= floats.size(); i += 8)
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, floats.data() + i + 2 * lane, sizeof word);
      lanes[lane] = std::rotl((lanes[lane] ^ word) * prime, 29);
    }
  std::uint64_t hash = floats.size();
  for (const std::uint64_t lane : lanes)
    hash = std::rotl((hash ^ lane) * prime, 31);
  return hash;
}

} // namespace

Engine::Impl::Impl(Engine::Spec given)
  : spec((engine_check_spec(given), std::move(given))),
    shape(engine_shape(spec)),
    parameters(troupe::parameters(shape), spec.trainable),
    weights(weights_of(shape, parameters, Plane::weight)),
    rope(shape),
    model{shape, weights, rope},
    losses(spec.losses != nullptr ? *spec.losses : built_in_losses()) {
  if (!spec.trainable)
    return;
  grads = weights_of(shape, parameters, Plane::grad);
  adam = std::make_unique<AdamW>(parameters, spec.optimizer);
}

float* Engine::Impl::run_forward(const PackedTokens& batch,
                                 const RunContext& context, Saved* saved) {
  std::int64_t longest = 0;
  for (std::size_t i = 0; i + 1 < batch.cu_seqlens.size(); ++i)
    longest = std::max(longest, batch.cu_seqlens[i + 1] - batch.cu_seqlens[i]);
  rope.grow(longest);
  return forward(model, batch, context, workspace, saved);
}

VocabularyHead Engine::Impl::vocabulary_head(double temperature) const {
  if (shape.scalar_head)
    throw ConfigError(Place{spec.folder.string(), 0},
                      "role " + spec.role
                        + " has a scalar head and gives no logprobs");
  return {weights.head, temperature > 0 ? temperature : 1.0};
}

void Engine::Impl::need_scalar_head(const std::string& fn) const {
  if (!shape.scalar_head)
    throw ConfigError(Place{spec.folder.string(), 0},
                      "role " + spec.role + " has no scalar head for " + fn);
}

WantedTokens wanted_tokens(const PackedTokens& batch,
                           const std::vector<float>& mask_T) {
  WantedTokens wanted;
  for (std::size_t t = 0; t < mask_T.size(); ++t) {
    if (mask_T[t] == 0)
      continue;
    wanted.positions_R.push_back(static_cast<std::int64_t>(t) - 1);
    wanted.targets_R.push_back(batch.ids_T[t]);
  }
  return wanted;
}

Engine::Engine(Spec spec) : impl_(std::make_unique<Impl>(std::move(spec))) {}

Engine::~Engine() = default;

std::span<std::byte> Engine::weights() {
  return std::as_writable_bytes(impl_->parameters.plane(Plane::weight));
}

std::uint64_t Engine::checksum() const {
  return engine_hash(impl_->parameters.plane(Plane::weight));
}

const ModelShape& Engine::shape() const {
  return impl_->shape;
}

Parameters& Engine::parameters() {
  return impl_->parameters;
}

const Transformer& Engine::transformer() const {
  return impl_->model;
}

std::uint64_t Engine::optimizer_steps() const {
  return impl_->optimizer_steps;
}

} // namespace troupe::models
