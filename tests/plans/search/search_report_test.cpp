// The report of a search on its result.
#include "plans/search/search.hpp"

#include "tests/support/plans/problem_support.hpp"
#include <gmock/gmock.h>

using ::testing::HasSubstr;

namespace troupe::plans {
namespace {

TEST(SearchReport, BeyondEightDevicesTheProofIsOfPackedMeshes) {
  const auto problem = make_problem(shape_7b(), 2, 8);
  const CostModel costs(problem);
  const auto found = search_plan(problem, costs, {});
  EXPECT_TRUE(found.packed_only);
  EXPECT_TRUE(found.proved);
  EXPECT_THAT(summary(found), HasSubstr(", proved of packed meshes"));
  EXPECT_THAT(proof_sentence(found),
              HasSubstr("no plan of whole calls on packed meshes simulates "
                        "faster, with moves in closed form"));
}

TEST(SearchReport, ASentenceNamesWhatIsProvedAndWhatIsNot) {
  SearchResult result;
  result.proved = true;
  result.method = "exact";
  EXPECT_EQ(proof_sentence(result),
            "proved: no plan of whole calls simulates faster, with moves in "
            "closed form");
  result.proved = false;
  EXPECT_THAT(proof_sentence(result), HasSubstr("before it had tried every"));
  result.end = SearchEnd::refined;
  EXPECT_THAT(proof_sentence(result),
              HasSubstr("faster than the plan of the proof once moves are "
                        "counted transfer by transfer"));
  result.end = SearchEnd::finished;
  result.method = "mcmc";
  EXPECT_THAT(proof_sentence(result), HasSubstr("walks from plan to plan"));
  result.best.plan.lag.emplace("actor_gen", 1);
  EXPECT_THAT(proof_sentence(result), HasSubstr("lag; what holds is the lower "
                                                "bound"));
  result.best.plan.calls["actor_gen"].chunks = 2;
  EXPECT_THAT(proof_sentence(result),
              HasSubstr("not proved: calls of the best plan run in chunks"));
}

TEST(SearchReport, UnknownMethodsNameTheNearest) {
  EXPECT_THAT(refusal_of([] { parse_search_method("exat"); }),
              HasSubstr("--method: expected auto, exact, mcmc or descent, got "
                        "'exat'; try 'exact'"));
}

} // namespace
} // namespace troupe::plans
