#include "models/engine/engine.hpp"

#include "config/base/error.hpp"
#include "config/base/float16.hpp"
#include "config/model/model_shape.hpp"
#include "config/model/product_operands.hpp"
#include "models/engine/engine_generator.hpp"
#include "models/engine/engine_impl.hpp"
#include "models/sync/gradient_sync.hpp"
#include "models/sync/zero3_flow.hpp"

#include <algorithm>
#include <bit>

namespace troupe::models {

namespace {

ModelShape engine_shape(const Engine::Spec& spec) {
  ModelShape shape = read_model_shape(spec.folder);
  if (shape.scalar_head && !spec.scalar_head)
    throw ConfigError({.place = {(spec.folder / "config.json").string(), 0},
                       .path = "role " + spec.role,
                       .expected = "a language model",
                       .got = "one with a scalar head",
                       .hint = "the folder of a language model"});
  shape.scalar_head = spec.scalar_head;
  shape.lora = spec.adapters.lora;
  return shape;
}

// Rejects what this build cannot run.
void engine_check_spec(const Engine::Spec& spec) {
  if (spec.dtype != DType::f32 && spec.dtype != DType::bf16)
    throw PlanError("role " + spec.role
                    + ": the CPU computes in fp32 or bf16, not "
                    + std::string(to_string(spec.dtype)));
}

// Rejects a loss that sums over a sequence's experts where a cp group cuts
// sequences.
void engine_check_context(const Engine::Spec& spec, const ModelShape& shape) {
  TROUPE_CHECK(spec.strategy.cp == 1 || !spec.trainable
                 || shape.experts.count == 0
                 || spec.optimizer.router_aux_loss_coef == 0,
               "a balance loss is one of whole sequences, which cp cuts");
}

// Returns the backend of an engine, which the calling thread enters.
Backend& engine_backend(const Engine::Spec& spec) {
  Backend& backend = spec.backend != nullptr ? *spec.backend : host_backend();
  backend.enter();
  return backend;
}

// Returns a sum of one number per element, made of its position in the whole
// model and its bits as bits_of(element) has them: parts on several devices add
// up to the whole model on one.
template <class BitsOf>
std::uint64_t engine_hash(const plans::Box& box, std::int64_t cols,
                          const float* elements, BitsOf bits_of) {
  constexpr std::uint64_t place_prime = 0x9e3779b97f4a7c15;
  constexpr std::uint64_t bits_prime = 0xff51afd7ed558ccd;
  std::uint64_t sum = 0;
  for (std::int64_t row = box.row0; row < box.row1; ++row)
    for (std::int64_t col = box.col0; col < box.col1; ++col) {
      const auto place = std::uint64_t{box.parameter} << 44
                         ^ static_cast<std::uint64_t>(row * cols + col);
      const std::uint32_t bits = bits_of(*elements++);
      const std::uint64_t mixed = (place * place_prime ^ bits) * bits_prime;
      sum += (mixed ^ mixed >> 32) * place_prime;
    }
  return sum;
}

// Returns the sum of the weights that this device is the first to own.
std::uint64_t engine_checksum(const LocalModel& part, const float* elements,
                              DType products) {
  const auto whole = [](float x) { return std::bit_cast<std::uint32_t>(x); };
  const auto rounded
    = [](float x) { return std::uint32_t{f32_to_bf16(x)} << 16; };
  std::uint64_t sum = 0;
  for (const plans::Box& box : part.held.boxes) {
    if (!part.counts(part.owner(box.parameter)))
      continue;
    const ParameterShape& shape = part.parameters[box.parameter];
    const float* const first = elements + box.offset_bytes / sizeof(float);
    sum += products == DType::bf16 && read_by_products(shape)
             ? engine_hash(box, shape.cols, first, rounded)
             : engine_hash(box, shape.cols, first, whole);
  }
  return sum;
}

} // namespace

Engine::Impl::Impl(Engine::Spec given, Workspaces* of_device)
  : spec((engine_check_spec(given), std::move(given))),
    backend(engine_backend(spec)),
    part(engine_shape(spec), spec.strategy, spec.where),
    frozen(part.whole.lora.exists() ? std::make_shared<FrozenWeights>(
             part.whole, spec.strategy, spec.where, backend.memory(),
             backend.storage(spec.dtype))
                                    : nullptr),
    shape(stack().local),
    parameters(
      part, spec.trainable, backend.memory(),
      spec.weight_use == WeightUse::shared ? net::PageSharing::by_descriptor
                                           : net::PageSharing::none,
      backend.storage(spec.dtype),
      spec.weight_use == WeightUse::frozen ? Masters::none : Masters::kept),
    weights(views(Plane::weight)),
    rope(shape, backend),
    model{shape, weights, rope, spec.strategy.sequence_parallel,
          stack().first_layer},
    workspaces(of_device != nullptr ? *of_device : own_workspaces),
    losses(spec.losses != nullptr ? *spec.losses : models::losses()) {
  if (plans::cuts_weights(spec.strategy))
    sync = std::make_unique<Zero3Flow>(part, parameters, backend);
  else
    sync = std::make_unique<GradientSync>(part, parameters, backend);
  engine_check_context(spec, shape);
  model.gate = sync.get();
  model.backend = &backend;
  weights.operands = spec.dtype;
  if (!spec.trainable)
    return;
  grads = views(Plane::grad);
  adam = std::make_unique<AdamW>(parameters, spec.optimizer,
                                 optimizer_runs(part, parameters), backend);
}

Weights Engine::Impl::views(Plane plane) const {
  if (!frozen)
    return weights_of(part, parameters, plane);
  const Parameters* const base
    = plane == Plane::weight ? &frozen->parameters : nullptr;
  Weights found = weights_of(frozen->part, base, parameters, plane);
  found.adapter_scale = static_cast<float>(part.whole.lora.scale());
  return found;
}

void Engine::Impl::views_moved() {
  if (!parameters.moves_planes())
    return;
  const DType operands = weights.operands;
  weights = views(Plane::weight);
  weights.operands = operands;
  if (grads)
    grads = views(Plane::grad);
}

void Engine::Impl::refresh_rounded() {
  parameters.refresh_rounded(backend);
}

TypedPtr Engine::Impl::run_forward(const PackedTokens& batch,
                                   const RunContext& context, Workspace& memory,
                                   Saved* saved) {
  refresh_rounded();
  const auto last = std::ranges::max_element(batch.positions_T);
  rope.grow(last == batch.positions_T.end() ? 0 : *last + 1);
  return forward(model, batch, context, memory, saved);
}

VocabularyHead Engine::Impl::vocabulary_head(double temperature,
                                             const RunContext& context) const {
  if (shape.scalar_head)
    throw ConfigError(Place{spec.folder.string(), 0},
                      "role " + spec.role
                        + " has a scalar head and gives no logprobs");
  return {weights.head,
          (temperature > 0 ? temperature : 1.0) * shape.multipliers.logits,
          weights.first_token,
          TensorPeers(context, backend),
          shape.caps.logits,
          spec.dtype,
          &backend};
}

net::HostRead Engine::Impl::scalar_outputs(ConstTypedPtr hidden_TH,
                                           std::int64_t rows,
                                           Workspace& memory) const {
  float* out_T = memory.take(rows);
  backend.scalar_rows(weights.head.const_data_ptr<float>(), shape.hidden_size,
                      hidden_TH, rows, out_T);
  return backend.read(out_T, rows);
}

const float* Engine::Impl::written(const std::vector<float>& values,
                                   Workspace& memory) const {
  const auto count = static_cast<std::int64_t>(values.size());
  float* to = memory.take(count);
  backend.write(values.data(), to, values.size() * sizeof(float));
  return to;
}

void Engine::Impl::need_scalar_head(const std::string& fn) const {
  if (!shape.scalar_head)
    throw ConfigError(Place{spec.folder.string(), 0},
                      "role " + spec.role + " has no scalar head for " + fn);
}

WantedTokens wanted_tokens(const PackedSequences& packed,
                           const std::vector<float>& mask_L) {
  WantedTokens wanted;
  for (std::size_t t = 0; t < mask_L.size(); ++t) {
    if (mask_L[t] == 0 || packed.packed_L[t - 1] < 0)
      continue;
    wanted.entries_R.push_back(static_cast<std::int64_t>(t));
    wanted.positions_R.push_back(packed.packed_L[t - 1]);
    wanted.targets_R.push_back(packed.ids_L[t]);
  }
  return wanted;
}

Engine::Engine(Spec spec, Workspaces* workspaces)
  : impl_(std::make_unique<Impl>(std::move(spec), workspaces)) {}

Engine::~Engine() = default;

std::uint64_t Engine::checksum(DType products) const {
  const auto newest = impl_->parameters.read(Plane::weight);
  return engine_checksum(impl_->part, newest.floats(), products);
}

std::uint64_t Engine::checksum_of(std::span<const std::byte> weights) const {
  return engine_checksum(
    impl_->part, reinterpret_cast<const float*>(weights.data()), DType::f32);
}

const ModelShape& Engine::shape() const {
  return impl_->part.whole;
}

const LocalModel& Engine::part() const {
  return impl_->part;
}

Parameters& Engine::parameters() {
  return impl_->parameters;
}

const Transformer& Engine::transformer() const {
  impl_->backend.enter();
  impl_->refresh_rounded();
  return impl_->model;
}

std::uint64_t Engine::optimizer_steps() const {
  return impl_->steps.optimizer_steps;
}

} // namespace troupe::models
