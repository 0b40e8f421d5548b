#include "config/settings/settings.hpp"
#include "config/settings/settings_schema.hpp"

#include "tests/support/places.hpp"
#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace {

using troupe::load_settings;
using troupe::parse_settings;
using troupe::print_settings;
using troupe::Settings;

const char* const ppo_text = R"(run: {steps: 60}
workflow: ppo
models:
  actor: {path: sft/actor, optimizer: {lr: 2.0e-6, warmup: 10}}
  critic: {path: rm/reward}
  reward: {path: rm/reward}
data: {train: prompts.jsonl}
)";

const char* const sft_text = R"(run: {epochs: 2}
workflow: sft
models: {actor: {path: base}}
data: {train: text.jsonl}
)";

/// Files that are removed when the test ends.
class SettingsFiles : public ::testing::Test {
protected:
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  troupe::support::TempFolder folder_;
};

TEST(Settings, DefaultsFillOmittedSettings) {
  const auto settings = parse_settings(ppo_text, "demo.yaml");
  EXPECT_EQ(settings.run.name, "demo");
  EXPECT_EQ(settings.run.steps, 60);
  EXPECT_EQ(settings.run.seed, 1u);
  EXPECT_EQ(settings.models.at("actor").optimizer.lr, 2e-6);
  EXPECT_EQ(settings.models.at("actor").optimizer.warmup, 10);
  EXPECT_EQ(settings.models.at("critic").optimizer.lr, 1e-5);
  EXPECT_EQ(settings.models.at("critic").optimizer.betas[1], 0.95);
  EXPECT_EQ(settings.cluster.nodes, std::nullopt);
  EXPECT_EQ(settings.plan, "auto");
  EXPECT_EQ(settings.algorithm.loss.clip_ratio, (troupe::ClipRatio{0.2, 0.2}));
}

TEST_F(SettingsFiles, AModelPathMayBeRelativeToTheFileThatNamesIt) {
  const auto named = file("sft.yaml", sft_text);
  EXPECT_EQ(load_settings({named}, {}).models.at("actor").path, "base")
    << "nobody has it";
  const auto beside = folder_ / "base";
  std::filesystem::create_directory(beside);
  EXPECT_EQ(load_settings({named}, {}).models.at("actor").path,
            beside.string());
  EXPECT_EQ(
    load_settings({named}, {"models.actor.path=base"}).models.at("actor").path,
    "base")
    << "the command line means the working directory";
  const auto absolute = file("absolute.yaml", "models: {actor: {path: /base}}");
  EXPECT_EQ(load_settings({named, absolute}, {}).models.at("actor").path,
            "/base");
}

TEST(Settings, RefDefaultsToTheActorsWeights) {
  auto settings = parse_settings(ppo_text, "demo.yaml");
  EXPECT_EQ(settings.models.at("ref").path, "sft/actor");
  EXPECT_FALSE(was_set(settings, "models.ref.path"));
  settings = parse_settings(
    std::string(ppo_text) + "algorithm: {kl_in: none}\n", "demo.yaml");
  EXPECT_FALSE(settings.models.contains("ref"));
}

TEST(Settings, PlacesShowWhichSettingsTheUserSet) {
  const auto settings = parse_settings(ppo_text, "demo.yaml");
  EXPECT_TRUE(was_set(settings, "run.steps"));
  EXPECT_TRUE(was_set(settings, "run"));
  EXPECT_FALSE(was_set(settings, "run.seed"));
  EXPECT_FALSE(was_set(settings, "rollout"));
  EXPECT_EQ(place_of(settings, "models.critic.path").line, 5);
  EXPECT_EQ(place_of(settings, "models.critic").file, "demo.yaml");
  EXPECT_EQ(place_of(settings, "rollout.n").file, "");
}

TEST(Settings, EveryKindOfValueParses) {
  const auto settings = parse_settings(
    std::string(ppo_text)
      + "cluster: {nodes: 2, devices_per_node: auto, env: {A: 1, B: x y}}\n"
        "algorithm: {clip_ratio: [0.2, 0.28], whiten: no}\n"
        "rollout: {top_p: .9, max_new_tokens: +8}\n"
        "metrics: {prometheus: off}\n",
    "demo.yaml");
  EXPECT_EQ(settings.cluster.nodes, 2);
  EXPECT_EQ(settings.cluster.env.at("B"), "x y");
  EXPECT_EQ(settings.algorithm.loss.clip_ratio.high, 0.28);
  EXPECT_FALSE(settings.algorithm.whiten);
  EXPECT_EQ(settings.rollout.top_p, 0.9);
  EXPECT_EQ(settings.rollout.max_new_tokens, 8);
  EXPECT_EQ(settings.metrics.prometheus, "off");
}

