// On-policy distillation through the engine under every strategy against one
// device, and against a loss over whole distributions (I1).
#include "config/base/error.hpp"
#include "models/engine/engine.hpp"
#include "models/parallel/parameters.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace troupe::models {
namespace {

using troupe::testing::first_samples;
using troupe::testing::ParallelReplica;
using troupe::testing::random_responses;
using troupe::testing::TempFolder;
using troupe::testing::wide_shape;
using troupe::testing::write_random_model;

constexpr std::int64_t top_k = 5;

class Distilled : public ::testing::TestWithParam<const char*> {
protected:
  Distilled() {
    write_random_model(folder_ / "actor", wide_shape(), 1);
    write_random_model(folder_ / "teacher", wide_shape(), 2);
  }
  Engine::Spec spec(const char* role) const {
    return troupe::testing::trained_actor(folder_ / role);
  }
  // Responses with the teacher's keys, as a workflow names them.
  net::Rows scored(ParallelReplica& teacher, std::int64_t k) const {
    net::Rows rows = responses_;
    net::Rows found = teacher.infer("top_logprobs", rows,
                                    {.top_k = k, .micro_batch_tokens = 40});
    for (const auto& [from, to] :
         {std::pair{"top_ids", "teacher_ids"},
          std::pair{"top_logprobs", "teacher_logprobs"}}) {
      net::Column column = found.at(from);
      column.key = to;
      rows.add(std::move(column));
    }
    return rows;
  }
  static TrainSpec train(double beta) {
    TrainSpec train;
    train.fn = "distillation_loss";
    train.mini_batches = {first_samples(12)};
    train.micro_batch_tokens = 40;
    train.loss.distillation_beta = beta;
    return train;
  }

  TempFolder folder_;
  net::Rows responses_ = random_responses(3, 4, 75, 14, 5);
};

TEST_P(Distilled, TeachersLikeliestTokensAreThoseOfOneDevice_I1) {
  ParallelReplica alone(spec("teacher"), "d1");
  ParallelReplica split(spec("teacher"), GetParam());
  const net::Rows want = scored(alone, top_k);
  const net::Rows got = scored(split, top_k);
  EXPECT_THAT(
    got.at("teacher_ids").as<std::int32_t>(),
    ::testing::ElementsAreArray(want.at("teacher_ids").as<std::int32_t>()));
  EXPECT_THAT(got.at("teacher_logprobs").as<float>(),
              ::testing::Pointwise(::testing::FloatNear(1e-5F),
                                   want.at("teacher_logprobs").as<float>()));
}

TEST_P(Distilled, TrainsLikeOneDevice_I1) {
  ParallelReplica teacher(spec("teacher"), "d1");
  const net::Rows rows = scored(teacher, top_k);
  for (const double beta : {0.0, 0.5, 1.0}) {
    ParallelReplica alone(spec("actor"), "d1");
    ParallelReplica split(spec("actor"), GetParam());
    const MetricSums want = alone.train(train(beta), rows);
    const MetricSums got = split.train(train(beta), rows);
    for (const char* name :
         {"actor/distillation_loss", "actor/teacher_top_mass",
          "actor/student_top_mass", "actor/entropy", "actor/grad_norm"})
      EXPECT_NEAR(got.value(name), want.value(name),
                  1e-5 * std::max(1.0, want.value(name)))
        << name << " " << beta;
    const auto want_grad = alone.plane(Plane::grad);
    for (const auto& [name, values] : split.plane(Plane::grad))
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(values[i], want_grad.at(name)[i], 1e-5) << name << " " << i;
  }
}
INSTANTIATE_TEST_SUITE_P(Strategies, Distilled,
                         ::testing::Values("d2", "t2", "t4", "p2", "d2t2s",
                                           "d2p2z1", "d2z3", "d2p2t2z3s",
                                           "c2t2"),
                         [](const auto& test) {
                           return std::string(test.param);
                         });

class DistilledAlone : public Distilled {};

TEST_P(DistilledAlone, LosesAndGainsNothingAgainstItself) {
  ParallelReplica actor(spec("actor"), GetParam());
  const net::Rows rows = scored(actor, top_k);
  const MetricSums found = actor.train(train(1), rows);
  EXPECT_LT(found.value("actor/distillation_loss"), 1e-6);
  EXPECT_LT(found.value("actor/grad_norm"), 1e-4);
  EXPECT_NEAR(found.value("actor/student_top_mass"),
              found.value("actor/teacher_top_mass"), 1e-6);
}

TEST_P(DistilledAlone, AgreesMoreAfterEachStep) {
  ParallelReplica teacher(spec("teacher"), "d1");
  const net::Rows rows = scored(teacher, 75);
  for (const double beta : {0.0, 1.0}) {
    ParallelReplica actor(spec("actor"), GetParam());
    double before
      = actor.train(train(beta), rows).value("actor/distillation_loss");
    for (int step = 0; step < 4; ++step) {
      const double now
        = actor.train(train(beta), rows).value("actor/distillation_loss");
      EXPECT_LT(now, before) << beta;
      before = now;
    }
  }
}

TEST_P(DistilledAlone, IdsOutsideOfTheVocabularyAreAMistakeOfTheUser) {
  ParallelReplica teacher(spec("teacher"), "d1");
  const net::Rows good = scored(teacher, top_k);
  net::Rows rows = responses_;
  net::Column ids = good.at("teacher_ids");
  ids.as<std::int32_t>()[0] = 75;
  rows.add(std::move(ids));
  rows.add(good.at("teacher_logprobs"));
  ParallelReplica actor(spec("actor"), GetParam());
  EXPECT_THROW(actor.train(train(1), rows), ConfigError);
}
INSTANTIATE_TEST_SUITE_P(OneDevice, DistilledAlone, ::testing::Values("d1"));

} // namespace
} // namespace troupe::models
