// Samples of user-defined actors: those of a call, and those streamed before
// it.
#include "actors/user/user_actors.hpp"

#include "troupe/actor.hpp"
#include <gmock/gmock.h>

#include <future>

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace troupe;
using namespace troupe::actors;
using namespace std::chrono_literals;

constexpr Key<std::string> text{"text"};
constexpr Key<float> length{"length"};

/// Samples that reached the actor, in order; thread-safe.
struct Seen {
  std::mutex mutex;
  std::vector<std::string> texts;
};

SampleActor::behavior_type measure(SampleActor::pointer self,
                                   const std::shared_ptr<Seen>& seen) {
  return {[=](run_atom, Sample sample) -> caf::result<Sample> {
    const std::lock_guard lock{seen->mutex};
    seen->texts.push_back(sample[text]);
    if (sample[text] == "silent")
      return self->make_response_promise<Sample>();
    if (sample[text] == "ends") {
      self->quit(caf::make_error(caf::sec::runtime_error, "I had enough"));
      return self->make_response_promise<Sample>();
    }
    if (sample[text] == "other")
      return Sample(7).set(length, 1.F);
    if (sample[text] == "bad")
      return caf::make_error(caf::sec::runtime_error, "it is bad");
    return sample.set(length, static_cast<float>(sample[text].size()));
  }};
}

class SampleDispatcherTest : public ::testing::Test {
protected:
  using Ended = std::variant<std::vector<Sample>, Failure>;

  explicit SampleDispatcherTest(std::chrono::milliseconds timeout = 20s)
    : timeout_(timeout) {}

  static Sample sample(std::uint32_t id, const std::string& of) {
    Sample made(id);
    return made.set(text, of);
  }

  void offer(StepId step, const Sample& made) {
    pool_.run(
      {.who = "checker", .call = "check", .step = step, .samples = {made}});
  }

  Ended run(StepId step, const std::vector<Sample>& samples) {
    std::promise<Ended> ended;
    pool_.run({.who = "checker",
               .call = "check",
               .step = step,
               .samples = samples,
               .done = [&](Ended result) { ended.set_value(result); }});
    return ended.get_future().get();
  }

  std::vector<float> lengths(StepId step, const std::vector<Sample>& samples) {
    std::vector<float> list;
    const auto ended = run(step, samples);
    for (const auto& back : std::get<0>(ended))
      list.push_back(back[length]);
    return list;
  }

  const std::chrono::milliseconds timeout_;
  std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
  caf::actor_system_config config_;
  caf::actor_system system_{config_};
  std::atomic<bool> model_is_asked_ = false;
  std::atomic<int> num_back_ = 0;
  UserActorPool pool_{
    system_,
    {.name = "samples of check",
     .instances = {system_.spawn(measure, seen_)},
     .timeout = timeout_,
     .model_is_asked = [this] { return model_is_asked_.load(); },
     .on_progress = [this] { ++num_back_; }},
    {}};
};

/// Waits for samples that nobody returns.
class SampleTimeoutTest : public SampleDispatcherTest {
protected:
  SampleTimeoutTest() : SampleDispatcherTest(400ms) {}
};

TEST_F(SampleDispatcherTest, StreamedSamplesAreHandledOnceAndBeforeTheRest) {
  offer(StepId(0), sample(2, "ccc"));
  offer(StepId(0), sample(0, "a"));
  EXPECT_THAT(
    lengths(StepId(0), {sample(0, "a"), sample(1, "bb"), sample(2, "ccc")}),
    ElementsAre(1, 2, 3));
  EXPECT_THAT(seen_->texts, ElementsAre("ccc", "a", "bb"));
}

TEST_F(SampleDispatcherTest, AChangedSampleIsHandledAgain) {
  offer(StepId(0), sample(0, "old"));
  EXPECT_THAT(lengths(StepId(0), {sample(0, "new one")}), ElementsAre(7));
  EXPECT_THAT(seen_->texts, ElementsAre("old", "new one"));
}

TEST_F(SampleDispatcherTest, StepsAreKeptApart) {
  offer(StepId(1), sample(0, "later"));
  EXPECT_THAT(lengths(StepId(0), {sample(0, "now")}), ElementsAre(3));
  EXPECT_THAT(lengths(StepId(1), {sample(0, "later")}), ElementsAre(5));
  EXPECT_THAT(seen_->texts, ElementsAre("later", "now"));
}

/// Returns the failure of a call with these samples, and the seconds until it.
std::pair<Failure, double> failure_of(auto run) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ended = run();
  const std::chrono::duration<double> took
    = std::chrono::steady_clock::now() - begin;
  return {std::get<Failure>(ended), took.count()};
}

TEST_F(SampleDispatcherTest, AReplyForAnotherSampleIsRefused) {
  const auto ended = run(StepId(0), {sample(0, "a"), sample(4, "other")});
  EXPECT_THAT(to_string(std::get<Failure>(ended)),
              HasSubstr("sample 4: the actor returned sample 7 for it"));
}

TEST_F(SampleTimeoutTest, ATimeoutNamesTheActorAndItsSample) { // I7
  const auto [failure, seconds] = failure_of([&] {
    return run(StepId(0), {sample(3, "good"), sample(4, "silent")});
  });
  EXPECT_EQ(failure.code, Errc::deadline);
  EXPECT_EQ(failure.who, "checker");
  EXPECT_THAT(failure.what,
              HasSubstr("sample 4: the actor has returned nothing"));
  EXPECT_THAT(failure.what, HasSubstr("cluster.own_actor_timeout_s"));
  EXPECT_GT(seconds, 0.4);
  EXPECT_LT(seconds, 20);
  EXPECT_EQ(num_back_, 2); // the good one and the failure
}

TEST_F(SampleTimeoutTest, WaitingForTheModelIsNoTimeout) {
  model_is_asked_ = true;
  std::promise<Ended> ended;
  auto end = ended.get_future();
  pool_.run({.who = "checker",
             .samples = {sample(0, "silent")},
             .done = [&](Ended result) { ended.set_value(result); }});
  EXPECT_EQ(end.wait_for(1200ms), std::future_status::timeout);
  model_is_asked_ = false;
  EXPECT_TRUE(std::holds_alternative<Failure>(end.get()));
}

TEST_F(SampleDispatcherTest, AnActorThatEndsKeepsItsErrorMessage) {
  const auto [failure, seconds]
    = failure_of([&] { return run(StepId(0), {sample(1, "ends")}); });
  EXPECT_THAT(failure.what,
              HasSubstr("sample 1: the actor ended itself: I had enough"));
  EXPECT_LT(std::chrono::duration<double>(seconds), timeout_);
  const auto later
    = failure_of([&] { return run(StepId(0), {sample(2, "good")}); });
  EXPECT_THAT(later.first.what, HasSubstr("sample 2: the actor ended itself: I "
                                          "had enough"));
}

TEST_F(SampleDispatcherTest, AFailureIsRaisedInTheCallThatRequestsTheSample) {
  offer(StepId(0), sample(0, "bad"));
  const auto ended = run(StepId(0), {sample(0, "bad"), sample(1, "good")});
  ASSERT_TRUE(std::holds_alternative<Failure>(ended));
  EXPECT_THAT(std::get<Failure>(ended).what, HasSubstr("sample 0"));
  EXPECT_THAT(std::get<Failure>(ended).what, HasSubstr("it is bad"));
}

} // namespace
