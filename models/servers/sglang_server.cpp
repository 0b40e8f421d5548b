#include "models/servers/sglang_server.hpp"

#include "models/servers/sglang_json.hpp"

#include <system_error>

namespace troupe::models {

namespace {

/// Makes `folder` one whose only weights are those of a memory file.
void link_weights(const std::filesystem::path& folder,
                  const std::string& memory_file) {
  const auto file = folder / "model.safetensors";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error)
    std::filesystem::remove(file, error);
  if (!error)
    std::filesystem::create_symlink(memory_file, file, error);
  if (error)
    throw FailureError({.code = Errc::io,
                        .who = "weights for servers",
                        .what = file.string() + ": " + error.message(),
                        .cause = ""});
}

} // namespace

SglangServer::SglangServer(ServerSpec spec)
  : GenerationServer(spec),
    folder_(std::move(spec.weights)) {}

/// Nothing; but one that an earlier run left paused would not generate.
void SglangServer::prepare(const RunContext& context) {
  ask(resume_call(), context);
}

/// Requests under way give up their cache, so that it can be emptied.
net::HttpCall SglangServer::pause_call() const {
  return {.target = "/pause_generation", .body = R"({"mode":"retract"})"};
}

net::HttpCall SglangServer::resume_call() const {
  return {.target = "/continue_generation", .body = "{}"};
}

void SglangServer::take_weights(const SentWeights& weights,
                                const SentWeights* /*base*/,
                                const std::string& version,
                                const RunContext& context) {
  TROUPE_CHECK(!weights.adapter_scale(), "SGLang gets whole models");
  link_weights(folder_, weights.path());
  ask({.target = "/update_weights_from_disk",
       .body = sglang::update_body(folder_.string(), version)},
      context);
  require_version(sglang::read_version(
                    ask({.target = "/model_info", .is_get = true}, context)),
                  version);
}

/// An update is one request: none stays open.
bool SglangServer::give_up_update(const RunContext& /*context*/) {
  return true;
}

net::HttpCall
SglangServer::generate_call(const ServerRequest& request,
                            const GenerateOptions& options) const {
  return {.target = "/generate",
          .body = sglang::generate_body(request, options)};
}

ServerAnswer SglangServer::read_answer(std::string_view body) const {
  return sglang::read_answer(body);
}

net::HttpCall
SglangServer::score_call(std::span<const std::int32_t> ids) const {
  return {.target = "/generate", .body = sglang::score_body(ids)};
}

std::vector<float>
SglangServer::read_scores(std::string_view body,
                          std::span<const std::int32_t> ids) const {
  return sglang::read_scores(body, ids);
}

} // namespace troupe::models
