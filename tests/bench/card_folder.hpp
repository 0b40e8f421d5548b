// A card of shared/bench as files in a temporary folder: the models of its PPO,
// or of its GRPO the actor alone, with random weights as Hugging Face folders,
// a tokenizer and prompts; for plans config.json is enough. As in
// shared/bench/make_models.py the end token exists but can never be drawn, so
// every response has exactly the card's length.
#pragma once

#include "bench.hpp"
#include "tests/support/temp_folder.hpp"

#include <cstdint>

namespace troupe::bench {

/// Files of its models that a folder has.
enum class CardModels : std::uint8_t { whole, config };

class CardFolder {
public:
  explicit CardFolder(const nlohmann::json& card, const char* part = "ppo",
                      CardModels models = CardModels::whole);

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
