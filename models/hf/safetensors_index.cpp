#include "models/hf/safetensors.hpp"
#include "models/io/json_text.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::models {

namespace {

namespace fs = std::filesystem;

/// Returns tensor -> file name; refuses paths that could leave the folder.
std::map<std::string, std::string> read_weight_map(const fs::path& index) {
  const nlohmann::json document = internal::read_json(index);
  const auto wrong = [&](const std::string& path, const std::string& expected,
                         const std::string& got) {
    throw ConfigError({.place = {index.string(), 0},
                       .path = path,
                       .expected = expected,
                       .got = got,
                       .hint = "the index that came with the files"});
  };
  const auto map
    = document.is_object() ? document.find("weight_map") : document.end();
  if (!document.is_object() || map == document.end())
    wrong("weight_map", "an object that names the file of each tensor",
          "nothing");
  if (!map->is_object())
    wrong("weight_map", "an object", internal::kind_of(*map));
  std::map<std::string, std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string())
      wrong("weight_map: tensor '" + tensor + "'", "a file name",
            internal::kind_of(file));
    const auto name = file.get<std::string>();
    if (name.empty() || name == ".." || fs::path(name).filename() != name)
      wrong("weight_map: tensor '" + tensor + "'",
            "a file name inside the folder", "'" + name + "'");
    files.emplace(tensor, name);
  }
  return files;
}

} // namespace

StoredWeights StoredWeights::open_file(const fs::path& file) {
  StoredWeights weights;
  weights.place_ = file.string();
  weights.files_.push_back(
    std::make_unique<SafetensorsFile>(SafetensorsFile::open(file)));
  for (const StoredTensor& tensor : weights.files_.back()->tensors())
    weights.tensors_.emplace(tensor.name, &tensor);
  return weights;
}

StoredWeights StoredWeights::open(const fs::path& folder) {
  StoredWeights weights;
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(single) || !fs::exists(index)) {
    if (!fs::exists(single))
      throw ConfigError(
        {.place = {folder.string(), 0},
         .path = "",
         .expected = "model.safetensors or model.safetensors.index.json",
         .got = "neither",
         .hint = "the folder of a Hugging Face model or of a checkpoint"});
    return open_file(single);
  }
  weights.place_ = index.string();
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [tensor, file] : read_weight_map(index)) {
    const SafetensorsFile*& shard = opened[file];
    if (shard == nullptr) {
      weights.files_.push_back(std::make_unique<SafetensorsFile>(
        SafetensorsFile::open(folder / file)));
      shard = weights.files_.back().get();
    }
    const StoredTensor* found = shard->find(tensor);
    if (found == nullptr)
      throw ConfigError({.place = {(folder / file).string(), 0},
                         .path = "tensor '" + tensor + "'",
                         .expected = "it here, as the index says",
                         .got = "nothing of that name",
                         .hint = "downloading or saving the folder again"});
    weights.tensors_.emplace(tensor, found);
  }
  return weights;
}

std::vector<std::string> StoredWeights::names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_)
    names.push_back(name);
  return names;
}

const StoredTensor* StoredWeights::find(std::string_view name) const {
  const auto it = tensors_.find(name);
  return it == tensors_.end() ? nullptr : it->second;
}

const StoredTensor& StoredWeights::at(std::string_view name) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr)
    throw ConfigError(Place{place_, 0},
                      "there is no tensor '" + std::string(name) + "'");
  return *tensor;
}

} // namespace troupe::models
