// The roofline as a test: launches, bytes and copies that stop the host, per
// layer and for the rest of a step, of what a GPU would be given. Counted from
// the operations of AtenBackend on the CPU; a layer is what the second one of a
// model adds to the first. The limits are what the code does today: who lowers
// a count lowers its limit, none of them may rise.
#include "models/gpu/aten_backend.hpp"
#include "models/kernels/workspace.hpp"
#include "models/parallel/parameters.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/decoder.hpp"
#include "models/transformer/transformer.hpp"
#include "models/transformer/vocab_logprobs.hpp"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include "tests/support/models/aten_counter.hpp"

#include <cstring>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {
namespace {

using troupe::testing::AtenCounter;
using troupe::testing::AtenCounts;
using troupe::testing::counted_memory;

/// The cost of work on a GPU.
struct Budget {
  std::int64_t launches = 0;
  double traffic = 0; ///< bytes, as a multiple of the least
  std::int64_t blocking = 0;
};

struct Row {
  const char* what;
  Budget limit;    ///< what the code does today
  const char* aim; ///< launches, traffic, blocking copies
};

// The table of docs/gpu_tests.md.
constexpr Row decode_layer{
  "layer of a decode step", {10, 1.01, 0}, "10, 1.2, 0"};
constexpr Row decode_rest{"rest of a decode step", {4, 1.02, 2}, "none"};
constexpr Row train_layer{
  "layer of a micro-batch", {45, 1.55, 0}, "any, 1.5, 0"};
constexpr Row train_rest{"rest of a micro-batch", {22, 1.78, 10}, "none"};

/// Returns a Llama with grouped heads; sizes are those of 8B divided by 16,
/// but for the number of heads.
ModelShape counted_shape(std::int64_t layers) {
  ModelShape shape;
  shape.family = "llama";
  shape.vocab_size = 8000;
  shape.hidden_size = 256;
  shape.num_layers = layers;
  shape.num_heads = 8;
  shape.num_kv_heads = 2;
  shape.head_dim = 32;
  shape.intermediate_size = 896;
  shape.max_positions = 2048;
  shape.norm_eps = 1e-5;
  return shape;
}

constexpr std::int64_t slots = 2;   // 32 beside 8B
constexpr std::int64_t keys = 1024; // of a sequence that decodes
constexpr std::int64_t sequences = 4;
constexpr std::int64_t length = 128;
constexpr std::int64_t tokens = sequences * length; // 8192 beside 8B

/// Numbers of elements of a layer.
struct Elements {
  std::int64_t h, q, kv, i;

