// Evaluation between steps, in a scheduler that the test drives: calls and data
// are fakes that record their requests.
#include "actors/master/master_actor.hpp"
#include "config/settings/settings.hpp"
#include "plans/presets/presets.hpp"
#include "plans/workflow/evaluation.hpp"

#include "tests/support/actors/driven_actors.hpp"
#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using ::testing::ElementsAre;

struct Seen {
  std::string call;
  std::uint32_t step;
  std::uint32_t version;
  std::uint32_t holder; ///< of the first rows that were read
  bool operator==(const Seen&) const = default;
};

void PrintTo(const Seen& seen, std::ostream* out) {
  *out << seen.call << " step " << seen.step << " version " << seen.version
       << " holder " << seen.holder;
}

class MasterEvaluation : public DrivenActors {
protected:
  void train(EvaluationTimes times, std::uint32_t begin, std::uint32_t end) {
    Settings settings;
    settings.eval.data = "rows.jsonl";
    const auto sft = plans::sft_workflow({});
    MasterSetup setup;
    setup.dataflow.workflow = plans::with_evaluation(sft, settings);
    setup.dataflow.plan = plans::place_evaluation(
      plans::preset("single", sft, {}), setup.dataflow.workflow);
    setup.dataflow.replicas
      = plans::replicas_of(setup.dataflow.workflow, setup.dataflow.plan);
    setup.dataflow.graph = plans::make_step_graph(
      sft, setup.dataflow.plan, plans::replicas_of(sft, setup.dataflow.plan));
    setup.start.first_step = StepId{begin};
    setup.end_step = StepId{end};
    setup.evaluation.times = times;
    RunDone logprobs;
    logprobs.keys = {"eval_logprobs"};
    logprobs.samples = {SampleId{0}, SampleId{1}};
    add_call(setup, "actor_train", {});
    add_call(setup, "eval_inf", logprobs);
    RunDone evaluated;
    evaluated.sums = {{"val-core/rows/loss", 0, Bits{3.0}, Bits{2.0}}};
    add_call(setup, "eval_sequences", evaluated);
    setup.rows.actor = spawn(fake_data, std::vector<std::uint32_t>{4, 5});
    setup.asks = asks_;
    setup.callbacks.on_step
      = [this](const StepReport& report) { steps_.push_back(report.step); };
    setup.callbacks.on_end = [this](const RunEnd& ended) { end_ = ended; };
    auto evaluation = setup;
    evaluation.evaluates = true;
    evaluation.rows.holder = evaluation_holder;
    evaluation.dataflow.graph
      = plans::make_step_graph(plans::evaluation_of(setup.dataflow.workflow),
                               setup.dataflow.plan, setup.dataflow.replicas);
    evaluation.callbacks.on_step
      = [this](const StepReport& report) { found_.push_back(report); };
    setup.evaluation.master = std::make_shared<const MasterSetup>(evaluation);
    tell(spawn(master_actor, std::move(setup)), start_atom::value);
  }
  void add_call(MasterSetup& setup, const std::string& name, RunDone part) {
    setup.actors.calls[name] = spawn(
      fake_call, [=, this](const Context& context, const CallTask& task) {
        seen_.push_back({name, context.step.value, task.version.value,
                         task.sources.front().holder});
        return CallDone{.parts = {part}};
      });
  }
  std::vector<Seen> seen_of(const std::string& call) const {
    std::vector<Seen> user;
    for (const auto& entry : seen_)
      if (entry.call == call)
        user.push_back(entry);
    return user;
  }

  std::vector<Seen> seen_;
  std::vector<StepId> steps_;
  std::vector<StepReport> found_;
  std::optional<RunEnd> end_;
};

TEST_F(MasterEvaluation, RunsOnTheWeightsAfterAStep_I4) {
  train({.every = 2, .at_start = true, .at_end = true}, 0, 3);
  EXPECT_THAT(seen_of("eval_inf"),
              ElementsAre(Seen{"eval_inf", 0, 0, evaluation_holder},
                          Seen{"eval_inf", 2, 2, evaluation_holder},
                          Seen{"eval_inf", 3, 3, evaluation_holder}));
  EXPECT_THAT(seen_of("actor_train"),
              ElementsAre(Seen{"actor_train", 0, 0, dataset_holder},
                          Seen{"actor_train", 1, 1, dataset_holder},
                          Seen{"actor_train", 2, 2, dataset_holder}));
  EXPECT_EQ(seen_.front().call, "eval_inf") << "before the first step";
  EXPECT_EQ(seen_.back().call, "eval_sequences") << "after the last";
  ASSERT_TRUE(end_.has_value());
  EXPECT_EQ(end_->kind, RunEnd::Kind::done);
  EXPECT_THAT(steps_, ElementsAre(StepId{0}, StepId{1}, StepId{2}));
}

TEST_F(MasterEvaluation, ReportsUserDefinedMetrics) {
  train({.at_end = true}, 0, 1);
  ASSERT_EQ(found_.size(), 1u);
  EXPECT_EQ(found_[0].step, StepId{1});
  EXPECT_DOUBLE_EQ(found_[0].sums.value("val-core/rows/loss"), 1.5);
  EXPECT_EQ(found_[0].tokens.num_samples, 2u);
}

TEST_F(MasterEvaluation, AResumedRunRepeatsTheEvaluationAtItsFirstStep) {
  train({.every = 2, .at_start = true}, 2, 3);
  EXPECT_THAT(seen_of("eval_inf"),
              ElementsAre(Seen{"eval_inf", 2, 2, evaluation_holder}));
}

TEST_F(MasterEvaluation, WithoutStepsOnlyTheEvaluationRuns) {
  train({.at_start = true}, 0, 0);
  EXPECT_EQ(found_.size(), 1u);
  EXPECT_TRUE(seen_of("actor_train").empty());
  ASSERT_TRUE(end_.has_value());
}

} // namespace
} // namespace troupe::actors
