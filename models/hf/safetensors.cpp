#include "models/hf/safetensors.hpp"

#include "models/hf/float_convert.hpp"
#include "models/hf/safetensors_header.hpp"

#include <utility>

namespace troupe::models {

const char* to_string(SafetensorsFault fault) noexcept {
  switch (fault) {
  case SafetensorsFault::HeaderTooSmall:
    return "HeaderTooSmall";
  case SafetensorsFault::HeaderTooLarge:
    return "HeaderTooLarge";
  case SafetensorsFault::HeaderLength:
    return "HeaderLength";
  case SafetensorsFault::HeaderNotUtf8:
    return "HeaderNotUtf8";
  case SafetensorsFault::HeaderNotJson:
    return "HeaderNotJson";
  case SafetensorsFault::HeaderSchema:
    return "HeaderSchema";
  case SafetensorsFault::UnknownDtype:
    return "UnknownDtype";
  case SafetensorsFault::DuplicateName:
    return "DuplicateName";
  case SafetensorsFault::ShapeOverflow:
    return "ShapeOverflow";
  case SafetensorsFault::SizeMismatch:
    return "SizeMismatch";
  case SafetensorsFault::OffsetsInvalid:
    return "OffsetsInvalid";
  case SafetensorsFault::DataLength:
    return "DataLength";
  }
  return "?";
}

SafetensorsError::SafetensorsError(const std::string& file,
                                   SafetensorsFault fault,
                                   const std::string& sentence)
  : ConfigError({.place = {file, 0},
                 .path = "",
                 .expected = "a whole safetensors file",
                 .got = "a malformed one (" + sentence + ")",
                 .hint = "downloading or saving it again"}),
    fault_(fault) {}

std::int64_t StoredTensor::num_elements() const noexcept {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape)
    count *= dim;
  return count;
}

DType StoredTensor::type() const {
  static const std::map<std::string, DType> known{
    {"BOOL", DType::u8}, {"U8", DType::u8},   {"I32", DType::i32},
    {"I64", DType::i64}, {"F16", DType::f16}, {"BF16", DType::bf16},
    {"F32", DType::f32}, {"F64", DType::f64},
  };
  const auto it = known.find(dtype);
  if (it == known.end())
    throw ConfigError({.place = {file, 0},
                       .path = "tensor '" + name + "'",
                       .expected = "numbers that Troupe computes with",
                       .got = dtype,
                       .hint = "a checkpoint in BF16, F16 or F32"});
  return it->second;
}

void StoredTensor::copy_to(DType target_type,
                           std::span<std::byte> target) const {
  convert(type(), data, target_type, target);
}

void StoredTensor::copy_box_to(std::int64_t row0, std::int64_t row1,
                               std::int64_t col0, std::int64_t col1,
                               DType target_type,
                               std::span<std::byte> target) const {
  const std::int64_t cols = shape.size() < 2 ? 1 : num_elements() / shape[0];
  const std::int64_t width = col1 - col0;
  const std::size_t from_bytes = size_bytes(type());
  const std::size_t to_bytes = size_bytes(target_type);
  TROUPE_CHECK(row0 >= 0 && row1 <= shape.at(0) && col0 >= 0 && col1 <= cols,
               "a box outside tensor " + name);
  // whole rows form one run
  const std::int64_t run = width == cols ? (row1 - row0) * cols : width;
  const std::int64_t runs = run == 0 ? 0 : (row1 - row0) * width / run;
  for (std::int64_t i = 0; i < runs; ++i) {
    const auto at = static_cast<std::size_t>((row0 + i) * cols + col0);
    const auto size = static_cast<std::size_t>(run);
    convert(type(), data.subspan(at * from_bytes, size * from_bytes),
            target_type,
            target.subspan(static_cast<std::size_t>(i) * size * to_bytes,
                           size * to_bytes));
  }
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  MappedFile map(path);
  SafetensorsFile file = view(map.bytes(), path.string());
  file.map_ = std::move(map);
  return file;
}

SafetensorsFile SafetensorsFile::view(std::span<const std::byte> bytes,
                                      const std::string& file_name) {
  auto header = internal::parse_safetensors_header(bytes, file_name);
  SafetensorsFile file;
  file.file_ = file_name;
  file.metadata_ = std::move(header.metadata);
  const auto data = bytes.subspan(header.data_offset);
  file.tensors_.reserve(header.tensors.size());
  for (internal::HeaderTensor& tensor : header.tensors) {
    StoredTensor stored;
    stored.file = file_name;
    stored.dtype = std::move(tensor.dtype);
    stored.shape.assign(tensor.shape.begin(), tensor.shape.end());
    stored.data = data.subspan(tensor.begin, tensor.end - tensor.begin);
    file.by_name_.emplace(tensor.name, file.tensors_.size());
    stored.name = std::move(tensor.name);
    file.tensors_.push_back(std::move(stored));
  }
  return file;
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  return it == by_name_.end() ? nullptr : &tensors_[it->second];
}

const StoredTensor& SafetensorsFile::at(std::string_view name) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr)
    throw ConfigError(Place{file_, 0},
                      "there is no tensor '" + std::string(name) + "'");
  return *tensor;
}

} // namespace troupe::models
