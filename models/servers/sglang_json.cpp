#include "models/servers/sglang_json.hpp"

#include "models/servers/answer_json.hpp"

#include <nlohmann/json.hpp>

namespace troupe::models::sglang {

namespace {

const std::string sglang_name = "SGLang";

/// Returns the sampling parameters that our options mean. With `ignore_eos`
/// SGLang does not see our end tokens either, so the server's own count too.
nlohmann::json sglang_params(const ServerRequest& request,
                             const GenerateOptions& options) {
  nlohmann::json params = {{"max_new_tokens", request.max_new_tokens},
                           {"sampling_seed", server_seed(request)},
                           {"ignore_eos", options.ignore_eos}};
  if (!options.ignore_eos)
    params["stop_token_ids"] = options.stop_ids;
  add_filters(params, options);
  return params;
}

/// Returns the versions of `count` tokens: newer servers say them by token,
/// others that of the response's end.
std::vector<ServerVersionSpan> sglang_spans(const nlohmann::json& meta,
                                            std::size_t count) {
  const auto found = meta.find("weight_versions");
  if (found == meta.end() || !found->is_array())
    return {{meta.at("weight_version").get<std::string>(), 0, count}};
  return spans_of(*found);
}

} // namespace

std::string generate_body(const ServerRequest& request,
                          const GenerateOptions& options) {
  return nlohmann::json{{"input_ids", request.prompt_ids},
                        {"sampling_params", sglang_params(request, options)},
                        {"return_logprob", true}}
    .dump();
}

std::string score_body(std::span<const std::int32_t> ids) {
  return nlohmann::json{
    {"input_ids", std::vector(ids.begin(), ids.end())},
    {"sampling_params",
     {{"max_new_tokens", 1}, {"temperature", 0.0}, {"ignore_eos", true}}},
    {"return_logprob", true},
    {"logprob_start_len", 0}}
    .dump();
}

std::string update_body(const std::string& folder, const std::string& version) {
  return nlohmann::json{
    {"model_path", folder}, {"weight_version", version}, {"flush_cache", true}}
    .dump();
}

ServerAnswer read_answer(std::string_view body) {
  return read_answer_json(sglang_name, body, [](const nlohmann::json& answer) {
    const auto& meta = answer.at("meta_info");
    ServerAnswer read;
    for (const auto& token : meta.at("output_token_logprobs")) {
      read.logprobs.push_back(token.at(0).get<float>());
      read.ids.push_back(token.at(1).get<std::int32_t>());
    }
    read.stopped = stopped_by(sglang_name, meta.at("finish_reason").at("type"));
    read.versions = sglang_spans(meta, read.ids.size());
    return read;
  });
}

std::vector<float> read_scores(std::string_view body,
                               std::span<const std::int32_t> ids) {
  return read_answer_json(sglang_name, body, [&](const nlohmann::json& answer) {
    const auto& scores = answer.at("meta_info").at("input_token_logprobs");
    if (scores.size() != ids.size())
      answer_misread(sglang_name, std::to_string(scores.size()) + " scores of "
                                    + std::to_string(ids.size()) + " tokens");
    std::vector<float> read(ids.size(), 0.0F);
    for (std::size_t i = 1; i < ids.size(); ++i) {
      if (scores.at(i).at(1).get<std::int32_t>() != ids[i])
        answer_misread(sglang_name, "a score is of another token");
      read[i] = scores.at(i).at(0).get<float>();
    }
    return read;
  });
}

std::string read_version(std::string_view body) {
  return read_answer_json(sglang_name, body, [](const nlohmann::json& answer) {
    return answer.at("weight_version").get<std::string>();
  });
}

} // namespace troupe::models::sglang
