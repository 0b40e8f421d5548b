// Columns of text, each as wide as its widest cell; numbers are right-aligned.
#pragma once

#include <string>
#include <vector>

namespace troupe::runtime {

class TextTable {
public:
  /// A title that starts with '>' right-aligns its column.
  explicit TextTable(std::vector<std::string> titles);
  /// Adds a row with one cell per column; missing ones are empty.
  void row(std::vector<std::string> cells);
  bool empty() const {
    return rows_.empty();
  }
  /// Returns the lines with `indent` leading spaces, titles first.
  std::string print(int indent = 0) const;

private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

} // namespace troupe::runtime
