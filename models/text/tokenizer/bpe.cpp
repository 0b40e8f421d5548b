// Byte-pair encoding. A piece becomes symbols (characters or bytes) in a linked
// list; a heap yields the adjacent pair of lowest rank (ties: leftmost), which
// is merged, until no pair has a merge: O(n log n) for pieces of any length.
// Recurring pieces are cached.
#include "models/io/utf8.hpp"
#include "models/text/tokenizer/byte_level.hpp"
#include "models/text/tokenizer/model.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <queue>

namespace troupe::models::tokenizer {

namespace {

constexpr std::size_t cached_words = 1 << 16;
constexpr std::size_t cached_word_bytes = 64; // longer pieces rarely recur

struct Merge {
  std::uint32_t rank;
  std::int32_t joined; ///< id of the new symbol
};

struct PairHash {
  std::size_t operator()(std::uint64_t pair) const noexcept {
    pair *= 0x9E3779B97F4A7C15ULL;
    return pair ^ (pair >> 32);
  }
};

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(left) << 32)
         | static_cast<std::uint32_t>(right);
}

struct Symbol {
  std::int32_t id; ///< -1: merged into its left neighbor
  std::int32_t previous;
  std::int32_t next;
};

struct Candidate {
  std::uint32_t rank;
  std::int32_t left;   ///< index of the left symbol
  std::int32_t joined; ///< merged symbol when the pair was queued
  bool operator>(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};

class Bpe : public Model {
public:
  Bpe(const internal::JsonAt& model, bool byte_level);
  void encode(std::string_view piece,
              std::vector<std::int32_t>& ids) const override;

private:
  using Queue
    = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;

  void read_merges(const internal::JsonAt& merges);
  void index_bytes();
  std::int32_t whole_piece(std::string_view piece) const;
  void encode_piece(std::string_view piece,
                    std::vector<std::int32_t>& ids) const;
  std::vector<Symbol> byte_symbols(std::string_view piece) const;
  std::vector<Symbol> char_symbols(std::string_view piece) const;
  void push(std::vector<Symbol>& symbols, std::int32_t id) const;
  void queue_pair(const std::vector<Symbol>& symbols, std::int32_t left,
                  Queue& queue) const;
  void join_all(std::vector<Symbol>& symbols) const;

  bool byte_level_;
  bool ignore_merges_;
  bool fuse_unknown_;
  bool byte_fallback_;
  std::int32_t unknown_ = -1;
  std::unordered_map<std::uint64_t, Merge, PairHash> merges_;
  std::array<std::int32_t, 256> byte_ids_{}; ///< of single bytes; -1: none
  TextMap<std::int32_t> raw_ids_; ///< byte_level: raw bytes of a token -> id

  mutable std::mutex cache_mutex_;
  mutable TextMap<std::vector<std::int32_t>> cache_;
};

Bpe::Bpe(const internal::JsonAt& model, bool byte_level)
  : Model(Vocabulary(model.at("vocab"))),
    byte_level_(byte_level),
    ignore_merges_(model.boolean_or("ignore_merges", false)),
    fuse_unknown_(model.boolean_or("fuse_unk", false)),
    byte_fallback_(model.boolean_or("byte_fallback", false)) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model.text_or(key, "").empty())
      model.at(key).unsupported("BPE with a subword prefix or suffix");
  if (model.has("dropout") && model.at("dropout").number() != 0)
    model.at("dropout").unsupported("BPE dropout");
  const std::string unknown = model.text_or("unk_token", "");
  if (!unknown.empty() && (unknown_ = vocabulary_.id(unknown)) < 0)
    model.at("unk_token").expected("a token of the vocabulary");
  read_merges(model.at("merges"));
  index_bytes();
}

void Bpe::read_merges(const internal::JsonAt& merges) {
  const std::size_t count = merges.size();
  merges_.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const internal::JsonAt merge = merges.at(i);
    std::string left, right;
    if (merge.is_list()) {
      if (merge.size() != 2)
        merge.expected("a pair of tokens");
      left = merge.at(0).text();
      right = merge.at(1).text();
    } else {
      const std::string both = merge.text();
      const auto space = both.find(' ');
      if (space == std::string::npos || both.find(' ', space + 1) != both.npos)
        merge.expected("two tokens with a space between them");
      left = both.substr(0, space);
      right = both.substr(space + 1);
    }
    for (const std::string& token : {left, right, left + right})
      if (vocabulary_.id(token) < 0)
        merge.wrong("token '" + token + "' is not in the vocabulary");
    merges_[pair_key(vocabulary_.id(left), vocabulary_.id(right))]
      = {static_cast<std::uint32_t>(i), vocabulary_.id(left + right)};
  }
}

void Bpe::index_bytes() {
  constexpr char digits[] = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string token;
    if (byte_level_)
      internal::append_utf8(token,
                            byte_level_char(static_cast<std::uint8_t>(byte)));
    else
      token = {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
    byte_ids_[byte] = vocabulary_.id(token);
  }
  if (!byte_level_ || !ignore_merges_)
    return;
  for (const auto& [token, id] : vocabulary_.ids())
    if (auto raw = byte_level_bytes(token))
      raw_ids_.emplace(std::move(*raw), id);
}

