// Estimates how long a call takes, from its work and the machine. Times in
// seconds, sizes in bytes, work in FLOP; models one device of the mesh, as all
// do the same in parallel. Nothing else runs meanwhile (shared_cores.hpp).
// Where nodes differ, it is a device as slow as the slowest
// (cluster_hardware.hpp).
//
// Symbols: L layers, h hidden, K KV width, V vocabulary, P_l parameters of a
// layer's matrices, P of the model, e bytes per parameter; strategy d, c, p, t;
// B samples, q their tokens, M micro-batches, tok tokens of one on a device; F
// matrix FLOP/s, Fa attention FLOP/s, W device memory bytes/s, nv and ib
// bytes/s inside a node and between nodes.
//
//   layer   gemm  = max(2 P_l tok / (t F u), e P_l / (t W)),  u = w / (w + w0),
//                   w = h / t: narrow shards are slower
//           other = 2 A q tok / (t Fa) + 30 e tok h / (t W): causal attention
//                   of width A, about 30 passes over the hidden states
//           comm  = 2 (2 (t-1)/t e tok h / link + latency): two all-reduces, s
//                   sends the same; and c: 2 (c-1) e tok K / (t link) + latency
//           host  = launches; a layer takes max(gemm + other + comm, host)
//   experts E of P_e parameters each, k per token (Mixtral): the product counts
//           P_l - (E - k) P_e; reads count the experts that tok tokens touch,
//           E (1 - (1 - k/E)^tok) for a uniform router; each on a device, 1/e
//           if dealt, launches its MLP. Memory, moves, gradients count all E.
//   head    2 V h tok / (0.8 t F) + 8 V tok / (t W): fp32 logits
//   passes  of M micro-batches through p stages: sum of stages + (M-1) slowest
//   train   forward, recomputed forward, backward of twice the work (once where
//           weights are frozen beside adapters); gradients summed over d
//           (sum_Bps: a link is slower while devices compute); 30 bytes of
//           optimizer traffic per parameter, divided by d where sharded (z1,
//           z3); z3 gathers weights twice per pass and scatters gradients
//   decode  one token, one layer: max(e P_l / (t W), 2 P_l b / (0.7 t F)) +
//           max(read the KV cache of b responses, their products at Fa) + comm.
//           A graph adds the gaps between its kernels; without graphs a layer
//           takes at least the host's launches. Sampling is added per stage.
//           Of p lanes a token takes max(M slowest stage, all stages + p hops)
//   slots   responses beyond those decoded at once wait: each further batch of
//           them, and each chunk after the first, adds prompts and mean length
//   servers 6 passes over 4 bytes of each trained P, at W or a GPU's host rate
//   control call_s + call_device_s for each device of the mesh
//   GPUs    of our engine: launches, bytes and copies as counted, in place of
//           30 passes and guessed launches (gpu_cost.cpp, gpu_counts.hpp)
//
// Sources: forms and constants of 0.7, 0.8, 30 and 8: notes of the project,
// fitted to ReaL (Mei et al. 2024, arXiv 2406.14088); bubbles: Narayanan et al.
// 2021 (2104.04473); rings: Thakur et al. 2005; ZeRO: Rajbhandari et al. 2020.
#pragma once

#include "plans/cost/cost_effects.hpp"
#include "plans/cost/gpu_layer.hpp"
#include "plans/cost/mesh_span.hpp"
#include "plans/cost/model_work.hpp"
#include "plans/cost/move_cost.hpp"
#include "plans/cost/plan_problem.hpp"
#include "plans/cost/shared_cores.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace troupe::plans {

/// Bytes per parameter that an optimizer step reads and writes: all its planes.
inline constexpr double optimizer_bytes_a_parameter = 30;

/// Returns the rate at which sharded parameters are gathered.
double gather_Bps(const Hardware& hardware, bool between_nodes);

class CostModel {
public:
  /// Keeps a reference: `problem` must outlive this.
  explicit CostModel(const PlanProblem& problem, CostEffects effects = {});

