#include "config/hf_dropout.hpp"

#include "config/hf_object.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>

namespace troupe {

void refuse_dropout(const std::string& json, const std::string& file_name) {
  const HfJson tree = HfJson::parse(json);
  const HfObject config(tree, file_name);
  if (config.text("model_type", "") != "gpt2")
    return;
  for (const char* key : gpt2_dropouts) {
    const HfJson* given = config.find(key);
    if (given == nullptr || !given->is_number() || *given != 0.0)
      config.fail(key, "0 (this version trains without dropout)",
                  "write 0 there to train without");
  }
}

void refuse_dropout(const std::filesystem::path& folder) {
  const auto file = folder / "config.json";
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  refuse_dropout(text, file.string());
}

} // namespace troupe
