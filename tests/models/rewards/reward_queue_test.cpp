// Streamed responses, and the call that requests their scores: in any order,
// with any failure, it gets what it would have got without streaming.
#include "models/rewards/reward_queue.hpp"

#include <gtest/gtest.h>

namespace troupe::models {
namespace {

/// Takes all that is there, then scores the number in each response.
class NumberRewarder : public Rewarder {
public:
  void score(const RewardRound& round) override {
    std::size_t number = 0;
    for (auto items = round.take(); !items.empty(); items = round.take()) {
      if (fails)
        throw std::runtime_error("the scorer broke");
      for (const auto& item : items) {
        asked.push_back(item.response);
        const double value = std::stod(item.response);
        if (value < 0)
          round.on_unmatched("a stray");
        round.on_score(number++, {.parts = {{"score", value}}, .error = ""});
        if (on_scored)
          on_scored(item);
      }
    }
  }
  std::vector<std::string> asked;
  bool fails = false;
  std::function<void(const RewardItem&)> on_scored; ///< while it scores
};

/// The result of a call.
struct Told {
  bool told = false;
  std::vector<double> scores;
  std::vector<std::string> unmatched;
  std::string error;
};

class RewardQueueTest : public ::testing::Test {
protected:
  using Texts = std::map<std::uint32_t, std::string>; ///< by sample

  RewardQueue::Batch batch(const Texts& texts, std::uint32_t step) const {
    RewardQueue::Batch batch{
      .call = "rewards", .step = StepId(step), .rows = {}};
    std::vector<std::uint32_t> lengths;
    std::string packed;
    for (const auto& [sample, text] : texts) {
      batch.rows.samples.emplace_back(sample);
      lengths.push_back(static_cast<std::uint32_t>(text.size()));
      packed += text;
    }
    batch.rows.add(net::make_column("text", DType::u8, lengths, packed.data()));
    return batch;
  }
  void offer(const Texts& texts, std::uint32_t step = 0) {
    queue.put(batch(texts, step));
  }
  std::shared_ptr<Told> ask(const Texts& texts, std::uint32_t step = 0) {
    auto told = std::make_shared<Told>();
    auto asked = batch(texts, step);
    asked.on_scored = [told](const GetScored& scored) {
      EXPECT_FALSE(told->told) << "told twice";
      told->told = true;
      try {
        const auto [items, replies] = scored();
        for (const auto& score : replies.scores)
          told->scores.push_back(score.parts.at(0).second);
        told->unmatched = replies.unmatched;
      } catch (const std::exception& error) {
        told->error = error.what();
      }
    };
    queue.put(std::move(asked));
    return told;
  }
  void serve() {
    queue.serve(nullptr, [this] { ++progress; });
  }
  static std::vector<RewardItem> read(const RewardQueue::Batch& batch) {
    const auto& column = batch.rows.at("text");
    const auto bytes = column.as<std::uint8_t>();
    const auto offsets = column.offsets();
    std::vector<RewardItem> items;
    for (std::size_t i = 0; i < batch.rows.num_samples(); ++i) {
      const auto text = bytes.subspan(offsets[i], offsets[i + 1] - offsets[i]);
      items.push_back({.response = {text.begin(), text.end()}});
    }
    return items;
  }

