#include "config/model/hf_dropout.hpp"

#include "config/model/hf_object.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <vector>

namespace troupe {

std::optional<std::string> asked_dropout(const std::string& json,
                                         const std::string& file_name) {
  const HfJson tree = parse_hf_object(json, file_name);
  const HfObject config(tree, file_name);
  const bool gpt2 = config.text("model_type", "") == "gpt2";
  const HfJson absent = gpt2 ? 0.1 : 0.0;
  std::vector<std::string> keys{"attention_dropout", "hidden_dropout",
                                "embd_pdrop", "resid_pdrop"};
  if (gpt2)
    keys.assign(gpt2_dropouts.begin(), gpt2_dropouts.end());
  for (const std::string& key : keys) {
    const HfJson* given = config.find(key);
    const HfJson& value = given == nullptr ? absent : *given;
    if (!value.is_number())
      config.fail(key, "a number");
    if (value != 0.0)
      return key + ": " + value.dump();
  }
  return std::nullopt;
}

std::optional<std::string> asked_dropout(const std::filesystem::path& folder) {
  const auto file = folder / "config.json";
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return asked_dropout(text, file.string());
}

} // namespace troupe
