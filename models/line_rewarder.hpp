// A Rewarder that asks programs or a server, line by line: answers that are
// alike are asked for once, and what was said is remembered.
#pragma once

#include "models/reward.hpp"
#include "net/line_answers.hpp"

#include <unordered_map>

namespace troupe::models {

/// Has each line answered or lost (net::LinePrograms::run,
/// net::HttpLines::run).
using AskLines
  = std::function<void(const net::LineSource&, const net::LineHandler&,
                       const std::atomic<bool>* stop)>;

class LineRewarder : public Rewarder {
public:
  explicit LineRewarder(AskLines ask) : ask_(std::move(ask)) {}

  void score(const RewardRound& round) override;

private:
  class Asking;

  const RewardScore* known(const RewardItem& item,
                           const std::string& content) const;
  void remember(const std::string& asker, const std::string& content,
                const RewardScore& score);

  AskLines ask_;
  std::uint64_t next_id_ = 0;
  /// By content; troubles by asker and content: the next step tries again.
  std::unordered_map<std::string, RewardScore> known_;
  std::size_t known_bytes_ = 0;
};

} // namespace troupe::models
