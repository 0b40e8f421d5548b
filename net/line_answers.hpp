// Lines that are to be answered, and who hears of the answers, whoever gives
// them (child processes, a server).
#pragma once

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

/// Lines that are there, and those that come while others are being answered.
/// They are numbered in the order in which they are taken.
struct LineSource {
  LineSource() = default;
  /// These, no more.
  LineSource(std::vector<std::string> lines)
    : take([lines = std::move(lines)]() mutable {
        return std::exchange(lines, {});
      }) {}

  /// Those that came since; called on the thread that waits for the answers.
  std::function<std::vector<std::string>()> take;
  const WakeEvent* more = nullptr; ///< rung when some came; null: none will
};

/// Why a line gets no answer.
enum class LineLoss : std::uint8_t { late, failed };

/// The longest wait for an answer, and what its user calls it.
struct AnswerDeadline {
  std::chrono::duration<double> silence{10};
  std::string setting = {}; ///< "reward.timeout_s", for messages

  /// Says that it passed: "no answer within 10 s (reward.timeout_s)".
  std::string text() const;
};

/// All are called on the thread that waits for the answers.
struct LineHandler {
  /// The number of the line that an answer is to; nothing: to none.
  std::function<std::optional<std::size_t>(std::string_view answer)> line_of;
  std::function<void(std::size_t line, std::string_view answer)> on_answer;
  /// An answer to nothing that was asked.
  std::function<void(std::string_view answer)> on_stray;
  std::function<void(std::size_t line, LineLoss, const std::string& why)>
    on_loss;
};

} // namespace troupe::net
