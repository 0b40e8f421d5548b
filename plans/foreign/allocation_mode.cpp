#include "plans/foreign/allocation_mode.hpp"

#include <algorithm>
#include <cctype>

namespace troupe::plans {

namespace {

[[noreturn]] void refuse_allocation(std::string_view text, const Place& place) {
  throw ConfigError({.place = place,
                     .path = "allocation_mode",
                     .expected = "ENGINE:DEGREES+TRAINER:DEGREES",
                     .got = "'" + std::string(text) + "'",
                     .hint = "sglang:d4t2+fsdp:d8"});
}

/// Parses d4p1t2; `whole` is for messages.
AllocationDegrees parse_degrees(std::string_view text, std::string_view whole,
                                const Place& place) {
  constexpr std::uint32_t most = 65536; // devices
  AllocationDegrees degrees;
  std::size_t at = 0;
  while (at < text.size()) {
    const char letter = text[at++];
    std::uint32_t number = 0;
    bool any = false;
    for (; at < text.size()
           && std::isdigit(static_cast<unsigned char>(text[at])) != 0;
         ++at, any = true)
      number = std::min(most, 10 * number)
               + static_cast<std::uint32_t>(text[at] - '0');
    if (!any || number == 0 || number > most)
      refuse_allocation(whole, place);
    if (letter == 'd')
      degrees.dp = number;
    else if (letter == 't')
      degrees.tp = number;
    else if (letter == 'p')
      degrees.pp = number;
    else if (letter == 'c' || letter == 'e' || letter == 's')
      degrees.others = std::max(degrees.others, number);
    else
      refuse_allocation(whole, place);
  }
  if (std::uint64_t{degrees.dp} * degrees.tp * degrees.pp > most)
    refuse_allocation(whole, place);
  return degrees;
}

/// Parses "sglang[rollout]:d4t2", "sglang.d4t2", "d4".
AllocationDegrees parse_side(std::string_view side, std::string_view whole,
                             const Place& place) {
  const auto cut = side.find_first_of(":.");
  std::string backend(cut == side.npos ? "" : side.substr(0, cut));
  backend = backend.substr(0, backend.find('['));
  if (cut != side.npos)
    side.remove_prefix(cut + 1);
  if (side.starts_with('(') && side.ends_with(')')) // (attn:..|ffn:..)
    side = side.substr(1, side.find('|') - 1);
  if (const auto attention = side.find("attn:"); attention != side.npos)
    side.remove_prefix(attention + 5);
  if (side.empty())
    refuse_allocation(whole, place);
  auto degrees = parse_degrees(side, whole, place);
  degrees.backend = backend;
  return degrees;
}

} // namespace

Allocation parse_allocation(std::string_view text, const Place& place) {
  std::string clean;
  for (const char letter : text)
    if (std::isspace(static_cast<unsigned char>(letter)) == 0)
      clean += letter;
  // a | inside parentheses belongs to a degree
  const auto plus = clean.find('+');
  const auto bar = clean.find('(') == clean.npos ? clean.find('|') : clean.npos;
  const auto cut = plus != clean.npos ? plus : bar;
  if (cut == clean.npos)
    refuse_allocation(text, place);
  const std::string_view whole(clean);
  return {.generation = parse_side(whole.substr(0, cut), text, place),
          .training = parse_side(whole.substr(cut + 1), text, place),
          .colocated = plus == clean.npos};
}

} // namespace troupe::plans
