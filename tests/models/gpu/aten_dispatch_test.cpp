// A layer's experts with tokens that the device dispatches, in ATen's grouped
// products and kernels of our own in their CPU form, beside the host's router
// and products: outputs, gradients and what the host reads of the choice.
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/host_backend.hpp"
#include "models/transformer/device_dispatch.hpp"
#include "models/transformer/expert_runs.hpp"

#include <ATen/ops/from_blob.h>
#include <gtest/gtest.h>

#include "tests/support/models/aten_counter.hpp"
#include "tests/support/models/lane_orders.hpp"
#include "tests/support/models/typed_buffers.hpp"

#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::AtenCounter;
using troupe::testing::bf16_numbers;
using troupe::testing::read_typed;
using troupe::testing::write_typed;

constexpr std::int64_t layer_tokens = 21;
constexpr std::int64_t layer_experts = 6; // the last one has no token
constexpr std::int64_t layer_hidden = 16;
constexpr std::int64_t layer_width = 24;

AtenBackend& dispatching_backend() {
  static AtenBackend backend(at::kCPU, {.bf16_storage = DType::bf16,
                                        .own_kernels = true,
                                        .grouped_products = true});
  return backend;
}

std::vector<float> dispatch_logits() {
  auto logits = bf16_numbers(layer_tokens * layer_experts, 9);
  for (std::int64_t t = 0; t < layer_tokens; ++t)
    logits[static_cast<std::size_t>(t * layer_experts + layer_experts - 1)]
      = -20;
  return logits;
}

/// A layer's experts and rows in the memory of a CPU, stored in one type.
struct DispatchLayer {
  Backend& backend;
  DType type;
  std::vector<ExpertWeights> weights;
  TypedPtr x, dy, gate_up, out, dx;
  std::vector<float> gate_up_grads, down_grads, d_weight_S;

  DispatchLayer(Backend& of, DType stored_in) : backend(of), type(stored_in) {
    x = stored(layer_tokens * layer_hidden, 1);
    dy = stored(layer_tokens * layer_hidden, 2);
    gate_up = stored(2 * layer_tokens * 2 * layer_width, 3);
    out = stored(layer_tokens * layer_hidden, 4);
    dx = stored(layer_tokens * layer_hidden, 5);
    const TypedPtr gates
      = stored(layer_experts * 2 * layer_width * layer_hidden, 6);
    const TypedPtr downs
      = stored(layer_experts * layer_width * layer_hidden, 7);
    gate_up_grads
      = bf16_numbers(layer_experts * 2 * layer_width * layer_hidden, 8);
    down_grads = bf16_numbers(layer_experts * layer_width * layer_hidden, 9);
    d_weight_S.resize(2 * layer_tokens);
    for (std::int64_t e = 0; e < layer_experts; ++e) {
      const std::int64_t at = e * layer_width * layer_hidden;
      weights.push_back(
        {.up = matrix(gates + 2 * at, layer_width, layer_hidden),
         .gate_up = matrix(gates + 2 * at, 2 * layer_width, layer_hidden),
         .down = matrix(downs + at, layer_hidden, layer_width)});
    }
  }
  std::vector<ExpertWeights> grads() {
    std::vector<ExpertWeights> found;
    for (std::int64_t e = 0; e < layer_experts; ++e) {
      const std::int64_t at = e * layer_width * layer_hidden;
      found.push_back(
        {.gate_up
         = matrix(gate_up_grads.data() + 2 * at, 2 * layer_width, layer_hidden),
         .down = matrix(down_grads.data() + at, layer_hidden, layer_width)});
    }
    return found;
  }
  MoeShape shape() const {
    return {.backend = &backend,
            .hidden = layer_hidden,
            .router
            = {.tokens = layer_tokens, .experts = layer_experts, .chosen = 2},
            .unit = {0, layer_width, Activation::silu, true},
            .operands = DType::bf16,
            .storage = type};
  }
  std::vector<float> read(TypedPtr from, std::int64_t count) const {
    std::vector<float> numbers(static_cast<std::size_t>(count));
    read_typed(backend, from, numbers);
    return numbers;
  }

private:
  std::vector<TypedBlock> blocks_;

  TypedPtr stored(std::int64_t count, std::uint64_t seed) {
    const TypedPtr at
      = blocks_.emplace_back(backend.memory(), type).reserve(count);
    write_typed(backend, bf16_numbers(count, seed, 0.5F), at);
    return at;
  }
  static at::Tensor matrix(TypedPtr from, std::int64_t rows,
                           std::int64_t columns) {
    return at::from_blob(from.data(), {rows, columns},
                         from.type() == DType::f32 ? at::kFloat
                                                   : at::kBFloat16);
  }
};

/// Expects numbers near others: bf16 rounds results, and what they are made of.
void expect_rounded(const std::vector<float>& found,
                    const std::vector<float>& wanted, const char* what) {
  ASSERT_EQ(found.size(), wanted.size());
  float largest = 0;
  for (const float x : wanted)
    largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(found[i], wanted[i], largest / 64) << what << " " << i;
}

