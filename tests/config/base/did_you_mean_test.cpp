#include "config/base/did_you_mean.hpp"

#include <gtest/gtest.h>

namespace {

TEST(DidYouMean, SwappedLettersAndWrongSectionsAreSuggested) {
  EXPECT_EQ(troupe::edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(troupe::edit_distance("ab", "ba"), 1u);
  EXPECT_EQ(troupe::edit_distance("", "abc"), 3u);
  EXPECT_EQ(troupe::nearest_word("x", {}), "");
  EXPECT_EQ(
    troupe::nearest_key("run.batch_size", {"run.name", "data.batch_size"}),
    "data.batch_size");
}

TEST(DidYouMean, ADistantNameIsNotSuggested) {
  EXPECT_EQ(troupe::nearest_word("wandb", {"bind", "on"}), "");
  EXPECT_EQ(troupe::nearest_key("run.output", {"rollout", "run.name"}), "");
  EXPECT_EQ(troupe::nearest_key("logging.level", {"eval", "cluster.tls"}), "");
  EXPECT_EQ(troupe::nearest_key("rollout.max_tokens",
                                {"data.batch_size", "rollout.max_new_tokens"}),
            "rollout.max_new_tokens");
}

} // namespace
