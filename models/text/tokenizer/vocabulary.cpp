#include "models/text/tokenizer/vocabulary.hpp"

#include <algorithm>

namespace troupe::models::tokenizer {

namespace {

// Limit of gaps: a file must not control allocation by declaring a large id.
constexpr std::int64_t gap_allowance = 100'000;
constexpr std::int64_t ids_per_token = 16;

} // namespace

Vocabulary::Vocabulary(const internal::JsonAt& vocab) {
  std::int64_t end = 0;
  vocab.for_each([&](const std::string& token, const internal::JsonAt& value) {
    const auto id = value.integer(0, INT32_MAX);
    ids_.emplace(token, static_cast<std::int32_t>(id));
    end = std::max(end, id + 1);
  });
  const auto count = static_cast<std::int64_t>(ids_.size());
  if (end > count * ids_per_token + gap_allowance)
    vocab.wrong("the largest id is " + std::to_string(end - 1)
                + " although there are only " + std::to_string(count)
                + " tokens");
  tokens_.resize(static_cast<std::size_t>(end));
  for (const auto& [token, id] : ids_) {
    const std::string*& slot = tokens_[static_cast<std::size_t>(id)];
    if (slot != nullptr)
      vocab.wrong("tokens '" + std::min(*slot, token) + "' and '"
                  + std::max(*slot, token) + "' have the same id "
                  + std::to_string(id));
    slot = &token;
  }
}

Vocabulary::Vocabulary(const std::vector<std::string>& tokens) {
  for (std::size_t id = 0; id < tokens.size(); ++id)
    ids_[tokens[id]] = static_cast<std::int32_t>(id);
  for (const std::string& token : tokens)
    tokens_.push_back(&ids_.find(token)->first);
}

std::int32_t Vocabulary::id(std::string_view token) const {
  const auto it = ids_.find(token);
  return it == ids_.end() ? -1 : it->second;
}

const std::string* Vocabulary::token(std::int32_t id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= tokens_.size())
    return nullptr;
  return tokens_[static_cast<std::size_t>(id)];
}

} // namespace troupe::models::tokenizer
