#include "config/base/atomic_file.hpp"
#include "models/hf/float_convert.hpp"
#include "models/hf/safetensors.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

namespace troupe::models {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t convert_block_bytes = 1 << 20; // fits the L2 cache

const char* stored_name(DType type) {
  switch (type) {
  case DType::u8:
    return "U8";
  case DType::i32:
    return "I32";
  case DType::i64:
    return "I64";
  case DType::f16:
    return "F16";
  case DType::bf16:
    return "BF16";
  case DType::f32:
    return "F32";
  case DType::f64:
    return "F64";
  }
  return "?";
}

std::uint64_t elements_to_store(const TensorToStore& tensor) {
  std::uint64_t count = 1;
  for (const std::int64_t dim : tensor.shape)
    count *= static_cast<std::uint64_t>(dim);
  return count;
}

std::uint64_t stored_bytes(const TensorToStore& tensor) {
  return elements_to_store(tensor) * size_bytes(tensor.stored);
}

/// Returns the order of the file: large elements first, then by name, so that
/// every tensor is aligned and the bytes do not depend on the caller's order
/// (as in the Python library).
std::vector<const TensorToStore*>
file_order(std::span<const TensorToStore> tensors) {
  std::vector<const TensorToStore*> order;
  order.reserve(tensors.size());
  for (const TensorToStore& tensor : tensors)
    order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return std::pair(size_bytes(b->stored), a->name)
           < std::pair(size_bytes(a->stored), b->name);
  });
  std::set<std::string_view> names;
  for (const TensorToStore* tensor : order)
    TROUPE_CHECK(names.insert(tensor->name).second,
                 "tensor stored twice: " + tensor->name);
  return order;
}

std::string header_of(const std::vector<const TensorToStore*>& order,
                      const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  std::uint64_t at = 0;
  for (const TensorToStore* tensor : order) {
    const std::uint64_t bytes = stored_bytes(*tensor);
    TROUPE_CHECK(tensor->data.size()
                   == elements_to_store(*tensor) * size_bytes(tensor->type),
                 "data and shape differ: " + tensor->name);
    header[tensor->name] = {{"dtype", stored_name(tensor->stored)},
                            {"shape", tensor->shape},
                            {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

void write_converted(AtomicFile& file, const TensorToStore& tensor,
                     std::vector<std::byte>& block) {
  if (tensor.type == tensor.stored)
    return file.write(tensor.data);
  const std::size_t step = convert_block_bytes / size_bytes(tensor.type);
  block.resize(step * size_bytes(tensor.stored));
  const std::size_t total = tensor.data.size() / size_bytes(tensor.type);
  for (std::size_t done = 0; done < total; done += step) {
    const std::size_t now = std::min(step, total - done);
    const auto target = std::span(block).first(now * size_bytes(tensor.stored));
    convert(tensor.type,
            tensor.data.subspan(done * size_bytes(tensor.type),
                                now * size_bytes(tensor.type)),
            tensor.stored, target);
    file.write(target);
  }
}

/// Returns the first tensor of each shard: greedy, in the given order.
std::vector<std::size_t> cut_shards(std::span<const TensorToStore> tensors,
                                    std::uint64_t max_shard_bytes) {
  std::vector<std::size_t> first{0};
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t bytes = stored_bytes(tensors[i]);
    if (filled > 0 && filled + bytes > max_shard_bytes) {
      first.push_back(i);
      filled = 0;
    }
    filled += bytes;
  }
  first.push_back(tensors.size());
  return first;
}

/// Removes files of an earlier save, which would otherwise count as part of
/// this one.
void remove_stale(const fs::path& folder,
                  const std::vector<std::string>& kept) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool ours
      = name == "model.safetensors" || name == "model.safetensors.index.json"
        || (name.starts_with("model-") && name.ends_with(".safetensors"));
    if (ours && std::find(kept.begin(), kept.end(), name) == kept.end())
      fs::remove(entry.path(), ignored);
  }
}

} // namespace

void write_safetensors(const fs::path& path,
                       std::span<const TensorToStore> tensors,
                       const StoreOptions& options) {
  const auto order = file_order(tensors);
  const std::string header = header_of(order, options.metadata);
  AtomicFile file(path);
  const std::uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  std::vector<std::byte> block;
  for (const TensorToStore* tensor : order)
    write_converted(file, *tensor, block);
  file.commit(options.sync);
}

std::vector<std::string> write_weights(const fs::path& folder,
                                       std::span<const TensorToStore> tensors,
                                       const StoreOptions& options) {
  const auto first = cut_shards(tensors, options.max_shard_bytes);
  const std::size_t shards = first.size() - 1;
  std::vector<std::string> names;
  nlohmann::json map = nlohmann::json::object();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards; ++i) {
    const auto part = tensors.subspan(first[i], first[i + 1] - first[i]);
    names.push_back(
      shards == 1
        ? "model.safetensors"
        : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards));
    write_safetensors(folder / names.back(), part, options);
    for (const TensorToStore& tensor : part) {
      map[tensor.name] = names.back();
      total += stored_bytes(tensor);
    }
  }
  if (shards > 1) {
    const nlohmann::json index
      = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
    names.emplace_back("model.safetensors.index.json");
    replace_file(folder / names.back(), index.dump(2) + "\n", options.sync);
  }
  remove_stale(folder, names);
  return names;
}

} // namespace troupe::models