TEST(Settings, ValuesOfVariablesAreNeverPrinted) {
  const auto settings = parse_settings(
    std::string(ppo_text) + "cluster: {env: {HOME: hush, A_KEY: private}}\n",
    "demo.yaml");
  const auto printed = print_settings(settings);
  EXPECT_THAT(printed, ::testing::HasSubstr("A_KEY: $A_KEY"));
  EXPECT_THAT(printed, ::testing::Not(::testing::HasSubstr("private")));
  const auto again = parse_settings(printed, "config.yaml");
  EXPECT_EQ(print_settings(again), printed);
  EXPECT_EQ(troupe::worker_environment(settings).at("HOME"), "hush");
  EXPECT_THROW(troupe::worker_environment(again), troupe::ConfigError)
    << "A_KEY is not set here";
  ::setenv("A_KEY", "from here", 1);
  EXPECT_EQ(troupe::worker_environment(again).at("A_KEY"), "from here");
  ::unsetenv("A_KEY");
}

TEST(Settings, CudaIsAnAliasOfGpu) {
  const auto settings
    = parse_settings(std::string(sft_text) + "cluster: {device: cuda}\n", "t");
  EXPECT_EQ(settings.cluster.device, "gpu");
}

TEST(Settings, MemoryLimitsAreAutoUnlessANumberIsGiven) {
  const auto make = [](const std::string& rest) {
    return parse_settings("workflow: grpo\n"
                          "models: {actor: {path: m}, ref: {path: m}}\n"
                          "reward: {kind: rule}\n"
                          "run: {steps: 1}\n"
                          "data: {train: d.jsonl}\n"
                            + rest,
                          "t");
  };
  const auto automatic = make("rollout: {n: 2}\n");
  EXPECT_FALSE(automatic.rollout.kv_cache_gb);
  EXPECT_FALSE(automatic.rollout.max_sequences);
  EXPECT_FALSE(automatic.cluster.reserves.memory);
  EXPECT_FALSE(automatic.cluster.reserves.device_memory);
  EXPECT_THAT(print_settings(automatic),
              ::testing::HasSubstr("kv_cache_gb: auto"));
  const auto given
    = make("rollout: {n: 2, kv_cache_gb: 2.5, max_sequences: 7}\n"
           "cluster: {memory_reserve: 0.1, device_memory_reserve: 0.05}\n");
  EXPECT_EQ(given.rollout.kv_cache_gb, 2.5);
  EXPECT_EQ(given.rollout.max_sequences, 7);
  EXPECT_EQ(given.cluster.reserves.memory, 0.1);
  EXPECT_EQ(given.cluster.reserves.device_memory, 0.05);
  EXPECT_EQ(parse_settings(print_settings(given), "t"), given);
  EXPECT_THROW(make("rollout: {n: 2}\n"
                    "cluster: {memory_reserve: 1}\n"),
               troupe::ConfigError);
  EXPECT_THROW(make("rollout: {n: 2}\n"
                    "cluster: {device_memory_reserve: 1}\n"),
               troupe::ConfigError);
  EXPECT_THROW(make("rollout: {kv_cache_gb: some}\n"), troupe::ConfigError);
}

TEST(Settings, WorkflowsOfCommandsCannotBeChosen) {
  const std::string yaml = "workflow: generate\n"
                           "models: {actor: {path: m}}\n"
                           "rollout: {greedy: true, n: 3}\n";
  const auto made = parse_settings(yaml, "config.yaml");
  EXPECT_EQ(parse_settings(print_settings(made), "config.yaml"), made);
  EXPECT_TRUE(made.rollout.command.greedy);
  try {
    load_settings({}, {"workflow=generate"});
    FAIL() << "accepted";
  } catch (const troupe::ConfigError& error) {
    EXPECT_STREQ(error.what(), "command line: workflow: expected one of sft, "
                               "reward, dpo, kto, ppo, grpo or distillation, "
                               "got 'generate'; try `troupe generate`");
  }
}

