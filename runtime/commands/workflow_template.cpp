#include "runtime/commands/workflow_template.hpp"

#include "config/base/error.hpp"
#include "config/settings/settings_schema.hpp"
#include "config/settings/workflow_traits.hpp"

#include <algorithm>
#include <iterator>

namespace troupe::runtime {

namespace {

/// Name of the example, in its texts and in the names of its files.
constexpr std::string_view example = "my_workflow";

std::string renamed(std::string text, const std::string& name) {
  for (auto at = text.find(example); at != text.npos;
       at = text.find(example, at + name.size()))
    text.replace(at, example.size(), name);
  return text;
}

/// Words that cannot name a namespace or a CMake target.
constexpr std::string_view taken_words[]
  = {"all",      "and",      "asm",     "auto",      "bool",    "break",
     "case",     "catch",    "char",    "class",     "clean",   "const",
     "default",  "delete",   "do",      "double",    "else",    "enum",
     "explicit", "export",   "extern",  "false",     "float",   "for",
     "friend",   "goto",     "help",    "if",        "inline",  "install",
     "int",      "long",     "mutable", "namespace", "new",     "not",
     "operator", "or",       "private", "protected", "public",  "register",
     "requires", "return",   "short",   "signed",    "sizeof",  "static",
     "std",      "struct",   "switch",  "template",  "test",    "this",
     "throw",    "troupe",   "true",    "try",       "typedef", "typename",
     "union",    "unsigned", "using",   "virtual",   "void",    "volatile",
     "while",    "xor"};

bool is_taken(const std::string& name) {
  return std::ranges::find(taken_words, name) != std::end(taken_words)
         || is_section(name) || find_field(name).first != nullptr
         || find_workflow_traits(name) != nullptr;
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
  if (is_taken(name))
    throw ConfigError({.place = {"command line", 0},
                       .path = "",
                       .expected = "a name that C++, CMake and the settings do "
                                   "not use",
                       .got = "'" + name + "'",
                       .hint = "my_" + name});
  auto files = example_files();
  for (auto& file : files)
    file = {renamed(file.name, name), renamed(file.text, name)};
  return files;
}

} // namespace troupe::runtime
