// A model as a Hugging Face folder: config.json, tensors (one file or shards
// with their index), generation_config.json, and the tokenizer's files and chat
// template copied from the source model. transformers loads what is written
// here; what is read here is checked against the model's shape.
#pragma once

#include "config/model/model_shape.hpp"
#include "models/hf/safetensors.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

/// Throws ConfigError that names what is missing unless `folder` has a
/// config.json; `key` is the setting that named it ("models.actor.path").
void require_model_folder(const std::filesystem::path& folder,
                          const std::string& key = "");

/// Opens the tensors of `folder` and checks that every parameter of `shape` is
/// there with its shape and a floating-point type. A tied or unknown head that
/// the shape does not list is ignored. Throws ConfigError naming file, tensor
/// and both shapes. Without `score.weight` in a scalar-head model
/// `missing_head` becomes true (the engine creates a zero head); it is an error
/// if `missing_head` is null.
StoredWeights open_model_weights(const std::filesystem::path& folder,
                                 const ModelShape& shape,
                                 bool* missing_head = nullptr);

/// Throws ConfigError naming file, tensor and both shapes unless the tensor has
/// the parameter's shape and a floating-point type.
void check_stored_parameter(const StoredTensor& tensor,
                            const ParameterShape& parameter);

struct HfFolderOptions {
  StoreOptions store;
  DType stored = DType::f32;    ///< type of every tensor in the files
  std::filesystem::path source; ///< folder of the tokenizer files; "": none
};

/// Writes the whole folder (created if absent). `tensors` are those of the
/// file, keyed by its names; a scalar-head shape is written as
/// *ForSequenceClassification with num_labels 1. config.json is written last: a
/// folder that has one is complete. Throws FailureError (io) naming the path,
/// InvariantError if the tensors do not match the shape.
void save_hf_folder(const std::filesystem::path& folder,
                    const ModelShape& shape, std::vector<TensorToStore> tensors,
                    const HfFolderOptions& options);

/// Makes a model's folder. Throws FailureError (io) naming the path.
void make_model_folder(const std::filesystem::path& folder);
/// Copies tokenizer files and chat templates; does nothing if `source` is empty
/// or is `folder`. Throws FailureError (io).
void copy_tokenizer_files(const std::filesystem::path& source,
                          const std::filesystem::path& folder, Sync sync);

} // namespace troupe::models
