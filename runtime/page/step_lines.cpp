#include "runtime/page/step_lines.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>

namespace troupe::runtime {

namespace {

constexpr std::string_view opening = R"({"step":)";
/// The part of the file that is read line by line, besides two lines.
constexpr std::streamoff scanned_bytes = 1 << 16;
constexpr std::size_t head_bytes = 32;

/// Moves to the first line that begins at or after `at`; returns where it
/// begins, or `end` if there is none before it.
std::streamoff next_line(std::ifstream& file, std::streamoff at,
                         std::streamoff end) {
  file.clear();
  if (at == 0)
    return file.seekg(0), 0;
  file.seekg(at - 1);
  std::array<char, 1 << 12> part{};
  for (auto from = at - 1; from < end;) {
    file.read(part.data(), part.size());
    const std::string_view text(part.data(),
                                static_cast<std::size_t>(file.gcount()));
    if (const auto found = text.find('\n'); found != std::string_view::npos)
      return std::min(end, from + static_cast<std::streamoff>(found) + 1);
    if (text.empty())
      return end;
    from += static_cast<std::streamoff>(text.size());
  }
  return end;
}

/// Returns the step of the line at `at`, 0 if it names none: as if it were
/// before all others.
std::uint32_t step_at(std::ifstream& file, std::streamoff at) {
  std::array<char, head_bytes> head{};
  file.clear();
  file.seekg(at);
  file.read(head.data(), head.size());
  return step_of_line({head.data(), static_cast<std::size_t>(file.gcount())})
    .value_or(0);
}

/// Returns a place before the first line of `step`, and close to it.
std::streamoff place_before(std::ifstream& file, std::uint32_t step) {
  file.seekg(0, std::ios::end);
  std::streamoff low = 0;
  std::streamoff high = file.tellg();
  while (high - low > scanned_bytes) {
    const auto middle = low + (high - low) / 2;
    const auto line = next_line(file, middle, high);
    if (line < high && step_at(file, line) < step)
      low = line;
    else
      high = middle;
  }
  return low;
}

} // namespace

std::optional<std::uint32_t> step_of_line(std::string_view line) {
  if (!line.starts_with(opening))
    return std::nullopt;
  line.remove_prefix(opening.size());
  if (line.starts_with(' '))
    line.remove_prefix(1);
  std::uint32_t step = 0;
  const auto end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data(), end, step);
  if (error != std::errc{} || rest == end || (*rest != ',' && *rest != '}'))
    return std::nullopt;
  return step;
}

std::string lines_of_step(const std::filesystem::path& file, std::uint32_t step,
                          std::size_t max_bytes) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    return "";
  const auto low = place_before(in, step);
  in.clear();
  in.seekg(low);
  std::string found;
  for (std::string line; found.size() < max_bytes && std::getline(in, line);) {
    const auto own = step_of_line(line).value_or(0);
    if (own > step)
      break;
    if (own == step && !in.eof()) // a line without an end is being written
      found += line + '\n';
  }
  return found;
}

} // namespace troupe::runtime
