#include "models/records/rollout_record.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/error.hpp"
#include "models/text/stop_texts.hpp"
#include "models/text/tokenizer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>

namespace troupe::models {

namespace {

using nlohmann::ordered_json;

/// Returns sample i's elements of a column.
template <class T>
std::span<const T> values_of(const net::Column& column, std::size_t i) {
  const auto offsets = column.offsets();
  return column.as<T>().subspan(offsets[i], column.lengths[i]);
}

/// Returns the number of tokens before the model's first own token.
std::size_t prompt_length(std::span<const std::uint8_t> loss_mask) {
  return static_cast<std::size_t>(std::ranges::find(loss_mask, 1)
                                  - loss_mask.begin());
}

/// Returns the nats of the whole response: sum over own tokens of logprob -
/// ref_logprob (k1).
double kl_of(std::span<const std::uint8_t> mask,
             std::span<const float> logprobs,
             std::span<const float> reference) {
  double sum = 0;
  for (std::size_t t = 0; t < mask.size(); ++t)
    if (mask[t] != 0)
      sum += double{logprobs[t]} - double{reference[t]};
  return sum;
}

/// Returns numbers rounded to four decimals.
std::vector<double> rounded(std::span<const float> values) {
  std::vector<double> result;
  result.reserve(values.size());
  for (const float value : values)
    result.push_back(std::round(double{value} * 1e4) / 1e4);
  return result;
}

/// Returns a text, or the numbers of a sample.
ordered_json value_json(const net::Rows& rows, const KeyInfo& key,
                        std::size_t i) {
  const auto& column = rows.at(key.name);
  if (key.type == KeyType::f32)
    return values_of<float>(column, i);
  if (key.type == KeyType::i32)
    return values_of<std::int32_t>(column, i);
  const auto bytes = values_of<std::uint8_t>(column, i);
  if (key.type == KeyType::text)
    return std::string(bytes.begin(), bytes.end());
  return std::vector<int>(bytes.begin(), bytes.end());
}

/// Returns the spans that a sequence of `tokens` tokens, `prompt` of them not
/// the model's, has.
ordered_json versions_json(std::span<const plans::VersionSpan> versions,
                           std::size_t prompt, std::size_t tokens) {
  auto spans = ordered_json::array();
  for (const auto& span : versions)
    if (const auto first = prompt + static_cast<std::size_t>(span.first_token);
        first < tokens)
      spans.push_back({first, span.version.value});
  return spans;
}

ordered_json sample_json(StepId step, const net::Rows& rows, std::size_t i,
                         std::span<const KeyInfo> keys,
                         const Tokenizer& tokenizer,
                         std::span<const plans::VersionSpan> versions) {
  const auto ids = values_of<std::int32_t>(rows.at("sequence_ids"), i);
  const auto mask = values_of<std::uint8_t>(rows.at("loss_mask"), i);
  const auto logprobs = values_of<float>(rows.at("logprobs"), i);
  const bool truncated
    = values_of<std::uint8_t>(rows.at("truncated"), i).front() != 0;
  const auto prompt = prompt_length(mask);
  ordered_json line;
  line["step"] = step_number(step);
  line["sample"] = rows.samples[i].value;
  line["prompt"] = tokenizer.decode(ids.first(prompt));
  line["response"] = tokenizer.decode(ids.subspan(prompt));
  if (rows.has("scores"))
    line["score"] = values_of<float>(rows.at("scores"), i).front();
  if (rows.has("ref_logprobs"))
    line["kl"]
      = kl_of(mask, logprobs, values_of<float>(rows.at("ref_logprobs"), i));
  line["finish_reason"] = finish_reason(truncated, ids, tokenizer);
  line["sequence_ids"] = std::vector(ids.begin(), ids.end());
  line["loss_mask"] = std::vector<int>(mask.begin(), mask.end());
  line["logprobs"] = std::vector(logprobs.begin(), logprobs.end());
  for (const char* key : {"ref_logprobs", "advantages"})
    if (rows.has(key))
      line[key] = rounded(values_of<float>(rows.at(key), i));
  for (const KeyInfo& key : keys)
    line["keys"][key.name] = value_json(rows, key, i);
  if (!versions.empty())
    line["versions"] = versions_json(versions, prompt, ids.size());
  return line;
}

} // namespace

void write_file_whole(const std::filesystem::path& file,
                      const std::string& text) {
  std::error_code ignored; // opening the file reports the error
  std::filesystem::create_directories(file.parent_path(), ignored);
  replace_file(file, text, Sync::no);
}

AppendFile::AppendFile(const std::filesystem::path& file)
  : path_(file),
    stream_(file, std::ios::app | std::ios::binary) {
  append("");
}

void AppendFile::append(const std::string& text) {
  stream_ << text << std::flush;
  if (!stream_)
    throw FailureError{
      {.code = Errc::io,
       .who = "",
       .what = fmt::format("{}: {}", path_.string(), std::strerror(errno)),
       .cause = ""}};
}

std::string sample_lines(StepId step, const net::Rows& rows,
                         std::span<const KeyInfo> keys,
                         const Tokenizer& tokenizer,
                         std::span<const plans::VersionSpan> versions) {
  std::string text;
  for (std::size_t i = 0; i < rows.num_samples(); ++i)
    text += sample_json(step, rows, i, keys, tokenizer, versions)
              .dump(-1, ' ', false, ordered_json::error_handler_t::replace)
            + "\n";
  return text;
}

} // namespace troupe::models
