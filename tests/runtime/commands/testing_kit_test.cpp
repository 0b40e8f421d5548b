// The testing kit: conversations of user-defined actors with a fake model, and
// how runs of programs end.
#include "troupe/actor.hpp"
#include "troupe/loss.hpp"
#include "troupe/testing.hpp"
#include <gmock/gmock.h>

#include <numeric>

namespace {

using ::testing::HasSubstr;
using troupe::Key;
using troupe::keys::appended, troupe::keys::response, troupe::keys::turn;

constexpr Key<float> turns{"turns"};

struct Host {
  static constexpr const char* name = "host";
};
using Self = troupe::SampleActor::stateful_pointer<Host>;

/// Makes as many requests as the sample's id.
troupe::Task<troupe::Sample> ask_on(Self, troupe::Model model,
                                    troupe::Sample sample) {
  for (std::uint32_t i = 0; i < sample.id(); ++i) {
    sample.append("and?");
    sample = co_await model.extend(std::move(sample));
    if (sample[turn] == "stop")
      throw std::runtime_error("the model stopped");
  }
  co_return sample.set(turns, static_cast<float>(sample.id()));
}
troupe::SampleActor::behavior_type host(Self self, troupe::Model model) {
  return {
    [=](troupe::run_atom, troupe::Sample x) -> caf::result<troupe::Sample> {
      return ask_on(self, model, std::move(x));
    }};
}
/// Takes one turn per sample, without a coroutine.
troupe::SampleActor::behavior_type once(Self self, troupe::Model model) {
  return {[=](troupe::run_atom,
              troupe::Sample x) -> caf::result<troupe::Sample> {
    return respond(self, model.extend(std::move(x)).then([](troupe::Sample s) {
      return s.set(turns, 1.F);
    }));
  }};
}

troupe::Loss no_loss(const troupe::TrainBatch&) {
  throw std::logic_error("only registered here");
}

/// Throws outside a coroutine, so that the exception passes through CAF.
troupe::SampleActor::behavior_type picky(Self self, troupe::Model model) {
  return {
    [=](troupe::run_atom, troupe::Sample x) -> caf::result<troupe::Sample> {
      if (x.id() == 1)
        throw std::runtime_error("not this one");
      return respond(self, model.extend(std::move(x)));
    }};
}

template <class F>
troupe::App talking(F leader) {
  troupe::Workflow w{"talk"};
  w.role("actor", troupe::trained);
  w.converse("talk", "actor", leader, troupe::reads(), troupe::writes(turns));
  w.train("actor_train", "actor", no_loss, troupe::reads(turns));
  return troupe::App{}.spawnable("host", leader).add(w);
}

TEST(TestingKit, AFakeModelTakesTheTurnsOfAConversation) {
  const auto echo = [](troupe::Sample& sample) {
    sample.set(turn, "<" + sample[appended] + ">");
  };
  const auto done = troupe::testing::Kit(talking(host), "talk")
                      .fake("talk", echo)
                      .step(troupe::testing::samples(1, 3));
  EXPECT_EQ(done[1][response], "<and?>");
  EXPECT_EQ(done[2][response], "<and?><and?>");
  EXPECT_EQ(done[2][turns], 2.F);
}

/// Lets another role have the last word.
troupe::SampleActor::behavior_type judged(Self self, troupe::Model model) {
  return {
    [=](troupe::run_atom, troupe::Sample x) -> caf::result<troupe::Sample> {
      auto turn_of_other = model("judge").extend(std::move(x));
      return respond(self, std::move(turn_of_other).then([](troupe::Sample s) {
        return s.set(turns, 1.F);
      }));
    }};
}

TEST(TestingKit, AFakeModelPlaysAllRolesOfAConversation) {
  troupe::Workflow w{"talk"};
  w.role("actor", troupe::trained).role("judge", troupe::frozen.like("actor"));
  w.converse("talk", "actor", judged, troupe::reads(), troupe::writes(turns),
             troupe::with("judge"));
  w.train("actor_train", "actor", no_loss, troupe::reads(turns));
  const auto done = troupe::testing::Kit(
                      troupe::App{}.spawnable("judge", judged).add(w), "talk")
                      .fake("talk", [](auto& s) { s.set(turn, "yes"); })
                      .step(troupe::testing::samples(2, 1));
  EXPECT_EQ(done[1][turns], 1.F);
}

TEST(TestingKit, AConversationNeedsNoCoroutine) {
  const auto done = troupe::testing::Kit(talking(once), "talk")
                      .fake("talk", [](auto& s) { s.set(turn, "yes"); })
                      .step(troupe::testing::samples(2, 1));
  EXPECT_EQ(done[0][response], "yes");
  EXPECT_EQ(done[1][turns], 1.F);
}

TEST(TestingKit, AConversationThatFailsIsNamed) {
  troupe::testing::Kit kit
    = troupe::testing::Kit(talking(host), "talk").fake("talk", [](auto& s) {
        s.set(turn, "stop");
      });
  try {
    kit.step(troupe::testing::samples(1, 2));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("sample 1: the model stopped"));
  }
}

TEST(TestingKit, AnExceptionOfAPlainHandlerIsQuoted) {
  troupe::testing::Kit kit
    = troupe::testing::Kit(talking(picky), "talk").fake("talk", [](auto& s) {
        s.set(turn, "yes");
      });
  try {
    kit.step(troupe::testing::samples(1, 2));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("sample 1: not this one"));
  }
}

constexpr Key<float> before{"before"};
constexpr troupe::Carried<float> sum{"sum", 0.25F};
constexpr troupe::Carried<std::int32_t> steps{"steps", 7};

