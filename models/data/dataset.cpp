#include "models/data/dataset.hpp"

#include "config/base/error.hpp"
#include "config/base/log.hpp"
#include "config/settings/data_files.hpp"
#include "config/settings/workflow_traits.hpp"
#include "models/data/data_pass.hpp"
#include "models/data/plain_rows.hpp"
#include "models/data/sample_reader.hpp"
#include "models/io/jsonl.hpp"
#include "models/io/row_text_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace troupe::models {

namespace {

/// Returns true for OWNER/NAME, as data sets of the Hub are called.
bool is_hub_name(const std::string& path) {
  return std::ranges::count(path, '/') == 1 && !path.starts_with('/')
         && !path.ends_with('/')
         && !std::filesystem::path(path).has_extension();
}

[[noreturn]] void has_changed(const Place& place) {
  throw ConfigError({.place = place,
                     .path = "",
                     .expected = "the row that this run read at its start",
                     .got = "another one: the file was changed meanwhile",
                     .hint = "the file as it was, and the same command; or a "
                             "new run with the new file"});
}

} // namespace

struct Dataset::State {
  struct File {
    std::string name; ///< as the user named it
    RowTextFile text;
    std::uint32_t end = 0; ///< of its rows among those of all files
  };

  DataKind kind;
  internal::SampleReader reader;
  std::vector<File> files;
  DataIndex index;
  bool has_margin = false;

  std::uint32_t file_of(std::uint32_t index_of_row) const {
    const auto at
      = std::ranges::upper_bound(files, index_of_row, {}, &File::end);
    TROUPE_CHECK(at != files.end(), "row of another data set");
    return static_cast<std::uint32_t>(at - files.begin());
  }

  const IndexedRow& row(std::uint32_t index_of_row) const {
    TROUPE_CHECK(index_of_row < index.rows().size(), "row of another data set");
    return index.rows()[index_of_row];
  }
  Place place(std::uint32_t index_of_row) const {
    return {files[file_of(index_of_row)].name,
            static_cast<int>(row(index_of_row).line.number)};
  }
  /// Returns the row's text in the file. Throws ConfigError if it is not what
  /// it was when the file was indexed.
  std::string text(std::uint32_t index_of_row) const {
    const auto& indexed = row(index_of_row);
    auto text = files[file_of(index_of_row)].text.read(indexed.line.begin,
                                                       indexed.line.size_bytes);
    if (row_hash(text) != indexed.hash)
      has_changed(place(index_of_row));
    return text;
  }
};

namespace {

/// Returns a column of one dtype from one list per sample.
template <class T>
net::Column pack_column(const char* key, DType dtype,
                        const std::vector<std::vector<T>>& lists,
                        std::uint32_t n) {
  std::vector<std::uint32_t> lengths;
  lengths.reserve(lists.size() * n);
  for (const auto& list : lists)
    lengths.insert(lengths.end(), n, static_cast<std::uint32_t>(list.size()));
  net::Column column = net::make_column(key, dtype, std::move(lengths));
  std::byte* at = column.data.data();
  for (const auto& list : lists) {
    for (std::uint32_t k = 0; k < n && !list.empty(); ++k) {
      std::memcpy(at, list.data(), list.size() * sizeof(T));
      at += list.size() * sizeof(T);
    }
  }
  return column;
}

[[noreturn]] void nothing_usable(const std::string& file,
                                 const DatasetReport& report) {
  if (report.rows == 0)
    throw ConfigError({.place = {file, 0},
                       .path = "",
                       .expected = "at least one row, a JSON object a line",
                       .got = "an empty file",
                       .hint = "rows as the README shows them"});
  throw ConfigError(
    {.place = {file, 0},
     .path = "",
     .expected = "a usable row",
     .got = "none (" + std::to_string(report.rows) + " rows, "
            + std::to_string(report.bad_rows) + " bad, "
            + std::to_string(report.overlong_rows) + " overlong"
            + (report.messages.empty() ? "" : ": " + report.messages.front())
            + ")",
     .hint = report.overlong_rows > 0 ? "a larger limit of tokens, or "
                                        "data.overlong: truncate"
                                      : "rows as the README shows them"});
}

/// Reads all rows of the files, whose plain rows are in `plain`.
DataIndex index_of(const std::vector<std::filesystem::path>& plain,
                   const DatasetOptions& options,
                   const internal::SampleReader& reader,
                   const DatasetOpening& opening) {
  std::vector<IndexedRow> rows;
  DatasetReport report;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto name = options.files[i].string();
    const MappedFile all(plain[i]);
    const auto part = internal::read_all_rows(
      JsonLines::view(all.text(), name, options.first_rows), reader, options,
      opening);
    if (part.rows().empty())
      nothing_usable(name, part.report());
    rows.insert(rows.end(), part.rows().begin(), part.rows().end());
    report.append(part.report(),
                  static_cast<std::uint32_t>(part.rows().size()));
  }
  return {std::move(rows), std::move(report)};
}

} // namespace

