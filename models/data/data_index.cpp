#include "models/data/data_index.hpp"

#include "config/base/atomic_file.hpp"
#include "config/base/error.hpp"
#include "config/base/text_hash.hpp"

#include <nlohmann/json.hpp>

#include <cstring>
#include <string_view>
#include <type_traits>
#include <utility>

namespace troupe::models {

namespace {

using Json = nlohmann::json;

constexpr char index_magic[8] = {'T', 'R', 'P', 'I', 'N', 'D', 'E', 'X'};
constexpr std::uint32_t index_version = 4;

/// Start of the file; followed by the text (key and report as JSON), padded
/// with blanks to whole lines, then the lines of the usable rows.
struct IndexHeader {
  char magic[8] = {};
  std::uint32_t version = 0;
  std::uint32_t line_bytes = 0; ///< size of one; may differ in another build
  std::uint64_t text_bytes = 0; ///< including padding
  std::uint64_t num_rows = 0;
  std::uint64_t checksum = 0; ///< over text, then lines
  std::uint64_t unused = 0;
};
static_assert(sizeof(IndexHeader) % sizeof(IndexedRow) == 0);
static_assert(
  std::is_trivially_copyable_v<
    IndexedRow> && std::has_unique_object_representations_v<IndexedRow>);

std::string_view text_of(std::span<const IndexedRow> lines) {
  return {reinterpret_cast<const char*>(lines.data()), lines.size_bytes()};
}

std::uint64_t index_checksum(std::string_view text, std::string_view lines) {
  // one step per word: byte by byte it would take a second for 100 M rows
  std::uint64_t sum = text_hash(text);
  for (std::size_t at = 0; at < lines.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, lines.data() + at, sizeof word);
    sum = (sum ^ word) * 0x9E3779B97F4A7C15;
    sum ^= sum >> 29;
  }
  return sum;
}

std::string index_text(const std::string& key, const DatasetReport& report) {
  const Json json{{"key", key},
                  {"rows", report.rows},
                  {"bad_rows", report.bad_rows},
                  {"overlong_rows", report.overlong_rows},
                  {"truncated_rows", report.truncated_rows},
                  {"unlearned_turns", report.unlearned_turns},
                  {"longest", report.longest},
                  {"longest_line", report.longest_line},
                  {"longest_file", report.longest_file},
                  {"messages", report.messages},
                  {"usable", report.usable}};
  auto text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  constexpr auto unit = sizeof(IndexedRow);
  text.resize((text.size() + unit - 1) / unit * unit, ' ');
  return text;
}

/// Returns the report; nullopt if the key differs.
std::optional<DatasetReport> parse_index_text(std::string_view text,
                                              const std::string& key) {
  const auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("key", "") != key)
    return std::nullopt;
  return DatasetReport{
    .rows = json.at("rows").get<std::uint64_t>(),
    .bad_rows = json.at("bad_rows").get<std::uint64_t>(),
    .overlong_rows = json.at("overlong_rows").get<std::uint64_t>(),
    .truncated_rows = json.at("truncated_rows").get<std::uint64_t>(),
    .unlearned_turns = json.at("unlearned_turns").get<std::uint64_t>(),
    .longest = json.at("longest").get<std::size_t>(),
    .longest_line = json.at("longest_line").get<int>(),
    .longest_file = json.at("longest_file").get<std::uint32_t>(),
    .messages = json.at("messages").get<std::vector<std::string>>(),
    .usable = json.at("usable").get<std::vector<std::uint32_t>>()};
}

/// Parts of a file whose header, length and checksum are right.
struct IndexParts {
  std::string_view text;
  std::span<const IndexedRow> lines;
};

std::optional<IndexParts> index_parts(std::string_view file) {
  IndexHeader header;
  if (file.size() < sizeof header)
    return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  const auto rest = file.substr(sizeof header);
  constexpr auto unit = sizeof(IndexedRow);
  if (std::memcmp(header.magic, index_magic, sizeof index_magic) != 0
      || header.version != index_version || header.line_bytes != unit
      || header.unused != 0 || header.text_bytes > rest.size()
      || header.text_bytes % unit != 0
      || header.num_rows != (rest.size() - header.text_bytes) / unit
      || rest.size() % unit != 0)
    return std::nullopt;
  const auto text = rest.substr(0, header.text_bytes);
  const auto lines = rest.substr(header.text_bytes);
  if (index_checksum(text, lines) != header.checksum)
    return std::nullopt;
  return IndexParts{
    text, {reinterpret_cast<const IndexedRow*>(lines.data()), header.num_rows}};
}

std::optional<MappedFile> map_readable(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored))
    return std::nullopt;
  try {
    return MappedFile(file);
  } catch (const ConfigError&) { // the user did not name this file
    return std::nullopt;
  }
}

} // namespace

std::uint32_t row_hash(std::string_view text) {
  const auto hash = text_hash(text);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

void DatasetReport::append(const DatasetReport& next,
                           std::uint32_t usable_rows) {
  rows += next.rows;
  bad_rows += next.bad_rows;
  overlong_rows += next.overlong_rows;
  truncated_rows += next.truncated_rows;
  unlearned_turns += next.unlearned_turns;
  if (next.longest > longest) {
    longest = next.longest;
    longest_line = next.longest_line;
    longest_file = static_cast<std::uint32_t>(usable.size());
  }
  for (const auto& message : next.messages)
    if (messages.size() < most_messages)
      messages.push_back(message);
  usable.push_back(usable_rows);
}

DataIndex::DataIndex(std::vector<IndexedRow> rows, DatasetReport report)
  : made_(std::move(rows)),
    rows_(made_),
    report_(std::move(report)) {}

DataIndex::DataIndex(MappedFile file, std::span<const IndexedRow> rows,
                     DatasetReport report)
  : file_(std::move(file)),
    rows_(rows),
    report_(std::move(report)) {}

std::optional<DataIndex> DataIndex::map(const std::filesystem::path& file,
                                        const std::string& key) {
  auto map = map_readable(file);
  if (!map)
    return std::nullopt;
  const auto parts = index_parts(map->text());
  if (!parts)
    return std::nullopt;
  auto report = parse_index_text(parts->text, key);
  if (!report)
    return std::nullopt;
  return DataIndex(std::move(*map), parts->lines, std::move(*report));
}

void DataIndex::write(const std::filesystem::path& file,
                      const std::string& key) const {
  const auto text = index_text(key, report_);
  IndexHeader header{.version = index_version,
                     .line_bytes = sizeof(IndexedRow),
                     .text_bytes = text.size(),
                     .num_rows = rows_.size(),
                     .checksum = index_checksum(text, text_of(rows_))};
  std::memcpy(header.magic, index_magic, sizeof index_magic);
  AtomicFile writer(file);
  writer.write(std::as_bytes(std::span(&header, 1)));
  writer.write(text);
  writer.write(std::as_bytes(rows_));
  writer.commit(Sync::no);
}

} // namespace troupe::models
