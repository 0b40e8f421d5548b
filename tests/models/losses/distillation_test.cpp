// The divergence of a student from a teacher against TRL's GKDTrainer, and what
// must hold for any split of the vocabulary and of the batch.
#include "models/losses/distillation.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/models/golden.hpp"
#include "tests/support/places.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace troupe::models {
namespace {

nlohmann::json golden_distillation() {
  return troupe::testing::read_golden_meta(support::source_folder()
                                           / "tests/golden/data/distillation");
}

at::Tensor distillation_tensor(const nlohmann::json& values,
                               at::IntArrayRef sizes) {
  return at::tensor(values.get<std::vector<float>>(), at::kFloat).view(sizes);
}

LossSettings with_beta(double beta) {
  LossSettings settings;
  settings.distillation_beta = beta;
  return settings;
}

// A batch of one sequence whose logits are autograd's leaf.
struct DistillationCase {
  at::Tensor student_TV;
  TrainBatch batch;

  DistillationCase(at::Tensor student, const at::Tensor& teacher_TV,
                   at::Tensor mask_T, std::int64_t top_k)
    : student_TV(std::move(student)) {
    student_TV.set_requires_grad(true);
    const at::Tensor teacher = at::log_softmax(teacher_TV, 1);
    const auto [logprobs_TK, ids_TK] = at::topk(teacher, top_k, 1);
    const at::Tensor own = at::log_softmax(student_TV, 1);
    batch.cu_seqlens = {0, student_TV.size(0)};
    batch.mask_T = std::move(mask_T);
    batch.picked_TK = own.gather(1, ids_TK);
    batch.entropy_T = -(own.exp() * own).sum(1).detach();
    batch.columns["teacher_logprobs"] = logprobs_TK;
  }
  LossResult run(double beta) const {
    return distillation_loss(
      batch, {.tokens = batch.mask_T.sum().item<double>(), .sequences = 1},
      with_beta(beta));
  }
};

TEST(GoldenDistillation, HasTrlsValueAndGradient) {
  const nlohmann::json file = golden_distillation();
  const std::vector<std::int64_t> shape{file["tokens"], file["vocabulary"]};
  for (const nlohmann::json& want : file["cases"]) {
    SCOPED_TRACE(want["beta"].dump() + " " + want["top_k"].dump());
    const DistillationCase c(distillation_tensor(file["student"], shape),
                             distillation_tensor(file["teacher"], shape),
                             distillation_tensor(file["mask"], {shape[0]}),
                             want["top_k"]);
    const LossResult found = c.run(want["beta"]);
    EXPECT_NEAR(found.loss.item<double>(), want["loss"], 1e-5);
    EXPECT_NEAR(found.sums.value("actor/distillation_loss"), want["loss"],
                1e-5);
    found.loss.backward();
    const at::Tensor d_TV = c.student_TV.grad().contiguous();
    const auto gradient = want["gradient"].get<std::vector<float>>();
    for (std::size_t i = 0; i < gradient.size(); ++i)
      EXPECT_NEAR(d_TV.const_data_ptr<float>()[i], gradient[i], 1e-5) << i;
  }
}

TEST(Distillation, IsExactlyZeroWithoutGradientWhereBothAgree) {
  const nlohmann::json file = golden_distillation();
  const at::Tensor same_TV = distillation_tensor(file["teacher"], {4, 7});
  for (const double beta : {0.0, 0.5, 1.0})
    for (const std::int64_t top_k : {2, 7}) {
      const DistillationCase c(same_TV.clone(), same_TV, at::ones({4}), top_k);
      const LossResult found = c.run(beta);
      EXPECT_NEAR(found.loss.item<double>(), 0, 1e-12);
      found.loss.backward();
      EXPECT_LT(c.student_TV.grad().abs().max().item<float>(), 1e-6F);
    }
}

TEST(Distillation, FewerTokensGiveALowerBoundOfTheDivergence) {
  const nlohmann::json file = golden_distillation();
  for (const double beta : {0.0, 0.3, 1.0}) {
    double before = 0;
    for (std::int64_t top_k = 1; top_k <= 7; ++top_k) {
      const DistillationCase c(distillation_tensor(file["student"], {4, 7}),
                               distillation_tensor(file["teacher"], {4, 7}),
                               at::ones({4}), top_k);
      const double loss = c.run(beta).loss.item<double>();
      EXPECT_GE(loss, before - 1e-6) << beta << " " << top_k;
      before = loss;
    }
    EXPECT_GT(before, 0.1);
  }
}

TEST(Distillation, ReportsHowMuchOfBothDistributionsWasCompared) {
  const nlohmann::json file = golden_distillation();
  const DistillationCase c(distillation_tensor(file["student"], {4, 7}),
                           distillation_tensor(file["teacher"], {4, 7}),
                           at::ones({4}), 3);
  const LossResult found = c.run(1);
  const double teacher = found.sums.value("actor/teacher_top_mass");
  const double student = found.sums.value("actor/student_top_mass");
  EXPECT_GT(teacher, 0.7);
  EXPECT_LT(teacher, 1.0);
  EXPECT_LT(student, teacher);
  EXPECT_NEAR(student, c.batch.picked_TK.exp().sum().item<double>() / 4, 1e-6);
  EXPECT_GT(found.sums.value("actor/entropy"), 0);
}

} // namespace
} // namespace troupe::models
