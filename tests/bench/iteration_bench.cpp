// An iteration of PPO or GRPO as shared/bench/trl_{ppo,grpo}.py measure it,
// through the whole program: prompts, responses of fixed length, rewards,
// inference of the other models, advantages, four mini-batches. Seconds are
// those from one commit to the next; the work is counted in the run's trace,
// and the benchmark fails where it is not the card's. On GPUs, `--threads` of
// them, it stands beside the step that `troupe plan simulate` expects.
#include "card_folder.hpp"
#include "iteration_settings.hpp"
#include "prediction.hpp"
#include "troupe_run.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>

namespace troupe::bench {
namespace {

/// PPO or GRPO.
struct Iteration {
  const char* workflow;           ///< and its part of the card
  std::vector<std::string> calls; ///< with weights, during generation
};

struct Expected {
  double samples = 0;
  double tokens = 0; ///< of a step's sequences
  double optimizer_steps = 0;
};

Expected expected_of(const nlohmann::json& sizes) {
  const double samples
    = sizes.at("prompts").get<double>() * sizes.value("group", 1.0);
  const double length = sizes.at("prompt_len").get<double>()
                        + sizes.at("new_tokens").get<double>();
  return {samples, samples * length,
          sizes.at("minibatches").get<double>()
            * sizes.value("ppo_epochs", 1.0)};
}

// Returns the processors of a run: on GPUs it has all, as its kernels need
// none.
int processors_of(const Options& options) {
  const auto all = static_cast<int>(std::thread::hardware_concurrency());
  return options.device == "gpu" ? std::max(all, options.threads)
                                 : options.threads;
}

// Throws unless every step generated all of its tokens.
void check_steps(const RunSteps& steps, const Expected& expected) {
  for (const auto& line : steps.metrics)
    if (line.at("perf/total_num_tokens").get<double>() != expected.tokens
        || line.at("actor/skipped_steps").get<double>() != 0)
      throw std::runtime_error("a step did not do the card's work: "
                               + line.dump());
}

nlohmann::json checked_work(const std::map<std::string, CallWork>& work,
                            const Iteration& iteration,
                            const Expected& expected, int ranks) {
  nlohmann::json document;
  for (const auto& [call, own] : work) {
    const bool trains = call.ends_with("_train");
    const double steps = own.optimizer_steps / ranks; // one per rank
    if (own.tokens != expected.tokens
        || steps != (trains ? expected.optimizer_steps : 0))
      throw std::runtime_error(call + " did not do the card's work: "
                               + std::to_string(own.tokens) + " tokens, "
                               + std::to_string(steps) + " optimizer steps");
    document[call] = {{"tokens", own.tokens}, {"optimizer_steps", steps}};
  }
  for (const auto& call : iteration.calls)
    if (!document.contains(call))
      throw std::runtime_error(call + " did not run");
  return document;
}

// Medians of the parts of a step, as the run reports them.
nlohmann::json split_of(const RunSteps& steps, std::size_t first,
                        std::size_t last) {
  std::map<std::string, std::vector<double>> parts;
  for (std::size_t i = first; i <= last; ++i)
    for (const auto& [key, value] : steps.metrics[i].items())
      if (key.starts_with("timing_s/") && key != "timing_s/step")
        parts[key.substr(9)].push_back(value);
  nlohmann::json split;
  for (const auto& [name, seconds] : parts)
    split[name] = summary(seconds)["median"];
  return split;
}

nlohmann::json measure(const Options& options, const Iteration& iteration) {
  const auto card = read_card(options);
  const CardFolder folder(card, iteration.workflow);
  const RunRequest request{
    .settings = iteration_settings(options, folder, iteration.workflow),
    .run_folder = folder.root() / "runs" / "bench",
    .threads = processors_of(options)};
  const RunSteps steps = run_steps(request);

  const Expected expected = expected_of(card.at(iteration.workflow));
  check_steps(steps, expected);
  const auto first = static_cast<std::uint32_t>(iteration_warm_up_steps);
  const auto last = first + static_cast<std::uint32_t>(options.runs) - 1;
  const auto work
    = checked_work(traced_work(request.run_folder, first, last), iteration,
                   expected, static_cast<int>(iteration_devices(options)));
  const auto measured = [&](const std::vector<double>& all) {
    return summary({all.begin() + first, all.begin() + last + 1});
  };
  const auto time = measured(options.cpu_clock ? steps.cpu_s : steps.wall_s);
  nlohmann::json document{
    {"s_per_iter", time["median"]},
    {"s_per_iter_min", time["min"]},
    {"s_per_iter_max", time["max"]},
    {"n", options.runs},
    {"wall_s", measured(steps.wall_s)},
    {"cpu_s", measured(steps.cpu_s)},
    {"split_s", split_of(steps, first, last)},
    {"plan", options.plan},
    {"sequences_per_iter", expected.samples},
    {"tokens_per_iter", expected.tokens},
    {"optimizer_steps_per_iter", expected.optimizer_steps},
    {"work", work}};
  if (const KnownGpu* gpu = known_gpu(options, iteration_devices(options)))
    document["predicted"] = predicted_step_s(*gpu, request.settings);
  return document;
}

} // namespace

nlohmann::json bench_ppo(const Options& options) {
  return measure(options, {"ppo",
                           {"actor_train", "critic_train", "ref_inf", "rew_inf",
                            "critic_inf"}});
}

nlohmann::json bench_grpo(const Options& options) {
  return measure(options, {"grpo", {"actor_train"}});
}

} // namespace troupe::bench
