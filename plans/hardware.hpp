// What a machine can do, as numbers with unit and source: rates of a device,
// costs of the host, links. Shipped files, files of users and what `troupe
// profile` writes have one format:
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

namespace troupe::plans {

/// Of mem_Bps, what reads of a cache's rows reach on a CPU: assumed.
inline constexpr double host_cache_share = 0.6;

struct Hardware {
  std::string name = {};
  std::uint32_t devices_per_node = 1;

  // device
  double mem_bytes = 0;     ///< of one device; 0: not known, no limit
  double reserve_bytes = 0; ///< of it, taken by runtime and fragmentation
  double gemm_flops = 0;    ///< FLOP/s of large matrix products
  /// Columns of a tensor shard at which products reach half of that rate.
  double gemm_width_half = 0;
  double attn_flops = 0; ///< FLOP/s of attention scores and their products
  double mem_Bps = 0;    ///< device memory, read or write
  /// Reads of the KV cache by decoding; 0: mem_Bps. A file of CPUs (one that
  /// says no `mem_bytes`) without it means `host_cache_share` of mem_Bps.
  double cache_Bps = 0;
  /// What the optimizer's step makes of its traffic; 0: mem_Bps.
  double optimizer_Bps = 0;
  /// Of its rate alone that a device has while all of its node work, as rates
  /// here are: shared_cores.hpp says what follows. 0: all of it.
  double crowded_share = 0;
  // host
  double launch_layer_s = 0;    ///< of the operations of one layer's forward
  double launch_tp_extra_s = 0; ///< more where a layer has collectives
  /// Per layer of a decode step that is replayed as a graph: its kernels start
  /// one after the other. 0: no graphs, layers are launched one by one.
  double launch_graph_s = 0;
  double stage_token_s = 0; ///< per stage, micro-batch and decoded token
  double call_s = 0;        ///< per call: messages, batch cutting
  /// Per call and device: the master's time for orders and replies. It is one
  /// thread, so no step is shorter than the sum over its calls.
  double call_device_s = 0;
  double opt_step_s = 0; ///< per optimizer step beside its memory traffic
  double move_s = 0;     ///< per move beside its bytes
  // links, per device and direction
  double intra_Bps = 0;   ///< between devices of a node
  double intra_lat_s = 0; ///< per collective or message
  double inter_Bps = 0;   ///< between nodes
  double inter_lat_s = 0;
  double host_Bps = 0; ///< device to host memory (offload)
  double zero_Bps = 0; ///< gathers of sharded parameters over all devices
  /// In a node, beside work that needs the same memory; 0: as alone.
  double sum_Bps = 0;    ///< gradients of data parallel ranks
  double move_Bps = 0;   ///< weights from one replica to another
  double gather_Bps = 0; ///< sharded parameters
  // engines of other systems, for tables that quote them
  double dschat_compute = 1;        ///< times the seconds of a forward
  double dschat_decode_layer_s = 0; ///< host cost of a decoded token's layer
  double openrlhf_compute = 1;      ///< times the seconds of a forward
  double openrlhf_rounds = 1;       ///< of rollouts, one after the other

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

/// laptop, h100x8, h200x8, a100x8.
const std::vector<std::string>& shipped_hardware();
/// The text of a shipped file; throws InvariantError for another name.
const std::string& shipped_hardware_text(const std::string& name);

/// ConfigError with FILE:LINE for unknown keys, missing or impossible numbers.
Hardware parse_hardware(const std::string& yaml, const std::string& file);
/// A shipped name, or a file. ConfigError with the nearest name.
Hardware load_hardware(const std::string& name_or_file);
/// A warning if `file` was profiled on another machine than this one, whose
/// profile has the name `here`; else nothing.
std::string of_another_machine(const Hardware& hardware,
                               const std::string& file,
                               const std::string& here);
/// Parses back to equal numbers and sources.
std::string print(const Hardware& hardware);

} // namespace troupe::plans
