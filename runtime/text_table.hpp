// Columns of text, each as wide as its widest cell; numbers to the right.
#pragma once

#include <string>
#include <vector>

namespace troupe::runtime {

class TextTable {
public:
  /// A title that starts with '>' aligns its column to the right.
  explicit TextTable(std::vector<std::string> titles);
  /// One cell a column; missing ones are empty.
  void row(std::vector<std::string> cells);
  bool empty() const {
    return rows_.empty();
  }
  /// Lines with `indent` spaces in front, titles first.
  std::string print(int indent = 0) const;

private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

} // namespace troupe::runtime
