#include "models/text/tokenizer/token_trie.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::models::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::pair<std::size_t, std::int32_t>>
found_in(const TokenTrie& trie, std::string_view text) {
  std::vector<std::pair<std::size_t, std::int32_t>> found;
  trie.each_prefix(text, [&](std::size_t size, std::int32_t id) {
    found.emplace_back(size, id);
  });
  return found;
}

TEST(TokenTrie, FindsAllTokensThatATextBeginsWith) {
  const TokenTrie trie(
    {{"b", 3}, {"abc", 0}, {"a", 1}, {"ab\xFF", 2}, {"abcde", 4}});
  EXPECT_THAT(found_in(trie, "abcdx"), ElementsAre(Pair(1U, 1), Pair(3U, 0)));
  EXPECT_THAT(found_in(trie, "ab\xFF"), ElementsAre(Pair(1U, 1), Pair(3U, 2)));
  EXPECT_THAT(found_in(trie, "b"), ElementsAre(Pair(1U, 3)));
  EXPECT_THAT(found_in(trie, "cab"), IsEmpty());
  EXPECT_THAT(found_in(trie, ""), IsEmpty());
}

TEST(TokenTrie, WithoutTokensFindsNothing) {
  EXPECT_THAT(found_in(TokenTrie(), "abc"), IsEmpty());
  const std::vector<std::pair<std::string_view, std::int32_t>> none;
  EXPECT_THAT(found_in(TokenTrie(none), "abc"), IsEmpty());
}

TEST(TokenTrie, AgreesWithAWalkOverAllTokens) {
  std::vector<std::string> tokens;
  for (std::uint32_t i = 0; i < 600; ++i) {
    std::string token;
    for (std::uint32_t n = i * 2654435761U + 1; n > 0; n >>= 5)
      token += static_cast<char>('a' + (n & 3));
    tokens.push_back(token.substr(0, 1 + i % 7));
  }
  std::ranges::sort(tokens);
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  std::vector<std::pair<std::string_view, std::int32_t>> entries;
  for (std::size_t i = 0; i < tokens.size(); ++i)
    entries.emplace_back(tokens[i], static_cast<std::int32_t>(i));
  const TokenTrie trie(entries);
  for (const std::string& text : tokens) {
    std::vector<std::pair<std::size_t, std::int32_t>> want;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (text.starts_with(tokens[i]))
        want.emplace_back(tokens[i].size(), static_cast<std::int32_t>(i));
    std::ranges::sort(want);
    EXPECT_EQ(found_in(trie, text), want) << text;
  }
}

} // namespace
} // namespace troupe::models::tokenizer
