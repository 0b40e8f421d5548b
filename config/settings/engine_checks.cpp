#include "config/settings/engine_checks.hpp"

#include "config/base/http_url.hpp"
#include "config/settings/setting_checks.hpp"
#include "config/settings/workflow_traits.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

class EngineChecks : SettingChecks {
public:
  EngineChecks(const Settings& settings, const Place& whole)
    : SettingChecks(settings, whole, "rollout.engine"),
      engine_(settings.rollout.engine) {}

  void run() const {
    check_servers();
    check_logprobs();
    check_responses();
    check_adapters();
  }

private:
  void check_servers() const {
    const bool starts = !engine_.server_command.empty();
    if (starts == !engine_.servers.empty())
      fail("rollout.engine",
           "either rollout.servers or rollout.server_command with " + named(),
           starts ? "both" : "neither",
           is_sglang() ? "rollout.server_command='python -m "
                         "sglang.launch_server'"
                       : "rollout.server_command='.deps/engines/bin/python -m "
                         "vllm.entrypoints.openai.api_server' after `make "
                         "engines`");
    for (const auto& server : engine_.servers) {
      const auto url = parse_http_url(server);
      if (!url || url->target != "/")
        fail("rollout.servers", "addresses of the form http://HOST:PORT",
             "'" + server + "'", "http://127.0.0.1:8000");
    }
  }

  /// vLLM's own log-probabilities are those of the logits before the
  /// temperature; with `sampled` we start it so that they are those after.
  /// SGLang's are those after the temperature and penalties, before filters.
  void check_logprobs() const {
    const auto& rollout = settings_.rollout;
    if (is_sglang())
      return check_sglang_logprobs();
    if (rollout.logprobs == "unfiltered" && rollout.temperature != 1)
      fail("rollout.temperature",
           "1 with " + named()
             + ", whose log-probabilities are otherwise of another temperature",
           fmt::format("{}", rollout.temperature), "rollout.logprobs=sampled");
  }

  void check_sglang_logprobs() const {
    const auto& rollout = settings_.rollout;
    if (rollout.logprobs != "unfiltered")
      fail("rollout.logprobs", "unfiltered with " + named(), rollout.logprobs,
           "rollout.engine=vllm");
    if (rollout.repetition_penalty != 1)
      fail("rollout.repetition_penalty",
           "1 with " + named() + ", whose log-probabilities would have it in",
           fmt::format("{}", rollout.repetition_penalty),
           "rollout.engine=vllm");
    if (rollout.min_new_tokens > 0)
      fail("rollout.min_new_tokens",
           "0 with " + named() + ", whose log-probabilities would have it in",
           fmt::format("{}", rollout.min_new_tokens), "rollout.engine=vllm");
  }

  void check_responses() const {
    const auto& rollout = settings_.rollout;
    if (!rollout.stop.empty())
      fail("rollout.stop", "no texts with " + named(),
           fmt::format("{}", rollout.stop.size()),
           "rollout.stop=null: servers get end tokens, not texts");
    if (rollout.kv_cache_gb)
      fail("rollout.kv_cache_gb",
           "auto with " + named() + ", which sizes its own cache",
           fmt::format("{}", *rollout.kv_cache_gb),
           "an option in rollout.server_command");
    const auto& policy = settings_.algorithm.loss;
    if (policy.sampling_mask)
      fail("algorithm.sampling_mask", "false with " + named(), "true",
           "rollout.engine=own");
    if (policy.routing_replay)
      fail("algorithm.routing_replay", "false with " + named(), "true",
           "rollout.engine=own");
  }

  void check_adapters() const {
    const bool over_nccl = engine_.weights_over == "nccl";
    if (!is_sglang() && !over_nccl)
      return;
    for (const auto& [role, model] : settings_.models)
      if (model.lora.rank > 0)
        fail(
          "models." + role + ".lora.rank",
          "0 with "
            + (over_nccl ? std::string("rollout.weights_over nccl") : named()),
          fmt::format("{}", model.lora.rank),
          over_nccl ? "rollout.weights_over=tcp, where our plugin adds "
                      "adapters"
                    : "rollout.engine=vllm, which takes adapters alone");
  }

  bool is_sglang() const {
    return engine_.kind == "sglang";
  }
  std::string named() const {
    return "rollout.engine " + engine_.kind;
  }

  const EngineSettings& engine_;
};

} // namespace

void check_engine(const Settings& settings, const Place& whole) {
  if (!settings.rollout.engine.is_own()
      && workflow_reads(settings.workflow, SettingsGroup::rollout))
    EngineChecks(settings, whole).run();
}

} // namespace troupe
