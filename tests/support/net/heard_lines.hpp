// Replies to a test's lines. Lines are numbers; a reply begins with its line's
// number, any other is unmatched.
#pragma once

#include "net/child_programs/line_replies.hpp"

#include <map>
#include <string>
#include <vector>

namespace troupe::test {

struct HeardLines {
  std::map<std::size_t, std::string> replies;
  std::map<std::size_t, std::string> losses;
  int late = 0;
  int unmatched = 0;

  net::LineHandler handler() {
    net::LineHandler handler;
    handler.line_of = [](std::string_view reply) -> std::optional<std::size_t> {
      if (reply.find_first_of("0123456789") != 0)
        return std::nullopt;
      return std::stoul(std::string(reply));
    };
    handler.on_reply = [this](std::size_t line, std::string_view reply) {
      replies[line] = reply;
    };
    handler.on_unmatched = [this](std::string_view) { ++unmatched; };
    handler.on_loss
      = [this](std::size_t line, net::LineLoss loss, const std::string& why) {
          losses[line] = why;
          late += loss == net::LineLoss::late ? 1 : 0;
        };
    return handler;
  }
};

/// Returns "0", "1", ...
inline std::vector<std::string> number_lines(int count) {
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i)
    lines.push_back(std::to_string(i));
  return lines;
}

} // namespace troupe::test
