// The hardware files that ship with the program.
#include "config/base/error.hpp"
#include "plans/cost/hardware.hpp"

#include <fmt/format.h>

#include <map>
#include <sstream>

namespace troupe::plans {

namespace {

// One A100-80G in a node of 8 under ReaL's software of 2024: constants fitted
// to the 7B and 34B rows that ReaL published (tests/bench/fit_bench.cpp prints
// them). They hold for examples/paper; label results based on them "simulated,
// constants fitted to ReaL's published cells". No other file reuses a number
// from here, because that software decodes without CUDA graphs and at a quarter
// of the memory bandwidth.
constexpr const char* a100x8_text = R"(name: a100x8
devices_per_node: 8
device:
  mem_bytes: {value: 80e9, source: "spec: A100-SXM4-80GB data sheet"}
  compute_capability: {value: 8, source: "spec: Ampere"}
  reserve_bytes: {value: 4e9, source: "assumed: CUDA context, NCCL buffers"}
  gemm_flops: {value: 1.62e14, source: "fitted to ReaL's published cells"}
  gemm_width_half: {value: 90, source: "fitted to ReaL's published cells"}
  attn_flops: {value: 8.3e13, source: "fitted to ReaL's published cells"}
  mem_Bps: {value: 8.9e11, source: "fitted to ReaL's published cells"}
  cache_Bps: {value: 5.34e11, source: "fitted to ReaL's published cells: 0.6 of mem_Bps"}
host:
  launch_layer_s: {value: 0.72e-3, source: "fitted to ReaL's published cells"}
  launch_tp_extra_s: {value: 0.65e-3, source: "fitted to ReaL's published cells"}
  launch_graph_s: {value: 0, source: "assumed: ReaL ran without CUDA graphs"}
  stage_token_s: {value: 1.26e-3, source: "fitted to ReaL's published cells"}
  call_s: {value: 0.34, source: "fitted to ReaL's published cells"}
  call_device_s: {value: 0, source: "fitted to ReaL's published cells: part of call_s"}
  opt_step_s: {value: 0.087, source: "fitted to ReaL's published cells"}
  move_s: {value: 0.31, source: "assumed, no row sees it alone"}
links:
  intra_Bps: {value: 2.38e11, source: "fitted to ReaL's published cells"}
  intra_lat_s: {value: 20e-6, source: "assumed: NCCL on NVLink"}
  inter_Bps: {value: 7.5e9, source: "fitted to ReaL's published cells"}
  inter_lat_s: {value: 40e-6, source: "assumed: NCCL on InfiniBand"}
  host_Bps: {value: 20e9, source: "spec: PCIe 4 x16, 80 %"}
  zero_Bps: {value: 1.69e10, source: "fitted to ReaL's published cells"}
engines:
  dschat_compute: {value: 2.09, source: "fitted to ReaL's published cells"}
  dschat_decode_layer_s: {value: 1.29e-3, source: "fitted to ReaL's published cells"}
  openrlhf_compute: {value: 1.3, source: "fitted by hand to ReaL's published cells"}
  openrlhf_rounds: {value: 2, source: "fitted by hand to ReaL's published cells"}
)";

// One H100 in a node of 8 with today's kernels: data sheets times the shares
// that published kernels reach. Nothing here was measured by this project.
constexpr const char* h100x8_text = R"(name: h100x8
devices_per_node: 8
device:
  mem_bytes: {value: 80e9, source: "spec: H100-SXM5-80GB data sheet"}
  compute_capability: {value: 9, source: "spec: Hopper"}
  reserve_bytes: {value: 4e9, source: "assumed: CUDA context, NCCL buffers"}
  gemm_flops: {value: 6.4e14, source: "spec: 989 TFLOP/s bf16 times 0.65, which large products reach within the power limit"}
  gemm_width_half: {value: 64, source: "assumed: half a tile of 128 columns"}
  attn_flops: {value: 3.4e14, source: "spec: 989 TFLOP/s times 0.35, FlashAttention-2 on H100: Shah et al. 2024, arXiv 2407.08608"}
  mem_Bps: {value: 2.7e12, source: "spec: 3.35 TB/s times 0.8, which streaming kernels reach"}
  cache_Bps: {value: 2.3e12, source: "spec: 3.35 TB/s times 0.7: blocks of a paged cache, short rows"}
host:
  launch_layer_s: {value: 0.2e-3, source: "assumed: 40 launches of 5 us"}
  launch_s: {value: 5e-6, source: "assumed: an operation of libtorch"}
  copy_s: {value: 15e-6, source: "assumed: a copy of a few bytes through pageable memory, and the wait for its stream"}
  launch_tp_extra_s: {value: 0.05e-3, source: "assumed: two collectives"}
  launch_graph_s: {value: 15e-6, source: "assumed: a dozen kernels of a CUDA graph, 1.2 us between two"}
  graph_gap_s: {value: 1.2e-6, source: "assumed: as launch_graph_s"}
  stage_token_s: {value: 0.3e-3, source: "assumed: sampling without Python"}
  call_s: {value: 5e-3, source: "assumed: control messages of this runtime"}
  call_device_s: {value: 80e-6, source: "assumed: as laptop"}
  opt_step_s: {value: 5e-3, source: "assumed: norm and launch"}
  move_s: {value: 10e-3, source: "assumed: messages of a move"}
links:
  intra_Bps: {value: 3.6e11, source: "spec: 450 GB/s a direction times 0.8"}
  intra_lat_s: {value: 15e-6, source: "assumed: NCCL on NVLink"}
  inter_Bps: {value: 4.0e10, source: "spec: 400 Gb/s a device times 0.8"}
  inter_lat_s: {value: 30e-6, source: "assumed: NCCL on InfiniBand"}
  host_Bps: {value: 50e9, source: "spec: PCIe 5 x16, 80 %"}
  zero_Bps: {value: 3.5e10, source: "assumed: inter_Bps less waits of a gather"}
  gather_Bps: {value: 2.5e11, source: "assumed: intra_Bps less waits of a gather"}
)";

