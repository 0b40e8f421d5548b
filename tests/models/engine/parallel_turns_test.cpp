// Conversations under every strategy (I1, I2), and how they are trained: the
// log-probabilities of the turns, and a loss over the model's tokens only.
#include "models/engine/conversation.hpp"
#include "models/parallel/local_model.hpp"

#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/generation_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/parallel_support.hpp"
#include "tests/support/models/turns_support.hpp"
#include <gmock/gmock.h>

#include <map>

namespace troupe::models {
namespace {

using troupe::testing::Ids;
using troupe::testing::Leader;
using troupe::testing::mixed_prompts;
using troupe::testing::ParallelReplica;
using troupe::testing::prompt_rows;
using troupe::testing::Talk;
using troupe::testing::talking_options;

class ParallelTurns : public ::testing::TestWithParam<const char*> {
protected:
  Engine::Spec spec() const {
    const auto folder = folder_ / "model";
    ModelShape shape = troupe::testing::small_shape();
    shape.num_layers = 4;
    shape.num_heads = 4;
    shape.num_kv_heads = 2;
    shape.head_dim = 8;
    shape.hidden_size = 32;
    shape.vocab_size = 75;
    if (!std::filesystem::exists(folder))
      troupe::testing::write_random_model(folder, shape, 1);
    return troupe::testing::trained_actor(folder);
  }
  /// The leaders and the prompts of each dp rank.
  struct Led {
    Led(std::uint32_t dp, std::uint32_t speakers) {
      const auto prompts = mixed_prompts();
      for (std::uint32_t d = 0; d < dp; ++d) {
        const auto per = prompts.size() / dp;
        const std::vector<Ids> own(
          prompts.begin() + static_cast<std::ptrdiff_t>(d * per),
          prompts.begin() + static_cast<std::ptrdiff_t>((d + 1) * per));
        const auto first = static_cast<std::uint32_t>(d * per);
        leaders.push_back(std::make_unique<Leader>(own, 3, first));
        leaders.back()->speakers = speakers;
        leaders.back()->begin();
        rows.push_back(prompt_rows(own, first));
      }
    }
    /// Returns the queue of the first device of dp rank `d`; null on others.
    TurnQueue* queue(const Engine& engine, std::uint32_t d) const {
      const auto& where = engine.part().where;
      return where.tp == 0 && where.pp == 0 ? &leaders[d]->queue() : nullptr;
    }
    std::map<std::uint32_t, Talk> talks() const {
      std::map<std::uint32_t, Talk> all;
      for (const auto& leader : leaders)
        all.insert(leader->talks().begin(), leader->talks().end());
      return all;
    }

    std::vector<std::unique_ptr<Leader>> leaders;
    std::vector<net::Rows> rows;
  };

  static GenerateOptions crowded() {
    auto options = talking_options();
    options.max_sequences = 2; // more conversations than slots
    return options;
  }
  /// Returns the conversations of all dp ranks.
  std::map<std::uint32_t, Talk> talk(const char* strategy) {
    ParallelReplica replica(spec(), strategy);
    const Led led(replica.strategy().dp, 1);
    const auto options = crowded();
    replica.run([&](Engine& engine, RunContext& context, std::uint32_t d) {
      engine.converse(led.rows[d], options, led.queue(engine, d), context);
    });
    return led.talks();
  }
  /// Returns those of two models, the second one frozen.
  std::map<std::uint32_t, Talk> talk_of_two(const char* strategy) {
    ParallelReplica replica(spec(), strategy);
    auto frozen = spec();
    frozen.role = "opponent";
    frozen.trainable = false;
    ParallelReplica opponent(frozen, strategy);
    const Led led(replica.strategy().dp, 2);
    const auto options = crowded();
    auto others = crowded();
    others.seed += 1;
    replica.run_with(opponent, [&](Engine& engine, RunContext& context,
                                   Engine& other, RunContext& beside,
                                   std::uint32_t d) {
      const std::vector<SpeakingEngine> speakers{{engine, options, context},
                                                 {other, others, beside}};
      converse(speakers, led.rows[d], led.queue(engine, d));
    });
    return led.talks();
  }