DatasetOptions train_options(const Settings& settings) {
  const DataSettings& data = settings.data;
  DatasetOptions options;
  for (const auto& file : train_files(data))
    options.files.emplace_back(file.path);
  options.kind = workflow_data(settings.workflow);
  options.fields = data.fields;
  options.places = settings.places;
  if (data.chat != "auto")
    options.chat = data.chat == "true" ? ChatUse::always : ChatUse::never;
  options.max_tokens = options.kind == DataKind::prompts
                         ? data.max_prompt_tokens
                         : data.max_tokens;
  options.overlong = data.overlong;
  options.on_bad_row = data.on_bad_row;
  options.ends_responses
    = options.kind == DataKind::score && settings.models.contains("reward");
  return options;
}

Dataset::Dataset(std::shared_ptr<const State> state)
  : state_(std::move(state)) {}

void require_data_file(const Settings& settings) {
  const auto refuse = [&](const std::string& got, const std::string& hint) {
    throw ConfigError({.place = place_of(settings, "data.train"),
                       .path = "data.train",
                       .expected = "a file of JSON lines",
                       .got = got,
                       .hint = hint});
  };
  const auto files = train_files(settings.data);
  if (files.empty())
    refuse("nothing", "");
  for (const auto& file : files)
    if (!is_data_file(file.path))
      refuse("'" + file.path + "', which is no file",
             is_hub_name(file.path)
               ? "hf://datasets/" + file.path + "/FILE for one of the Hub"
               : "");
}

Dataset Dataset::open(const Settings& settings, const Tokenizer& tokenizer,
                      const DatasetOpening& opening) {
  require_data_file(settings);
  return open(train_options(settings), tokenizer, opening);
}

Dataset Dataset::open(const DatasetOptions& options, const Tokenizer& tokenizer,
                      const DatasetOpening& opening) {
  TROUPE_CHECK(!options.files.empty(), "a data set has a file");
  internal::SampleReader reader(options, tokenizer);
  std::vector<std::filesystem::path> plain;
  std::vector<State::File> files;
  for (const auto& file : options.files) {
    plain.push_back(plain_rows(file));
    files.push_back({file.string(), RowTextFile(plain.back())});
  }
  auto kept = opening.index_file.empty()
                ? std::nullopt
                : DataIndex::map(opening.index_file, opening.index_key);
  auto index
    = kept ? std::move(*kept) : index_of(plain, options, reader, opening);
  const auto& usable = index.report().usable;
  TROUPE_CHECK(usable.size() == files.size(), "an index of other files");
  for (std::size_t i = 0; i < files.size(); ++i)
    files[i].end = usable[i] + (i == 0 ? 0 : files[i - 1].end);
  return Dataset(std::make_shared<const State>(
    State{options.kind, std::move(reader), std::move(files), std::move(index),
          options.fields.contains("margin")}));
}

bool Dataset::was_read() const {
  return !state_->index.is_mapped();
}

