#include "models/records/row_lines.hpp"

#include "models/data/dataset.hpp"
#include "models/text/stop_texts.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace troupe::models {

namespace {

using LineJson = nlohmann::ordered_json;

/// Returns the elements from `skip` on of the i-th sample of a column.
template <class T>
std::span<const T> line_elements(const net::Column& column, std::size_t i,
                                 std::size_t skip) {
  const auto offsets = column.offsets();
  return column.as<T>().subspan(offsets[i] + skip, column.lengths[i] - skip);
}

LineJson row_of(const LineSource& source, std::size_t i) {
  const auto row
    = source.first_row + static_cast<std::uint32_t>(i) / source.samples_per_row;
  return LineJson::parse(source.data.text(row).json);
}

std::string line_text(const LineJson& line) {
  return line.dump(-1, ' ', false, LineJson::error_handler_t::replace) + "\n";
}

} // namespace

std::string response_lines(const LineSource& source, const net::Rows& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.num_samples(); ++i) {
    const auto mask = line_elements<std::uint8_t>(rows.at("loss_mask"), i, 0);
    // the response begins at the model's first own token
    const auto prompt
      = static_cast<std::size_t>(std::ranges::find(mask, 1) - mask.begin());
    const auto ids
      = line_elements<std::int32_t>(rows.at("sequence_ids"), i, prompt);
    const bool truncated = rows.at("truncated").as<std::uint8_t>()[i] != 0;
    LineJson line = row_of(source, i);
    line["sample"] = i % source.samples_per_row;
    if (source.tokenizer.has_vocabulary())
      line["response"] = source.tokenizer.decode(ids);
    line["response_ids"] = ids;
    line["logprobs"] = line_elements<float>(rows.at("logprobs"), i, prompt);
    line["finish_reason"] = finish_reason(truncated, ids, source.tokenizer);
    text += line_text(line);
  }
  return text;
}

std::string score_lines(const LineSource& source, const net::Rows& rows) {
  std::string text;
  for (std::size_t i = 0; i < rows.num_samples(); ++i) {
    LineJson line = row_of(source, i);
    line["ids"] = line_elements<std::int32_t>(rows.at("sequence_ids"), i, 0);
    // the first entry of each column is for "before any token"
    if (rows.has("scores")) {
      line["score"] = rows.at("scores").as<float>()[i];
      line["values"] = line_elements<float>(rows.at("values"), i, 1);
    } else {
      line["logprobs"] = line_elements<float>(rows.at("logprobs"), i, 1);
      line["entropy"] = line_elements<float>(rows.at("entropy"), i, 1);
    }
    text += line_text(line);
  }
  return text;
}

} // namespace troupe::models
