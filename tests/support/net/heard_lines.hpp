// What a test heard of its lines. Lines are numbers; an answer begins with its
// line's, any other is stray.
#pragma once

#include "net/line_answers.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::test {

struct HeardLines {
  std::map<std::size_t, std::string> answers;
  std::map<std::size_t, std::string> losses;
  int late = 0;
  int strays = 0;

  net::LineHandler handler() {
    net::LineHandler handler;
    handler.line_of
      = [](std::string_view answer) -> std::optional<std::size_t> {
      if (answer.find_first_of("0123456789") != 0)
        return std::nullopt;
      return std::stoul(std::string(answer));
    };
    handler.on_answer = [this](std::size_t line, std::string_view answer) {
      answers[line] = answer;
    };
    handler.on_stray = [this](std::string_view) { ++strays; };
    handler.on_loss
      = [this](std::size_t line, net::LineLoss loss, const std::string& why) {
          losses[line] = why;
          late += loss == net::LineLoss::late ? 1 : 0;
        };
    return handler;
  }
};

/// "0", "1", ..
inline std::vector<std::string> number_lines(int count) {
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i)
    lines.push_back(std::to_string(i));
  return lines;
}

} // namespace troupe::test
