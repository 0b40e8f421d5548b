#include "models/text/stop_texts.hpp"

#include "config/base/error.hpp"

#include <algorithm>
#include <utility>

namespace troupe::models {

StopTexts::StopTexts(Tokenizer tokenizer, std::vector<std::string> texts)
  : tokenizer_(std::move(tokenizer)),
    texts_(std::move(texts)) {
  for (const std::string& text : texts_) {
    TROUPE_CHECK(!text.empty(), "a stop text is not empty");
    longest_ = std::max(longest_, text.size());
  }
}

StopTexts::Watch::Watch(const StopTexts& stops)
  : stops_(&stops),
    stream_(stops.tokenizer_, /*skip_special=*/false) {}

bool StopTexts::Watch::push(std::int32_t id) {
  tail_ += stream_.push(id);
  const bool found
    = std::ranges::any_of(stops_->texts_, [&](const std::string& text) {
        return tail_.find(text) != std::string::npos;
      });
  if (tail_.size() >= stops_->longest_)
    tail_.erase(0, tail_.size() - stops_->longest_ + 1);
  return found;
}

const char* finish_reason(bool truncated,
                          std::span<const std::int32_t> sequence_ids,
                          const Tokenizer& tokenizer) {
  if (truncated)
    return "length";
  if (sequence_ids.empty())
    return "eos";
  if (!tokenizer.has_vocabulary())
    return "eos"; // there is no text to stop at
  return tokenizer.ends_response(sequence_ids.back()) ? "eos" : "stop";
}

} // namespace troupe::models
