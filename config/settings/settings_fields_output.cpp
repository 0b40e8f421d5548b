#include "config/base/host_port.hpp"
#include "config/settings/settings_fields.hpp"

namespace troupe {

namespace {

bool fits_prometheus(const std::string& text) {
  return text == "off" || parse_host_port(text).has_value();
}

void add_eval(FieldTable& table) {
  using E = EvalSettings;
  auto add = [&]<class T>(const char* key, T E::*member,
                          const char* sentence) -> Field& {
    return table.add("eval", key, &Settings::eval, member, sentence);
  };
  add("data", &E::data, "JSONL file of evaluation rows. Empty: no evaluation.");
  add("every", &E::every, "Steps between evaluations. 0: none in between.")
    .at_least(0)
    .needs("eval.data");
  add("at_start", &E::at_start, "Evaluate before the first step.")
    .needs("eval.data");
  add("at_end", &E::at_end, "Evaluate after the last step.").needs("eval.data");
  add("n", &E::n, "Responses to each prompt.")
    .at_least(1)
    .of(SettingsGroup::rollout)
    .needs("eval.data");
  add("temperature", &E::temperature,
      "Sampling temperature. 0: greedy, always the likeliest token.")
    .at_least(0)
    .of(SettingsGroup::rollout)
    .needs("eval.data");
  add("max_rows", &E::max_rows, "Rows to evaluate, from the first. 0: all.")
    .at_least(0)
    .needs("eval.data");
  add("pass_at", &E::pass_at, "Reward from which an answer counts as right.")
    .of(SettingsGroup::rollout)
    .needs("eval.data");
}

void add_metrics(FieldTable& table) {
  using M = MetricsSettings;
  auto add = [&]<class T>(const char* key, T M::*member,
                          const char* sentence) -> Field& {
    return table.add("metrics", key, &Settings::metrics, member, sentence);
  };
  add("console", &M::console, "Print one line a step.");
  add("jsonl", &M::jsonl, "Write metrics.jsonl into the run folder.");
  add("tensorboard", &M::tensorboard, "Write tensorboard/ in the run folder.");
  add(
    "prometheus", &M::prometheus,
    "Where the master serves the newest metrics to Prometheus (GET /metrics): "
    "a TCP port of this host, or host:port for others too. off: nowhere.")
    .shaped("off, a port from 1 to 65535, or host:port", fits_prometheus);
  add("command", &M::command,
      "Shell command that gets each line of metrics.jsonl on its standard "
      "input. Empty: none.");
  add("wandb", &M::wandb,
      "Project of Weights & Biases that the numbers of each step and the "
      "settings are sent to, by python3 with the package wandb. Empty: none.");
  add("mlflow", &M::mlflow,
      "Experiment of MLflow that the numbers of each step and the settings are "
      "sent to, by python3 with the package mlflow. Empty: none.");
}

void add_trace(FieldTable& table) {
  using T = TraceSettings;
  auto add = [&]<class M>(const char* key, M T::*member,
                          const char* sentence) -> Field& {
    return table.add("trace", key, &Settings::trace, member, sentence);
  };
  add("enabled", &T::enabled,
      "Record events into trace/*.events of the run folder.");
  add("port", &T::port, "TCP port of the trace page. auto: any free one.")
    .at_least(1)
    .at_most(65535);
  add("max_gb", &T::max_gb,
      "Largest size of all event files of a run together, in GB (10^9 bytes): "
      "half for the master, the rest in equal parts for the workers. When a "
      "part is full, the oldest steps make room for the newest.")
    .above(0);
}

} // namespace

std::vector<Field> make_output_fields() {
  FieldTable table;
  add_eval(table);
  table.add(
    "plan",
    [](Settings& settings, const std::string&) -> Slot {
      return PlanSlot{&settings.plan, &settings.plan_inline};
    },
    "Which devices run what, and how: the name of a preset, a plan "
    "file, an inline mapping as in a plan file, or auto: search. A search says "
    "how far its plan is from a lower bound; \"proved\" means that no plan of "
    "whole calls simulates faster, beyond 8 devices none on meshes packed from "
    "either end.");
  add_metrics(table);
  add_trace(table);
  return std::move(table.fields);
}

} // namespace troupe
