// Shapes of the models that are trained most, so that plans for them need no
// download: a name of the Hugging Face hub stands for the numbers of its
// config.json. Enough to plan, not to train: a run reads the folder's own file.
#pragma once

#include "config/model/model_shape.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct KnownModel {
  const char* name; ///< "Qwen/Qwen2.5-7B"
  /// Parameters that its card or its files state, in 10^9; a tied head counts
  /// once.
  double billions;
  ModelShape shape;
  const char* source; ///< where its numbers were read
};

/// Returns the table, by name.
const std::vector<KnownModel>& known_models();

/// Returns the model that a name means: that of the table, or the one from
/// which it was trained, which has the same shape ("Qwen/Qwen2.5-7B-Instruct",
/// "OpenRLHF/Llama-3-8b-sft-mixture"); of a local path, its last part counts.
/// nullptr: unknown.
const KnownModel* find_known_model(std::string_view name);

} // namespace troupe
