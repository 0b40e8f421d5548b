// Who hears of answers to lines, whoever gives them (child processes, a
// server).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace troupe::net {

/// Why a line gets no answer.
enum class LineLoss : std::uint8_t { late, failed };

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
