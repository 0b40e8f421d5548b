// The sections of a run's settings: plain structs whose member names are the
// YAML keys and whose initial values are the defaults.
#pragma once

#include "config/settings/agent_settings.hpp"
#include "config/settings/algorithm_settings.hpp"
#include "config/settings/model_settings.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace troupe {

struct RunSettings {
  std::string name; ///< default: last settings file without extension
  std::uint64_t seed = 1;
  int steps = 0;  ///< 0: given by epochs
  int epochs = 0; ///< sft, reward, dpo; 0: given by steps
  std::string dir = "runs";
  std::string resume = "auto"; ///< auto | force | fresh | never
  std::string replay;
  int save_every = 20;               ///< steps; 0: only at the end
  std::optional<int> snapshot_every; ///< steps; 0: none; {}: auto
  int keep = 3;                      ///< checkpoints; 0: all
  std::string keep_best;
  bool check_moves = false; ///< checksums of the weights at each move
  std::string max_time;     ///< "" or a duration, see `parse_duration_s`
};

/// Keys of `cluster` about workers that are lost.
struct RecoverySettings {
  int max_restarts = 3;
  std::string lost_node = "fail"; ///< fail | wait | shrink
  int spares = 0;                 ///< processes that wait for the next attempt
};

/// Shares of a device's memory that plans leave free; {}: auto.
struct MemoryReserves {
  std::optional<double> memory;        ///< of CPU devices
  std::optional<double> device_memory; ///< of GPUs
};

struct ClusterSettings {
  std::optional<int> nodes, devices_per_node, workers_per_node; ///< {}: auto
  std::string device = "auto";   ///< auto|cpu|gpu
  std::string launcher = "auto"; ///< auto | local | manual | ssh | slurm | mpi
  std::vector<std::string> hosts;
  std::string bind = "auto";
  std::string ports = "auto"; ///< auto | first-last
  std::string tls = "auto";   ///< auto | off
  std::string secret;         ///< file; empty: of the run, new at each start
  std::string shared_files = "auto"; ///< auto | true | false
  std::map<std::string, std::string> env;
  RecoverySettings recovery;
  std::optional<int> silence_s;  ///< {}: auto, by number of hosts
  int move_staging_mib = 64;     ///< per device
  int own_actor_timeout_s = 120; ///< between two samples
  MemoryReserves reserves;
  std::uint64_t move_staging_bytes() const {
    return static_cast<std::uint64_t>(move_staging_mib) << 20;
  }
};

/// A file of data.train, and how often its rows come beside those of others.
struct DataSource {
  std::string path;
  double weight = 0; ///< 0: none is given
  bool operator==(const DataSource&) const = default;
};

struct DataSettings {
  std::string train;               ///< one file; empty with several
  std::vector<DataSource> sources; ///< several files, or those with weights
  std::map<std::string, std::string> fields;
  std::string chat = "auto";        ///< auto | true | false
  int batch_size = 64;              ///< rows of the data file per step
  int max_prompt_tokens = 512;      ///< ppo
  int max_tokens = 1024;            ///< sft, reward, dpo: whole sequence
  std::string overlong = "skip";    ///< skip | truncate | error
  std::string on_bad_row = "error"; ///< error | skip
  bool shuffle = true;
  std::string ptx;        ///< rows that the actor is also trained on; "": none
  int ptx_batch_size = 0; ///< of them per step; 0: batch_size
};

/// Programs of others in generation: servers in place of our own engine, and
/// agents that lead conversations.
struct EngineSettings {
  std::string kind = "own";            ///< own | vllm | sglang
  std::vector<std::string> servers;    ///< one per device that generates
  std::string server_command;          ///< "": the servers run already
  std::string weights_over = "memory"; ///< memory | tcp | nccl
  AgentSettings agents;                ///< the section of that name
  bool is_own() const {
    return kind == "own";
  }
};

/// Keys of `rollout` that `troupe generate` sets.
struct GenerateCommandSettings {
  bool greedy = false;
  bool ignore_eos = false;
};

struct RolloutSettings {
  int n = 1;
  int max_new_tokens = 256;
  int min_new_tokens = 0;
  double temperature = 1.0;
  int top_k = 0; ///< 0: off
  double top_p = 1.0;
  double min_p = 0.0;
  double repetition_penalty = 1.0;
  std::vector<std::string> stop;
  std::string logprobs = "unfiltered";
  int max_batch_tokens = 2048;
  std::optional<int> max_sequences;  ///< {}: auto
  std::optional<double> kv_cache_gb; ///< {}: auto
  EngineSettings engine;
  GenerateCommandSettings command;
};

/// Rewards of responses that are too long, and whether they are trained on.
struct LongResponseSettings {
  double missing_eos = 0.0; ///< replaces a truncated response's reward; 0: off
  int overlong_tokens = 0;  ///< 0: off
  double overlong_penalty = 1.0;
  bool mask_truncated = false;
};

struct RewardSettings {
  std::string kind = "model"; ///< model | rule | python | process | http
  std::string rule = "auto";
  std::string command;
  std::string file;
  std::string function = "compute_score";
  std::string url;
  int workers = 8;
  double timeout_s = 10;
  std::string on_error = "fail"; ///< fail | zero | skip
  double scale = 1.0;
  double bias = 0.0;
  double clip = 0.0; ///< 0: off
  LongResponseSettings long_response;
  std::map<std::string, double> weights;
};

struct EvalSettings {
  std::string data;
  int every = 0; ///< steps; 0: only at start and end
  bool at_start = true;
  bool at_end = true;
  int n = 1;
  double temperature = 0.0; ///< 0: greedy
  int max_rows = 0;         ///< 0: all
  double pass_at = 0.5;
};

struct MetricsSettings {
  bool console = true;
  bool jsonl = true;
  bool tensorboard = false;
  std::string prometheus = "off"; ///< off | port | host:port
  std::string command;
  std::string wandb;  ///< a project of Weights & Biases
  std::string mlflow; ///< an experiment of MLflow
};

struct TraceSettings {
  bool enabled = true;
  std::optional<int> port; ///< {}: auto
  double max_gb = 4;
};

} // namespace troupe
