// Schedules as data: properties for every number of stages and micro-batches.
#include "models/parallel/pipeline.hpp"

#include <gmock/gmock.h>

#include <set>
#include <tuple>
#include <vector>

namespace troupe::models {
namespace {

using Turns = std::vector<PipelineTurn>;

TEST(Pipeline, OneStageAlternates) {
  EXPECT_EQ(one_forward_one_backward(0, 1, 2),
            (Turns{{false, 0}, {true, 0}, {false, 1}, {true, 1}}));
}

TEST(Pipeline, TheFirstOfTwoStagesIsOneForwardAhead) {
  EXPECT_EQ(
    one_forward_one_backward(0, 2, 3),
    (Turns{
      {false, 0}, {false, 1}, {true, 0}, {false, 2}, {true, 1}, {true, 2}}));
}

// Calls `check(stage, stages, micro-batches)` for many combinations.
template <class Check>
void for_many(const Check& check) {
  for (std::uint32_t i = 0; i < 6 * 6 * 10; ++i)
    if (const std::uint32_t stages = 1 + i / 60; i / 10 % 6 < stages)
      check(i / 10 % 6, stages, i % 10);
}

TEST(Pipeline, EveryMicroBatchRunsForwardThenBackwardOnce) {
  for_many([](std::uint32_t stage, std::uint32_t stages, std::uint32_t count) {
    std::uint32_t forwards = 0;
    std::uint32_t backwards = 0;
    for (const auto& turn : one_forward_one_backward(stage, stages, count)) {
      EXPECT_EQ(turn.micro_batch, turn.backward ? backwards : forwards);
      ++(turn.backward ? backwards : forwards);
      EXPECT_LE(backwards, forwards);
      EXPECT_LE(forwards - backwards, pipeline_depth(stage, stages));
    }
    EXPECT_EQ(forwards, count);
    EXPECT_EQ(backwards, count);
  });
}

// All stages run side by side: a turn is ready when its neighbour's message is
// there; sends never wait.
class Stages {
public:
  Stages(std::uint32_t stages, std::uint32_t count) : at_(stages, 0) {
    for (std::uint32_t s = 0; s < stages; ++s)
      turns_.push_back(one_forward_one_backward(s, stages, count));
  }
  /// Takes each stage's next turn where it is ready; returns how many were.
  std::size_t advance() {
    std::size_t moved = 0;
    for (std::uint32_t s = 0; s < at_.size(); ++s) {
      if (at_[s] == turns_[s].size() || !is_free(s, turns_[s][at_[s]]))
        continue;
      const PipelineTurn turn = turns_[s][at_[s]++];
      done_.insert({s, turn.backward, turn.micro_batch});
      ++moved;
    }
    return moved;
  }
  std::size_t num_done() const {
    return done_.size();
  }

private:
  bool is_free(std::uint32_t s, const PipelineTurn& turn) const {
    if (turn.backward)
      return s + 1 == at_.size()
             || done_.contains({s + 1, true, turn.micro_batch});
    return s == 0 || done_.contains({s - 1, false, turn.micro_batch});
  }

  std::vector<Turns> turns_;
  std::vector<std::size_t> at_;
  std::set<std::tuple<std::uint32_t, bool, std::uint32_t>> done_;
};

TEST(Pipeline, NoStageWaitsForever) {
  for (std::uint32_t stages = 1; stages <= 6; ++stages)
    for (std::uint32_t count = 0; count <= 9; ++count) {
      Stages all(stages, count);
      while (all.advance() > 0)
        ;
      EXPECT_EQ(all.num_done(), std::size_t{2} * stages * count);
    }
}

} // namespace
} // namespace troupe::models
