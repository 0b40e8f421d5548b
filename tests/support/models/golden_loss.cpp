#include "golden_loss.hpp"

#include "models/kernels/workspace.hpp"
#include "models/parallel/parameters.hpp"
#include "models/parallel/run_context.hpp"

#include "backend_support.hpp"
#include "golden.hpp"

#include <algorithm>
#include <span>

namespace troupe::testing {

using models::Plane;

GoldenLoss::GoldenLoss(const std::filesystem::path& folder) {
  const GoldenTensors io = read_golden(folder / "io.safetensors");
  ids_ = io.at("tokens").ints();
  const auto cu = io.at("cu_seqlens").ints();
  std::vector<std::span<const std::int32_t>> sequences;
  for (std::size_t i = 0; i + 1 < cu.size(); ++i) {
    sequences.emplace_back(ids_.data() + cu[i], ids_.data() + cu[i + 1]);
    for (std::int64_t t = cu[i]; t + 1 < cu[i + 1]; ++t) {
      wanted_.positions_R.push_back(t);
      wanted_.targets_R.push_back(ids_[static_cast<std::size_t>(t) + 1]);
    }
  }
  batch_ = models::pack(sequences);
}

double GoldenLoss::run(models::Engine& engine, const models::Weights& grads,
                       Options options) const {
  const auto cleared = engine.parameters().overwrite(Plane::grad);
  std::ranges::fill(cleared.bytes(), std::byte{0});
  cleared.put_back();
  const models::Transformer& loaded = engine.transformer();
  models::Backend& backend = backend_under_test();
  models::RopeTables rope(loaded.shape, backend);
  rope.grow(256);
  models::Transformer model{loaded.shape, loaded.weights, rope};
  model.backend = &backend;
  models::Workspace workspace(backend.memory());
  models::Saved saved;
  saved.recompute = options.recompute;
  const models::RunContext context;
  const models::TypedPtr hidden
    = forward(model, batch_, context, workspace, &saved);
  models::VocabularyHead head{loaded.weights.head};
  head.cap = loaded.shape.caps.logits;
  head.temperature = loaded.shape.multipliers.logits;
  head.operands = loaded.weights.operands;
  head.backend = &backend;
  const auto found
    = token_statistics(head, hidden, wanted_, workspace, options.keep_logits);
  const auto count = static_cast<std::size_t>(wanted_.size());
  const auto logprobs = backend.read(found.logprobs_R, wanted_.size());
  const auto entropy = backend.read(found.entropy_R, wanted_.size());
  const double share = 1.0 / static_cast<double>(count);
  double loss = 0;
  for (std::size_t r = 0; r < count; ++r)
    loss += share * (logprobs.floats()[r] + 0.1 * entropy.floats()[r]);
  const std::vector<float> d_logprobs(count, static_cast<float>(share));
  const std::vector<float> d_entropy(count, static_cast<float>(0.1 * share));
  const std::int64_t floats = hidden_floats(model, batch_, context);
  const models::TypedPtr d_hidden = workspace.take(floats, hidden.type());
  backend.fill(d_hidden, floats, 0.0F);
  token_statistics_backward(head, hidden, wanted_, found,
                            {d_logprobs.data(), d_entropy.data()}, d_hidden,
                            grads.head, workspace);
  backward(model, batch_, saved, d_hidden, grads, context, workspace);
  backend.wait();
  return loss;
}

} // namespace troupe::testing
