// A card of shared/bench as files in a temporary folder: actor, critic and
// reward model with random weights as Hugging Face folders, a tokenizer and
// prompts. As in shared/bench/make_models.py the end token exists but can never
// be drawn, so every response has exactly the card's length.
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
  /// Returns the settings of the card's PPO, one command-line override each.
  std::vector<std::string> ppo_settings() const;
  /// Returns those of its GRPO, with a rule that gives every response the same
  /// score.
  std::vector<std::string> grpo_settings() const;

private:
  /// Returns the settings that `part` ("ppo", "grpo") of the card and every run
  /// with it have.
  std::vector<std::string> rl_settings(const char* part) const;

  nlohmann::json card_;
  support::TempFolder root_;
};

} // namespace troupe::bench
