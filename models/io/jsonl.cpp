#include "models/io/jsonl.hpp"

#include "config/base/error.hpp"

#include <cstring>

namespace troupe::models {

namespace {

std::string_view without_extension(std::string_view file) {
  const auto dot = file.rfind('.');
  const auto slash = file.rfind('/');
  const bool has = dot != file.npos && (slash == file.npos || dot > slash);
  return has ? file.substr(0, dot) : file;
}

[[noreturn]] void not_json_lines(const std::string& file,
                                 const std::string& what,
                                 const std::string& command) {
  throw ConfigError(ConfigError::Parts{Place{file, 0}, "",
                                       "a file of JSON lines", what, command});
}

/// Refuses other frequent formats, naming the command that converts them.
void refuse_other_formats(std::string_view text, const std::string& file) {
  const std::string target = std::string(without_extension(file)) + ".jsonl";
  if (text.starts_with("PAR1"))
    not_json_lines(file, "a Parquet file",
                   "python3 -c \"import pandas; pandas.read_parquet('" + file
                     + "').to_json('" + target
                     + "', orient='records', lines=True)\"");
  if (text.starts_with("\x1F\x8B"))
    not_json_lines(file, "a gzip file",
                   "gunzip -c '" + file + "' > '"
                     + (file.ends_with(".jsonl.gz")
                          ? std::string(without_extension(file))
                          : target)
                     + "'");
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '[')
    not_json_lines(file, "one JSON list",
                   "jq -c '.[]' '" + file + "' > '" + target + "'");
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == line.npos;
}

} // namespace

JsonLines JsonLines::view(std::string_view text, const std::string& file_name,
                          std::size_t first_rows) {
  refuse_other_formats(text, file_name);
  JsonLines lines;
  lines.file_ = file_name;
  lines.text_ = text;
  std::size_t at = text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
  for (std::uint32_t number = 1; at < text.size(); ++number) {
    const void* found = std::memchr(text.data() + at, '\n', text.size() - at);
    const std::size_t end = found == nullptr
                              ? text.size()
                              : static_cast<std::size_t>(
                                static_cast<const char*>(found) - text.data());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    if (line.size() > UINT32_MAX)
      throw ConfigError(Place{file_name, static_cast<int>(number)},
                        "the line is longer than 4 GB");
    if (!is_blank(line))
      lines.lines_.push_back(
        {at, static_cast<std::uint32_t>(line.size()), number});
    if (first_rows > 0 && lines.lines_.size() == first_rows)
      break;
    at = end + 1;
  }
  return lines;
}

std::string_view JsonLines::text(std::size_t row) const {
  const Line& line = lines_.at(row);
  return text_.substr(line.begin, line.size_bytes);
}

int JsonLines::line_number(std::size_t row) const {
  return static_cast<int>(lines_.at(row).number);
}

} // namespace troupe::models
