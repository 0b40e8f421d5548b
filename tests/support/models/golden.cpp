#include "golden.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace troupe::testing {
namespace {

using Bytes = std::vector<char>;

Bytes golden_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

template <class T>
std::vector<double> golden_numbers(const char* from, std::size_t bytes) {
  std::vector<T> raw(bytes / sizeof(T));
  std::memcpy(raw.data(), from, raw.size() * sizeof(T));
  return {raw.begin(), raw.end()};
}

std::vector<double> golden_bf16(const char* from, std::size_t bytes) {
  std::vector<double> out;
  for (std::size_t at = 0; at + 1 < bytes; at += 2) {
    std::uint16_t half = 0;
    std::memcpy(&half, from + at, 2);
    out.push_back(std::bit_cast<float>(std::uint32_t{half} << 16));
  }
  return out;
}

std::vector<double> golden_decode(const std::string& dtype, const char* from,
                                  std::size_t bytes) {
  if (dtype == "F32")
    return golden_numbers<float>(from, bytes);
  if (dtype == "F64")
    return golden_numbers<double>(from, bytes);
  if (dtype == "I64")
    return golden_numbers<std::int64_t>(from, bytes);
  if (dtype == "I32")
    return golden_numbers<std::int32_t>(from, bytes);
  if (dtype == "U8" || dtype == "BOOL")
    return golden_numbers<std::uint8_t>(from, bytes);
  if (dtype == "BF16")
    return golden_bf16(from, bytes);
  throw std::runtime_error("golden dtype " + dtype);
}

} // namespace

std::vector<float> GoldenTensor::floats() const {
  return {values.begin(), values.end()};
}

std::vector<std::int32_t> GoldenTensor::ints() const {
  return {values.begin(), values.end()};
}

std::vector<std::uint8_t> GoldenTensor::mask() const {
  std::vector<std::uint8_t> out;
  for (const double value : values)
    out.push_back(value != 0 ? 1 : 0);
  return out;
}

double GoldenTensor::item() const {
  if (values.size() != 1)
    throw std::runtime_error("a golden tensor of more than one value");
  return values.front();
}

GoldenTensors read_golden(const std::filesystem::path& safetensors) {
  const Bytes bytes = golden_bytes(safetensors);
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
  const auto header
    = nlohmann::json::parse(bytes.data() + 8, bytes.data() + 8 + header_bytes);
  GoldenTensors tensors;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__")
      continue;
    const auto begin = entry["data_offsets"][0].get<std::size_t>();
    const auto end = entry["data_offsets"][1].get<std::size_t>();
    GoldenTensor tensor;
    tensor.shape = entry["shape"].get<std::vector<std::int64_t>>();
    tensor.values
      = golden_decode(entry["dtype"].get<std::string>(),
                      bytes.data() + 8 + header_bytes + begin, end - begin);
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

std::filesystem::path golden_case_folder(const std::string& name) {
  const auto first = golden_folder() / name;
  return std::filesystem::exists(first)
           ? first
           : support::source_folder() / "tests/golden/data" / name;
}

nlohmann::json read_golden_meta(const std::filesystem::path& case_folder) {
  const Bytes bytes = golden_bytes(case_folder / "meta.json");
  return nlohmann::json::parse(bytes.begin(), bytes.end());
}

OptimizerSettings golden_optimizer(const nlohmann::json& spec) {
  OptimizerSettings settings;
  settings.lr = spec["lr"];
  settings.betas = {spec["betas"][0], spec["betas"][1]};
  settings.weight_decay = spec["weight_decay"];
  settings.eps = spec["eps"];
  settings.clip = spec["clip"];
  settings.schedule = spec["schedule"];
  settings.warmup = spec["warmup_steps"];
  return settings;
}

std::vector<std::string> golden_models(bool scalar_heads) {
  auto names = golden_cases("models");
  if (!scalar_heads)
    std::erase_if(names,
                  [](const auto& name) { return name.ends_with("_score"); });
  return names;
}

std::vector<std::string> golden_cases(const std::string& part) {
  std::vector<std::string> names;
  const auto folder = golden_folder() / part;
  if (!std::filesystem::exists(folder))
    return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (std::filesystem::exists(entry.path() / "meta.json"))
      names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

} // namespace troupe::testing