void Dataset::keep_index(const std::filesystem::path& file,
                         const std::string& key) const {
  state_->index.write(file, key);
}

std::uint32_t Dataset::size() const {
  return static_cast<std::uint32_t>(state_->index.rows().size());
}

std::uint32_t Dataset::num_tokens(std::uint32_t row) const {
  return state_->row(row).tokens;
}

const DatasetReport& Dataset::report() const {
  return state_->index.report();
}

DataKind Dataset::kind() const {
  return state_->kind;
}

std::string Dataset::file() const {
  std::string names;
  for (const auto& file : state_->files)
    names += (names.empty() ? "" : ", ") + file.name;
  return names;
}

std::uint32_t Dataset::file_of(std::uint32_t row) const {
  return state_->file_of(row);
}

Place Dataset::longest_place() const {
  const auto& found = report();
  return {state_->files.at(found.longest_file).name, found.longest_line};
}

net::Rows Dataset::rows(std::span<const std::uint32_t> row_indices,
                        SampleId first, std::uint32_t n) const {
  std::vector<std::vector<std::int32_t>> ids, rejected;
  std::vector<std::vector<std::uint8_t>> masks, rejected_masks, desirable;
  std::vector<std::vector<float>> margins;
  std::vector<SampleId> samples;
  for (const std::uint32_t row : row_indices) {
    auto tokens = state_->reader.tokens(state_->text(row), state_->place(row));
    masks.push_back(tokens.mask());
    rejected_masks.push_back(tokens.rejected_mask());
    desirable.push_back({tokens.desirable ? std::uint8_t{1} : std::uint8_t{0}});
    margins.push_back({tokens.margin});
    ids.push_back(std::move(tokens.ids));
    rejected.push_back(std::move(tokens.rejected));
    for (std::uint32_t k = 0; k < n; ++k)
      samples.emplace_back(first.value + samples.size());
  }
  std::vector<net::Column> columns;
  if (state_->kind == DataKind::prompts) {
    columns.push_back(pack_column("prompt_ids", DType::i32, ids, n));
  } else if (state_->kind == DataKind::preference) {
    columns.push_back(pack_column("chosen_ids", DType::i32, ids, n));
    columns.push_back(pack_column("chosen_loss_mask", DType::u8, masks, n));
    columns.push_back(pack_column("rejected_ids", DType::i32, rejected, n));
    columns.push_back(
      pack_column("rejected_loss_mask", DType::u8, rejected_masks, n));
    if (state_->has_margin)
      columns.push_back(pack_column("pair_margin", DType::f32, margins, n));
  } else {
    columns.push_back(pack_column("sequence_ids", DType::i32, ids, n));
    columns.push_back(pack_column("loss_mask", DType::u8, masks, n));
    if (state_->kind == DataKind::labelled)
      columns.push_back(pack_column("desirable", DType::u8, desirable, n));
  }
  return net::Rows(std::move(samples), std::move(columns));
}

RowText Dataset::text(std::uint32_t row) const {
  return state_->reader.text(state_->text(row), state_->place(row));
}

std::optional<std::string> Dataset::field(std::uint32_t row,
                                          const std::string& name) const {
  return state_->reader.field(state_->text(row), state_->place(row), name);
}

void warn_of_lost(const Dataset& dataset) {
  const DatasetReport& report = dataset.report();
  const auto warn = [&](std::uint64_t count, const std::string& what) {
    if (count > 0)
      log::data.warn(dataset.file() + ": " + std::to_string(count) + what);
  };
  warn(report.bad_rows,
       " bad rows skipped; the first: "
         + (report.messages.empty() ? "" : report.messages.front()));
  warn(report.overlong_rows, " overlong rows skipped");
  warn(report.truncated_rows, " overlong rows truncated");
  warn(
    report.unlearned_turns,
    " turns of the assistant are left out of the loss, for the chat template "
    "changes them once others follow; try one with {% generation %} blocks");
}

} // namespace troupe::models
