#include "models/line_rewarder.hpp"

#include "models/reward_protocol.hpp"

namespace troupe::models {

namespace {

/// Scores kept; then all are forgotten.
constexpr std::size_t most_known_scores = std::size_t{1} << 17;

} // namespace

RewardAnswers LineRewarder::score(const std::vector<RewardItem>& items,
                                  const RewardWait& wait) {
  std::vector<std::string> contents;
  std::vector<std::string> lines;
  std::vector<std::size_t> asked; // line -> the first item of its content
  std::unordered_map<std::string, RewardScore> scores; // of this step
  const auto first_id = next_id_;
  for (const auto& item : items) {
    contents.push_back(request_content(item));
    const auto [score, is_new] = scores.try_emplace(contents.back());
    if (!is_new)
      continue;
    if (const auto known = known_.find(contents.back());
        known != known_.end()) {
      score->second = known->second;
      continue;
    }
    asked.push_back(contents.size() - 1);
    lines.push_back(request_line(contents.back(), next_id_++));
  }
  RewardAnswers answers;
  const auto settle = [&](std::size_t line, RewardScore score) {
    const auto& content = contents[asked[line]];
    if (score.trouble.empty())
      remember(content, score);
    scores[content] = std::move(score);
    if (wait.progress)
      wait.progress();
  };
  net::LineHandler handler;
  handler.line_of = [&](std::string_view answer) -> std::optional<std::size_t> {
    const auto id = answer_id(answer);
    if (!id || *id < first_id || *id - first_id >= lines.size())
      return std::nullopt;
    return static_cast<std::size_t>(*id - first_id);
  };
  handler.on_answer = [&](std::size_t line, std::string_view answer) {
    settle(line, read_answer(answer));
  };
  handler.on_stray = [&](std::string_view answer) {
    answers.strays.push_back("an answer with an id that was not asked for: "
                             + std::string(answer.substr(0, 200)));
  };
  handler.on_loss = [&](std::size_t line, net::LineLoss loss,
                        const std::string& why) {
    settle(line,
           {.parts = {}, .trouble = why, .late = loss == net::LineLoss::late});
  };
  if (!lines.empty())
    ask_(lines, handler, wait.stop);
  for (const auto& content : contents)
    answers.scores.push_back(scores.at(content));
  return answers;
}

void LineRewarder::remember(const std::string& content,
                            const RewardScore& score) {
  if (known_.size() >= most_known_scores)
    known_.clear();
  known_[content] = score;
}

} // namespace troupe::models