TEST(Settings, TheDocumentedBlockParses) {
  const auto file = troupe::support::source_folder() / "docs/interface.md";
  if (!std::filesystem::exists(file))
    GTEST_SKIP() << "no " << file;
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  const auto page = text.str();
  const auto from = page.find("```yaml\nrun:") + 8;
  ASSERT_LT(from, page.size());
  const auto block = page.substr(from, page.find("```", from) - from);
  const auto settings = parse_settings(block, "interface.yaml");
  EXPECT_EQ(settings.run.name, "tiny_ppo");
  EXPECT_EQ(settings.models.at("critic").optimizer.lr, 5e-6);
  // Every key of the page is in the table and vice versa.
  std::set<std::string> ours;
  for (const auto& field : troupe::settings_fields())
    ours.insert(field.path);
  std::set<std::string> theirs = {
    "run.epochs", "run.check_moves", "data.max_tokens",
    "rollout.repetition_penalty", "models.ROLE.optimizer.eps",
    "rollout.logprobs", "rollout.max_batch_tokens", "rollout.max_sequences",
    "rollout.kv_cache_gb", "cluster.memory_reserve",
    "cluster.device_memory_reserve", "cluster.move_staging_mib", "cluster.tls",
    "cluster.own_actor_timeout_s", "cluster.silence_s", "cluster.spares",
    "models.ROLE.ema_decay", "models.ROLE.ema_every", "models.ROLE.lora.rank",
    "models.ROLE.lora.alpha", "models.ROLE.lora.targets", "algorithm.lam_alpha",
    "algorithm.bootstrap", "algorithm.baseline", "algorithm.deviation",
    "algorithm.deviation_eps", "algorithm.whiten_batch", "algorithm.sapo_tau",
    "algorithm.cov_share", "algorithm.cov_range", "algorithm.cov_kl_coef",
    "algorithm.label_smoothing", "algorithm.pair_margin",
    "algorithm.distillation.beta", "algorithm.center_coef",
    "algorithm.desirable_weight", "algorithm.undesirable_weight",
    "algorithm.ptx_coef", "data.ptx", "data.ptx_batch_size",
    "algorithm.distillation.top_k", "algorithm.sampling_mask",
    "algorithm.max_lag", "algorithm.routing_replay",
    "models.ROLE.optimizer.router_bias_rate",
    "models.ROLE.optimizer.router_aux_loss_coef",
    "algorithm.dynamic_sampling.rounds", "rollout.engine", "rollout.servers",
    "rollout.server_command", "rollout.weights_over",
    // of the command generate
    "rollout.greedy", "rollout.ignore_eos"};
  for (const auto& [key, place] : settings.places) {
    const auto role = key.starts_with("models.")
                        ? key.substr(7, key.find('.', 7) - 7)
                        : std::string();
    theirs.insert(role.empty() ? key
                               : "models.ROLE" + key.substr(7 + role.size()));
  }
  // maps and lists that are empty on the page count as merged
  for (const char* empty : {"cluster.env", "data.fields", "reward.weights"})
    theirs.insert(empty);
  EXPECT_EQ(ours, theirs);
}

TEST(Settings, PrintedSettingsParseBackEqual) {
  for (const char* text : {ppo_text, sft_text}) {
    const auto settings = parse_settings(text, "a.yaml");
    const auto printed = print_settings(settings);
    EXPECT_EQ(parse_settings(printed, "config.yaml"), settings) << printed;
    EXPECT_EQ(print_settings(parse_settings(printed, "c.yaml")), printed);
  }
}

TEST_F(SettingsFiles, PrintedOddValuesParseBackEqual) {
  const auto settings = load_settings(
    {file("base.yaml", ppo_text),
     file("over.yaml",
          "algorithm: {clip_ratio: [0.2, 0.28], kl_in: none, gamma: 0.1}\n"
          "cluster: {devices_per_node: 4, env: {K: 'null', E: ''}}\n"
          "data: {fields: {prompt: \"{q} End with '#### <n>'.\"}}\n"
          "plan: {calls: {actor_gen: {devices: 0-3, strategy: d4}}}\n"
          "run: {name: 'null', max_time: 3h30m}\n"
          "models: {critic: {optimizer: {lr: 3.0e-7, betas: [0, .5]}}}\n")},
    {});
  EXPECT_TRUE(settings.plan_inline);
  EXPECT_EQ(settings.run.name, "null");
  const auto printed = print_settings(settings);
  EXPECT_EQ(parse_settings(printed, "config.yaml"), settings) << printed;
  EXPECT_EQ(print_settings(parse_settings(printed, "c.yaml")), printed);
}

TEST(Settings, PrintOmitsSettingsThatTheWorkflowIgnores) {
  const auto text = print_settings(parse_settings(sft_text, "a.yaml"));
  EXPECT_THAT(text, ::testing::HasSubstr("algorithm: {recompute: auto}\n"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("rollout")));
  EXPECT_THAT(text, ::testing::HasSubstr("  max_tokens: 1024\n"));
  EXPECT_THAT(text, ::testing::HasSubstr("lr: 1.0e-05"));
}