  /// Returns the seconds of a call that runs alone; of its first chunk if it
  /// has chunks. Functions are free unless measured.
  double call_s(const Call& call, const Placement& placement) const;
  /// Returns the master's part of them; the master serves one call at a time.
  double master_s(const Placement& placement) const;
  /// Returns the share of its devices that work at once: pipeline stages wait
  /// for each other, generation keeps all busy with groups of responses.
  double use_of(const Call& call, const Placement& placement) const;
  /// Returns the seconds that each later chunk adds. Chunks of a generation
  /// share one batch (joined_chunks.hpp): the time of the first one includes
  /// the wait for the longest response; after it the batch has no empty slot.
  double later_chunk_s(const Call& call, const Placement& placement) const;
  /// Returns the seconds of slices [first, last] of a call in one batch.
  double slices_s(const Call& call, const Placement& placement,
                  std::uint32_t first, std::uint32_t last) const;
  /// Returns the seconds to load planes of `role` from host memory, or to
  /// offload them, without computing meanwhile.
  double planes_s(const std::string& role, const Placement& mesh,
                  const RoleMemory& planes) const;
  /// Returns the seconds to move `role` from one mesh and strategy to another.
  double move_s(const std::string& role, const Placement& from,
                const Placement& to) const;
  /// Returns at most `move_s` in closed form (least_move.hpp); 0 where nodes
  /// differ.
  double least_move_s(const std::string& role, const Strategy& from,
                      const Strategy& to) const;
  MoveBytes move_bytes_of(const std::string& role, const Placement& from,
                          const Placement& to) const;
  /// Returns the seconds to bring new weights to the call's servers.
  double update_s(const Call& call, const Placement& placement) const;
  /// Returns the same model with planned moves, on at most 128 devices.
  CostModel with_planned_moves() const;
  /// Returns a model of another problem with the same effects.
  CostModel for_problem(const PlanProblem& problem) const;

private:
  using Model = internal::ModelWork;
  struct LayerTime {
    double compute = 0, network = 0, gather = 0, host = 0;
    double backward_compute = 0, backward_host = 0;
    double forward() const;
    double backward() const;
  };
  enum class PassKind : std::uint8_t { score, train };
  /// A call being estimated.
  struct Job {
    const Model& model;
    const Placement& placement;
    MeshSpan span;
    double d, p, t;
    double last_layers;  ///< of the last stage, which has the head
    double other_layers; ///< of the largest stage before it
    double micro_batches;
    double samples;    ///< per micro-batch; of a cp group, a rank's share
    double rounds = 1; ///< of a generation: all responses over those at once
    KindSet kinds = 0; ///< of nodes that the mesh is on
  };

  struct PlannedMove;
  Job make_job(const Call& call, const Placement& placement) const;
  StageTurns turns_of(const Call& call, const Placement& placement) const;
  double work_s(const Call& call, const Job& job) const;
  double rollout_s(const Job& job) const;
  double engine_backend(const Hardware& hw) const;
  /// Returns whether our engine computes on GPUs, predicted from counts.
  bool is_counted() const;
  bool counts_decoding() const; ///< false for servers, too
  const Hardware& numbers(KindSet kinds) const;
  KindSet kinds_of(const std::vector<Rank>& devices) const;
  double link_Bps(const Job& job, bool between_nodes) const;
  double link_latency_s(const Job& job, bool between_nodes) const;
  std::optional<double> measured_s(const Job& job, ProfileOp op,
                                   double tokens) const;
  double layer_network_s(const Job& job, double tokens) const;
  double context_s(const Job& job, double tokens) const;
  LayerTime layer(const Job& job, PassKind kind, double tokens,
                  double attends) const;
  LayerTime gpu_layer(const Job& job, PassKind kind, double tokens,
                      double attends) const;
  LayerTime gpu_forward(const Job& job, double tokens, double attends,
                        const GpuLayer& given) const;
  double gpu_kernels_s(const Job& job, double tokens, double attends,
                       double products, double bytes) const;
  /// Returns the seconds of `products` products of the head per token.
  double head_s(const Job& job, PassKind kind, double tokens,
                double products) const;
  double gpu_head_s(const Job& job, PassKind kind, double tokens,
                    double products) const;
  double hop_s(const Job& job, double tokens) const;
  double slowest_s(const Job& job, double layer_s, double head) const;
  double passes_s(const Job& job, double layer, double head, double hop) const;
  double gather_s(const Job& job, double times) const;
  std::optional<double> measured_passes_s(const Job& job, ProfileOp op,
                                          double tokens, double hop) const;
  double inference_pass_s(const Job& job) const;
  double prefill_s(const Job& job, double samples, double tokens) const;
  double inference_s(const Job& job) const;
  double train_s(const Job& job) const;
  double gradients_s(const Job& job, double steps) const;
  double optimizer_s(const Job& job) const;
  double decode_s(const Job& job, const std::vector<DecodePhase>& phases) const;
  double first_responses_s(const Job& job) const;
  double steady_responses_s(const Job& job) const;
  double decode_attention_s(const Job& job, double responses,
                            double context) const;
  double decode_token_s(const Job& job, double responses, double context) const;
  double gpu_products_s(const Job& job, double tokens) const;
  double gpu_decode_read_s(const Job& job, double responses) const;
  double gpu_decode_layer_s(const Job& job, double rows, double device_s) const;
  LayerTime gpu_draw(const Job& job, double responses) const;
  double step_s(const Job& job, double responses, double context) const;
  double ring_s(const Job& job, double slowest_s, double all_s) const;
  double responses_at_once(const Call& call, const Placement& placement) const;

  const PlanProblem& problem_;
  const Hardware& hardware_;
  SharedCores cores_;
  CostEffects effects_;
  /// Shared by copies of this, in one thread; null: closed form.
  std::shared_ptr<std::vector<PlannedMove>> planned_moves_;
  std::map<std::string, Model, std::less<>> models_;
  std::vector<Hardware> slowest_; ///< by set of kinds; empty: nodes are alike
};

} // namespace troupe::plans