std::int32_t Bpe::whole_piece(std::string_view piece) const {
  if (!byte_level_)
    return vocabulary_.id(piece);
  const auto it = raw_ids_.find(piece);
  return it == raw_ids_.end() ? -1 : it->second;
}

void Bpe::encode(std::string_view piece, std::vector<std::int32_t>& ids) const {
  if (piece.size() > cached_word_bytes)
    return encode_piece(piece, ids);
  // if another thread uses the cache, this one works without it
  const std::unique_lock lock(cache_mutex_, std::try_to_lock);
  if (!lock.owns_lock())
    return encode_piece(piece, ids);
  const auto it = cache_.find(piece);
  if (it != cache_.end()) {
    ids.insert(ids.end(), it->second.begin(), it->second.end());
    return;
  }
  const auto before = static_cast<std::ptrdiff_t>(ids.size());
  encode_piece(piece, ids);
  if (cache_.size() >= cached_words)
    cache_.clear();
  cache_.emplace(piece, std::vector(ids.begin() + before, ids.end()));
}

void Bpe::encode_piece(std::string_view piece,
                       std::vector<std::int32_t>& ids) const {
  if (ignore_merges_) {
    if (const std::int32_t whole = whole_piece(piece); whole >= 0) {
      ids.push_back(whole);
      return;
    }
  }
  auto symbols = byte_level_ ? byte_symbols(piece) : char_symbols(piece);
  join_all(symbols);
  for (const Symbol& symbol : symbols)
    if (symbol.id >= 0)
      ids.push_back(symbol.id);
}

void Bpe::push(std::vector<Symbol>& symbols, std::int32_t id) const {
  const auto index = static_cast<std::int32_t>(symbols.size());
  if (index > 0)
    symbols.back().next = index;
  symbols.push_back({id, index - 1, -1});
}

std::vector<Symbol> Bpe::byte_symbols(std::string_view piece) const {
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  bool pending = false; // an unknown symbol that may grow
  for (const char byte : piece) {
    const std::int32_t id = byte_ids_[static_cast<std::uint8_t>(byte)];
    if (id >= 0)
      push(symbols, id);
    else if (unknown_ >= 0 && !(pending && fuse_unknown_))
      push(symbols, unknown_);
    pending = id < 0;
  }
  return symbols;
}

std::vector<Symbol> Bpe::char_symbols(std::string_view piece) const {
  std::vector<Symbol> symbols;
  bool pending = false; // an unknown symbol that may grow
  for (std::size_t at = 0; at < piece.size();) {
    const auto character
      = piece.substr(at, internal::code_point_at(piece, at).size);
    at += character.size();
    const std::int32_t id = vocabulary_.id(character);
    const bool bytes
      = id < 0 && byte_fallback_
        && std::all_of(character.begin(), character.end(), [&](char byte) {
             return byte_ids_[static_cast<std::uint8_t>(byte)] >= 0;
           });
    if (id >= 0) {
      push(symbols, id);
    } else if (bytes) {
      for (const char byte : character)
        push(symbols, byte_ids_[static_cast<std::uint8_t>(byte)]);
    } else if (unknown_ >= 0 && !(pending && fuse_unknown_)) {
      push(symbols, unknown_);
    }
    pending = id < 0 && !bytes;
  }
  return symbols;
}

void Bpe::queue_pair(const std::vector<Symbol>& symbols, std::int32_t left,
                     Queue& queue) const {
  const Symbol& symbol = symbols[static_cast<std::size_t>(left)];
  if (symbol.next < 0)
    return;
  const auto it = merges_.find(
    pair_key(symbol.id, symbols[static_cast<std::size_t>(symbol.next)].id));
  if (it != merges_.end())
    queue.push({it->second.rank, left, it->second.joined});
}

void Bpe::join_all(std::vector<Symbol>& symbols) const {
  Queue queue;
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i)
    queue_pair(symbols, static_cast<std::int32_t>(i), queue);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = symbols[static_cast<std::size_t>(best.left)];
    if (left.id < 0 || left.next < 0)
      continue; // merged since it was queued
    Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    const auto it = merges_.find(pair_key(left.id, right.id));
    if (it == merges_.end() || it->second.joined != best.joined)
      continue; // one of the two has grown
    left.id = best.joined;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0)
      symbols[static_cast<std::size_t>(left.next)].previous = best.left;
    if (left.previous >= 0)
      queue_pair(symbols, left.previous, queue);
    queue_pair(symbols, best.left, queue);
  }
}

} // namespace

std::unique_ptr<Model> read_bpe(const internal::JsonAt& model,
                                bool byte_level) {
  return std::make_unique<Bpe>(model, byte_level);
}

} // namespace troupe::models::tokenizer