TEST_F(SettingsFiles, FilesMergeLeftToRightAndOverridesFollow) {
  const auto base = file("base.yaml", ppo_text);
  const auto over = file("over.yaml", "run: {steps: 5, seed: 7}\n"
                                      "data: {batch_size: 8}\n");
  const auto settings = load_settings(
    {base, over},
    {"run.seed=9", "rollout.n=4", "models.critic.optimizer.lr=1e-3",
     "algorithm.clip_ratio=[0.1, 0.3]", "data.fields.prompt={question}: ?"});
  EXPECT_EQ(settings.run.name, "over");
  EXPECT_EQ(settings.run.steps, 5);
  EXPECT_EQ(settings.run.seed, 9u);
  EXPECT_EQ(settings.data.batch_size, 8);
  EXPECT_EQ(settings.rollout.n, 4);
  EXPECT_EQ(settings.models.at("critic").optimizer.lr, 1e-3);
  EXPECT_EQ(settings.algorithm.loss.clip_ratio.high, 0.3);
  EXPECT_EQ(settings.data.fields.at("prompt"), "{question}: ?");
  EXPECT_EQ(place_of(settings, "run.steps").line, 1);
  EXPECT_EQ(place_of(settings, "run.seed").file, "command line");
}

TEST_F(SettingsFiles, NullRestoresTheDefault) {
  const auto base
    = file("base.yaml", std::string(ppo_text) + "rollout: {n: 4, top_k: 5}\n");
  const auto settings = load_settings({base}, {"rollout.n=null"});
  EXPECT_EQ(settings.rollout.n, 1);
  EXPECT_FALSE(was_set(settings, "rollout.n"));
  EXPECT_EQ(settings.rollout.top_k, 5);
}

TEST(Settings, DifferencesNameKeysExceptThoseThatMayChange) {
  const auto a = parse_settings(ppo_text, "a.yaml");
  auto b = a;
  EXPECT_TRUE(settings_difference(a, b).empty());
  b.run.steps = 99;
  b.plan = "single";
  b.models["actor"].optimizer.lr = 1;
  b.rollout.stop = {"x"};
  EXPECT_EQ(settings_difference(a, b),
            (std::vector<std::string>{"run.steps", "models.actor.optimizer.lr",
                                      "rollout.stop", "plan"}));
  EXPECT_EQ(
    settings_difference(a, b, troupe::resumable_changes()),
    (std::vector<std::string>{"models.actor.optimizer.lr", "rollout.stop"}));
  b.models.erase("ref");
  EXPECT_THAT(settings_difference(a, b), ::testing::Contains("models.ref"));
  EXPECT_FALSE(a == b);
}

TEST(Settings, PlacesAreNoDifference) {
  const auto a = parse_settings(ppo_text, "a.yaml");
  auto b = a;
  b.places.clear();
  EXPECT_EQ(a, b);
}

TEST(Settings, DurationsAreReadInSeconds) {
  using troupe::parse_duration_s;
  EXPECT_EQ(parse_duration_s("90"), 90);
  EXPECT_EQ(parse_duration_s("45s"), 45);
  EXPECT_EQ(parse_duration_s("90m"), 5400);
  EXPECT_EQ(parse_duration_s("3h30m"), 12600);
  EXPECT_EQ(parse_duration_s("1d2h"), 93600);
  EXPECT_EQ(parse_duration_s("1.5h"), 5400);
  EXPECT_EQ(parse_duration_s("11:30:05"), 41405);
  EXPECT_EQ(parse_duration_s("1:30"), 90);
  for (const char* bad : {"", "0", "h", "-1h", "3m4h", "1h1h", "5x", "1:99:00",
                          "1:2:3:4", "inf", "1e300"})
    EXPECT_EQ(parse_duration_s(bad), std::nullopt) << bad;
}

TEST(Settings, RolesOfEachWorkflow) {
  EXPECT_THAT(
    troupe::roles_of("ppo"),
    ::testing::ElementsAre("actor", "critic", "ref", "reward", "opponent"));
  EXPECT_THAT(troupe::roles_of("sft"), ::testing::ElementsAre("actor"));
  EXPECT_THAT(troupe::roles_of("reward"), ::testing::ElementsAre("reward"));
  EXPECT_TRUE(troupe::roles_of("nonsense").empty());
}

TEST(SettingsTable, EveryFieldIsDocumentedAndItsDefaultIsValid) {
  std::set<std::string> seen;
  for (const auto& field : troupe::settings_fields()) {
    EXPECT_TRUE(seen.insert(field.path).second) << field.path;
    EXPECT_GT(field.sentence.size(), 10u) << field.path;
    EXPECT_TRUE(field.sentence.ends_with('.')) << field.path;
    const auto text = default_text(field);
    if (!field.needs_key.empty()) {
      EXPECT_NE(troupe::find_field(field.needs_key).first, nullptr);
    }
    if (field.is_required || field.path == "run.name")
      continue;
    Settings settings;
    const auto node = troupe::parse_yaml("v: " + text, "default");
    EXPECT_NO_THROW(
      read_value(field, settings, "actor", *node.find("v"), field.path))
      << field.path << " = " << text;
    EXPECT_EQ(value_text(field, settings, "actor"), text);
  }
}

} // namespace
