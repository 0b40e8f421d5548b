#include "plans/cost/realhf_flops.hpp"

#include <algorithm>

namespace troupe::plans {

namespace {

struct RealShape {
  double layers, hidden, inner, vocab;
};

double real_forward(const RealShape& m, double tokens, double squares) {
  return 2 * m.layers
           * (4 * tokens * m.hidden * m.hidden + 2 * squares * m.hidden
              + 3 * tokens * m.hidden * m.inner)
         + 4 * tokens * m.vocab * m.hidden;
}

/// Returns the intermediate size that a token passes in the last layer.
double used_width(const ModelShape& shape) {
  const auto width = shape.mlp_width(shape.num_layers - 1);
  return double(width + shape.experts.width * shape.experts.per_token);
}

/// A forward over the prompts, then one token after the other.
double real_generation(const RealShape& m, double samples, double prompt,
                       double response) {
  const auto context = response * prompt + response * (response - 1) / 2;
  return real_forward(m, samples * prompt, samples * prompt * prompt)
         + real_forward(m, samples * response, samples * context);
}

} // namespace

double realhf_flops(const PlanProblem& problem) {
  constexpr double forwards_of_training = 4;
  const auto& lengths = problem.lengths;
  const double samples = problem.sizes.samples_per_step;
  const auto tokens = samples * lengths.sequence_mean();
  const auto squares = tokens * lengths.attention_length();
  double sum = 0;
  for (const auto& call : problem.workflow.calls) {
    const auto found = problem.shapes.find(call.role);
    if (found == problem.shapes.end())
      continue;
    const auto& shape = found->second;
    const RealShape real{double(shape.num_layers), double(shape.hidden_size),
                         used_width(shape), double(shape.vocab_size)};
    if (call.kind == CallKind::generate)
      sum += real_generation(real, samples, lengths.prompt(), lengths.mean());
    else
      sum += real_forward(real, tokens, squares)
             * (call.kind == CallKind::train ? forwards_of_training : 1.0);
  }
  return sum;
}

} // namespace troupe::plans
