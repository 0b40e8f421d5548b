#include "config/base/defaults.hpp"
#include "config/base/plain_text.hpp"
#include "config/settings/settings_fields.hpp"

#include <arpa/inet.h>

namespace troupe {

namespace {

bool fits_duration(const std::string& text) {
  return text.empty() || parse_duration_s(text).has_value();
}

/// Returns true for "FIRST-LAST" with 1 <= FIRST <= LAST <= 65535.
bool fits_ports(const std::string& text) {
  if (text == "auto")
    return true;
  int first = 0;
  int last = 0;
  char rest = 0;
  return std::sscanf(text.c_str(), "%d-%d%c", &first, &last, &rest) == 2
         && first >= 1 && first <= last && last <= 65535;
}

/// Returns true for an address; a host name would be resolved by each process
/// separately.
bool fits_bind(const std::string& text) {
  in6_addr room;
  return text == "auto" || inet_pton(AF_INET, text.c_str(), &room) == 1
         || inet_pton(AF_INET6, text.c_str(), &room) == 1;
}

bool fits_run_name(const std::string& text) {
  return is_plain_text(text) && text.find('/') == std::string::npos
         && text != "." && text != "..";
}

bool fits_folder(const std::string& text) {
  return is_plain_text(text) && !text.empty();
}

/// Returns true for what no program takes for one of its options.
bool fits_host(const std::string& text) {
  return is_plain_text(text) && !text.empty() && !text.starts_with('-')
         && text.find(' ') == std::string::npos;
}

void add_run(FieldTable& table) {
  auto add = [&]<class T>(const char* key, T RunSettings::*member,
                          const char* sentence) -> Field& {
    return table.add("run", key, &Settings::run, member, sentence);
  };
  add("name", &RunSettings::name,
      "Name of the run: its folder is run.dir/run.name. Default: the name of "
      "the last settings file without its ending.")
    .shaped("a name in one line without '/'", fits_run_name);
  add("seed", &RunSettings::seed,
      "Seed of all randomness: sampling, shuffling, new heads.")
    .at_least(0);
  add("steps", &RunSettings::steps,
      "Steps of the run: each is one pass of the workflow over one batch. "
      "0: run.epochs decides.")
    .at_least(0);
  add("epochs", &RunSettings::epochs,
      "Passes over the data file, instead of run.steps. 0: run.steps decides.")
    .at_least(0)
    .of(SettingsGroup::sequences);
  add("dir", &RunSettings::dir,
      "Folder that run folders are made in, relative to the working directory.")
    .shaped("a folder, in one line", fits_folder);
  add(
    "resume", &RunSettings::resume,
    "What to do when the run folder exists. auto: continue if the settings "
    "are equal except cluster, plan, metrics, trace, eval, run.steps, "
    "run.save_every, run.snapshot_every, run.keep and the cache of rollout; "
    "force: continue whatever changed; fresh: rename the old folder to NAME.1 "
    "and start over; never: stop.")
    .one_of({"auto", "force", "fresh", "never"});
  add("replay", &RunSettings::replay,
      "A samples.jsonl whose recorded responses are used in place of "
      "generation. Empty: generate.")
    .of(SettingsGroup::rollout);
  add("save_every", &RunSettings::save_every,
      "Steps between checkpoints. 0: only at the end.")
    .at_least(0);
  add(
    "snapshot_every", &RunSettings::snapshot_every,
    "Steps between snapshots in the hosts' memory, from which a run that lost "
    "a worker or its master continues. auto: 1 where two fit, else 0 (none).")
    .at_least(0);
  add("keep", &RunSettings::keep,
      "Newest checkpoints to keep; older ones are deleted. 0: all.")
    .at_least(0);
  add("keep_best", &RunSettings::keep_best,
      "Name of a metric, such as val-core/test/reward/mean@1: the checkpoint "
      "with its highest value (lowest where the name ends with loss) is kept "
      "too, and the run folder's link `best` points at it. Empty: none.");
  add("check_moves", &RunSettings::check_moves,
      "Debugging: compare checksums of the weights on both ends of every "
      "move; a difference fails the run. Costs a pass over the weights per "
      "move, two and a copy for an EMA update.");
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
      "Hosts of the run. auto: those of the job that Slurm, PBS, LSF or Grid "
      "Engine started, else 1.")
    .at_least(1);
  add("devices_per_node", &C::devices_per_node,
      "Devices of a host: GPUs, or CPU slots (a thread with its share of "
      "cores). auto: all GPUs, else 1 CPU slot.")
    .at_least(1);
  add("workers_per_node", &C::workers_per_node,
      "Worker processes of a host, which share its devices. auto: one per "
      "GPU, or one for all CPU slots.")
    .at_least(1);
  add("device", &C::device,
      "Kind of device. auto: gpu if there are any and this build knows them. "
      "cuda is another name of gpu.")
    .one_of({"auto", "cpu", "gpu", "cuda"});
  add(
    "launcher", &C::launcher,
    "Who starts the workers. auto: slurm inside a Slurm job of several nodes, "
    "mpi inside one of PBS, LSF or Grid Engine, else local. ssh: on "
    "cluster.hosts. mpi: mpirun, on cluster.hosts or the job's. manual: you, "
    "with the command that the run prints.")
    .one_of({"auto", "local", "manual", "ssh", "slurm", "mpi"});
  add("hosts", &C::hosts,
      "Host names for the ssh and mpi launchers, one a node.")
    .shaped("a list of host names", fits_host)
    .needs("cluster.launcher", {"ssh", "mpi"});
  add("env", &C::env,
      "Environment variables of the workers. Values are never printed: files "
      "of the run have $NAME in their place, which stands for the value in the "
      "environment of the command.")
    .secret();
  add("move_staging_mib", &C::move_staging_mib,
      "Largest buffer, in MiB per device, for weights from another host "
      "that await their EMA update, and on a GPU for what is not contiguous; "
      "all other weights are received in place.")
    .at_least(1);
}

void add_reserves(FieldTable& table) {
  auto add_reserve
    = [&](const char* key, std::optional<double> MemoryReserves::*member,
          const char* sentence) -> Field& {
    return table.add_nested("cluster", key, &Settings::cluster,
                            &ClusterSettings::reserves, member, sentence);
  };
  add_reserve(
    "memory_reserve", &MemoryReserves::memory,
    "Share of each device's memory that plans leave free. auto: 0 on CPUs; "
    "of GPUs see cluster.device_memory_reserve.")
    .at_least(0)
    .below(1);
  add_reserve(
    "device_memory_reserve", &MemoryReserves::device_memory,
    "Share of each GPU's memory that plans leave free for what they do not "
    "count: the context of the driver, NCCL's buffers, workspaces of "
    "libraries, fragmentation. auto: cluster.memory_reserve where it is "
    "given, else 0.08.")
    .at_least(0)
    .below(1);
}

void add_connections(FieldTable& table) {
  using C = ClusterSettings;
  auto add = [&]<class T>(const char* key, T C::*member,
                          const char* sentence) -> Field& {
    return table.add("cluster", key, &Settings::cluster, member, sentence);
  };
  add("bind", &C::bind,
      "Address that the processes listen on. auto: loopback on one node, else "
      "the address that the others reach.")
    .shaped("an IP address or auto", fits_bind);
  add("ports", &C::ports,
      "Range of TCP ports to listen on, FIRST-LAST. auto: any free ones.")
    .shaped("auto or FIRST-LAST with ports from 1 to 65535", fits_ports);
  add("tls", &C::tls,
      "Encryption of rows, weights and sums between hosts (TLS with a key "
      "of the run). auto: on, but for processes that listen on loopback. "
      "off: unencrypted, for a private network. The master's messages "
      "always use TLS and reach only processes that hold the key.")
    .one_of({"auto", "off"});
  add("secret", &C::secret,
      "File with the token and the key of the run; made where it is missing. "
      "Whatever starts workers by hand (launcher: manual) can then start them "
      "again, with cluster.ports FIRST-LAST of the master, and a lost worker "
      "does not end the run. Empty: new ones at each start.");
  add("shared_files", &C::shared_files,
      "Whether all hosts see the files of the run, its models and its data "
      "under the same paths. auto: workers look for a file in the run folder; "
      "those that do not find it get what they read from the master, and send "
      "it what they write, over their network connections. false: all workers "
      "do. true: a worker that does not find it ends the run.")
    .one_of({"auto", "true", "false"});
}

void add_failures(FieldTable& table) {
  using C = ClusterSettings;
  using R = RecoverySettings;
  auto add = [&]<class T>(const char* key, T C::*member,
                          const char* sentence) -> Field& {
    return table.add("cluster", key, &Settings::cluster, member, sentence);
  };
  auto add_recovery = [&]<class T>(const std::string& key, T R::*member,
                                   const char* sentence) -> Field& {
    return table.add_nested("cluster", key, &Settings::cluster, &C::recovery,
                            member, sentence);
  };
  add_recovery(
    "max_restarts", &R::max_restarts,
    "Restarts of the workers from the newest checkpoint, after one was lost "
    "or hung, before the run gives up; a newer checkpoint resets the count. "
    "0: the first loss ends the run. Workers that were started by hand "
    "(launcher: manual) can join again only with cluster.secret.")
    .at_least(0);
  add_recovery(
    "lost_node", &R::lost_node,
    "When a node does not come back after a failure. fail: as any failure "
    "(cluster.max_restarts); wait: until it returns, or workers are started "
    "there by hand, with a try after 10 s, 20 s, ... 5 minutes; shrink: "
    "continue with a new plan for the hosts that are "
    "left, and with all of them once they reply again (over ssh only).")
    .one_of({"fail", "wait", "shrink"});
  add_recovery(
    "spares", &R::spares,
    "Worker processes that have loaded the program and wait for the next "
    "attempt, which then need not start them; for workers that the run starts "
    "here or over ssh. An attempt starts all workers, so less than their "
    "number shortens no recovery. Each takes some memory of its host. 0: "
    "none.")
    .at_least(0);
  add("silence_s", &C::silence_s,
      "Seconds without a heartbeat after which a worker, or for workers the "
      "master, is lost. auto: 30 between hosts, where a link may be down "
      "for as long, and 10 on one host. Less than the 90 after which a "
      "collective gives up, so that the silent process is named. The time "
      "in which the whole run was suspended (Ctrl-Z, Slurm, a paused "
      "container) does not count.")
    .at_least(2)
    .at_most(static_cast<double>(defaults::collective_deadline.count()) - 1);
  add("own_actor_timeout_s", &C::own_actor_timeout_s,
      "A user-defined actor that has samples and returns none for this many "
      "seconds fails the run; samples that wait for a model's turn do not "
      "count.")
    .of(SettingsGroup::user_actors)
    .at_least(1);
}

std::string workflow_sentence() {
  std::string text = "What a step does.";
  for (const auto& traits : workflow_table())
    if (!traits.is_command)
      text += (text.ends_with('.') ? " " : "; ") + traits.name + ": "
              + traits.sentence;
  return text + ".";
}

} // namespace

std::vector<Field> make_run_fields() {
  FieldTable table;
  add_run(table);
  add_cluster(table);
  add_reserves(table);
  add_connections(table);
  add_failures(table);
  table
    .add(
      "workflow",
      [](Settings& settings, const std::string&) -> Slot {
        return &settings.workflow;
      },
      workflow_sentence())
    .one_of(workflow_names)
    .or_own(is_command_workflow)
    .required();
  return std::move(table.fields);
}

} // namespace troupe
