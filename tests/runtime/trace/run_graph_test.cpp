#include "runtime/trace/run_graph.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using troupe::test::TempFolder;
using troupe::test::write_text;

TEST(RunGraph, NeedsNoProgramThatKnowsTheWorkflow) {
  using enum plans::CallKind;
  const plans::Workflow workflow{.name = "of some program",
                                 .calls
                                 = {{.name = "gen",
                                     .kind = generate,
                                     .role = "actor",
                                     .reads = {"prompt_ids"},
                                     .writes = {"sequence_ids", "loss_mask"}},
                                    {.name = "count",
                                     .reads = {"sequence_ids", "loss_mask"},
                                     .writes = {"letters"}},
                                    {.name = "learn",
                                     .kind = train,
                                     .role = "actor",
                                     .reads = {"sequence_ids", "letters"}}},
                                 .dataset_keys = {"prompt_ids"}};
  plans::ExecutionPlan plan;
  plan.calls["gen"] = {.devices = {Rank{0}, Rank{1}}, .strategy = {.dp = 2}};
  const TempFolder temp;
  const RunFolder folder(temp.path() / "renamed");
  folder.create();
  write_text(folder.dataflow_file(), dataflow_json(workflow, plan));

  EXPECT_THAT(run_causes(folder),
              ElementsAre(Pair("count", ElementsAre("gen")),
                          Pair("gen", ElementsAre("move")),
                          Pair("learn", ElementsAre("gen", "count")),
                          Pair("move", IsEmpty())));
  const auto graph = nlohmann::json::parse(run_graph_json(folder));
  EXPECT_EQ(graph["name"], "renamed");
  EXPECT_EQ(graph["calls"][0]["devices"], nlohmann::json({0, 1}));
  EXPECT_EQ(graph["calls"][0]["strategy"], "d2");
  EXPECT_EQ(graph["edges"][0]["keys"],
            nlohmann::json({"sequence_ids", "loss_mask"}));
}

TEST(RunGraph, AFolderWithoutADataflowIsReported) {
  const TempFolder temp;
  const auto graph
    = nlohmann::json::parse(run_graph_json(RunFolder(temp.path())));
  EXPECT_EQ(graph["error"], "the run folder has no dataflow.json");
  EXPECT_THAT(run_causes(RunFolder(temp.path())), IsEmpty());
}
