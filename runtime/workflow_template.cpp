#include "runtime/workflow_template.hpp"

#include "config/error.hpp"

namespace troupe::runtime {

namespace {

/// The example's name, in its texts and in the names of its files.
constexpr std::string_view example = "my_workflow";

std::string renamed(std::string text, const std::string& name) {
  for (auto at = text.find(example); at != text.npos;
       at = text.find(example, at + name.size()))
    text.replace(at, example.size(), name);
  return text;
}

bool is_name(const std::string& text) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view more = "abcdefghijklmnopqrstuvwxyz0123456789_";
  return !text.empty() && letters.find(text[0]) != letters.npos
         && text.find_first_not_of(more) == text.npos;
}

} // namespace

std::vector<TemplateFile> workflow_template(const std::string& name) {
  if (!is_name(name))
    throw ConfigError({.place = {"command line", 0},
                       .path = "",
                       .expected = "a name of lower-case letters, digits and _",
                       .got = "'" + name + "'",
                       .hint = std::string(example)});
  auto files = example_files();
  for (auto& file : files)
    file = {renamed(file.name, name), renamed(file.text, name)};
  return files;
}

} // namespace troupe::runtime
