// Texts in the form of SGLang's routes (by its source, 0.5), read; and ours, as
// it takes them.
#include "config/base/error.hpp"
#include "models/servers/sglang_json.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <functional>

namespace troupe::models::sglang {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* sglang_answer = R"({"text":" a b","output_ids":[884,711],
  "meta_info":{"id":"7","finish_reason":{"type":"stop","matched":711},
   "prompt_tokens":2,"completion_tokens":2,"weight_version":"3",
   "output_token_logprobs":[[-4.5,884,null],[-0.25,711," b"]]}})";

std::string sglang_failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::bad_input);
    return error.what();
  }
  return "nothing was thrown";
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = sglang_answer;
  return text.replace(text.find(from), from.size(), to);
}

TEST(SglangJson, AnAnswerHasTokensLogprobsAndVersions) {
  const auto read = read_answer(sglang_answer);
  EXPECT_THAT(read.ids, ElementsAre(884, 711));
  EXPECT_THAT(read.logprobs, ElementsAre(-4.5F, -0.25F));
  EXPECT_TRUE(read.stopped);
  EXPECT_THAT(read.versions, ElementsAre(ServerVersionSpan{"3", 0, 2}));
  EXPECT_FALSE(
    read_answer(with(R"("type":"stop")", R"("type":"length")")).stopped);
}

TEST(SglangJson, VersionsByTokenCountWhereTheServerSaysThem) {
  const auto read = read_answer(with(R"("weight_version":"3")",
                                     R"("weight_version":"3","weight_versions":[
              {"version":"2","start":0,"end":1},
              {"version":"3","start":1,"end":2}])"));
  EXPECT_THAT(read.versions, ElementsAre(ServerVersionSpan{"2", 0, 1},
                                         ServerVersionSpan{"3", 1, 2}));
}

TEST(SglangJson, AnAnswerWithoutAPartIsAFailureThatNamesIt) {
  EXPECT_THAT(sglang_failure([] { read_answer("{}"); }),
              HasSubstr("meta_info"));
  EXPECT_THAT(sglang_failure([] {
                read_answer(with(R"("type":"stop")", R"("type":"abort")"));
              }),
              HasSubstr("'abort'"));
  EXPECT_THAT(sglang_failure([] { read_answer(with("weight_version", "w")); }),
              HasSubstr("weight_version"));
}

TEST(SglangJson, RequestsCarryTheOptionsOfTheRun) {
  GenerateOptions options;
  options.stop_ids = {2, 7};
  options.top_k = 5;
  const ServerRequest request{.id = "3",
                              .prompt_ids = {868, 398},
                              .max_new_tokens = 9,
                              .seed = ~std::uint64_t{0}};
  const auto body = Json::parse(generate_body(request, options));
  EXPECT_EQ(body.at("input_ids"), Json({868, 398}));
  EXPECT_EQ(body.at("return_logprob"), true);
  const auto& params = body.at("sampling_params");
  EXPECT_EQ(params.at("stop_token_ids"), Json({2, 7}));
  EXPECT_EQ(params.at("ignore_eos"), false); // it would ignore ours too
  EXPECT_EQ(params.at("max_new_tokens"), 9);
  EXPECT_EQ(params.at("top_k"), 5);
  EXPECT_EQ(params.at("sampling_seed"), INT64_MAX);
  options.greedy = true;
  const auto greedy
    = Json::parse(generate_body(request, options)).at("sampling_params");
  EXPECT_EQ(greedy.at("temperature"), 0.0);
  EXPECT_FALSE(greedy.contains("top_k"));
}

TEST(SglangJson, ScoresAreOfTheGivenTokens) {
  const std::vector<std::int32_t> ids{868, 398};
  const auto* body = R"({"meta_info":{"input_token_logprobs":[
    [null,868,null],[-6.5,398,null]]}})";
  EXPECT_THAT(read_scores(body, ids), ElementsAre(0.0F, -6.5F));
  const std::vector<std::int32_t> others{868, 399};
  EXPECT_THAT(sglang_failure([&] { read_scores(body, others); }),
              HasSubstr("another token"));
  EXPECT_EQ(Json::parse(score_body(ids)).at("logprob_start_len"), 0);
}

TEST(SglangJson, AnUpdateNamesItsFolderAndVersion) {
  EXPECT_EQ(Json::parse(update_body("runs/x/servers/0/weights", "2")),
            Json::parse(R"({"model_path":"runs/x/servers/0/weights",
              "weight_version":"2","flush_cache":true})"));
  EXPECT_EQ(read_version(R"({"model_path":"m","weight_version":"2"})"), "2");
}

} // namespace
} // namespace troupe::models::sglang
