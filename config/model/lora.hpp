// Low-rank adapters of a model (LoRA; Hu et al. 2021, equation 3): the weight W
// of an adapted matrix stays as it is, and what is trained is a pair of narrow
// matrices A [rank, in] and B [out, rank] beside it,
//
//   y = W x + (alpha / rank) B A x.
//
// Adapters are named and stored as PEFT names and stores them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct ModelShape;
struct ParameterShape;

/// The adapters of a model; rank 0: it has none and all weights are trained.
struct LoraShape {
  std::int64_t rank = 0;
  double alpha = 0;
  /// Adapted matrices by the last word of their modules ("q_proj").
  std::vector<std::string> targets;
  bool operator==(const LoraShape&) const = default;

  bool exists() const {
    return rank > 0;
  }
  double scale() const {
    return alpha / static_cast<double>(rank);
  }
};

/// The adapters of a role and what they start from.
struct AdapterSource {
  LoraShape lora;               ///< rank 0: all weights are trained
  std::filesystem::path folder; ///< PEFT folder; "": new ones
};

/// Word among the targets that stands for every matrix that can be adapted.
inline constexpr std::string_view all_linear = "all-linear";

/// Returns the matrices of this model that can be adapted, in its order:
/// "q_proj", "k_proj", ... Left out are experts, and matrices that the family
/// stores with others in one tensor, which PEFT would adapt as one.
std::vector<std::string> lora_targets(const ModelShape& shape);

/// Returns the adapters as parameters, in the order of the matrices: for each
/// "...lora_A.weight", "...lora_B.weight". A scalar head is trained whole
/// beside them. Empty without adapters.
std::vector<ParameterShape> adapters(const ModelShape& shape);

/// Returns the parameters that training changes, replicas exchange and
/// checkpoints hold: the adapters, or without any all parameters.
std::vector<ParameterShape> trained_parameters(const ModelShape& shape);

/// Returns the model without its adapters, whose weights are frozen.
ModelShape frozen_shape(ModelShape shape);

/// Returns the names of an adapted matrix' two parameters.
std::string lora_a_name(std::string_view matrix);
std::string lora_b_name(std::string_view matrix);

} // namespace troupe
