#include "config/base/strategy.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>

namespace troupe {

namespace {

/// Reads the decimal number at the front of `text` and removes it.
std::uint32_t take_number(std::string_view& text, char letter) {
  std::uint32_t number = 0;
  auto [end, error]
    = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number == 0)
    throw std::invalid_argument(
      fmt::format("a degree >= 1 must follow '{}'", letter));
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

} // namespace

std::string to_string(const Strategy& strategy) {
  std::string text;
  if (strategy.sample_ranks() > 1 || strategy.num_devices() == 1)
    text += fmt::format("d{}", strategy.sample_ranks());
  if (strategy.cp > 1)
    text += fmt::format("c{}", strategy.cp);
  if (strategy.pp > 1)
    text += fmt::format("p{}", strategy.pp);
  if (strategy.tp > 1)
    text += fmt::format("t{}", strategy.tp);
  if (strategy.ep > 1)
    text += fmt::format("e{}", strategy.ep);
  if (strategy.zero != Zero::none)
    text += fmt::format("z{}", static_cast<int>(strategy.zero));
  if (strategy.sequence_parallel)
    text += "s";
  return text;
}

Strategy parse_strategy(std::string_view text) {
  Strategy strategy;
  if (text.empty())
    throw std::invalid_argument("a strategy is written like d2p1t2z1");
  std::string seen;
  while (!text.empty()) {
    const char letter = text.front();
    text.remove_prefix(1);
    if (seen.find(letter) != std::string::npos)
      throw std::invalid_argument(fmt::format("'{}' occurs twice", letter));
    seen += letter;
    switch (letter) {
    case 'd':
      strategy.dp = take_number(text, letter);
      break;
    case 'c':
      strategy.cp = take_number(text, letter);
      break;
    case 'p':
      strategy.pp = take_number(text, letter);
      break;
    case 't':
      strategy.tp = take_number(text, letter);
      break;
    case 'e':
      strategy.ep = take_number(text, letter);
      break;
    case 'z': {
      const auto stage = take_number(text, letter);
      if (stage != 1 && stage != 3)
        throw std::invalid_argument("only z1 and z3 exist");
      strategy.zero = static_cast<Zero>(stage);
      break;
    }
    case 's':
      strategy.sequence_parallel = true;
      break;
    default:
      throw std::invalid_argument(fmt::format(
        "'{}' is none of d, c, p, t, e, z, s (a strategy is written "
        "like d2p1t2z1)",
        letter));
    }
  }
  strategy.dp *= strategy.cp;
  return strategy;
}

Coordinate coordinate_of(const Strategy& strategy, std::uint32_t index) {
  TROUPE_CHECK(index < strategy.num_devices(), "device index beyond the mesh");
  return {.dp = index / strategy.tp % strategy.dp,
          .pp = index / (strategy.tp * strategy.dp),
          .tp = index % strategy.tp};
}

std::uint32_t expert_rank_of(const Strategy& strategy,
                             const Coordinate& where) {
  return strategy.ep == 1
           ? 0
           : where.dp % strategy.expert_group_dp() * strategy.tp + where.tp;
}

std::uint32_t index_of(const Strategy& strategy, const Coordinate& where) {
  TROUPE_CHECK(where.dp < strategy.dp && where.pp < strategy.pp
                 && where.tp < strategy.tp,
               "coordinate beyond the strategy");
  return (where.pp * strategy.dp + where.dp) * strategy.tp + where.tp;
}

} // namespace troupe
