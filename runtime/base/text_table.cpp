#include "runtime/base/text_table.hpp"

#include <algorithm>
#include <utility>

namespace troupe::runtime {

TextTable::TextTable(std::vector<std::string> titles)
  : titles_(std::move(titles)) {
  for (auto& title : titles_) {
    right_.push_back(title.starts_with('>'));
    if (right_.back())
      title.erase(0, 1);
  }
}

void TextTable::row(std::vector<std::string> cells) {
  cells.resize(titles_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::print(int indent) const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < titles_.size(); ++column) {
    std::size_t width = titles_[column].size();
    for (const auto& row : rows_)
      width = std::max(width, row[column].size());
    widths.push_back(width);
  }
  std::string text;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string out(static_cast<std::size_t>(indent), ' ');
    for (std::size_t column = 0; column < cells.size(); ++column) {
      const std::string space(widths[column] - cells[column].size(), ' ');
      out += right_[column] ? space + cells[column] : cells[column] + space;
      out += "  ";
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  if (std::any_of(titles_.begin(), titles_.end(),
                  [](const std::string& title) { return !title.empty(); }))
    line(titles_);
  for (const auto& row : rows_)
    line(row);
  return text;
}

} // namespace troupe::runtime
