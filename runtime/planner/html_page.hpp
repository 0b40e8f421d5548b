// A self-contained page of what a plan command found: text, bars, the pictures
// of steps. No script, nothing from elsewhere, so that it can be sent by mail;
// light or dark to match the viewer's setting, in the colours of a run's page.
#pragma once

#include "plans/simulate/simulator.hpp"

#include <optional>
#include <string>
#include <vector>

namespace troupe::runtime {

struct HtmlBar {
  std::string label;
  double value = 0;
  std::string note = {}; ///< after the value
};

class HtmlPage {
public:
  explicit HtmlPage(std::string title) : title_(std::move(title)) {}

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  /// Adds text as on a terminal.
  void preformatted(const std::string& text);
  /// Adds one bar per line, to the scale of the largest.
  void bars(const std::vector<HtmlBar>& bars, const std::string& unit);
  /// Adds the picture of a step, its memory, and the bytes that it moves by
  /// link.
  void step(const std::string& caption, const plans::Simulation& run);

  std::string print() const;

private:
  std::string title_;
  std::string body_;
};

} // namespace troupe::runtime
