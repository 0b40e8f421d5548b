#include "plans/foreign/command_flags.hpp"

#include "config/yaml/yaml_tree.hpp"

#include <algorithm>
#include <cctype>
#include <set>

namespace troupe::plans {

namespace {

/// Programs of launch scripts whose flags say nothing of training.
bool is_helper(const std::string& program) {
  static const std::set<std::string> helpers
    = {"set",        "cd",   "mkdir",  "echo",   "pip",
       "pip3",       "git",  "source", ".",      "hf",
       "sleep",      "kill", "docker", "ulimit", "unset",
       "test",       "cat",  "rm",     "cp",     "wget",
       "curl",       "apt",  "which",  "printf", "huggingface-cli",
       "nvidia-smi", "[",    "[[",     "pkill",  "wait",
       "ln"};
  return helpers.contains(program);
}

bool is_flag(const std::string& word) {
  double number = 0; // -1 is a value
  return word.size() > 1 && word[0] == '-' && word != "--"
         && !read_whole(word, number);
}

/// Returns whether a word is Hydra's key=value: a name with letters before "=".
bool is_override_word(const std::string& word) {
  const auto equal = word.find('=');
  if (equal == word.npos || equal == 0)
    return false;
  const auto first = word.find_first_not_of("+~");
  return first < equal
         && std::ranges::all_of(
           word.substr(first, equal - first), [](unsigned char letter) {
             return std::isalnum(letter) != 0 || letter == '_' || letter == '.'
                    || letter == '/' || letter == '@';
           });
}

std::string flag_key(std::string word) {
  word.erase(0, word.find_first_not_of('-'));
  std::ranges::replace(word, '-', '_');
  return word;
}

class FlagReader {
public:
  FlagReader(const ShellCommand& command, ForeignConfig& config)
    : words_(command),
      config_(config) {}

  void read() {
    // `ray job submit ... -- program flags`: only the program's count
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (words_[i].text == "--")
        at_ = i + 1;
    prefix_ = serves_model() ? "vllm_serve." : "";
    while (at_ < words_.size())
      read_word();
  }

private:
  bool serves_model() const {
    return std::ranges::any_of(words_, [](const ShellWord& word) {
      return word.text == "vllm-serve" || word.text == "vllm_serve";
    });
  }

  void read_word() {
    const auto& word = words_[at_++];
    if (word.text == "-m" && at_ < words_.size()) {
      config_.programs.push_back(words_[at_++].text);
    } else if (is_flag(word.text)) {
      read_flag(word);
    } else if (is_override_word(word.text)) {
      auto value = override_of(word.text, word.place);
      value.key = prefix_ + value.key;
      config_.values.push_back(std::move(value));
    } else {
      config_.programs.push_back(word.text);
    }
  }

  void read_flag(const ShellWord& word) {
    const auto equal = word.text.find('=');
    const auto key = prefix_ + flag_key(word.text.substr(0, equal));
    if (equal != word.text.npos) {
      config_.values.push_back({key, word.text.substr(equal + 1), word.place});
      return;
    }
    std::string value;
    while (at_ < words_.size() && !is_flag(words_[at_].text)
           && !is_override_word(words_[at_].text) && !is_program(words_[at_])) {
      value += (value.empty() ? "" : " ") + words_[at_].text;
      ++at_;
    }
    config_.values.push_back({key, value.empty() ? "true" : value, word.place});
  }

  /// The script after a launcher's flags, such as `main.py`.
  bool is_program(const ShellWord& word) const {
    return word.text.ends_with(".py") && !is_flag(words_[at_ - 1].text);
  }

  const ShellCommand& words_;
  ForeignConfig& config_;
  std::string prefix_;
  std::size_t at_ = 0;
};

bool has_settings(const ShellCommand& command) {
  return std::ranges::any_of(command, [](const ShellWord& word) {
    return word.text.starts_with("--") || is_override_word(word.text);
  });
}

} // namespace

ForeignConfig flags_of(const ShellScript& script) {
  ForeignConfig config{.notes = script.notes};
  for (const auto& command : script.commands)
    if (!is_helper(command.front().text) && has_settings(command))
      FlagReader(command, config).read();
  return config;
}

ForeignValue override_of(const std::string& word, const Place& place) {
  const auto first = word.find_first_not_of("+~");
  const bool removes = word.starts_with('~');
  const auto equal = word.find('=');
  auto value = equal == word.npos ? std::string() : word.substr(equal + 1);
  if (value.size() > 1 && value.front() == value.back()
      && (value.front() == '\'' || value.front() == '"'))
    value = value.substr(1, value.size() - 2);
  return {word.substr(first, equal == word.npos ? equal : equal - first),
          removes ? "null" : value, place};
}

} // namespace troupe::plans
