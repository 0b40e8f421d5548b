#include "models/line_rewarder.hpp"

#include "models/reward_protocol.hpp"

namespace troupe::models {

namespace {

/// What is remembered, by the bytes of its contents; then all is forgotten. An
/// answer may be of any length.
constexpr std::size_t most_known_bytes = std::size_t{16} << 20;
constexpr std::size_t bytes_of_a_score = 256; ///< besides its content

std::string trouble_key(const std::string& asker, const std::string& content) {
  return asker + "\n" + content;
}

} // namespace

/// One round: which items wait for which line.
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
  /// A content that is asked for.
  struct Question {
    std::string content;
    std::string asker;
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
    asked_.push_back({std::move(content), item.asker});
  }
  return lines;
}

void LineRewarder::Asking::settle(std::size_t line, const RewardScore& score) {
  const auto question = std::exchange(asked_[line], {});
  rewarder_.remember(question.asker, question.content, score);
  const auto alike = waiting_.extract(question.content);
  for (const auto item : alike.mapped())
    round_.on_score(item, score);
}

net::LineHandler LineRewarder::Asking::handler() {
  net::LineHandler handler;
  handler.line_of
    = [this](std::string_view answer) -> std::optional<std::size_t> {
    const auto id = answer_id(answer);
    if (!id || *id < first_id_ || *id - first_id_ >= asked_.size())
      return std::nullopt;
    return static_cast<std::size_t>(*id - first_id_);
  };
  handler.on_answer = [this](std::size_t line, std::string_view answer) {
    settle(line, read_answer(answer));
  };
  handler.on_stray = [this](std::string_view answer) {
    round_.on_stray("an answer with an id that was not asked for: "
                    + std::string(answer.substr(0, 200)));
  };
  handler.on_loss = [this](std::size_t line, net::LineLoss loss,
                           const std::string& why) {
    settle(line,
           {.parts = {}, .trouble = why, .late = loss == net::LineLoss::late});
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
    found = known_.find(trouble_key(item.asker, content));
  return found == known_.end() ? nullptr : &found->second;
}

void LineRewarder::remember(const std::string& asker,
                            const std::string& content,
                            const RewardScore& score) {
  known_bytes_ += content.size() + bytes_of_a_score;
  if (known_bytes_ > most_known_bytes) {
    known_.clear();
    known_bytes_ = 0;
  }
  known_[score.trouble.empty() ? content : trouble_key(asker, content)] = score;
}

} // namespace troupe::models
