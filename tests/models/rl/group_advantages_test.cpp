// Advantages without a critic: the golden cases through the pure functions, and
// the results of the function on a batch of groups.
#include "config/settings/settings.hpp"
#include "models/rl/group_advantages.hpp"
#include "models/rl/rl_math.hpp"

#include <gtest/gtest.h>

#include "tests/support/models/golden.hpp"

#include <cmath>

namespace troupe::models {
namespace {

using Floats = std::vector<float>;

struct GroupCase {
  nlohmann::json meta;
  troupe::testing::GoldenTensors in;
  troupe::testing::GoldenTensors out;

  explicit GroupCase(const std::string& name)
    : meta(testing::read_golden_meta(folder(name))),
      in(testing::read_golden(folder(name) / "inputs.safetensors")),
      out(testing::read_golden(folder(name) / "outputs.safetensors")) {}
  static std::filesystem::path folder(const std::string& name) {
    return testing::golden_case_folder("rl/" + name);
  }
  std::string function() const {
    return meta["function"];
  }
};

std::vector<double> by_function(const GroupCase& c,
                                const std::vector<double>& scores) {
  if (c.function() == "adv_others")
    return others_normalised(scores, c.meta["params"]["eps"],
                             Deviation::sample);
  if (c.function() == "adv_grpo")
    return group_normalised(scores, c.meta["params"]["eps"]);
  return c.function() == "adv_rloo" ? leave_one_out(scores)
                                    : group_centred(scores);
}

void expect_groups(const GroupCase& c) {
  const auto& group = c.in.at("group").values;
  std::map<double, std::vector<std::size_t>> members;
  for (std::size_t i = 0; i < group.size(); ++i)
    members[group[i]].push_back(i);
  for (const auto& [number, own] : members) {
    std::vector<double> scores;
    for (const auto i : own)
      scores.push_back(c.in.at("scores").values[i]);
    const auto got = by_function(c, scores);
    for (std::size_t k = 0; k < own.size(); ++k)
      EXPECT_NEAR(got[k], c.out.at("adv").values[own[k]],
                  c.meta["tolerance_abs"])
        << "sample " << own[k];
  }
}

class GoldenGroups : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenGroups, EqualTheReference) {
  TROUPE_NEEDS_GOLDEN();
  expect_groups(GroupCase(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(Rl, GoldenGroups,
                         ::testing::Values("adv_grpo", "adv_rloo",
                                           "adv_dr_grpo",
                                           "gen_adv_grpo_shuffled",
                                           "gen_adv_rloo_shuffled",
                                           "gen_adv_dr_grpo_shuffled"));

TEST(GoldenOthers, ComparedWithTheOthersEqualTheReference) {
  TROUPE_NEEDS_GOLDEN();
  expect_groups(GroupCase("adv_others"));
}

// NeMo-RL's mean and deviation of the others, where it divides by them.
TEST(GoldenOthers, LeaveOneOutHasNeMosMeansAndDeviations) {
  TROUPE_NEEDS_GOLDEN();
  const GroupCase c(support::second_opinion() ? "nemo_loo_baseline_std"
                                              : "leave_one_out");
  const auto& scores = c.in.at("scores").values;
  constexpr double eps = 1e-6;
  const auto got = others_normalised(scores, eps, Deviation::sample);
  for (std::size_t i = 0; i < scores.size(); ++i)
    EXPECT_NEAR(got[i] * (c.out.at("std").values[i] + eps),
                scores[i] - c.out.at("baseline").values[i],
                c.meta["tolerance_abs"]);
}

// (0.1 + 0.1 + 0.1) / 3 is not 0.1 in binary.
TEST(OthersNormalised, EqualOthersAreNoSpreadWhateverTheirMeanRoundsTo) {
  const std::vector<double> scores{0.1, 0.1, 0.1, 0};
  EXPECT_NEAR(others_normalised(scores, 1e-6, Deviation::sample)[3], -0.1,
              1e-12);
}

/// The samples [N, width] of a golden case as rows; a score is the sum of a
/// sample's token rewards.
net::Rows rows_of(const GroupCase& c) {
  const auto width = static_cast<std::uint32_t>(c.in.at("mask").shape[1]);
  const auto samples = static_cast<std::size_t>(c.in.at("mask").shape[0]);
  const auto rewards = c.in.at("token_rewards").floats();
  Floats scores(samples);
  for (std::size_t t = 0; t < rewards.size(); ++t)
    scores[t / width] += rewards[t];
  net::Rows rows;
  std::map<double, std::uint64_t> members;
  const auto& group = c.in.at("group").values;
  const std::uint64_t most = samples;
  for (const double own : group)
    rows.samples.emplace_back(static_cast<std::uint64_t>(own) * most
                              + members[own]++);
  const auto mask = c.in.at("mask").mask();
  const std::vector<std::uint32_t> lengths(samples, width);
  const std::vector<std::uint32_t> ones(samples, 1);
  const std::vector<std::uint8_t> truncated(samples);
  rows.add(net::make_column("loss_mask", DType::u8, lengths, mask.data()));
  rows.add(net::make_column("scores", DType::f32, ones, scores.data()));
  rows.add(net::make_column("truncated", DType::u8, ones, truncated.data()));
  return rows;
}

TEST(GoldenReinforcePpBaseline, EqualsTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const GroupCase c("adv_reinforce_pp_baseline");
  Settings settings;
  settings.algorithm.advantage = "group";
  settings.algorithm.kl_in = "none";
  settings.algorithm.whiten = false;
  settings.algorithm.group.whiten_batch = true;
  settings.rollout.n = static_cast<int>(c.in.at("mask").shape[0]);
  const auto result
    = run_function("group_advantages", rows_of(c), {settings, StepId(0), {}});
  const auto got = result.rows.at("advantages").as<float>();
  const auto mask = c.in.at("mask").mask();
  for (std::size_t t = 0; t < got.size(); ++t)
    if (mask[t] != 0) {
      EXPECT_NEAR(got[t], c.out.at("adv").values[t], c.meta["tolerance_abs"])
        << "token " << t;
    }
}

class GoldenReMax : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenReMax, EqualsTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const GroupCase c(GetParam());
  const auto rewards = c.in.at("token_rewards").floats();
  const auto mask = c.in.at("mask").mask();
  const auto& baselines = c.in.at("baseline").values;
  const auto width = static_cast<std::size_t>(c.in.at("mask").shape[1]);
  Floats got(rewards.size());
  for (std::size_t i = 0; i < baselines.size(); ++i)
    returns_over(std::span(rewards).subspan(i * width, width),
                 Mask(mask).subspan(i * width, width), baselines[i],
                 std::span(got).subspan(i * width, width));
  for (std::size_t t = 0; t < got.size(); ++t) {
    if (mask[t] != 0) {
      EXPECT_NEAR(got[t], c.out.at("adv").values[t], c.meta["tolerance_abs"]);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Rl, GoldenReMax,
                         ::testing::Values("adv_remax",
                                           "gen_adv_remax_tokens"));

class GoldenReinforcePp : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenReinforcePp, EqualsTheReference) {
  TROUPE_NEEDS_GOLDEN();
  const GroupCase c(GetParam());
  const auto rewards = c.in.at("token_rewards").floats();
  const auto mask = c.in.at("mask").mask();
  const auto width = static_cast<std::size_t>(c.in.at("mask").shape[1]);
  Floats sums(rewards.size());
  for (std::size_t at = 0; at < rewards.size(); at += width)
    discounted_sums(std::span(rewards).subspan(at, width),
                    Mask(mask).subspan(at, width), c.meta["params"]["gamma"],
                    std::span(sums).subspan(at, width));
  whiten(sums, mask);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (mask[i] != 0) {
      EXPECT_NEAR(sums[i], c.out.at("adv").values[i], c.meta["tolerance_abs"]);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Rl, GoldenReinforcePp,
                         ::testing::Values("adv_reinforce_pp",
                                           "gen_adv_reinforce_pp_discount"));

/// Two prompts of three responses each: 1 prompt token, 2 of the response.
net::Rows six_samples(const Floats& scores) {
  const std::vector<std::uint32_t> lengths(6, 3);
  std::vector<std::uint8_t> mask;
  for (int i = 0; i < 6; ++i)
    mask.insert(mask.end(), {0, 1, 1});
  const std::vector<std::uint8_t> truncated{0, 0, 0, 0, 0, 1};
  const std::vector<std::uint32_t> ones(6, 1);
  net::Rows rows;
  for (std::uint64_t i = 0; i < 6; ++i)
    rows.samples.emplace_back(i);
  rows.add(net::make_column("loss_mask", DType::u8, lengths, mask.data()));
  rows.add(net::make_column("scores", DType::f32, ones, scores.data()));
  rows.add(net::make_column("truncated", DType::u8, ones, truncated.data()));
  return rows;
}

Settings group_settings(const char* advantage) {
  Settings settings;
  settings.rollout.n = 3;
  settings.algorithm.advantage = advantage;
  settings.algorithm.kl_in = "loss";
  return settings;
}

/// The advantage of each sample's last token.
Floats last_tokens(const FunctionResult& result) {
  const auto all = result.rows.at("advantages").as<float>();
  Floats last;
  for (std::size_t i = 2; i < all.size(); i += 3) {
    EXPECT_EQ(all[i - 2], 0); // the prompt
    EXPECT_EQ(all[i - 1], all[i]);
    last.push_back(all[i]);
  }
  return last;
}

FunctionResult made(const Settings& settings, const Floats& scores) {
  return run_function("group_advantages", six_samples(scores),
                      {settings, StepId(0), {}});
}

TEST(GroupAdvantages, CompareTheResponsesToAPrompt) {
  const Floats scores{1, 0, 2, 5, 5, 5};
  const auto group = made(group_settings("group"), scores);
  const auto near = [](const Floats& got, const Floats& want) {
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got.at(i), want[i], 1e-5);
  };
  near(last_tokens(group), {0, -1, 1, 0, 0, 0});
  EXPECT_EQ(group.sums.value("frac_reward_zero_std"), 0.5);
  EXPECT_EQ(group.sums.value("critic/score/max"), 5);
  EXPECT_NEAR(group.sums.value("response_length/clip_ratio"), 1 / 6.0, 1e-9);
  near(last_tokens(made(group_settings("rloo"), scores)),
       {0, -1.5F, 1.5F, 0, 0, 0});
  auto centred = group_settings("group");
  centred.algorithm.whiten = false;
  near(last_tokens(made(centred, {2, 0, 4, 5, 5, 5})), {0, -2, 2, 0, 0, 0});
}

TEST(GroupAdvantages, ShapeScoresFirst) {
  auto settings = group_settings("rloo");
  settings.reward.scale = 2;
  settings.reward.long_response.missing_eos = -7; // of the last sample
  const auto got = last_tokens(made(settings, {1, 0, 2, 0, 0, 0}));
  EXPECT_NEAR(got[2], 3, 1e-5);
  EXPECT_NEAR(got[5], -7, 1e-5);
}

TEST(GroupAdvantages, LongResponsesPayForTheirLength) {
  auto settings = group_settings("rloo");
  settings.rollout.max_new_tokens = 3; // responses have 2 tokens
  settings.reward.clip = 1;
  settings.reward.long_response.overlong_tokens = 2;
  settings.reward.long_response.overlong_penalty = 4;
  settings.reward.long_response.missing_eos = -7; // of the last sample
  const auto got = last_tokens(made(settings, {1, 0, 2, 0, 0, 0}));
  EXPECT_NEAR(got[2], 0.5, 1e-5); // all of the group lose 2 after the clip
  EXPECT_NEAR(got[5], -7 + 2, 1e-5);
}

TEST(GroupAdvantages, DivideByTheDeviationThatTheSettingsName) {
  auto settings = group_settings("group");
  settings.algorithm.group.deviation = "population";
  settings.algorithm.group.deviation_eps = 1;
  const auto got = last_tokens(made(settings, {3, 0, 0, 5, 5, 5}));
  EXPECT_NEAR(got[0], 2 / (std::sqrt(2.0) + 1), 1e-5);
  settings.algorithm.group.baseline = "others"; // these do not differ
  EXPECT_NEAR(last_tokens(made(settings, {3, 0, 0, 5, 5, 5}))[0], 3, 1e-5);
  EXPECT_NEAR(last_tokens(made(settings, {3, 0, 0, 5, 5, 5}))[1],
              -1.5 / (1.5 + 1), 1e-5);
}

TEST(GroupAdvantages, LeaveOutSamplesWithoutAScore) {
  const float none = std::nanf("");
  const auto result
    = made(group_settings("rloo"), {1, none, 3, none, none, none});
  const auto got = last_tokens(result);
  EXPECT_NEAR(got[0], -2, 1e-5); // against the only other one
  EXPECT_EQ(got[1], 0);
  EXPECT_EQ(got[3], 0);
  const auto mask = result.rows.at("train_mask").as<std::uint8_t>();
  EXPECT_EQ((std::vector<int>{mask.begin(), mask.begin() + 9}),
            (std::vector<int>{0, 1, 1, 0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(result.sums.value("critic/score/mean"), 2);
}

// The last sample is truncated (DAPO's overlong filtering, as TRL's
// mask_truncated_completions).
TEST(GroupAdvantages, TruncatedResponsesCountInTheirGroupButAreNotTrainedOn) {
  auto settings = group_settings("grpo");
  const auto kept = made(settings, {1, 2, 3, 4, 5, 9});
  settings.reward.long_response.mask_truncated = true;
  const auto masked = made(settings, {1, 2, 3, 4, 5, 9});
  EXPECT_EQ(last_tokens(masked), last_tokens(kept));
  const auto before = kept.rows.at("train_mask").as<std::uint8_t>();
  const auto mask = masked.rows.at("train_mask").as<std::uint8_t>();
  const auto offsets = masked.rows.at("train_mask").offsets();
  const auto last = offsets[5];
  EXPECT_TRUE(std::ranges::equal(mask.first(last), before.first(last)));
  EXPECT_THAT(mask.subspan(last), ::testing::Each(0));
  EXPECT_THAT(before.subspan(last), ::testing::Contains(1));
}

} // namespace
} // namespace troupe::models
