// Answers of a server as rows: the same columns as our decode loop writes, and
// no token that is not the model's.
#include "config/base/error.hpp"
#include "models/servers/served_samples.hpp"

#include "tests/support/models/small_shape.hpp"
#include <gmock/gmock.h>

#include <cmath>
#include <set>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

net::Rows served_prompts(std::uint32_t first) {
  net::Rows rows;
  rows.samples = {SampleId{first}, SampleId{first + 1}};
  const std::vector<std::int32_t> ids{4, 5, 6, 7, 8};
  rows.add(net::make_column("prompt_ids", DType::i32, {2, 3}, ids.data()));
  return rows;
}

constexpr std::int32_t end_token = 3;

ServerAnswer answer_of(std::vector<std::int32_t> ids,
                       const std::string& version = "3") {
  const auto count = ids.size();
  const bool stopped = count > 0 && ids.back() == end_token;
  return {.ids = std::move(ids),
          .logprobs = std::vector(count, -1.5F),
          .stopped = stopped,
          .versions = {{version, 0, count}}};
}

class ServedSamplesTest : public ::testing::Test {
protected:
  ServedSamplesTest() {
    batches = {
      {&first, StepId{1}, 4}, {&none, StepId{1}, 4}, {&second, StepId{1}, 4}};
    options.stop_ids = {end_token};
    events.on_batch = [this](std::size_t batch, net::Rows rows) {
      ended.push_back(batch);
      made = std::move(rows);
    };
    events.on_sample = [this](const GeneratedSample&) { ++num_ended_samples; };
  }
  ServedSamples samples() {
    return {shape, batches, options, version, events};
  }
  std::string failure_of(const ServerAnswer& answer) {
    auto open = samples();
    try {
      open.take(open.open_requests().front(), answer);
    } catch (const FailureError& error) {
      return error.what();
    }
    return "";
  }

  const ModelShape shape = testing::small_shape();
  const net::Rows first = served_prompts(0), none, second = served_prompts(2);
  std::vector<ResponseBatch> batches;
  GenerateOptions options;
  std::string version = "3";
  GenerateEvents events;
  std::vector<std::size_t> ended;
  net::Rows made;
  int num_ended_samples = 0;
};

TEST_F(ServedSamplesTest, EachSampleIsAskedOnceWithASeedOfItsOwn) {
  auto open = samples();
  const auto requests = open.open_requests();
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_THAT(requests[1].prompt_ids, ElementsAre(6, 7, 8));
  EXPECT_EQ(requests[1].max_new_tokens, 4);
  std::set<std::uint64_t> seeds;
  for (const auto& request : requests)
    seeds.insert(request.seed);
  EXPECT_EQ(seeds.size(), 4U);
  open.take(requests[1], answer_of({end_token}));
  EXPECT_EQ(open.open_requests().size(), 3U); // what a restart asks again
  EXPECT_EQ(samples().open_requests().front().seed, requests.front().seed);
}

TEST_F(ServedSamplesTest, ABatchEndsWithTheLastOfItsSamples) {
  auto open = samples();
  EXPECT_THAT(ended, ElementsAre(1)); // it has no samples
  const auto requests = open.open_requests();
  open.take(requests[3], answer_of({9, 10, 11, 12}));
  open.take(requests[0], answer_of({end_token}));
  EXPECT_THAT(ended, ElementsAre(1));
  open.take(requests[2], answer_of({9, end_token}));
  EXPECT_THAT(ended, ElementsAre(1, 2));
  EXPECT_EQ(num_ended_samples, 3);
  const auto ids = made.at("sequence_ids").as<std::int32_t>();
  EXPECT_THAT(std::vector(ids.begin(), ids.end()),
              ElementsAre(4, 5, 9, end_token, 6, 7, 8, 9, 10, 11, 12));
  const auto mask = made.at("loss_mask").as<std::uint8_t>();
  EXPECT_THAT(std::vector(mask.begin(), mask.end()),
              ElementsAre(0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1));
  const auto logprobs = made.at("logprobs").as<float>();
  EXPECT_EQ(logprobs[1], 0.0F);
  EXPECT_EQ(logprobs[2], -1.5F);
  const auto truncated = made.at("truncated").as<std::uint8_t>();
  EXPECT_THAT(std::vector(truncated.begin(), truncated.end()),
              ElementsAre(0, 1));
}

