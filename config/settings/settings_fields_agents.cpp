#include "config/settings/settings_fields.hpp"

namespace troupe {

std::vector<Field> make_agent_fields() {
  using A = AgentSettings;
  FieldTable table;
  auto add = [&]<class T>(const char* key, T A::*member,
                          const char* sentence) -> Field& {
    return table
      .add(
        std::string("agents.") + key,
        [member](Settings& settings, const std::string&) -> Slot {
          return &(settings.rollout.engine.agents.*member);
        },
        sentence)
      .of(SettingsGroup::agents);
  };
  add(
    "command", &A::command,
    "Shell command of a program that leads the conversation of one sample: it "
    "gets the row as JSON on its standard input and the model at "
    "OPENAI_BASE_URL, with OPENAI_API_KEY. Empty: prompts are answered "
    "without one.");
  add("port", &A::port,
      "TCP port of worker 0 on the loopback address, where its programs find "
      "the model; worker i has the port after i. auto: any free one.")
    .at_least(1)
    .at_most(65535)
    .needs("agents.command");
  add("concurrency", &A::concurrency,
      "Most programs at work at once, per model replica that generates.")
    .at_least(1)
    .needs("agents.command");
  add("timeout_s", &A::timeout_s,
      "Longest time of a program, in seconds; then it is killed and the "
      "attempt has failed.")
    .above(0)
    .needs("agents.command");
  add("retries", &A::retries,
      "Times that a failed program is run again, from the start.")
    .at_least(0)
    .needs("agents.command");
  add("sandbox", &A::sandbox,
      "Words before agents.command that run it in a sandbox, as `bwrap ... "
      "--`; it must reach the loopback address. Empty: none.")
    .needs("agents.command");
  add(
    "with", &A::with,
    "Frozen roles that programs may ask too, as `\"model\": \"opponent\"` of a "
    "request, on the devices of the model that is trained; what they say is "
    "read, not trained on. Of ppo and grpo: opponent, ref.")
    .needs("agents.command");
  return std::move(table.fields);
}

} // namespace troupe
