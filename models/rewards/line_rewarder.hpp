// A Rewarder that queries programs or a server, line by line: equal requests
// are sent once, and their scores are cached.
#pragma once

#include "models/rewards/reward.hpp"
#include "net/child_programs/line_replies.hpp"

#include <unordered_map>

namespace troupe::models {

/// Processes lines until each is answered or lost (net::LinePrograms::run,
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
  void remember(const std::string& requester, const std::string& content,
                const RewardScore& score);

  AskLines ask_;
  std::uint64_t next_id_ = 0;
  /// By content; errors by requester and content, so that the next step
  /// retries.
  std::unordered_map<std::string, RewardScore> known_;
  std::size_t known_bytes_ = 0;
};

} // namespace troupe::models
