#include "config/defaults.hpp"
#include "config/settings_fields.hpp"

#include <arpa/inet.h>

namespace troupe {

namespace {

bool fits_duration(const std::string& text) {
  return text.empty() || parse_duration_s(text).has_value();
}

/// "FIRST-LAST" with 1 <= FIRST <= LAST <= 65535.
bool fits_ports(const std::string& text) {
  if (text == "auto")
    return true;
  int first = 0;
  int last = 0;
  char rest = 0;
  return std::sscanf(text.c_str(), "%d-%d%c", &first, &last, &rest) == 2
         && first >= 1 && first <= last && last <= 65535;
}

/// Names would be looked up by each process for itself.
bool fits_bind(const std::string& text) {
  in6_addr room;
  return text == "auto" || inet_pton(AF_INET, text.c_str(), &room) == 1
         || inet_pton(AF_INET6, text.c_str(), &room) == 1;
}

bool fits_run_name(const std::string& text) {
  return text.find('/') == std::string::npos && text != "." && text != "..";
}

void add_run(FieldTable& table) {
  auto add = [&]<class T>(const char* key, T RunSettings::*member,
                          const char* sentence) -> Field& {
    return table.add("run", key, &Settings::run, member, sentence);
  };
  add("name", &RunSettings::name,
      "Name of the run: its folder is run.dir/run.name. Default: the name of "
      "the last settings file without its ending.")
    .shaped("a name without '/'", fits_run_name);
  add("seed", &RunSettings::seed,
      "Seed of all randomness: sampling, shuffling, new heads.")
    .at_least(0);
  add("steps", &RunSettings::steps,
      "Steps of the run: each is one pass of the workflow over one batch. 0: "
      "as run.epochs says.")
    .at_least(0);
  add("epochs", &RunSettings::epochs,
      "Passes over the data file, in place of run.steps. 0: as run.steps says.")
    .at_least(0)
    .of(SettingsGroup::sequences);
  add("dir", &RunSettings::dir,
      "Folder that run folders are made in, relative to the working directory.")
    .shaped("a folder", [](const std::string& text) { return !text.empty(); });
  add("resume", &RunSettings::resume,
      "What to do when the run folder exists. auto: continue if the settings "
      "are equal except cluster, plan, metrics, trace, eval, run.steps, "
      "run.save_every, run.keep and the cache of rollout; force: continue "
      "whatever changed; fresh: "
      "rename the old folder to NAME.1 and start over; never: stop.")
    .one_of({"auto", "force", "fresh", "never"});
  add("replay", &RunSettings::replay,
      "A samples.jsonl whose recorded responses are used in place of "
      "generation. Empty: generate.")
    .of(SettingsGroup::rollout);
  add("save_every", &RunSettings::save_every,
      "Steps between checkpoints. 0: only at the end.")
    .at_least(0);
  add("keep", &RunSettings::keep,
      "Newest checkpoints to keep; older ones are deleted. 0: all.")
    .at_least(0);
  add(
    "keep_best", &RunSettings::keep_best,
    "Name of a metric, as val-core/test/reward/mean@1: the checkpoint with its "
    "highest value (lowest where the name ends with loss) is kept too, and "
    "the run folder's link `best` points at it. Empty: none.");
  add(
    "check_moves", &RunSettings::check_moves,
    "Debugging: compare checksums of the weights on both ends of every move; "
    "a difference fails the run. Costs a pass over the weights a move, two and "
    "a copy where they are blended.");
  add("max_time", &RunSettings::max_time,
      "Wall time after which the run saves a checkpoint and exits with code "
      "75, such as 90m, 3h30m or 11:30:00. Empty: no limit.")
    .shaped("a duration such as 90m, 3h30m or 11:30:00", fits_duration);
}

void add_cluster(FieldTable& table) {
  using C = ClusterSettings;
  auto add = [&]<class T>(const char* key, T C::*member,
                          const char* sentence) -> Field& {
    return table.add("cluster", key, &Settings::cluster, member, sentence);
  };
  add("nodes", &C::nodes,
      "Hosts of the run. auto: Slurm's number if there is one, else 1.")
    .at_least(1);
  add("devices_per_node", &C::devices_per_node,
      "Devices of a host: GPUs, or CPU slots (a thread with its share of "
      "cores). auto: all GPUs, else 1 CPU slot.")
    .at_least(1);
  add("workers_per_node", &C::workers_per_node,
      "Worker processes of a host, which share its devices. auto: one a GPU, "
      "or one for all CPU slots.")
    .at_least(1);
  add("device", &C::device,
      "Kind of device. auto: gpu if there are any and this build knows them. "
      "cuda is another name of gpu.")
    .one_of({"auto", "cpu", "gpu", "cuda"});
  add(
    "launcher", &C::launcher,
    "Who starts the workers. auto: slurm inside a Slurm job of several nodes, "
    "else local. ssh: on cluster.hosts, which share the file system. manual: "
    "you, with the command that the run prints.")
    .one_of({"auto", "local", "manual", "ssh", "slurm"});
  add("hosts", &C::hosts, "Host names for the ssh launcher, one a node.")
    .needs("cluster.launcher", {"ssh"});
  add("bind", &C::bind,
      "Address that the processes listen on. auto: loopback on one node, else "
      "the address that the others reach.")
    .shaped("an IP address or auto", fits_bind);
  add("ports", &C::ports,
      "Range of TCP ports to listen on, FIRST-LAST. auto: any free ones.")
    .shaped("auto or FIRST-LAST with ports from 1 to 65535", fits_ports);
  add("tls", &C::tls,
      "Encryption of rows, weights and sums between hosts (TLS with a key of "
      "the run). auto: on, but for processes that listen on loopback. off: in "
      "clear, for a network that nobody else can read or write. The master's "
      "orders always go over TLS and only to processes that hold the key.")
    .one_of({"auto", "off"});
  add("env", &C::env, "Environment variables of the workers.");
  add("move_staging_mib", &C::move_staging_mib,
      "Most MiB that a device keeps of weights that came from another host and "
      "wait to be blended in; all else lands in its place.")
    .at_least(1);
  add("memory_reserve", &C::memory_reserve,
      "Share of each device's memory that plans leave alone, for what the "
      "libraries take and for fragmentation. auto: 0.08 on GPUs, 0 on CPUs.")
    .at_least(0)
    .below(1);
}

void add_failures(FieldTable& table) {
  using C = ClusterSettings;
  auto add = [&]<class T>(const char* key, T C::*member,
                          const char* sentence) -> Field& {
    return table.add("cluster", key, &Settings::cluster, member, sentence);
  };
  add("max_restarts", &C::max_restarts,
      "Recoveries from lost workers before the run gives up. This version "
      "stops at the first loss.")
    .at_least(0)
    .only_runs({"3", "0"});
  add("lost_node", &C::lost_node,
      "When a whole node is lost. fail: stop; wait: for it to come back; "
      "shrink: go on with a new plan for what is left.")
    .one_of({"fail", "wait", "shrink"})
    .only_runs({"fail"});
  add("silence_s", &C::silence_s,
      "Seconds without a heartbeat after which a worker, or for workers the "
      "master, is lost. auto: 30 between hosts, where a link may be down for "
      "as long, and 10 on one host. Less than the 90 after which a collective "
      "gives up, so that the one that is silent is named. The time in which "
      "the whole run was suspended (Ctrl-Z, Slurm, a paused container) does "
      "not count.")
    .at_least(2)
    .at_most(static_cast<double>(defaults::collective_deadline.count()) - 1);
  add("own_actor_timeout_s", &C::own_actor_timeout_s,
      "An own actor that has samples and gives none back for so many seconds "
      "fails the run; those that wait for a model's turn do not count.")
    .of(SettingsGroup::own_actors)
    .at_least(1);
}

std::string workflow_sentence() {
  std::string text = "What a step does.";
  for (const auto& traits : workflow_table())
    if (!traits.is_verb)
      text += (text.ends_with('.') ? " " : "; ") + traits.name + ": "
              + traits.sentence;
  return text + ".";
}

} // namespace

std::vector<Field> make_run_fields() {
  FieldTable table;
  add_run(table);
  add_cluster(table);
  add_failures(table);
  table
    .add(
      "workflow",
      [](Settings& settings, const std::string&) -> Slot {
        return &settings.workflow;
      },
      workflow_sentence())
    .one_of(workflow_names)
    .or_own(is_verb_workflow)
    .required();
  return std::move(table.fields);
}

} // namespace troupe
