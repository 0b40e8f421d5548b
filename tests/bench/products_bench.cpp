// The products of a training step on the card's shapes, one by one: GFLOP/s of
// the products that the model runs, beside those of the fp32 kernels.
#include "config/base/dtype.hpp"
#include "config/model/model_shape.hpp"
#include "models/kernels/gemm.hpp"

#include "bench.hpp"

#include <random>

namespace troupe::bench {
namespace {

using models::GemmOptions;

/// A weight [out, in] of the stack.
struct Linear {
  const char* name;
  std::int64_t out = 0;
  std::int64_t in = 0;
};

std::vector<Linear> linears_of(const ModelShape& shape) {
  const std::int64_t qkv
    = (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim;
  return {{"qkv", qkv, shape.hidden_size},
          {"o", shape.hidden_size, shape.num_heads * shape.head_dim},
          {"gate_up", 2 * shape.intermediate_size, shape.hidden_size},
          {"down", shape.hidden_size, shape.intermediate_size},
          {"head", shape.vocab_size, shape.hidden_size}};
}

/// Operands of the three products of a weight for `tokens` rows.
class Products {
public:
  Products(const Linear& linear, std::int64_t tokens)
    : linear_(linear),
      tokens_(tokens),
      x_(random(tokens * linear.in)),
      weight_(random(linear.out * linear.in)),
      y_(random(tokens * linear.out)) {}

  void forward(const GemmOptions& options) {
    models::gemm({tokens_, linear_.out, linear_.in}, {x_.data(), linear_.in, 1},
                 {weight_.data(), 1, linear_.in}, {y_.data(), linear_.out},
                 options);
  }
  void grad_input(const GemmOptions& options) {
    models::gemm({tokens_, linear_.in, linear_.out},
                 {y_.data(), linear_.out, 1}, {weight_.data(), linear_.in, 1},
                 {x_.data(), linear_.in}, options);
  }
  void grad_weight(GemmOptions options) {
    options.accumulate = true;
    models::gemm({linear_.out, linear_.in, tokens_},
                 {y_.data(), 1, linear_.out}, {x_.data(), linear_.in, 1},
                 {weight_.data(), linear_.in}, options);
  }
  double flops() const {
    return 2.0 * static_cast<double>(tokens_ * linear_.in * linear_.out);
  }

private:
  static std::vector<float> random(std::int64_t count) {
    static std::mt19937 engine(1);
    std::normal_distribution<float> normal(0.0F, 1e-3F);
    std::vector<float> all(static_cast<std::size_t>(count));
    for (float& x : all)
      x = normal(engine);
    return all;
  }

  Linear linear_;
  std::int64_t tokens_;
  std::vector<float> x_;
  std::vector<float> weight_;
  std::vector<float> y_;
};

nlohmann::json rates_of(Products& products, const Options& bench,
                        const GemmOptions& options) {
  nlohmann::json rates;
  const auto measure = [&](const char* name, auto product) {
    (products.*product)(options);
    std::vector<double> found;
    for (int i = 0; i < bench.runs; ++i)
      found.push_back(1e-9 * products.flops() / seconds_of(bench, [&] {
                        (products.*product)(options);
                      }));
    rates[name] = summary(found)["median"];
  };
  measure("forward", &Products::forward);
  measure("grad_input", &Products::grad_input);
  measure("grad_weight", &Products::grad_weight);
  return rates;
}

} // namespace

nlohmann::json bench_products(const Options& options) {
  const auto card = read_card(options);
  const auto& train = card.at("train");
  const std::int64_t tokens = train.at("batch").get<std::int64_t>()
                              * train.at("seq_len").get<std::int64_t>();
  nlohmann::json rows = nlohmann::json::array();
  for (const Linear& linear : linears_of(shape_of(card))) {
    Products products(linear, tokens);
    const DType operands = dtype_of(options);
    rows.push_back(
      {{"weight", linear.name},
       {"out", linear.out},
       {"in", linear.in},
       {"gflops",
        rates_of(products, options, {.operands = operands, .parts = true})},
       {"whole_gflops", rates_of(products, options, {.operands = operands})}});
  }
  return {{"tokens", tokens}, {"rows", rows}};
}

} // namespace troupe::bench