/// Lines in which h200x8 differs from h100x8, by setting.
const std::map<std::string, std::string>& h200x8_lines() {
  static const std::map<std::string, std::string> lines = {
    {"name", "name: h200x8"},
    {"mem_bytes",
     R"(  mem_bytes: {value: 141e9, source: "spec: H200-SXM data sheet"})"},
    {"gemm_flops",
     R"(  gemm_flops: {value: 6.4e14, source: "spec: as h100x8, the same cores"})"},
    {"attn_flops",
     R"(  attn_flops: {value: 3.4e14, source: "spec: as h100x8, the same cores"})"},
    {"mem_Bps",
     R"(  mem_Bps: {value: 3.8e12, source: "spec: 4.8 TB/s times 0.8"})"},
    {"cache_Bps",
     R"(  cache_Bps: {value: 3.4e12, source: "spec: 4.8 TB/s times 0.7"})"}};
  return lines;
}

/// Returns `text` with the lines of some settings replaced.
std::string with_lines(const std::string& text,
                       const std::map<std::string, std::string>& lines) {
  std::istringstream source(text);
  std::string changed;
  std::size_t found = 0;
  for (std::string line; std::getline(source, line);) {
    const auto begin = line.find_first_not_of(' ');
    const auto other = lines.find(line.substr(begin, line.find(':') - begin));
    found += other != lines.end();
    changed += (other == lines.end() ? line : other->second) + "\n";
  }
  TROUPE_CHECK(found == lines.size(), "a setting that the text does not have");
  return changed;
}

// One device is one core. `troupe profile` measures the actual machine.
constexpr const char* laptop_text = R"(name: laptop
devices_per_node: 8
device:
  mem_bytes: {value: 0, source: "assumed: not known, the host's memory is shared"}
  gemm_flops: {value: 6e10, source: "assumed: fp32 products of one core with AVX2"}
  gemm_width_half: {value: 16, source: "assumed"}
  attn_flops: {value: 2e10, source: "assumed"}
  mem_Bps: {value: 1.0e10, source: "assumed: one core of a laptop"}
  cache_Bps: {value: 6e9, source: "assumed: 0.6 of mem_Bps"}
host:
  launch_layer_s: {value: 20e-6, source: "assumed: dispatch of 20 operations"}
  launch_tp_extra_s: {value: 20e-6, source: "assumed: two collectives of threads"}
  stage_token_s: {value: 20e-6, source: "assumed: sampling"}
  call_s: {value: 1e-3, source: "assumed: control messages of this runtime"}
  call_device_s: {value: 80e-6, source: "assumed: what the master took for 2 to 64 CPU devices with a worker each"}
  opt_step_s: {value: 0.5e-3, source: "assumed"}
  move_s: {value: 1e-3, source: "assumed: messages of a move"}
links:
  intra_Bps: {value: 4e9, source: "assumed: shared memory between processes"}
  intra_lat_s: {value: 10e-6, source: "assumed: barrier of threads"}
  inter_Bps: {value: 1.2e9, source: "assumed: 10 Gb/s network"}
  inter_lat_s: {value: 100e-6, source: "assumed: TCP"}
  host_Bps: {value: 5e9, source: "assumed: memcpy"}
  zero_Bps: {value: 4e9, source: "assumed: as intra_Bps"}
)";

const std::map<std::string, std::string>& shipped_texts() {
  static const std::map<std::string, std::string> texts
    = {{"a100x8", a100x8_text},
       {"h100x8", h100x8_text},
       {"h200x8", with_lines(h100x8_text, h200x8_lines())},
       {"laptop", laptop_text}};
  return texts;
}

} // namespace

const std::vector<std::string>& shipped_hardware() {
  static const std::vector<std::string> names
    = {"laptop", "h100x8", "h200x8", "a100x8"};
  return names;
}

const std::string& shipped_hardware_text(const std::string& name) {
  const auto found = shipped_texts().find(name);
  TROUPE_CHECK(found != shipped_texts().end(),
               fmt::format("no hardware '{}'", name));
  return found->second;
}

Hardware hardware_of_gpu(const std::string& name, int generation) {
  const auto has
    = [&](const char* part) { return name.find(part) != std::string::npos; };
  const bool is_superchip = has("GH200"); // of another memory
  const bool is_h200 = has("H200") && !is_superchip;
  auto hardware = load_hardware(is_h200 ? "h200x8" : "h100x8");
  if (!is_h200 && (!has("H100") || is_superchip))
    for (auto& [path, source] : hardware.sources)
      source = "assumed: as h100x8, " + source;
  set_number(hardware, "device.compute_capability", generation,
             "measured: as the driver says");
  return hardware;
}

} // namespace troupe::plans
