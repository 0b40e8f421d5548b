#include "models/servers/vllm_json.hpp"

#include "models/servers/answer_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::models::vllm {

namespace {

using Json = nlohmann::json;

const std::string vllm_name = "vLLM";

/// Returns the sampling parameters that our options mean. `ignore_eos` is
/// always set: end tokens are those we name, not those of the server's files.
Json sampling_params(const ServerRequest& request,
                     const GenerateOptions& options) {
  Json params = {{"max_tokens", request.max_new_tokens},
                 {"seed", server_seed(request)},
                 {"logprobs", 0},
                 {"detokenize", false},
                 {"ignore_eos", true}};
  if (!options.ignore_eos)
    params["stop_token_ids"] = options.stop_ids;
  // vLLM refuses more than max_tokens
  if (const auto least = std::min(options.min_new_tokens - request.num_begun,
                                  request.max_new_tokens);
      least > 0)
    params["min_tokens"] = least;
  add_filters(params, options);
  if (!options.greedy && options.repetition_penalty != 1)
    params["repetition_penalty"] = options.repetition_penalty;
  return params;
}

std::vector<ServerVersionSpan> read_spans(const Json& choice) {
  const auto found = choice.find("weight_versions");
  if (found == choice.end() || found->is_null())
    return {};
  return spans_of(*found);
}

} // namespace

std::string generate_body(const ServerRequest& request,
                          const GenerateOptions& options) {
  return Json{{"model", model_name},
              {"request_id", request.id},
              {"token_ids", request.prompt_ids},
              {"sampling_params", sampling_params(request, options)}}
    .dump();
}

std::string score_body(std::span<const std::int32_t> ids) {
  return Json{{"model", model_name},
              {"token_ids", std::vector(ids.begin(), ids.end())},
              {"sampling_params",
               {{"max_tokens", 1},
                {"temperature", 0.0},
                {"logprobs", 0},
                {"prompt_logprobs", 0},
                {"detokenize", false},
                {"ignore_eos", true}}}}
    .dump();
}

std::string update_body(const std::string& path,
                        std::span<const SentTensor> tensors,
                        std::optional<double> adapter_scale,
                        const std::optional<SentOverTcp>& tcp) {
  Json listed = Json::array();
  for (const auto& tensor : tensors)
    listed.push_back(
      {tensor.name, tensor.dtype, tensor.shape, tensor.offset, tensor.sum});
  Json info = {{"path", path},
               {"tensors", std::move(listed)},
               {"kind", adapter_scale ? "adapters" : "whole"}};
  if (adapter_scale)
    info["scale"] = *adapter_scale;
  if (tcp)
    info["tcp"] = {{"host", tcp->host},
                   {"port", tcp->port},
                   {"token", tcp->token},
                   {"certificate", tcp->certificate},
                   {"bytes", tcp->num_bytes}};
  return Json{{"update_info", std::move(info)}}.dump();
}

std::string join_body(const std::string& nccl_id, std::uint32_t num_ranks) {
  return Json{{"init_info",
               {{"nccl_unique_id_b64", nccl_id},
                {"rank_offset", 1},
                {"world_size", num_ranks},
                {"packed", false}}}}
    .dump();
}

std::string broadcast_body(std::span<const SentTensor> tensors) {
  auto names = Json::array();
  auto types = Json::array();
  auto shapes = Json::array();
  for (const auto& tensor : tensors) {
    names.push_back(tensor.name);
    types.emplace_back("float32");
    shapes.push_back(tensor.shape);
  }
  return Json{{"update_info",
               {{"names", std::move(names)},
                {"dtype_names", std::move(types)},
                {"shapes", std::move(shapes)}}}}
    .dump();
}

std::string refused_broadcast_body() {
  return Json{{"update_info",
               {{"names", {"none"}},
                {"dtype_names", Json::array()},
                {"shapes", Json::array()}}}}
    .dump();
}

std::string finish_body(const std::string& version) {
  return Json{{"weight_version", version}}.dump();
}

ServerAnswer read_answer(std::string_view body) {
  return read_answer_json(vllm_name, body, [](const Json& answer) {
    const auto& choice = answer.at("choices").at(0);
    ServerAnswer read;
    read.ids = choice.at("token_ids").get<std::vector<std::int32_t>>();
    for (const auto& token : choice.at("logprobs").at("content"))
      read.logprobs.push_back(token.at("logprob").get<float>());
    read.stopped = stopped_by(vllm_name, choice.at("finish_reason"));
    read.versions = read_spans(choice);
    if (read.logprobs.size() != read.ids.size())
      answer_misread(vllm_name, std::to_string(read.ids.size()) + " tokens, "
                                  + std::to_string(read.logprobs.size())
                                  + " log-probabilities");
    return read;
  });
}

std::vector<float> read_scores(std::string_view body,
                               std::span<const std::int32_t> ids) {
  return read_answer_json(vllm_name, body, [&](const Json& answer) {
    const auto& scores = answer.at("prompt_logprobs");
    if (scores.size() != ids.size())
      answer_misread(vllm_name, std::to_string(scores.size()) + " scores of "
                                  + std::to_string(ids.size()) + " tokens");
    std::vector<float> read(ids.size(), 0.0F);
    for (std::size_t i = 1; i < ids.size(); ++i)
      read[i]
        = scores.at(i).at(std::to_string(ids[i])).at("logprob").get<float>();
    return read;
  });
}

std::uint32_t read_num_ranks(std::string_view body) {
  return read_answer_json(vllm_name, body, [](const Json& answer) {
    return answer.at("world_size").get<std::uint32_t>();
  });
}

std::string read_version(std::string_view body) {
  return read_answer_json(vllm_name, body, [](const Json& answer) {
    return answer.at("weight_version").get<std::string>();
  });
}

} // namespace troupe::models::vllm