  explicit Elements(const ModelShape& shape)
    : h(shape.hidden_size),
      q(shape.num_heads * shape.head_dim),
      kv(shape.num_kv_heads * shape.head_dim),
      i(shape.intermediate_size) {}
  std::int64_t weights() const {
    return h * (q + 2 * kv) + q * h + 3 * h * i + 2 * h;
  }
  /// Returns the elements that a token's forward pass reads and writes in fused
  /// kernels, without those of attention's keys and values.
  std::int64_t forward() const {
    const std::int64_t norms = 2 * 2 * h;          // x to its norm
    const std::int64_t products = (h + q + 2 * kv) // qkv
                                  + (q + h)        // o
                                  + (h + 2 * i) + (i + h);
    const std::int64_t between = 2 * (q + kv)     // rotation
                                 + 2 * q + 3 * i; // attention, SwiGLU
    const std::int64_t sums = 2 * 3 * h;          // residual streams
    return norms + products + between + sums;
  }
  /// Returns those of its backward pass: two products for each one, gradients
  /// of the norms (dy, x, dx and the stream's gradient), of SwiGLU (gate, up
  /// and d in, their gradients and the product out), of the rotation and of
  /// attention (q, k, v, its output and d of it in, three gradients out).
  std::int64_t backward() const {
    const std::int64_t inputs
      = (q + 2 * kv + h) + (h + q) + (2 * i + h) + (h + i);
    const std::int64_t weights = inputs;
    const std::int64_t norms = 2 * 4 * h;
    const std::int64_t between
      = 2 * (q + kv) + (3 * i + 3 * i) + (q + 2 * kv + 2 * q) + (q + 2 * kv);
    return inputs + weights + norms + between;
  }
};

constexpr std::int64_t bf16_bytes = 2;

/// Returns the least bytes of a layer of a decode step: weights, keys and
/// values once, activations once between fused kernels, all in bf16.
double least_of_decode(const ModelShape& shape) {
  const Elements n(shape);
  return static_cast<double>(
    bf16_bytes
    * (n.weights() + slots * (2 * keys * n.kv + 2 * n.kv + n.forward())));
}

/// Returns the bytes of a layer in torchtitan's form: bf16 weights and
/// activations, flash attention, fused norms, rotation and SwiGLU; nothing is
/// recomputed. Weights are read forward and backward, their gradients written
/// once, all in bf16 (FSDP keeps fp32 masters, which a micro-batch does not
/// touch).
double torchtitan_bytes(const ModelShape& shape) {
  const Elements n(shape);
  return static_cast<double>(
    bf16_bytes
    * (3 * n.weights() + tokens * (n.forward() + 2 * n.kv + n.backward())));
}

/// Returns the least bytes of the head, one row each: embedding and stream,
/// norm, weights once, logits written and read once in fp32.
double least_of_rest(const ModelShape& shape, std::int64_t rows,
                     std::int64_t passes) {
  const std::int64_t h = shape.hidden_size;
  const std::int64_t v = shape.vocab_size;
  return static_cast<double>(
    passes * (bf16_bytes * (v * h + rows * 6 * h) + rows * v * 2 * 4));
}

/// Flash attention that computes nothing and counts what the kernels of a GPU
/// do: one launch forward; backward three, and two sums over the heads that
/// share keys.
class CountedFlash final : public FlashKernel {
public:
  at::ScalarType operands() const override {
    return at::kBFloat16;
  }
  FlashContext forward(const FlashCall& call) const override {
    const at::Tensor out = like(call.queries_TAD);
    const at::Tensor lse
      = zeros({call.queries_TAD.size(1), call.queries_TAD.size(0)}, at::kFloat);
    AtenCounter::add("flash", 1,
                     bytes(call.queries_TAD) * 2 + bytes(call.keys_KGD) * 2
                       + bytes(lse));
    return {out, lse};
  }
  FlashGradients backward(const FlashCall& call, const FlashContext& found,
                          const at::Tensor& d_context_TAD) const override {
    const std::int64_t q = bytes(call.queries_TAD);
    const std::int64_t k = bytes(call.keys_KGD);
    AtenCounter::add("flash_backward", 5,
                     3 * q + 2 * k + bytes(found.lse_AT) // in
                       + q + 2 * q                       // dq, dk and dv of all
                       + 2 * q + 2 * k);                 // their sums
    return {like(d_context_TAD), like(call.keys_KGD), like(call.values_KGD)};
  }

private:
  static std::int64_t bytes(const at::Tensor& x) {
    return x.numel() * x.element_size();
  }
  /// Returns zeros without an operation that would be counted.
  static at::Tensor zeros(at::IntArrayRef sizes, at::ScalarType type) {
    const at::Tensor x = at::empty(sizes, type);
    std::memset(x.mutable_data_ptr(), 0, x.nbytes());
    return x;
  }
  static at::Tensor like(const at::Tensor& x) {
    return zeros(x.sizes(), x.scalar_type());
  }
};

/// A model of zeros with its gradients.
struct Counted {
  ModelShape shape;
  Parameters parameters;
  Weights weights;
  Weights grads;
  CountedFlash flash;
  AtenBackend backend{at::kCPU,
                      {.memory = &counted_memory(),
                       .flash = &flash,
                       .bf16_storage = DType::bf16,
                       .own_kernels = true}};

