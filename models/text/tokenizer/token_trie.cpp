#include "models/text/tokenizer/token_trie.hpp"

#include <algorithm>
#include <deque>

namespace troupe::models::tokenizer {

namespace {

/// A node whose children are to be made: its tokens, sorted, and the bytes that
/// they have in common.
struct OpenNode {
  std::size_t node = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t depth = 0;
};

} // namespace

TokenTrie::TokenTrie(
  std::vector<std::pair<std::string_view, std::int32_t>> tokens) {
  std::ranges::sort(tokens);
  std::deque<OpenNode> open{{0, 0, tokens.size(), 0}};
  while (!open.empty()) {
    const OpenNode now = open.front();
    open.pop_front();
    std::size_t at = now.begin;
    if (at < now.end && tokens[at].first.size() == now.depth)
      nodes_[now.node].id = tokens[at++].second;
    nodes_[now.node].first_child = static_cast<std::uint32_t>(nodes_.size());
    while (at < now.end) {
      const char byte = tokens[at].first[now.depth];
      std::size_t end = at;
      while (end < now.end && tokens[end].first[now.depth] == byte)
        ++end;
      open.push_back({nodes_.size(), at, end, now.depth + 1});
      nodes_.push_back({.byte = static_cast<std::uint8_t>(byte)});
      ++nodes_[now.node].num_children;
      at = end;
    }
  }
}

std::size_t TokenTrie::child(std::size_t node, std::uint8_t byte) const {
  const auto begin
    = nodes_.begin() + static_cast<std::ptrdiff_t>(nodes_[node].first_child);
  const auto end = begin + nodes_[node].num_children;
  const auto found
    = std::ranges::lower_bound(begin, end, byte, {}, &Node::byte);
  return found != end && found->byte == byte
           ? static_cast<std::size_t>(found - nodes_.begin())
           : 0;
}

} // namespace troupe::models::tokenizer