  const troupe::testing::TempFolder folder_;
};

TEST_P(ParallelTurns, GiveTheSameTokens_I1_I2) {
  const auto want = talk("d1");
  const auto got = talk(GetParam());
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [sample, said] : want) {
    EXPECT_EQ(got.at(sample).ids, said.ids);
    EXPECT_EQ(got.at(sample).mask, said.mask);
    EXPECT_THAT(
      got.at(sample).logprobs,
      ::testing::Pointwise(::testing::FloatNear(1e-4F), said.logprobs));
  }
}

TEST_P(ParallelTurns, OfTwoModelsAreTheSame_I1_I2) {
  const auto want = talk_of_two("d1");
  const auto got = talk_of_two(GetParam());
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [sample, said] : want) {
    EXPECT_EQ(got.at(sample).ids, said.ids);
    EXPECT_EQ(got.at(sample).mask, said.mask);
    EXPECT_GT(std::ranges::count(said.mask, 2), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, ParallelTurns,
                         ::testing::Values("t2", "p2", "d2", "p2t2", "d2t2",
                                           "d2z3"));

using TrainedTurns = ParallelTurns;

net::Rows rows_of(const std::map<std::uint32_t, Talk>& talks) {
  net::Rows rows;
  std::vector<std::uint32_t> lengths;
  Ids ids;
  std::vector<std::uint8_t> mask;
  for (const auto& [sample, talk] : talks) {
    rows.samples.emplace_back(sample);
    lengths.push_back(static_cast<std::uint32_t>(talk.ids.size()));
    ids.insert(ids.end(), talk.ids.begin(), talk.ids.end());
    mask.insert(mask.end(), talk.mask.begin(), talk.mask.end());
  }
  rows.add(net::make_column("sequence_ids", DType::i32, lengths, ids.data()));
  rows.add(net::make_column("loss_mask", DType::u8, lengths, mask.data()));
  return rows;
}

TEST_P(TrainedTurns, LogprobsAreWhatTrainingRecomputes) {
  const auto talks = talk(GetParam());
  ParallelReplica alone(spec(), "d1");
  const auto again = alone.infer("logprobs", rows_of(talks));
  const auto got = again.at("logprobs").as<float>();
  std::size_t t = 0;
  std::size_t own = 0;
  for (const auto& [sample, talk] : talks)
    for (std::size_t i = 0; i < talk.ids.size(); ++i, ++t) {
      EXPECT_NEAR(got[t], talk.logprobs[i], 1e-4) << "token " << i;
      own += talk.mask[i];
    }
  EXPECT_GT(own, 30U);
}

INSTANTIATE_TEST_SUITE_P(Strategies, TrainedTurns,
                         ::testing::Values("d1", "p2t2"));

TEST_F(ParallelTurns, TheLossIsOverTheModelsTokensOnly) {
  // Tool tokens are read, so they influence later tokens; they are no targets:
  // the loss of a sequence is that of the model's tokens.
  auto talks = talk("d1");
  ParallelReplica replica(spec(), "d1");
  TrainSpec train;
  train.fn = "sft_loss";
  std::vector<SampleId> all;
  for (const auto& [sample, talk] : talks)
    all.emplace_back(sample);
  train.mini_batches = {all};
  const auto sums = replica.train(train, rows_of(talks));
  double nll = 0;
  double own = 0;
  for (const auto& [sample, talk] : talks)
    for (std::size_t i = 0; i < talk.ids.size(); ++i) {
      nll -= talk.logprobs[i];
      own += talk.mask[i];
    }
  EXPECT_EQ(sums.value("train/tokens"), own);
  EXPECT_NEAR(sums.value("train/loss"), nll / own, 1e-4);
}

} // namespace
} // namespace troupe::models
