#include "models/servers/sglang_json.hpp"

#include "config/base/error.hpp"

#include <nlohmann/json.hpp>

namespace troupe::models::sglang {

namespace {

using SglangJson = nlohmann::json;

[[noreturn]] void sglang_misread(const std::string& what) {
  throw FailureError({.code = Errc::bad_input,
                      .who = "SGLang",
                      .what = "its answer is not what the route gives: " + what,
                      .cause = ""});
}

/// Reads a text of the server by `read`, whose exceptions become failures.
template <class Read>
auto reading_sglang(std::string_view body, Read read) {
  try {
    return read(SglangJson::parse(body));
  } catch (const SglangJson::exception& error) {
    sglang_misread(error.what());
  }
}

/// Returns the sampling parameters that our options mean. With `ignore_eos`
/// SGLang does not see our end tokens either, so the server's own count too.
SglangJson sglang_params(const ServerRequest& request,
                         const GenerateOptions& options) {
  SglangJson params
    = {{"max_new_tokens", request.max_new_tokens},
       {"sampling_seed", request.seed & 0x7FFF'FFFF'FFFF'FFFF},
       {"ignore_eos", options.ignore_eos},
       {"temperature", options.greedy ? 0.0 : options.temperature}};
  if (!options.ignore_eos)
    params["stop_token_ids"] = options.stop_ids;
  if (options.greedy)
    return params;
  if (options.top_k > 0)
    params["top_k"] = options.top_k;
  if (options.top_p < 1)
    params["top_p"] = options.top_p;
  if (options.min_p > 0)
    params["min_p"] = options.min_p;
  return params;
}

/// Returns the versions of `count` tokens: newer servers say them by token,
/// others that of the response's end.
std::vector<ServerVersionSpan> sglang_spans(const SglangJson& meta,
                                            std::size_t count) {
  std::vector<ServerVersionSpan> spans;
  const auto found = meta.find("weight_versions");
  if (found == meta.end() || !found->is_array())
    return {{meta.at("weight_version").get<std::string>(), 0, count}};
  for (const auto& span : *found)
    spans.push_back({span.at("version").get<std::string>(),
                     span.at("start").get<std::size_t>(),
                     span.at("end").get<std::size_t>()});
  return spans;
}

} // namespace

std::string generate_body(const ServerRequest& request,
                          const GenerateOptions& options) {
  return SglangJson{{"input_ids", request.prompt_ids},
                    {"sampling_params", sglang_params(request, options)},
                    {"return_logprob", true}}
    .dump();
}

std::string score_body(std::span<const std::int32_t> ids) {
  return SglangJson{
    {"input_ids", std::vector(ids.begin(), ids.end())},
    {"sampling_params",
     {{"max_new_tokens", 1}, {"temperature", 0.0}, {"ignore_eos", true}}},
    {"return_logprob", true},
    {"logprob_start_len", 0}}
    .dump();
}

std::string update_body(const std::string& folder, const std::string& version) {
  return SglangJson{
    {"model_path", folder}, {"weight_version", version}, {"flush_cache", true}}
    .dump();
}

ServerAnswer read_answer(std::string_view body) {
  return reading_sglang(body, [](const SglangJson& answer) {
    const auto& meta = answer.at("meta_info");
    ServerAnswer read;
    for (const auto& token : meta.at("output_token_logprobs")) {
      read.logprobs.push_back(token.at(0).get<float>());
      read.ids.push_back(token.at(1).get<std::int32_t>());
    }
    const auto reason = meta.at("finish_reason").at("type").get<std::string>();
    if (reason != "stop" && reason != "length")
      sglang_misread("it ended with '" + reason + "'");
    read.stopped = reason == "stop";
    read.versions = sglang_spans(meta, read.ids.size());
    return read;
  });
}

std::vector<float> read_scores(std::string_view body,
                               std::span<const std::int32_t> ids) {
  return reading_sglang(body, [&](const SglangJson& answer) {
    const auto& scores = answer.at("meta_info").at("input_token_logprobs");
    if (scores.size() != ids.size())
      sglang_misread(std::to_string(scores.size()) + " scores of "
                     + std::to_string(ids.size()) + " tokens");
    std::vector<float> read(ids.size(), 0.0F);
    for (std::size_t i = 1; i < ids.size(); ++i) {
      if (scores.at(i).at(1).get<std::int32_t>() != ids[i])
        sglang_misread("a score is of another token");
      read[i] = scores.at(i).at(0).get<float>();
    }
    return read;
  });
}

std::string read_version(std::string_view body) {
  return reading_sglang(body, [](const SglangJson& answer) {
    return answer.at("weight_version").get<std::string>();
  });
}

} // namespace troupe::models::sglang
