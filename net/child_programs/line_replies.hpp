// Lines to be answered and the handlers of their answers, independent of the
// source of answers (child processes, a server).
#pragma once

#include "config/settings/settings_types.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::net {

class WakeEvent;

/// Lines that exist, and those that arrive while others are being answered.
/// They are numbered in the order in which they are taken.
struct LineSource {
  LineSource() = default;
  /// A fixed list of lines.
  LineSource(std::vector<std::string> lines)
    : take([lines = std::move(lines)]() mutable {
        return std::exchange(lines, {});
      }) {}

  /// Returns the lines that arrived since the last call; called on the thread
  /// that waits for the answers.
  std::function<std::vector<std::string>()> take;
  const WakeEvent* more = nullptr; ///< rung when lines arrive; null: none will
};

/// Reason why a line gets no answer.
enum class LineLoss : std::uint8_t { late, failed };

/// The longest wait for an answer, and the name of its setting.
struct ReplyDeadline {
  std::chrono::duration<double> silence{RewardSettings{}.timeout_s};
  std::string setting = {}; ///< "reward.timeout_s", for messages

  /// Returns the message of an expired deadline: "no answer within 10 s
  /// (reward.timeout_s)".
  std::string text() const;
};

/// Callbacks, all called on the thread that waits for the answers.
struct LineHandler {
  /// Returns the number of the line that an answer belongs to; nullopt: none.
  std::function<std::optional<std::size_t>(std::string_view reply)> line_of;
  std::function<void(std::size_t line, std::string_view reply)> on_reply;
  /// Receives an unmatched reply.
  std::function<void(std::string_view reply)> on_unmatched;
  std::function<void(std::size_t line, LineLoss, const std::string& why)>
    on_loss;
};

} // namespace troupe::net
