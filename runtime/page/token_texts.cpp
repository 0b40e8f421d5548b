#include "runtime/page/token_texts.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/settings/settings.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <sstream>
#include <vector>

namespace troupe::runtime {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

/// Folders that may have the tokenizer of a run: its last checkpoint, which
/// lies in the run, and the models that it began with.
std::vector<fs::path> tokenizer_folders(const RunFolder& folder) {
  std::vector<fs::path> folders;
  std::error_code none;
  for (const auto& entry :
       fs::directory_iterator(folder.root() / "latest", none))
    folders.push_back(entry.path());
  if (!fs::exists(folder.config_file(), none))
    return folders;
  const auto settings = load_settings({folder.config_file().string()}, {});
  for (const auto& [role, model] : settings.models)
    folders.emplace_back(model.path);
  return folders;
}

bool has_tokenizer(const fs::path& folder) {
  std::error_code none;
  return fs::exists(folder / "tokenizer.json", none)
         || fs::exists(folder / "tokenizer.model", none);
}

/// Returns a token as it stands in a text: SentencePiece's decoder leaves out
/// the blank before the first word.
std::string text_of(const models::Tokenizer& tokenizer, std::int32_t id) {
  auto text = tokenizer.decode(std::array{id}, /*skip_special=*/false);
  const auto* token = tokenizer.token_of(id);
  constexpr std::string_view word_begin = "\xE2\x96\x81";
  if (token && token->starts_with(word_begin) && !text.starts_with(' '))
    text.insert(0, " ");
  return text;
}

} // namespace

bool TokenTexts::find_tokenizer() {
  if (tokenizer_)
    return true;
  try {
    for (const auto& folder : tokenizer_folders(folder_))
      if (has_tokenizer(folder)) {
        tokenizer_ = models::Tokenizer::load(folder);
        return true;
      }
  } catch (const ConfigError& error) {
    log::runtime.debug("the page shades no tokens: "
                       + std::string(error.what()));
  }
  return false;
}

std::string TokenTexts::next(const std::string& lines) {
  if (!find_tokenizer())
    return "";
  auto texts = json::object();
  std::stringstream text(lines);
  for (std::string line; std::getline(text, line);) {
    const auto sample = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!sample.is_object() || !sample.contains("sequence_ids"))
      continue;
    for (const auto& value : sample["sequence_ids"]) {
      if (!value.is_number_integer())
        continue;
      const auto id = value.get<std::int32_t>();
      if (returned_.insert(id).second)
        texts[std::to_string(id)] = text_of(*tokenizer_, id);
    }
  }
  return texts.empty()
           ? ""
           : texts.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace troupe::runtime
