#include "card_folder.hpp"

#include "config/model_shape.hpp"
#include "models/hf_folder.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>

namespace troupe::bench {
namespace {

using Json = nlohmann::json;

constexpr std::int32_t pad_id = 0;
constexpr std::int32_t eos_id = 1;

// -- the tokenizer: every byte is a token ------------------------------------

std::string utf8(unsigned point) {
  if (point < 0x80)
    return {static_cast<char>(point)};
  return {static_cast<char>(0xC0 | point >> 6),
          static_cast<char>(0x80 | (point & 0x3F))};
}

// GPT-2's printable stand-in of a byte.
std::string name_of_byte(unsigned byte, unsigned& next_free) {
  const bool printable = (byte >= 33 && byte <= 126)
                         || (byte >= 161 && byte <= 172) || byte >= 174;
  return utf8(printable ? byte : next_free++);
}

Json special(const char* content, std::int32_t id) {
  return {{"id", id},        {"content", content}, {"single_word", false},
          {"lstrip", false}, {"rstrip", false},    {"normalized", false},
          {"special", true}};
}

void write_byte_tokenizer(const std::filesystem::path& folder) {
  Json vocabulary = {{"<pad>", pad_id}, {"<eos>", eos_id}};
  unsigned next_free = 256;
  for (unsigned byte = 0; byte < 256; ++byte)
    vocabulary[name_of_byte(byte, next_free)] = byte + 2;
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

// -- models ------------------------------------------------------------------

bool ends_with(const std::string& text, const char* end) {
  return text.ends_with(end);
}

// Normal weights; hidden feature 0 is the constant 1, which no layer changes
// and by which the head pushes pad and end out of reach.
std::vector<float> draw(const ParameterShape& own, std::mt19937& random) {
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
  if (own.name == "model.embed_tokens.weight")
    for (std::size_t i = 0; i < data.size(); i += cols)
      data[i] = 1.0F;
  if (own.name == "lm_head.weight") {
    for (std::size_t i = 0; i < data.size(); i += cols)
      data[i] = 0.0F;
    std::fill_n(data.begin(), 2 * cols, 0.0F);
    data[0] = data[cols] = -40.0F / std::sqrt(static_cast<float>(cols));
  }
  return data;
}

void write_model(const std::filesystem::path& folder, ModelShape shape,
                 bool scalar_head, std::uint32_t seed) {
  shape.scalar_head = scalar_head;
  shape.eos = {eos_id};
  shape.pad = pad_id;
  std::mt19937 random(seed);
  const auto shapes = parameters(shape);
  std::vector<std::vector<float>> data;
  std::vector<models::TensorToStore> tensors;
  for (const ParameterShape& own : shapes) {
    data.push_back(draw(own, random));
    models::TensorToStore tensor;
    tensor.name = own.name;
    tensor.shape = own.vector ? std::vector<std::int64_t>{own.rows}
                              : std::vector<std::int64_t>{own.rows, own.cols};
    tensor.data = std::as_bytes(std::span<const float>(data.back()));
    tensors.push_back(std::move(tensor));
  }
  models::HfFolderOptions options;
  options.source = folder.parent_path() / "tokenizer";
  models::save_hf_folder(folder, shape, std::move(tensors), options);
}

/// As the peers' scripts: AdamW at 1e-6, gradients clipped at norm 1.
void add_trained(std::vector<std::string>& words, const char* role,
                 const std::filesystem::path& folder) {
  const std::string model = std::string("models.") + role;
  words.push_back(model + ".path=" + folder.string());
  words.push_back(model + ".optimizer.lr=1.0e-6");
  words.push_back(model + ".optimizer.clip=1.0");
}

void write_prompts(const std::filesystem::path& file, std::int64_t length) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> letter('a', 'z');
  std::ofstream out(file);
  for (int row = 0; row < 512; ++row) {
    std::string prompt(static_cast<std::size_t>(length), ' ');
    for (char& c : prompt)
      c = static_cast<char>(letter(random));
    out << Json{{"prompt", prompt}}.dump() << '\n';
  }
}

} // namespace

CardFolder::CardFolder(const nlohmann::json& card) : card_(card) {
  std::string name
    = (std::filesystem::temp_directory_path() / "troupe-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::runtime_error("cannot make a folder like " + name);
  root_ = name;
  const ModelShape shape = shape_of(card);
  write_byte_tokenizer(root_ / "tokenizer");
  write_model(root_ / "actor", shape, false, 20240607);
  write_model(root_ / "reward", shape, true, 20240608);
  write_model(root_ / "critic", shape, true, 20240609);
  write_prompts(root_ / "prompts.jsonl", card.at("ppo").at("prompt_len"));
}

CardFolder::~CardFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::vector<std::string> CardFolder::rl_settings(const char* part) const {
  const auto& sizes = card_.at(part);
  const auto number
    = [&](const char* key) { return std::to_string(sizes.at(key).get<int>()); };
  std::vector<std::string> words{
    std::string("workflow=") + part,
    "run.dir=" + (root_ / "runs").string(),
    "run.save_every=0",
    "data.train=" + (root_ / "prompts.jsonl").string(),
    "data.batch_size=" + number("prompts"),
    "data.max_prompt_tokens=" + number("prompt_len"),
    "rollout.max_new_tokens=" + number("new_tokens"),
    "algorithm.mini_batches=" + number("minibatches")};
  return words;
}

std::vector<std::string> CardFolder::ppo_settings() const {
  auto words = rl_settings("ppo");
  for (const char* role : {"actor", "critic"})
    add_trained(words, role, root_ / role);
  words.push_back(
    "algorithm.epochs="
    + std::to_string(card_.at("ppo").at("ppo_epochs").get<int>()));
  words.push_back("models.ref.path=" + (root_ / "actor").string());
  words.push_back("models.reward.path=" + (root_ / "reward").string());
  return words;
}

std::vector<std::string> CardFolder::grpo_settings() const {
  const auto& grpo = card_.at("grpo");
  auto words = rl_settings("grpo");
  add_trained(words, "actor", root_ / "actor");
  words.push_back("rollout.n=" + std::to_string(grpo.at("group").get<int>()));
  // as trl_grpo.py: no reference model, the length is the reward
  words.emplace_back("algorithm.kl_in=none");
  words.emplace_back("reward.kind=rule");
  words.push_back("reward.rule=length:"
                  + std::to_string(grpo.at("new_tokens").get<int>()));
  return words;
}

} // namespace troupe::bench