TEST_F(ServedSamplesTest, AnAnswerThatIsNoResponseOfTheModelIsRefused) {
  EXPECT_THAT(failure_of(answer_of({})), HasSubstr("0 tokens"));
  EXPECT_THAT(failure_of(answer_of({1, 2, 3, 4, 5})), HasSubstr("not 1 to 4"));
  EXPECT_THAT(failure_of(answer_of({75})), HasSubstr("vocabulary"));
  auto unsure = answer_of({end_token});
  unsure.logprobs[0] = std::nanf("");
  EXPECT_THAT(failure_of(unsure), HasSubstr("not finite"));
  EXPECT_EQ(failure_of(answer_of({end_token})), "");
}

TEST_F(ServedSamplesTest, AnAnswerEndsByAnEndTokenOrByItsLimit) {
  EXPECT_THAT(failure_of(answer_of({1, 2})),
              HasSubstr("before the limit of 4"));
  EXPECT_EQ(failure_of(answer_of({1, 2, 4, 5})), "");
  EXPECT_EQ(failure_of(answer_of({1, 2, 4, end_token})), "");
  EXPECT_THAT(failure_of(answer_of({1, end_token, 4, 5})),
              HasSubstr("goes on after the end token 3"));
  auto answer = answer_of({1, 2, 4, 5});
  answer.stopped = true;
  EXPECT_THAT(failure_of(answer), HasSubstr("stopped without an end token"));
  options.ignore_eos = true;
  EXPECT_EQ(failure_of(answer_of({1, end_token, 4, 5})), "");
}

TEST_F(ServedSamplesTest, AnEndTokenAtTheLimitEndsAResponse) {
  batches = {{&first, StepId{1}, 1}};
  auto open = samples();
  const auto requests = open.open_requests();
  auto answer = answer_of({end_token});
  answer.stopped = false; // SGLang looks at the limit first
  open.take(requests[0], answer);
  open.take(requests[1], answer_of({9}));
  const auto truncated = made.at("truncated").as<std::uint8_t>();
  EXPECT_THAT(std::vector(truncated.begin(), truncated.end()),
              ElementsAre(0, 1));
}

TEST_F(ServedSamplesTest, EachTokenIsOfTheWeightsOfTheCall_I4) {
  EXPECT_THAT(failure_of(answer_of({end_token}, "2")),
              HasSubstr("weights '2', the call is for '3'"));
  auto answer = answer_of({1, 2, 4, 5});
  answer.versions = {{"3", 0, 2}, {"3", 2, 4}};
  EXPECT_EQ(failure_of(answer), "");
  answer.versions = {{"3", 0, 2}, {"2", 2, 4}};
  EXPECT_THAT(failure_of(answer), HasSubstr("weights '2'"));
  answer.versions = {{"3", 0, 2}, {"3", 3, 4}};
  EXPECT_THAT(failure_of(answer),
              HasSubstr("the weights of 2 of its 4 tokens"));
  answer.versions = {};
  EXPECT_THAT(failure_of(answer),
              HasSubstr("the weights of 0 of its 4 tokens"));
}

TEST_F(ServedSamplesTest, APromptThatFillsTheContextEndsWithoutARequest) {
  const auto most = static_cast<std::uint32_t>(shape.context_tokens());
  const std::vector<std::int32_t> ids(most + 2, 4);
  net::Rows rows;
  rows.samples = {SampleId{0}, SampleId{1}};
  rows.add(net::make_column("prompt_ids", DType::i32, {most, 2}, ids.data()));
  batches = {{&rows, StepId{1}, 4}};
  auto open = samples();
  const auto requests = open.open_requests();
  ASSERT_EQ(requests.size(), 1U); // vLLM refuses requests for no token
  EXPECT_EQ(num_ended_samples, 1);
  open.take(requests.front(), answer_of({end_token}));
  const auto truncated = made.at("truncated").as<std::uint8_t>();
  EXPECT_THAT(std::vector(truncated.begin(), truncated.end()),
              ElementsAre(1, 0));
  EXPECT_EQ(made.at("sequence_ids").lengths[0], most);
}

} // namespace
} // namespace troupe::models
