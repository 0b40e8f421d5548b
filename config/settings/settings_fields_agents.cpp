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
    "OPENAI_BASE_URL, with OPENAI_API_KEY. outside: none is started here; "
    "programs anywhere take sessions at agents.port, with the token in "
    "RUN/.agents_token. Empty: prompts are answered without one.");
  add("port", &A::port,
      "TCP port of the master, where programs in containers or on other "
      "machines find the model of their session; on the loopback address, "
      "unless cluster.bind names another. 0: none.")
    .at_least(0)
    .at_most(65535)
    .needs("agents.command");
  add("concurrency", &A::concurrency,
      "Most sessions open at once, per model replica that generates.")
    .at_least(1)
    .needs("agents.command");
  add("timeout_s", &A::timeout_s,
      "Longest time of a program, in seconds, from its start or from when it "
      "took its session; then the attempt has failed, and a program that was "
      "started here is killed.")
    .above(0)
    .needs("agents.command");
  add("retries", &A::retries,
      "Times that a failed session is run again, from the start.")
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
