#include "card_folder.hpp"

#include "config/model/model_shape.hpp"
#include "runtime/commands/random_model.hpp"

#include <fstream>
#include <random>

namespace troupe::bench {
namespace {

using Json = nlohmann::json;

/// Optimizer settings of the peers' scripts: AdamW at 1e-6, gradients clipped
/// at norm 1.
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

CardFolder::CardFolder(const nlohmann::json& card, const char* part,
                       CardModels models)
  : card_(card) {
  const ModelShape shape = shape_of(card);
  ModelShape scorer = shape;
  scorer.scalar_head = true;
  const auto tokenizer = root_ / "tokenizer";
  runtime::write_byte_tokenizer(tokenizer);
  const auto write = [&](const char* role, const ModelShape& of_role,
                         std::uint32_t seed) {
    if (models == CardModels::whole)
      return runtime::write_random_model(root_ / role, of_role, tokenizer,
                                         seed);
    support::write_text(root_ / role / "config.json", print_hf_config(of_role));
  };
  write("actor", shape, 20240607);
  if (part == std::string("ppo")) {
    write("reward", scorer, 20240608);
    write("critic", scorer, 20240609);
  }
  write_prompts(root_ / "prompts.jsonl", card.at(part).at("prompt_len"));
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
  // like trl_grpo.py: no reference model, the length is the reward
  words.emplace_back("algorithm.kl_in=none");
  words.emplace_back("reward.kind=rule");
  words.push_back("reward.rule=length:"
                  + std::to_string(grpo.at("new_tokens").get<int>()));
  return words;
}

} // namespace troupe::bench
