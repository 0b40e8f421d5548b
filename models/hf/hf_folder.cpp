#include "models/hf/hf_folder.hpp"

#include "config/base/atomic_file.hpp"
#include "config/model/missing_folder.hpp"
#include "models/hf/peft_folder.hpp"
#include "models/hf/stored_parameters.hpp"
#include "models/io/mapped_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <string_view>

namespace troupe::models {

namespace {

namespace fs = std::filesystem;

constexpr const char* scalar_head_name = "score.weight";

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

/// Returns the given tensors in the shape's order, each checked against it.
std::vector<TensorToStore> in_model_order(const ModelShape& shape,
                                          std::vector<TensorToStore> tensors,
                                          DType stored) {
  std::map<std::string, TensorToStore*> by_name;
  for (TensorToStore& tensor : tensors)
    by_name.emplace(tensor.name, &tensor);
  std::vector<TensorToStore> ordered;
  for (const ParameterShape& parameter : parameters(shape)) {
    const std::string& name = parameter.file_name();
    if (!ordered.empty()
        && std::ranges::find(ordered, name, &TensorToStore::name)
             != ordered.end())
      continue; // one tensor holds several parameters
    const auto it = by_name.find(name);
    TROUPE_CHECK(it != by_name.end(), "tensor not given: " + name);
    TensorToStore& tensor = ordered.emplace_back(*it->second);
    tensor.shape = stored_shape(parameter);
    tensor.stored = parameter.balances ? DType::f32 : stored;
  }
  TROUPE_CHECK(ordered.size() == tensors.size(),
               "more tensors than the model has");
  return ordered;
}

std::string generation_config(const ModelShape& shape) {
  nlohmann::json config = nlohmann::json::object();
  config["_from_model_config"] = true;
  if (shape.bos >= 0)
    config["bos_token_id"] = shape.bos;
  const auto& ends = shape.ends();
  if (ends.size() == 1)
    config["eos_token_id"] = ends[0];
  else if (!ends.empty())
    config["eos_token_id"] = ends;
  if (shape.pad >= 0)
    config["pad_token_id"] = shape.pad;
  return config.dump(2) + "\n";
}

bool same_folder(const fs::path& a, const fs::path& b) {
  std::error_code ignored;
  return fs::equivalent(a, b, ignored);
}

void copy_small_file(const fs::path& from, const fs::path& to, Sync sync) {
  replace_file(to, MappedFile(from).text(), sync);
}

/// Returns the names of tokenizer files that are copied with a model if they
/// exist.
const std::vector<std::string>& tokenizer_files() {
  static const std::vector<std::string> names{
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "chat_template.json",
  };
  return names;
}

} // namespace

void check_stored_parameter(const StoredTensor& tensor,
                            const ParameterShape& parameter) {
  const auto expected = stored_shape(parameter);
  if (tensor.shape != expected)
    throw ConfigError(
      {.place = {tensor.file, 0},
       .path = "tensor '" + tensor.name + "'",
       .expected = "shape " + shape_text(expected) + " from config.json",
       .got = shape_text(tensor.shape),
       .hint = "the config.json that belongs to the weights"});
  const DType type = tensor.type();
  if (type == DType::u8 || type == DType::i32 || type == DType::i64)
    throw ConfigError({.place = {tensor.file, 0},
                       .path = "tensor '" + tensor.name + "'",
                       .expected = "floating-point numbers",
                       .got = tensor.dtype,
                       .hint = "a checkpoint in BF16, F16 or F32"});
}

void make_model_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw FailureError(Failure{Errc::io, "",
                               "cannot make the folder " + folder.string()
                                 + ": " + error.message(),
                               ""});
}

void copy_tokenizer_files(const fs::path& source, const fs::path& folder,
                          Sync sync) {
  if (source.empty() || same_folder(source, folder))
    return;
  for (const std::string& name : tokenizer_files())
    if (fs::exists(source / name))
      copy_small_file(source / name, folder / name, sync);
}

void require_model_folder(const fs::path& folder, const std::string& key) {
  const auto expected = [&](const std::string& got, const std::string& hint) {
    throw ConfigError({.place = {folder.string(), 0},
                       .path = key,
                       .expected = "the folder of a Hugging Face model",
                       .got = got,
                       .hint = hint});
  };
  const std::string right = "a path with a config.json, or a run's latest/ROLE";
  if (!fs::exists(folder))
    expected("nothing of that name", missing_folder_hint(folder));
  if (!fs::is_directory(folder))
    expected("a file", right);
  if (is_peft_folder(folder))
    expected("adapters",
             "troupe convert --model " + folder.string() + " --out MERGED");
  if (!fs::exists(folder / "config.json"))
    expected("a folder without config.json", right);
}

StoredWeights open_model_weights(const fs::path& folder,
                                 const ModelShape& shape, bool* missing_head) {
  StoredWeights weights = StoredWeights::open(folder);
  if (missing_head != nullptr)
    *missing_head = false;
  for (const ParameterShape& parameter : parameters(shape)) {
    const StoredTensor* tensor = find_stored(weights, parameter);
    if (tensor != nullptr) {
      check_stored_parameter(*tensor, parameter);
    } else if (parameter.name == scalar_head_name && missing_head != nullptr) {
      *missing_head = true;
    } else {
      throw ConfigError({.place = {folder.string(), 0},
                         .path = "tensor '" + parameter.file_name() + "'",
                         .expected = "the weights that config.json asks for",
                         .got = "nothing of that name",
                         .hint = "the config.json that belongs to the weights, "
                                 "or a whole download"});
    }
  }
  return weights;
}

void save_hf_folder(const fs::path& folder, const ModelShape& shape,
                    std::vector<TensorToStore> tensors,
                    const HfFolderOptions& options) {
  make_model_folder(folder);
  const Sync sync = options.store.sync;
  const auto ordered
    = in_model_order(shape, std::move(tensors), options.stored);
  write_weights(folder, ordered, options.store);
  copy_tokenizer_files(options.source, folder, sync);
  const fs::path given = options.source / "generation_config.json";
  if (options.source.empty() || !fs::exists(given))
    replace_file(folder / "generation_config.json", generation_config(shape),
                 sync);
  else if (!same_folder(options.source, folder))
    copy_small_file(given, folder / "generation_config.json", sync);
  ModelShape printed = shape;
  printed.stored_dtype = options.stored;
  replace_file(folder / "config.json", print_hf_config(printed), sync);
}

} // namespace troupe::models
