#include "tests/fuzz/mutate.hpp"

#include <algorithm>
#include <cstddef>

namespace troupe::fuzz {

namespace {

constexpr std::size_t longest_input_bytes = 1 << 16;

std::size_t below(std::size_t count, Random& random) {
  return count == 0 ? 0 : random() % count;
}

std::string word(Random& random) {
  static const std::vector<std::string> words{
    "0",
    "-1",
    "1e999",
    "nan",
    "18446744073709551616",
    "9223372036854775807",
    "null",
    "true",
    "{}",
    "[]",
    "[[[[[[[[",
    "\"",
    "\\u0000",
    "\\ud800",
    "\n",
    ": ",
    "- ",
    "&a *a",
    "\xff\xfe",
    "\xed\xa0\x80",
    std::string(8, '\0'),
    std::string(8, '\xff'),
    std::string(300, '['),
    std::string(300, 'a'),
  };
  return words[below(words.size(), random)];
}

void damage(std::string& text, const std::vector<std::string>& corpus,
            Random& random) {
  const std::size_t at = below(text.size() + 1, random);
  const std::size_t count = 1 + below(16, random);
  switch (below(7, random)) {
  case 0:
    if (at < text.size())
      text[at] = static_cast<char>(text[at] ^ (1 << below(8, random)));
    break;
  case 1:
    if (at < text.size())
      text[at] = static_cast<char>(random());
    break;
  case 2:
    text.erase(at, count);
    break;
  case 3:
    text.resize(at);
    break;
  case 4:
    text.insert(at, text.substr(below(text.size() + 1, random), count));
    break;
  case 5:
    text.insert(at, word(random));
    break;
  default: {
    const std::string& other = corpus[below(corpus.size(), random)];
    text.insert(at, other.substr(below(other.size() + 1, random), 4 * count));
  }
  }
}

} // namespace

std::string mutate(std::string input, const std::vector<std::string>& corpus,
                   Random& random) {
  const std::size_t damages = 1 + below(4, random);
  for (std::size_t i = 0; i < damages; ++i)
    damage(input, corpus, random);
  input.resize(std::min(input.size(), longest_input_bytes));
  return input;
}

} // namespace troupe::fuzz