  NumberRewarder* rewarder = nullptr; ///< once a batch was served
  int progress = 0;
  std::function<void(NumberRewarder&)> prepare = [](NumberRewarder&) {};
  RewardQueue queue{read, [this] {
                      auto made = std::make_unique<NumberRewarder>();
                      rewarder = made.get();
                      prepare(*made);
                      return made;
                    }};
};

using Scores = std::vector<double>;

TEST_F(RewardQueueTest, ACallGetsStreamedAndOtherSamplesScoredOnce) {
  offer({{2, "20"}});
  offer({{0, "5"}});
  serve();
  EXPECT_EQ(progress, 2);
  const auto told = ask({{0, "5"}, {1, "10"}, {2, "20"}});
  serve();
  EXPECT_EQ(told->scores, (Scores{5, 10, 20}));
  EXPECT_EQ(rewarder->asked, (std::vector<std::string>{"20", "5", "10"}));
}

TEST_F(RewardQueueTest, ACallDuringARoundWaitsForScoresUnderWay) {
  std::shared_ptr<Told> told;
  prepare = [&](NumberRewarder& made) {
    made.on_scored = [&](const RewardItem& item) {
      if (item.response == "1")
        told = ask({{0, "1"}, {1, "2"}});
      else
        EXPECT_FALSE(told->told);
    };
  };
  offer({{0, "1"}, {1, "2"}});
  serve();
  EXPECT_EQ(told->scores, (Scores{1, 2}));
  EXPECT_EQ(rewarder->asked.size(), 2U);
}

TEST_F(RewardQueueTest, AChangedResponseIsScoredAgain) {
  offer({{0, "5"}});
  serve();
  const auto told = ask({{0, "6"}});
  serve();
  EXPECT_EQ(told->scores, Scores{6});
}

TEST_F(RewardQueueTest, ARepeatedCallIsScoredAgain) {
  offer({{0, "5"}});
  for (int attempt = 0; attempt < 2; ++attempt) {
    const auto told = ask({{0, "5"}});
    serve();
    EXPECT_EQ(told->scores, Scores{5});
  }
  EXPECT_EQ(rewarder->asked.size(), 2U);
}

TEST_F(RewardQueueTest, StepsAreKeptApartAndEarlierOnesAreDropped) {
  offer({{0, "1"}}, 0);
  offer({{0, "2"}}, 1);
  serve();
  const auto told = ask({{0, "2"}}, 1);
  serve();
  EXPECT_EQ(told->scores, Scores{2});
  const auto late = ask({{0, "1"}}, 0);
  serve();
  EXPECT_EQ(late->scores, Scores{1});
  EXPECT_EQ(rewarder->asked.size(), 3U);
}

TEST_F(RewardQueueTest, UnmatchedRepliesAreReportedOnceByTheNextCall) {
  offer({{0, "-1"}});
  serve();
  const auto first = ask({{0, "-1"}});
  const auto second = ask({{1, "3"}});
  serve();
  EXPECT_EQ(first->unmatched.size(), 1U);
  EXPECT_TRUE(second->unmatched.empty());
}

TEST_F(RewardQueueTest, AScorerFailureFailsOnlyTheNextCall) {
  prepare = [](NumberRewarder& made) { made.fails = true; };
  offer({{0, "5"}});
  serve();
  rewarder->fails = false;
  offer({{1, "6"}});
  const auto told = ask({{0, "5"}, {1, "6"}});
  serve();
  EXPECT_EQ(told->error, "the scorer broke");
  const auto again = ask({{0, "5"}, {1, "6"}});
  serve();
  EXPECT_EQ(again->scores, (Scores{5, 6}));
}

TEST_F(RewardQueueTest, AScorerThatCannotBeMadeFailsTheCall) {
  prepare = [](NumberRewarder&) { throw std::runtime_error("no program"); };
  const auto told = ask({{0, "5"}});
  serve();
  EXPECT_EQ(told->error, "no program");
}

TEST_F(RewardQueueTest, OneServeRequestCoversAllWaitingSamples) {
  EXPECT_EQ(queue.next(), std::nullopt);
  EXPECT_TRUE(queue.put(batch({{0, "1"}}, 3)));
  EXPECT_FALSE(queue.put(batch({{1, "1"}}, 3)));
  EXPECT_EQ(queue.next(), (std::pair{std::string("rewards"), StepId(3)}));
  serve();
  EXPECT_EQ(queue.next(), std::nullopt);
  EXPECT_TRUE(queue.put(batch({{2, "1"}}, 3)));
}

} // namespace
} // namespace troupe::models
