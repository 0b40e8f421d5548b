// The JSON of vLLM's routes, as pure functions between our values and its
// texts. Everything read is foreign: a text that is not what the route answers
// is a FailureError that says which part is missing.
#pragma once

#include "models/generate/generate_options.hpp"
#include "models/servers/server_request.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe::models::vllm {

/// Name under which servers are started and asked.
inline constexpr const char* model_name = "troupe";

/// Returns the body of POST /inference/v1/generate.
std::string generate_body(const ServerRequest& request,
                          const GenerateOptions& options);
/// Returns the body that asks for the log-probabilities of `ids` alone.
std::string score_body(std::span<const std::int32_t> ids);
/// Returns the body of POST /update_weights: a whole model, or adapters with
/// the factor of their products. The file is read over TCP if that is given.
std::string update_body(const std::string& path,
                        std::span<const SentTensor> tensors,
                        std::optional<double> adapter_scale = {},
                        const std::optional<SentOverTcp>& tcp = {});
/// Returns the body of POST /init_weight_transfer_engine by which the ranks of
/// a server join an NCCL group of this many, in which we are rank 0.
std::string join_body(const std::string& nccl_id, std::uint32_t num_ranks);
/// Returns the body of POST /update_weights: tensors that are broadcast.
std::string broadcast_body(std::span<const SentTensor> tensors);
/// Returns a body of POST /update_weights that a server of backend nccl refuses
/// before it waits for a tensor.
std::string refused_broadcast_body();
/// Returns the body of POST /finish_weight_update.
std::string finish_body(const std::string& version);

/// Reads the answer to a generation. Throws FailureError (bad_input) if it
/// contains no whole response.
ServerAnswer read_answer(std::string_view body);
/// Reads log-probabilities [L] of the ids, 0 at the first. Throws as above.
std::vector<float> read_scores(std::string_view body,
                               std::span<const std::int32_t> ids);
/// Returns the number of ranks in the answer to GET /get_world_size. Throws as
/// above.
std::uint32_t read_num_ranks(std::string_view body);
/// Returns the version in the answer to GET /weight_info. Throws as above.
std::string read_version(std::string_view body);

} // namespace troupe::models::vllm
