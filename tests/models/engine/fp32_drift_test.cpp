// I1 (a) over 10 steps: the engine drifts from a double-precision run of the
// same recorded samples no more than three times as far as a plain fp32 run of
// the slow reference does. PPO's actor and critic, four samples a step.
#include "models/engine/engine.hpp"
#include "models/parallel/parameters.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/reference.hpp"
#include "tests/support/models/slow_model.hpp"
#include "tests/support/temp_folder.hpp"

#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::column_of;
using troupe::testing::SlowModel;

constexpr std::size_t num_steps = 10;
constexpr std::size_t samples_a_step = 4;
constexpr double allowed_ratio = 3;

using PerSample = std::vector<std::vector<float>>;

/// A recorded run: tokens, and the values that training reads with them, each
/// aligned with the tokens (the first has none).
struct DriftRecording {
  std::vector<std::vector<std::int32_t>> ids;
  std::vector<std::vector<std::uint8_t>> mask;
  PerSample old, target; ///< logprobs and advantages, or values and returns

  net::Rows rows(const char* old_key, const char* target_key,
                 bool one_more_old) const {
    auto padded = old;
    for (auto& own : padded)
      if (one_more_old)
        own.push_back(0); // the value after the last token
    return {testing::first_samples(ids.size()),
            {column_of("sequence_ids", DType::i32, ids),
             column_of("loss_mask", DType::u8, mask),
             column_of(old_key, DType::f32, padded),
             column_of(target_key, DType::f32, target)}};
  }
};

at::Tensor tail_of(const std::vector<float>& values, at::ScalarType type) {
  return at::tensor(at::ArrayRef<float>(values), at::kFloat)
    .slice(0, 1)
    .to(type);
}

class Fp32Drift : public ::testing::Test {
protected:
  void SetUp() override {
    optimizer_.lr = 1e-3;
    optimizer_.schedule = "constant";
    optimizer_.warmup = 0;
  }

  void make_model(bool scalar_head) {
    shape_ = testing::small_shape();
    shape_.scalar_head = scalar_head;
    testing::write_random_model(folder_, shape_, 5);
  }

  /// Random responses with the values that the start weights give them, like a
  /// rollout.
  DriftRecording record(bool scalar_head) {
    const auto rows
      = testing::random_sequences(num_steps * samples_a_step, 75, 24, 11);
    const SlowModel model(folder_, shape_, at::kDouble);
    DriftRecording made;
    const auto& ids = rows.at("sequence_ids");
    const auto& mask = rows.at("loss_mask");
    const auto offsets = ids.offsets();
    for (std::size_t i = 0; i < rows.num_samples(); ++i) {
      const auto own
        = ids.as<std::int32_t>().subspan(offsets[i], ids.lengths[i]);
      const auto owned
        = mask.as<std::uint8_t>().subspan(offsets[i], ids.lengths[i]);
      made.ids.emplace_back(own.begin(), own.end());
      made.mask.emplace_back(owned.begin(), owned.end());
      const auto said = (scalar_head ? model.values(own) : model.logprobs(own))
                          .detach()
                          .to(at::kFloat)
                          .contiguous();
      auto& old = made.old.emplace_back(1, 0.0F);
      old.insert(old.end(), said.data_ptr<float>(),
                 said.data_ptr<float>() + said.numel());
      made.target.push_back(
        testing::random_floats(static_cast<std::int64_t>(own.size()), 100 + i));
    }
    return made;
  }

  struct Run {
    std::vector<double> losses, norms;
    std::map<std::string, at::Tensor> weights;
  };

  Run slow_run(const DriftRecording& made, bool scalar_head,
               at::ScalarType type) {
    SlowModel model(folder_, shape_, type);
    Run run;
    for (std::size_t s = 0; s < num_steps; ++s) {
      at::Tensor sum = at::zeros({}, type);
      double tokens = 0;
      for (std::size_t i = s * samples_a_step; i < (s + 1) * samples_a_step;
           ++i) {
        const auto mask
          = at::tensor(at::ArrayRef<std::uint8_t>(made.mask[i]), at::kByte)
              .slice(0, 1)
              .to(type);
        const auto old = tail_of(made.old[i], type);
        const auto target = tail_of(made.target[i], type);
        const auto now = scalar_head ? model.values(made.ids[i])
                                     : model.logprobs(made.ids[i]);
        sum = sum
              + ((scalar_head ? value_loss(now, old, target)
                              : policy_loss(now, old, target))
                 * mask)
                  .sum();
        tokens += mask.sum().item<double>();
      }
      const at::Tensor loss = sum / tokens;
      loss.backward();
      run.losses.push_back(loss.item<double>());
      run.norms.push_back(model.step(optimizer_));
    }
    for (const auto& [name, weight] : model.weights())
      run.weights[name] = weight.detach().to(at::kDouble);
    return run;
  }

