#include "models/rewards/line_rewarder.hpp"

#include "models/rewards/reward_protocol.hpp"

namespace troupe::models {

namespace {

/// Size of the cache by the bytes of its contents; when exceeded, it is
/// cleared. A response may be of any length.
constexpr std::size_t most_known_bytes = std::size_t{16} << 20;
constexpr std::size_t bytes_of_a_score = 256; ///< in addition to its content

std::string error_key(const std::string& requester,
                      const std::string& content) {
  return requester + "\n" + content;
}

} // namespace

/// One round: maps lines to the items that wait for them.
class LineRewarder::Asking {
public:
  Asking(LineRewarder& rewarder, const RewardRound& round)
    : rewarder_(rewarder),
      round_(round) {}

  net::LineSource source() {
    net::LineSource source;
    source.take = [this] { return take(); };
    source.more = round_.more;
    return source;
  }
  net::LineHandler handler();

private:
  /// A content whose score is requested.
  struct Question {
    std::string content;
    std::string requester;
  };

  std::vector<std::string> take();
  void settle(std::size_t line, const RewardScore& score);

  LineRewarder& rewarder_;
  const RewardRound& round_;
  const std::uint64_t first_id_ = rewarder_.next_id_;
  std::size_t num_items_ = 0;
  std::vector<Question> asked_; ///< by line; settled ones are empty
  std::unordered_map<std::string, std::vector<std::size_t>> waiting_;
};

std::vector<std::string> LineRewarder::Asking::take() {
  std::vector<std::string> lines;
  for (const auto& item : round_.take()) {
    const auto number = num_items_++;
    auto content = request_content(item);
    if (const auto* score = rewarder_.known(item, content)) {
      round_.on_score(number, *score);
      continue;
    }
    auto& alike = waiting_[content];
    alike.push_back(number);
    if (alike.size() > 1)
      continue;
    lines.push_back(request_line(content, rewarder_.next_id_++));
    asked_.push_back({std::move(content), item.requester});
  }
  return lines;
}

void LineRewarder::Asking::settle(std::size_t line, const RewardScore& score) {
  const auto question = std::exchange(asked_[line], {});
  rewarder_.remember(question.requester, question.content, score);
  const auto alike = waiting_.extract(question.content);
  for (const auto item : alike.mapped())
    round_.on_score(item, score);
}

net::LineHandler LineRewarder::Asking::handler() {
  net::LineHandler handler;
  handler.line_of
    = [this](std::string_view reply) -> std::optional<std::size_t> {
    const auto id = reply_id(reply);
    if (!id || *id < first_id_ || *id - first_id_ >= asked_.size())
      return std::nullopt;
    return static_cast<std::size_t>(*id - first_id_);
  };
  handler.on_reply = [this](std::size_t line, std::string_view reply) {
    settle(line, read_reply(reply));
  };
  handler.on_unmatched = [this](std::string_view reply) {
    round_.on_unmatched("an answer with an id that was not asked for: "
                        + std::string(reply.substr(0, 200)));
  };
  handler.on_loss = [this](std::size_t line, net::LineLoss loss,
                           const std::string& why) {
    settle(line,
           {.parts = {}, .error = why, .late = loss == net::LineLoss::late});
  };
  return handler;
}

void LineRewarder::score(const RewardRound& round) {
  Asking asking(*this, round);
  ask_(asking.source(), asking.handler(), round.stop);
}

const RewardScore* LineRewarder::known(const RewardItem& item,
                                       const std::string& content) const {
  auto found = known_.find(content);
  if (found == known_.end())
    found = known_.find(error_key(item.requester, content));
  return found == known_.end() ? nullptr : &found->second;
}

void LineRewarder::remember(const std::string& requester,
                            const std::string& content,
                            const RewardScore& score) {
  known_bytes_ += content.size() + bytes_of_a_score;
  if (known_bytes_ > most_known_bytes) {
    known_.clear();
    known_bytes_ = 0;
  }
  known_[score.error.empty() ? content : error_key(requester, content)] = score;
}

} // namespace troupe::models
