// Keys of config.json that families with experts share.
#pragma once

#include "config/model/hf_object.hpp"
#include "config/model/model_shape.hpp"

namespace troupe {

/// Reads number, choice and width of experts: `count_key` (or Mixtral's name,
/// under which transformers 5 saves it), `num_experts_per_tok`, `width_key` and
/// `norm_topk_prob`. `absent` has the values of absent keys.
void read_experts(const HfObject& config, const char* count_key,
                  const char* width_key, const ExpertShape& absent,
                  ModelShape& shape);
/// Prints what `read_experts` reads.
void print_experts(const ModelShape& shape, const char* count_key,
                   const char* width_key, HfJson& config);

/// Returns the name in checkpoints that call the router `mlp.gate`.
StoredAs router_stored_as_gate(const ModelShape& shape,
                               const ParameterShape& parameter);

} // namespace troupe