  static at::Tensor policy_loss(const at::Tensor& now, const at::Tensor& old,
                                const at::Tensor& advantage) {
    const auto ratio = at::exp(now - old);
    return -at::minimum(ratio * advantage,
                        at::clamp(ratio, 0.8, 1.2) * advantage);
  }
  static at::Tensor value_loss(const at::Tensor& now, const at::Tensor& old,
                               const at::Tensor& returns) {
    const auto near = at::clamp(now, old - 0.2, old + 0.2);
    return at::maximum(at::square(now - returns), at::square(near - returns))
           * 0.5;
  }

  Run engine_run(const DriftRecording& made, bool scalar_head) {
    Engine::Spec spec;
    spec.folder = folder_;
    spec.role = scalar_head ? "critic" : "actor";
    spec.scalar_head = scalar_head;
    spec.trainable = true;
    spec.optimizer = optimizer_;
    spec.total_optimizer_steps = num_steps;
    Engine engine(spec);
    engine.load_weights();
    const auto rows = scalar_head
                        ? made.rows("values", "returns", /*one_more_old=*/true)
                        : made.rows("logprobs", "advantages", false);
    Run run;
    for (std::size_t s = 0; s < num_steps; ++s) {
      TrainSpec step;
      step.fn = scalar_head ? "ppo_critic_loss" : "ppo_actor_loss";
      step.micro_batches = 2;
      auto& batch = step.mini_batches.emplace_back();
      for (std::size_t i = 0; i < samples_a_step; ++i)
        batch.emplace_back(s * samples_a_step + i);
      RunContext context;
      const MetricSums sums = engine.train(step, rows, context);
      const std::string prefix = spec.role + "/";
      run.losses.push_back(
        sums.value(prefix + (scalar_head ? "vf_loss" : "pg_loss")));
      run.norms.push_back(sums.value(prefix + "grad_norm"));
    }
    const Parameters& parameters = engine.parameters();
    for (std::size_t i = 0; i < parameters.shapes().size(); ++i)
      run.weights[parameters.shapes()[i].name]
        = parameters.view(i, Plane::weight).to(at::kDouble);
    return run;
  }

  static double drift(const std::vector<double>& a,
                      const std::vector<double>& b) {
    double square = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      square += (a[i] - b[i]) * (a[i] - b[i]);
    return std::sqrt(square);
  }
  static double drift(const std::map<std::string, at::Tensor>& a,
                      const std::map<std::string, at::Tensor>& b) {
    double square = 0;
    for (const auto& [name, tensor] : a)
      square += at::square(tensor - b.at(name).view(tensor.sizes()))
                  .sum()
                  .item<double>();
    return std::sqrt(square);
  }

  void check(bool scalar_head) {
    make_model(scalar_head);
    const auto made = record(scalar_head);
    const Run exact = slow_run(made, scalar_head, at::kDouble);
    const Run plain = slow_run(made, scalar_head, at::kFloat);
    const Run ours = engine_run(made, scalar_head);
    const auto compare = [](const char* what, double own, double reference) {
      RecordProperty(what, std::to_string(own / reference));
      EXPECT_GT(reference, 0) << what;
      EXPECT_LE(own, allowed_ratio * reference) << what;
    };
    compare("losses", drift(ours.losses, exact.losses),
            drift(plain.losses, exact.losses));
    compare("norms", drift(ours.norms, exact.norms),
            drift(plain.norms, exact.norms));
    compare("weights", drift(ours.weights, exact.weights),
            drift(plain.weights, exact.weights));
    EXPECT_GT(std::abs(exact.losses.front() - exact.losses.back()), 1e-3)
      << "nothing was trained";
  }

  support::TempFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
  ModelShape shape_;
  OptimizerSettings optimizer_;
};

TEST_F(Fp32Drift, ActorDriftsAtMostThreeTimesAsFarAsAPlainFp32Run_I1) {
  check(/*scalar_head=*/false);
}

TEST_F(Fp32Drift, CriticDriftsAtMostThreeTimesAsFarAsAPlainFp32Run_I1) {
  check(/*scalar_head=*/true);
}

} // namespace
} // namespace troupe::models
