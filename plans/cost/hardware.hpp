// A machine as numbers with unit and source: rates of a device,
// costs of the host, links. Shipped files, user-defined files and what `troupe
// profile` writes share one format:
//
//   name: a100x8
//   devices_per_node: 8
//   device: {gemm_flops: {value: 1.6e14, source: fitted}, ...}
//
// A plain number stands for {value: number, source: the file}.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe {
struct YamlNode;
}

namespace troupe::plans {

/// Share of mem_Bps that reads of the KV cache reach on a CPU: assumed.
inline constexpr double host_cache_share = 0.6;

/// Numbers of the engines of other systems, for tables that quote them.
struct QuotedEngines {
  double dschat_compute = 1;        ///< factor on the seconds of a forward pass
  double dschat_decode_layer_s = 0; ///< host cost per layer and decoded token
  double openrlhf_compute = 1;      ///< factor on the seconds of a forward pass
  double openrlhf_rounds = 1; ///< number of rollout rounds, one after the other
};

/// Seconds of the host for single kernels of a GPU.
struct KernelSeconds {
  double launch_s = 0;    ///< 0: `launch_layer_s` for those of a layer
  double copy_s = 0;      ///< small copy from or to a GPU, for which it waits
  double graph_gap_s = 0; ///< between two of a graph; 0: `launch_graph_s`
};

struct Hardware : QuotedEngines, KernelSeconds {
  std::string name = {};
  std::uint32_t devices_per_node = 1;

  // device
  double mem_bytes = 0;     ///< of one device; 0: not known, no limit
  double reserve_bytes = 0; ///< of mem_bytes, used by runtime and fragmentation
  double gemm_flops = 0;    ///< FLOP/s of large matrix products
  /// Columns of a tensor shard at which products reach half of gemm_flops.
  double gemm_width_half = 0;
  double attn_flops = 0; ///< FLOP/s of attention scores and their products
  /// Decides which kernels libtorch has for a GPU: 9 for Hopper. 0: not known.
  double compute_capability = 0;
  double mem_Bps = 0; ///< device memory, read or write
  /// Reads of the KV cache by decoding; 0: mem_Bps. In a file of CPUs (one
  /// without `mem_bytes`) it defaults to `host_cache_share` of mem_Bps.
  double cache_Bps = 0;
  /// Effective memory rate of the optimizer step; 0: mem_Bps.
  double optimizer_Bps = 0;
  /// Share of its stand-alone rate that a device has while all devices of its
  /// node work, which is how rates here are given (shared_cores.hpp). 0: all of
  /// it.
  double crowded_share = 0;
  // host
  double host_mem_bytes = 0;    ///< of a node (host.mem_bytes); 0: not known
  double launch_layer_s = 0;    ///< forward operations of one layer
  double launch_tp_extra_s = 0; ///< extra where a layer has collectives
  /// Per layer of a decode step that is replayed as a graph: the gaps between
  /// its kernels. 0: no graphs, layers are launched one by one.
  double launch_graph_s = 0;
  double stage_token_s = 0; ///< per stage, micro-batch and decoded token
  double call_s = 0;        ///< per call: messages, building batches
  /// Per call and device: the master's time for requests and replies. The
  /// master is one thread, so no step is shorter than the sum over its calls.
  double call_device_s = 0;
  double opt_step_s = 0; ///< per optimizer step, on top of its memory traffic
  double move_s = 0;     ///< per move, on top of its bytes
  // links, per device and direction
  double intra_Bps = 0;   ///< between devices of a node
  double intra_lat_s = 0; ///< per collective or message
  double inter_Bps = 0;   ///< between nodes
  double inter_lat_s = 0;
  double host_Bps = 0; ///< device to host memory (offload)
  double zero_Bps = 0; ///< gathers of sharded parameters over all devices
  /// Inside a node, while other work uses the same memory; 0: the same as
  /// alone.
  double sum_Bps = 0;    ///< gradients of data-parallel ranks
  double move_Bps = 0;   ///< weights from one replica to another
  double gather_Bps = 0; ///< sharded parameters

  std::map<std::string, std::string> sources = {}; ///< by "device.mem_bytes"
};

/// A number of a hardware file.
struct HardwareField {
  const char* section; ///< "device"
  const char* name;    ///< "mem_bytes"
  double Hardware::*value;
  const char* unit;
  bool may_be_zero;
};
const std::vector<HardwareField>& hardware_fields();
/// Sets a number by its path, "device.mem_bytes"; throws InvariantError for any
/// other.
void set_number(Hardware& hardware, const std::string& path, double value,
                const std::string& source);

/// Returns the names laptop, h100x8, h200x8, a100x8.
const std::vector<std::string>& shipped_hardware();
/// Returns the text of a shipped file; throws InvariantError for any other
/// name.
const std::string& shipped_hardware_text(const std::string& name);
/// Returns the shipped numbers to begin with on a GPU that its driver calls
/// `name`: h200x8, else h100x8, whose sources then say so, since no a100x8
/// describes our own software. `generation` is its compute capability.
Hardware hardware_of_gpu(const std::string& name, int generation);

/// Throws ConfigError with FILE:LINE for unknown keys, missing or impossible
/// numbers.
Hardware parse_hardware(const std::string& yaml, const std::string& file);
/// Parses the same from a mapping, whose place is that of missing numbers.
Hardware parse_hardware(const YamlNode& root, const std::string& file);
/// Loads a shipped file by name, or a file by path. Throws ConfigError with the
/// nearest name.
Hardware load_hardware(const std::string& name_or_file);
/// Returns a warning if `file` was profiled on another machine than this one,
/// whose profile is named `here` (empty: not known); else an empty string.
std::string of_another_machine(const Hardware& hardware,
                               const std::string& file,
                               const std::string& here);
/// Returns text that parses back to equal numbers and sources.
std::string print(const Hardware& hardware);

} // namespace troupe::plans
