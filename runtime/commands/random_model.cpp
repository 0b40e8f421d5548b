#include "runtime/commands/random_model.hpp"

#include "models/hf/hf_folder.hpp"
#include "models/io/utf8.hpp"
#include "models/text/tokenizer/byte_level.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <random>

namespace troupe::runtime {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t pad_id = 0;
constexpr std::int32_t eos_id = 1;

std::string name_of_byte(unsigned byte) {
  std::string name;
  models::internal::append_utf8(
    name, models::tokenizer::byte_level_char(static_cast<std::uint8_t>(byte)));
  return name;
}

Json special(const char* content, std::int32_t id) {
  return {{"id", id},        {"content", content}, {"single_word", false},
          {"lstrip", false}, {"rstrip", false},    {"normalized", false},
          {"special", true}};
}

bool ends_with(const std::string& text, const char* end) {
  return text.ends_with(end);
}

// Normal weights; hidden feature 0 is the constant 1, which no layer changes
// and with which the head keeps pad and end from ever being drawn. A head that
// is the embedding has the same constant for all others, and -1 for these two.
std::vector<float> draw(const ParameterShape& own, bool tied,
                        std::mt19937& random) {
  std::vector<float> data(static_cast<std::size_t>(own.num_elements()), 1.0F);
  if (own.vector)
    return data;
  std::normal_distribution<float> normal(0.0F, 0.02F);
  for (float& x : data)
    x = normal(random);
  const auto cols = static_cast<std::size_t>(own.cols);
  if (ends_with(own.name, "o_proj.weight")
      || ends_with(own.name, "down_proj.weight"))
    std::fill_n(data.begin(), cols, 0.0F);
  if (own.name == "model.embed_tokens.weight") {
    for (std::size_t i = 0; i < data.size(); i += cols)
      data[i] = 1.0F;
    if (tied)
      data[0] = data[cols] = -1.0F;
  }
  if (own.name == "lm_head.weight") {
    for (std::size_t i = 0; i < data.size(); i += cols)
      data[i] = 0.0F;
    std::fill_n(data.begin(), 2 * cols, 0.0F);
    data[0] = data[cols] = -40.0F / std::sqrt(static_cast<float>(cols));
  }
  return data;
}

} // namespace

void write_byte_tokenizer(const std::filesystem::path& folder) {
  Json vocabulary = {{"<pad>", pad_id}, {"<eos>", eos_id}};
  for (unsigned byte = 0; byte < 256; ++byte)
    vocabulary[name_of_byte(byte)] = byte + 2;
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}};
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << Json{
    {"version", "1.0"},
    {"truncation", nullptr},
    {"padding", nullptr},
    {"added_tokens", {special("<pad>", pad_id), special("<eos>", eos_id)}},
    {"normalizer", nullptr},
    {"pre_tokenizer", byte_level},
    {"post_processor", byte_level},
    {"decoder", byte_level},
    {"model",
     {{"type", "BPE"},
      {"dropout", nullptr},
      {"unk_token", nullptr},
      {"continuing_subword_prefix", nullptr},
      {"end_of_word_suffix", nullptr},
      {"fuse_unk", false},
      {"byte_fallback", false},
      {"vocab", vocabulary},
      {"merges", Json::array()}}}};
  std::ofstream(folder / "tokenizer_config.json")
    << Json{{"tokenizer_class", "PreTrainedTokenizerFast"},
            {"eos_token", "<eos>"},
            {"pad_token", "<pad>"}};
}

void write_random_model(const std::filesystem::path& folder, ModelShape shape,
                        const std::filesystem::path& tokenizer,
                        std::uint32_t seed) {
  shape.eos = {eos_id};
  shape.pad = pad_id;
  std::mt19937 random(seed);
  const auto shapes = parameters(shape);
  std::vector<std::vector<float>> data;
  std::vector<models::TensorToStore> tensors;
  for (const ParameterShape& own : shapes) {
    data.push_back(draw(own, shape.tied_embeddings, random));
    models::TensorToStore tensor;
    tensor.name = own.name;
    tensor.shape = own.vector ? std::vector<std::int64_t>{own.rows}
                              : std::vector<std::int64_t>{own.rows, own.cols};
    tensor.data = std::as_bytes(std::span<const float>(data.back()));
    tensors.push_back(std::move(tensor));
  }
  models::HfFolderOptions options;
  options.source = tokenizer;
  models::save_hf_folder(folder, shape, std::move(tensors), options);
}

} // namespace troupe::runtime