  explicit Counted(std::int64_t layers)
    : shape(counted_shape(layers)),
      parameters(troupe::parameters(shape), true, &counted_memory()),
      weights(weights_of(shape, parameters, Plane::weight)),
      grads(weights_of(shape, parameters, Plane::grad)) {
    weights.operands = DType::bf16;
  }
};

AtenCounts decode_step(std::int64_t layers) {
  Counted model(layers);
  Decoder decoder(model.shape, model.weights, model.backend);
  decoder.pack();
  KvCache cache(model.shape, model.backend, model.backend.storage(DType::bf16));
  cache.reset(slots, 2 * keys);
  std::vector<DecodeToken> row;
  std::vector<std::int64_t> rows;
  std::vector<DrawKey> names;
  for (std::int32_t slot = 0; slot < slots; ++slot) {
    row.push_back({7, cache.take_slot(), keys - 1});
    rows.push_back(slot);
    names.push_back({{1, 2}, 3, 4});
  }
  const RunContext context;
  const auto step = [&] {
    decoder.feed(row, cache, context, {rows, names, {}});
    decoder.drawn();
  };
  step(); // makes room
  const AtenCounter counter;
  step();
  return counter.counts();
}

AtenCounts micro_batch(std::int64_t layers) {
  Counted model(layers);
  RopeTables rope(model.shape, model.backend);
  rope.grow(length);
  Transformer stack{model.shape, model.weights, rope};
  stack.backend = &model.backend;
  const std::vector<std::int32_t> ids(length, 5);
  const std::vector<std::span<const std::int32_t>> all(sequences, ids);
  const PackedTokens batch = pack(all);
  WantedTokens wanted;
  for (std::int64_t t = 0; t < tokens; ++t) {
    wanted.positions_R.push_back(t);
    wanted.targets_R.push_back(6);
  }
  VocabularyHead head{model.weights.head};
  head.backend = &model.backend;
  head.operands = DType::bf16;
  Workspace workspace(model.backend.memory());
  const RunContext context;
  const auto count = static_cast<std::size_t>(tokens);
  const std::vector<float> d_logprobs(count, 0.5F);
  const auto step = [&] {
    Saved saved;
    const TypedPtr hidden = forward(stack, batch, context, workspace, &saved);
    const auto found
      = token_statistics(head, hidden, wanted, workspace, /*keep_logits=*/true);
    model.backend.read(found.logprobs_R, wanted.size());
    const std::int64_t floats = hidden_floats(stack, batch, context);
    const TypedPtr d_hidden = workspace.take(floats, hidden.type());
    model.backend.fill(d_hidden, floats, 0.0F);
    token_statistics_backward(head, hidden, wanted, found,
                              {d_logprobs.data(), nullptr}, d_hidden,
                              model.grads.head, workspace);
    backward(stack, batch, saved, d_hidden, model.grads, context, workspace);
    workspace.reset();
  };
  const AtenCounter counter;
  step();
  return counter.counts();
}

void expect_within(const Row& row, const AtenCounts& counts, double least) {
  const double traffic = static_cast<double>(counts.bytes) / least;
  const std::int64_t blocking = counts.uploads + counts.downloads;
  const std::string words = std::string(row.what) + ": "
                            + std::to_string(counts.launches) + " launches ("
                            + counts.words() + "), " + std::to_string(traffic)
                            + " times the least, " + std::to_string(blocking)
                            + " blocking copies; the aim is " + row.aim;
  EXPECT_EQ(counts.launches, row.limit.launches) << words;
  EXPECT_LE(traffic, row.limit.traffic) << words;
  EXPECT_EQ(blocking, row.limit.blocking) << words;
  EXPECT_EQ(counts.unknown, std::set<std::string>{})
    << "which costs do they have? tests/support/models/aten_costs.cpp";
}

TEST(AtenCounter, CountsKernelsAndTheirBytesAndNamesWhatItDoesNotKnow) {
  const at::Tensor x = at::empty({8, 4});
  const AtenCounter counter;
  x.narrow(0, 0, 2).t().zero_(); // 2 x 4 floats written
  EXPECT_EQ(counter.counts().words(), "zero 1");
  EXPECT_EQ(counter.counts().bytes, 32);
  x.narrow(0, 0, 2).add_(x.narrow(0, 2, 1).expand({2, 4}));
  EXPECT_EQ(counter.counts().words(), "add 1, zero 1");
  EXPECT_EQ(counter.counts().bytes, 32 + 2 * 32 + 16);
  x.square(); // by its parts
  EXPECT_EQ(counter.counts().words(), "add 1, pow 1, zero 1");
  EXPECT_EQ(counter.counts().unknown, std::set<std::string>{});
  x.cosh();
  EXPECT_EQ(counter.counts().unknown, std::set<std::string>{"cosh"});
}

TEST(AtenCounts, OfADecodeStepAreWithinTheirBudget) {
  const AtenCounts one = decode_step(1);
  const AtenCounts layer = decode_step(2).minus(one);
  const ModelShape shape = counted_shape(1);
  expect_within(decode_layer, layer, least_of_decode(shape));
  expect_within(decode_rest, one.minus(layer), least_of_rest(shape, slots, 1));
}

TEST(AtenCounts, OfAMicroBatchAreWithinTheirBudget) {
  const AtenCounts one = micro_batch(1);
  const AtenCounts layer = micro_batch(2).minus(one);
  const ModelShape shape = counted_shape(1);
  expect_within(train_layer, layer, torchtitan_bytes(shape));
  expect_within(train_rest, one.minus(layer), least_of_rest(shape, tokens, 3));
}

} // namespace
} // namespace troupe::models