void expect_host_results(std::int64_t rows_at_once) {
  const auto logits = dispatch_logits();
  DispatchLayer host(host_backend(), DType::f32);
  const Routing routing = route(host.shape().router, logits.data(), nullptr);
  Workspace workspace;
  run_experts(host.shape(), {host.weights, routing, 0, host.x, host.gate_up},
              host.out, workspace);
  run_experts_backward(
    host.shape(), {host.weights, routing, 0, host.x, host.gate_up},
    host.grads(), host.dy, host.d_weight_S.data(), host.dx, workspace);

  DispatchLayer aten(dispatching_backend(), DType::bf16);
  const ExpertPlaces places(aten.weights);
  const RoutedExperts all = experts_at(aten.shape(), places);
  const ExpertChoice choice = choice_of(aten.shape().router);
  ASSERT_TRUE(aten.backend.dispatches(choice, all));
  std::vector<float> block(
    static_cast<std::size_t>(DeviceRouting::floats(choice, rows_at_once)));
  const DeviceRouting tables
    = DeviceRouting::in(block.data(), choice, rows_at_once);
  std::vector<float*> gate_up_grads;
  std::vector<float*> down_grads;
  for (const ExpertWeights& grad : aten.grads()) {
    gate_up_grads.push_back(grad.gate_up.mutable_data_ptr<float>());
    down_grads.push_back(grad.down.mutable_data_ptr<float>());
  }
  const AtenCounter counter;
  aten.backend.dispatch(logits.data(), nullptr, tables);
  aten.backend.experts_forward(all, tables, aten.x, aten.gate_up, aten.out);
  aten.backend.experts_backward(all, tables, aten.x, aten.gate_up, aten.dy,
                                {gate_up_grads, down_grads},
                                aten.d_weight_S.data(), aten.dx);
  const auto counts = counter.counts();
  EXPECT_EQ(counts.uploads + counts.downloads, 0) << counts.words();

  EXPECT_TRUE(
    std::equal(routing.token_S.begin(), routing.token_S.end(), tables.token_S));
  expect_rounded(aten.read(aten.out, layer_tokens * layer_hidden),
                 host.read(host.out, layer_tokens * layer_hidden), "out");
  expect_rounded(aten.read(aten.dx, layer_tokens * layer_hidden),
                 host.read(host.dx, layer_tokens * layer_hidden), "dx");
  expect_rounded(aten.d_weight_S, host.d_weight_S, "d weight");
  expect_rounded(aten.gate_up_grads, host.gate_up_grads, "d gate and up");
  expect_rounded(aten.down_grads, host.down_grads, "d down");
}

TEST(AtenDispatch, HasTheHostsResultsWithoutACopyToTheHost) {
  expect_host_results(/*rows_at_once=*/1000);
}

TEST(AtenDispatch, PiecesOfSlotsThatSplitExpertsHaveTheSameResults) {
  expect_host_results(/*rows_at_once=*/5);
}

TEST(AtenDispatch, OtherWeightsAndDevicesWithoutTheKernelsAreTheHosts) {
  DispatchLayer aten(dispatching_backend(), DType::bf16);
  MoeWeights weights{.experts = aten.weights};
  EXPECT_TRUE(dispatches(aten.shape(), weights));
  weights.first_expert = 1; // others have the rest
  EXPECT_FALSE(dispatches(aten.shape(), weights));
  weights.first_expert = 0;
  std::swap(weights.experts[1], weights.experts[2]); // no equal distances
  EXPECT_FALSE(dispatches(aten.shape(), weights));
  DispatchLayer wide(dispatching_backend(), DType::f32);
  EXPECT_FALSE(dispatches(wide.shape(), {.experts = wide.weights}));
  MoeShape replaying = aten.shape();
  const std::vector<std::int32_t> chosen(2 * layer_tokens);
  replaying.router.replayed = {chosen.data(), 2};
  EXPECT_FALSE(dispatches(replaying, {.experts = aten.weights}));
}

TEST(AtenDispatch, TheHostReadsTheChoicesOfAllLayersAtOnce) {
  DispatchLayer aten(dispatching_backend(), DType::bf16);
  MoeShape shape = aten.shape();
  const auto logits = dispatch_logits();
  RoutedTokens plain;
  RoutedTokens scored;
  dispatch(shape, {}, logits.data(), plain);
  shape.router.keeps_scores = true;
  dispatch(shape, {}, logits.data(), scored);
  RoutedTokens* const layers[] = {&plain, &scored};
  read_choices(aten.backend, layers);
  const Routing wanted = route(shape.router, logits.data(), nullptr);
  EXPECT_EQ(plain.routing.chosen_TK, wanted.chosen_TK);
  EXPECT_EQ(plain.routing.mismatched_T, wanted.mismatched_T);
  EXPECT_EQ(scored.routing.chosen_TK, wanted.chosen_TK);
  EXPECT_EQ(scored.routing.token_S, wanted.token_S);
  EXPECT_EQ(scored.routing.scores_TE.size(), wanted.scores_TE.size());
  for (std::size_t s = 0; s < wanted.weight_S.size(); ++s)
    EXPECT_NEAR(scored.routing.weight_S[s], wanted.weight_S[s], 1e-6F);
}

} // namespace
} // namespace troupe::models
