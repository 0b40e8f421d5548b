// A card of shared/bench as files, made in a temporary folder: actor, critic
// and reward model with random weights as Hugging Face folders, a tokenizer and
// prompts. As in shared/bench/make_models.py the end token exists but can never
// be drawn, so every answer has exactly the card's length.
#pragma once

#include "bench.hpp"
#include "tests/support/temp_folder.hpp"

namespace troupe::bench {

class CardFolder {
public:
  explicit CardFolder(const nlohmann::json& card);

  const std::filesystem::path& root() const {
    return root_.path();
  }
  /// Settings of the card's PPO: one command-line override each.
  std::vector<std::string> ppo_settings() const;
  /// And of its GRPO, with a rule that gives every answer the same.
  std::vector<std::string> grpo_settings() const;

private:
  /// What `part` ("ppo", "grpo") of the card and every run with it say.
  std::vector<std::string> rl_settings(const char* part) const;

  nlohmann::json card_;
  support::TempFolder root_;
};

} // namespace troupe::bench
