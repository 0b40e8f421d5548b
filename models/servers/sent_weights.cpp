#include "models/servers/sent_weights.hpp"

#include "config/base/error.hpp"
#include "models/hf/stored_parameters.hpp"
#include "models/parallel/parameters.hpp"
#include "net/base/sha256.hpp"

#include <nlohmann/json.hpp>

#include <cstring>

namespace troupe::models {

namespace {

/// Begin of the data in the file: a cache line.
constexpr std::size_t sent_alignment = 64;

std::vector<ParameterValues> values_of(const Parameters& parameters) {
  const auto plane = std::as_bytes(parameters.plane(Plane::weight));
  std::vector<ParameterValues> values;
  for (std::size_t i = 0; i < parameters.shapes().size(); ++i) {
    const auto& shape = parameters.shapes()[i];
    values.push_back(
      {&shape,
       plane.subspan(
         static_cast<std::size_t>(parameters.offset(i)) * sizeof(float),
         static_cast<std::size_t>(shape.num_elements()) * sizeof(float))});
  }
  return values;
}

/// Returns the header of a safetensors file, its length in front, for tensors
/// that follow one another.
std::string sent_header(std::span<const TensorToStore> tensors) {
  auto header = nlohmann::json::object();
  std::uint64_t at = 0;
  for (const auto& tensor : tensors) {
    header[tensor.name] = {{"dtype", "F32"},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + tensor.data.size()}}};
    at += tensor.data.size();
  }
  auto text = header.dump();
  std::uint64_t length = text.size();
  const auto whole = (sizeof length + length + sent_alignment - 1)
                     / sent_alignment * sent_alignment;
  length = whole - sizeof length;
  text.resize(length, ' ');
  std::string file(sizeof length, ' ');
  std::memcpy(file.data(), &length, sizeof length);
  return file + text;
}

} // namespace

void SentWeights::take(const Parameters& parameters) {
  const auto values = values_of(parameters);
  const FileTensors files(values, DType::f32);
  const auto header = sent_header(files.tensors());
  tensors_.clear();
  num_bytes_ = 0;
  for (const auto& tensor : files.tensors()) {
    tensors_.push_back(
      {tensor.name, "F32", tensor.shape, header.size() + num_bytes_, ""});
    num_bytes_ += tensor.data.size();
  }
  // of this size to the byte, or it is no safetensors file
  if (const auto size = header.size() + num_bytes_; block_.size_bytes() != size)
    block_ = net::PageBlock(size, net::PageSharing::by_descriptor);
  if (!block_.place())
    throw FailureError({.code = Errc::io,
                        .who = "weights for servers",
                        .what = "this system has no memory files",
                        .cause = ""});
  std::memcpy(block_.data(), header.data(), header.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const auto& data = files.tensors()[i].data;
    std::memcpy(block_.data() + tensors_[i].offset, data.data(), data.size());
    tensors_[i].sha256 = net::sha256_hex(data);
  }
}

std::string SentWeights::path() const {
  const auto place = block_.place();
  TROUPE_CHECK(place, "no weights were taken");
  return "/proc/" + std::to_string(place->process) + "/fd/"
         + std::to_string(place->descriptor);
}

} // namespace troupe::models
