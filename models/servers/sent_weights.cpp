#include "models/servers/sent_weights.hpp"

#include "config/base/error.hpp"
#include "models/hf/stored_parameters.hpp"
#include "models/kernels/non_temporal_copy.hpp"
#include "models/kernels/threads.hpp"
#include "models/parallel/parameters.hpp"
#include "models/servers/tensor_sum.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace troupe::models {

namespace {

/// Begin of the data in the file: a cache line.
constexpr std::size_t sent_alignment = 64;
/// Bytes that a thread takes at a time: about a millisecond.
constexpr std::size_t piece_bytes = 32 * sum_chunk_bytes;

std::vector<ParameterValues>
values_of(const std::vector<ParameterShape>& shapes,
          std::span<const std::byte> plane) {
  const auto places = padded_offsets(shapes);
  std::vector<ParameterValues> values;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    values.push_back(
      {&shapes[i],
       plane.subspan(
         static_cast<std::size_t>(places.offsets[i]) * sizeof(float),
         static_cast<std::size_t>(shapes[i].num_elements()) * sizeof(float))});
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

/// A part of a tensor that one thread copies.
struct SentPiece {
  std::size_t tensor = 0;
  std::size_t begin = 0; ///< a whole number of chunks
};

std::vector<SentPiece> pieces_of(std::span<const TensorToStore> tensors) {
  std::vector<SentPiece> pieces;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    for (std::size_t at = 0; at < tensors[i].data.size(); at += piece_bytes)
      pieces.push_back({i, at});
  return pieces;
}

/// Copies the piece that begins there to its place in `target`, which is that
/// of the whole tensor; returns its sum.
TensorSum copy_piece(std::span<const std::byte> tensor, std::size_t begin,
                     std::byte* target) {
  TensorSum sum;
  const auto end = std::min(tensor.size(), begin + piece_bytes);
  for (auto at = begin; at < end; at += sum_chunk_bytes) {
    const auto chunk = tensor.subspan(at, std::min(sum_chunk_bytes, end - at));
    sum += chunk_sum(chunk, at / sum_chunk_bytes);
    non_temporal_copy(target + at, chunk.data(), {.bytes = chunk.size()});
  }
  end_stream_copies();
  return sum;
}

} // namespace

void SentWeights::take(const Parameters& parameters, const LoraShape& lora) {
  take(parameters.shapes(), parameters.read(Plane::weight).bytes(), lora);
}

void SentWeights::take(const std::vector<ParameterShape>& shapes,
                       std::span<const std::byte> plane,
                       const LoraShape& lora) {
  adapter_scale_ = lora.exists() ? std::optional(lora.scale()) : std::nullopt;
  const auto values = values_of(shapes, plane);
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
  copy_tensors(files.tensors());
}

/// Copies and sums on all threads of the device. Sizes of tensors differ by
/// orders of magnitude, so that each thread takes the next piece of one when it
/// has done one; chunks are copied while they are in a cache, past it.
void SentWeights::copy_tensors(std::span<const TensorToStore> from) {
  const auto pieces = pieces_of(from);
  std::vector<TensorSum> sums(pieces.size());
  std::atomic<std::size_t> next = 0;
  parallel_for(0, compute_threads(), 1, [&](std::int64_t, std::int64_t) {
    for (auto i = next++; i < pieces.size(); i = next++) {
      const auto& [tensor, begin] = pieces[i];
      sums[i] = copy_piece(from[tensor].data, begin,
                           block_.data() + tensors_[tensor].offset);
    }
  });
  std::vector<TensorSum> whole(from.size());
  for (std::size_t i = 0; i < pieces.size(); ++i)
    whole[pieces[i].tensor] += sums[i];
  for (std::size_t i = 0; i < from.size(); ++i)
    tensors_[i].sum = sum_text(whole[i], from[i].data.size());
}

std::span<const std::byte> SentWeights::bytes() const {
  return {block_.data(), block_.size_bytes()};
}

std::string SentWeights::path() const {
  const auto place = block_.place();
  TROUPE_CHECK(place, "no weights were taken");
  return "/proc/" + std::to_string(place->process) + "/fd/"
         + std::to_string(place->descriptor);
}

} // namespace troupe::models
