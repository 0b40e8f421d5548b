// Predictions of the cost model for a benchmark on the GPU that it runs on, by
// that GPU's shipped hardware file: the model and the numbers of `troupe plan
// simulate`, so that a figure beside its prediction tests both.
#pragma once

#include "config/model/model_shape.hpp"
#include "plans/workflow/workflow.hpp"

#include "bench.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::bench {

/// A GPU that has a shipped hardware file of our own engine.
struct KnownGpu {
  const char* word;     ///< of its name
  const char* hardware; ///< name of the file
  double dense_flops;   ///< FLOP/s of bf16 products by its data sheet
};

/// Returns the GPU that a name of the driver means; nullptr: unknown.
const KnownGpu* find_known_gpu(std::string_view name);
/// Returns the GPU of `--device gpu` if `devices` devices have one each;
/// nullptr: there is nothing to predict.
const KnownGpu* known_gpu(const Options& options, std::uint32_t devices = 1);

/// A call that a benchmark makes without the rest of a run.
struct LoneCall {
  std::vector<std::string> settings; ///< of a run of it, without a model
  plans::CallKind kind = plans::CallKind::train;
  std::uint32_t tensor_peers = 1;
};

/// Returns the seconds of such a call with a model of this shape in the dtype
/// of the command line, less those of a run's messages.
double predicted_call_s(const KnownGpu& gpu, const Options& options,
                        const ModelShape& shape, const LoneCall& call);
/// Returns the seconds of a step of a run with these settings.
double predicted_step_s(const KnownGpu& gpu,
                        const std::vector<std::string>& settings);

} // namespace troupe::bench