/// Returns the number of earlier samples with each sample.
std::tuple<std::vector<float>, std::int32_t, float>
count_on(float so_far, std::span<const float> now, std::int32_t step) {
  return {std::vector<float>(now.size(), so_far), step + 1,
          std::accumulate(now.begin(), now.end(), so_far)};
}

constexpr Key<float> length{"length"};
constexpr Key<std::string> hidden{"hidden"};

/// Fills in a workflow in which this actor makes `length` from `response`.
template <class F>
troupe::testing::Kit kit_with(const char* name, F actor) {
  troupe::Workflow w{name};
  w.role("actor", troupe::trained);
  w.generate("actor_gen", "actor");
  w.each("measure", actor, reads(response), writes(length));
  w.train("actor_train", "actor", no_loss, troupe::reads(length));
  return troupe::testing::Kit(troupe::App{}.spawnable(name, actor).add(w),
                              name);
}

troupe::SampleActor::behavior_type nosy(troupe::SampleActor::pointer) {
  return {[](troupe::run_atom, troupe::Sample sample) {
    return sample.set(length, static_cast<float>(sample[hidden].size()));
  }};
}

TEST(TestingKit, AnActorSeesItsCallsInputsAsInARun) {
  auto kit = kit_with("nosy", nosy);
  kit.fake("actor_gen", [](troupe::Sample& sample) {
    sample.set(response, "a").set(hidden, "b");
  });
  try {
    kit.step(troupe::testing::samples(1, 1));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("sample 0 has no hidden; put it into "
                                        "the call's reads()"));
  }
}

struct Patient {
  static constexpr const char* name = "patient";
  int tries = 0;
};
using PatientSelf = troupe::SampleActor::stateful_pointer<Patient>;

/// Fails twice.
troupe::Task<int> third_time(PatientSelf self, int number) {
  if (++self->state.tries < 3)
    throw std::runtime_error("not yet");
  co_return number;
}
troupe::Task<int> at_once(PatientSelf, int number) {
  co_return number;
}
using Echo = caf::typed_actor<caf::replies_to<int>::with<int>>;
Echo::behavior_type echo(Echo::pointer) {
  return {[](int number) { return number; }};
}
/// Is done soon after it returns.
troupe::Task<int> soon(PatientSelf self, int number) {
  const auto helper = self->spawn(echo);
  for (int i = 0; i < 200; ++i)
    number = co_await troupe::ask<int>(self, std::chrono::seconds(10), helper,
                                       number);
  co_return number;
}
troupe::Task<int> never(PatientSelf) {
  co_return co_await troupe::Future<int>{};
}
troupe::Task<troupe::Sample> waiting(PatientSelf self, troupe::Sample sample) {
  int total = co_await troupe::retry(3, [=] { return third_time(self, 1); });
  std::vector<troupe::Task<int>> several;
  several.push_back(at_once(self, 10));
  several.push_back(at_once(self, 100));
  for (const int number : co_await all(std::move(several)))
    total += number;
  using std::chrono::milliseconds;
  total += co_await within(self, milliseconds(10000), soon(self, 1000));
  try {
    co_await within(self, milliseconds(1), never(self));
  } catch (const troupe::WaitError&) {
    total += 10000;
  }
  co_return sample.set(length, static_cast<float>(total));
}
troupe::SampleActor::behavior_type patient(PatientSelf self) {
  return {
    [=](troupe::run_atom, troupe::Sample x) -> caf::result<troupe::Sample> {
      return waiting(self, std::move(x));
    }};
}

TEST(UserActor, WaitsForItsCoroutinesAsForFutures) {
  auto kit = kit_with("patient", patient);
  kit.fake("actor_gen",
           [](troupe::Sample& sample) { sample.set(response, "a"); });
  EXPECT_EQ(kit.step(troupe::testing::samples(1, 1))[0][length], 11111);
}

TEST(TestingKit, AStepPassesCarriedValuesToTheNext) {
  troupe::Workflow w{"count"};
  w.role("actor", troupe::frozen);
  w.generate("actor_gen", "actor");
  w.each(
    "one", [](const std::string&) { return 1.F; }, reads(response),
    writes(turns));
  w.batch("count_on", count_on, reads(sum, turns, steps),
          writes(before, steps, sum));
  w.metric("count/before", before).metric("count/sum", sum);
  troupe::testing::Kit kit(troupe::App{}.add(w), "count");
  kit.fake("actor_gen", [](auto& s) { s.set(response, "a"); });
  EXPECT_EQ(kit.carried(sum), 0.25F);
  EXPECT_EQ(kit.step(troupe::testing::samples(2, 2))[3][before], 0.25F);
  EXPECT_EQ(kit.step(troupe::testing::samples(1, 2))[1][before], 4.25F);
  EXPECT_EQ(kit.carried(sum), 6.25F);
  EXPECT_EQ(kit.carried(steps), 9);
}

TEST(TestingRun, ReturnsTheExitCodeOfAProgramWithoutOutput) {
  const auto run = troupe::testing::run("/bin/false", "none.yaml", {});
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(run.metrics.empty());
  EXPECT_TRUE(run.samples.empty());
}

TEST(TestingRun, EndsAProgramAtItsTimeout) {
  try {
    troupe::testing::run("/usr/bin/yes", "none.yaml", {},
                         std::chrono::seconds(0));
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("yes did not end within 0 s"));
  }
}

TEST(TestingRun, NamesAMissingProgram) {
  try {
    troupe::testing::run("/no/program", "none.yaml", {});
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/no/program: No such file"));
  }
}

} // namespace
