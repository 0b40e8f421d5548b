// Finds all tokens that a text begins with in one walk over its bytes: a trie
// whose nodes are in one array, the children of a node next to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::models::tokenizer {

class TokenTrie {
public:
  TokenTrie() = default;
  /// `tokens`: texts with their ids, each text once, none empty.
  explicit TokenTrie(
    std::vector<std::pair<std::string_view, std::int32_t>> tokens);

  /// Calls found(size in bytes, id) for each token that `text` begins with,
  /// shorter ones first.
  template <class Found>
  void each_prefix(std::string_view text, const Found& found) const {
    std::size_t node = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      node = child(node, static_cast<std::uint8_t>(text[at]));
      if (node == 0)
        return;
      if (nodes_[node].id >= 0)
        found(at + 1, nodes_[node].id);
    }
  }

private:
  struct Node {
    std::uint32_t first_child = 0;
    std::uint16_t num_children = 0;
    std::uint8_t byte = 0; ///< that leads to it
    std::int32_t id = -1;  ///< of the token that ends here
  };

  /// Returns the index of a child; 0: none.
  std::size_t child(std::size_t node, std::uint8_t byte) const;

  std::vector<Node> nodes_ = {Node{}};
};

} // namespace troupe::models::tokenizer
