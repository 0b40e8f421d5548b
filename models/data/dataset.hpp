// Rows of JSONL files as samples: prompts for generation, sequences with a
// loss mask for SFT, pairs for preference training, texts for scoring. Opening
// reads and checks every row once (so a bad row stops a run before it starts)
// but keeps only their locations and hashes; rows are tokenized again when a
// step needs them, so files may be larger than memory, and a row that was
// changed meanwhile is an error that names it. A run stores the locations in a
// file (models/data/data_index.hpp), so that only one of its processes reads
// every row, once.
//
// A prompt, completion, chosen or rejected may be a list of messages, which the
// tokenizer's chat template renders; in a conversation the loss covers the
// assistant's turns, except for earlier ones that the template changes (drops
// their thoughts) once others follow.
//
// Keys (per sample):  prompts     prompt_ids i32[P]
//                     sft, score  sequence_ids i32[L], loss_mask u8[L]
//                     labelled    the same, and desirable u8[1]
//                     preference  chosen_ids i32[L], chosen_loss_mask u8[L],
//                                 the same for rejected, and with
//                                 data.fields.margin pair_margin f32[1]
#pragma once

#include "config/base/data_kind.hpp"
#include "config/settings/settings.hpp"
#include "config/settings/settings_types.hpp"
#include "models/data/data_index.hpp"
#include "models/text/tokenizer.hpp"
#include "net/base/rows.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace troupe::models {

using troupe::DataKind;

/// Values of `data.chat`: `auto` renders rows that are messages, `true` also
/// turns string prompts into messages, `false` refuses messages.
enum class ChatUse : std::uint8_t { automatic, always, never };

struct DatasetOptions {
  /// Files as the user named them; their rows follow each other.
  std::vector<std::filesystem::path> files;
  DataKind kind = DataKind::prompts;
  std::map<std::string, std::string> fields; ///< `data.fields`
  std::map<std::string, Place> places;       ///< of settings, for messages
  /// Prefix of "NAME=COLUMN" for `fields`, for messages.
  std::string fields_word = "data.fields.";
  ChatUse chat = ChatUse::automatic;
  std::size_t first_rows = 0; ///< reads only these rows of each file; 0: all
  int max_tokens = 0;         ///< per prompt, or per sequence; 0: no limit
  std::string overlong = DataSettings{}.overlong; ///< skip | truncate | error
  std::string on_bad_row = DataSettings{}.on_bad_row; ///< error | skip
  /// score: responses are complete unless their row has another
  /// `finish_reason`, so an end token follows, as in training pairs and
  /// rollouts.
  bool ends_responses = false;
};
/// Returns the options of `data.train` with the workflow's limits.
DatasetOptions train_options(const Settings& settings);

/// Reports progress of a pass over the rows; called from its threads, one at a
/// time.
using OnRows = std::function<void(std::uint64_t done, std::uint64_t rows)>;

/// Optional inputs and callbacks of opening a data set.
struct DatasetOpening {
  /// Index written by an earlier opening; empty: every row is read.
  std::filesystem::path index_file;
  std::string index_key;         ///< key that the index must have
  OnRows on_rows;                ///< progress of a pass; may be empty
  std::uint32_t num_threads = 0; ///< for a pass; 0: one per core
};

/// Texts of a row for users and reward programs.
struct RowText {
  int line = 0;
  std::string prompt;
  std::string response; ///< completion, text or chosen; "" for prompts
  std::string rejected;
  std::string ground_truth; ///< also from reward_model.ground_truth
  std::string data_source;
  std::string extra_info; ///< JSON
  std::string json;       ///< the whole row as in the file
};

class Dataset {
public:
  /// Opens `data.train` of the settings. Does not log skipped rows (see
  /// warn_of_lost), since a run opens its data more than once. Throws
  /// ConfigError: a missing file, a bad row (FILE:LINE: field: ...), nothing
  /// usable, `messages` without a chat template, a tokenizer without an end
  /// token where one must be appended.
  static Dataset open(const Settings& settings, const Tokenizer& tokenizer,
                      const DatasetOpening& opening = {});
  static Dataset open(const DatasetOptions& options, const Tokenizer& tokenizer,
                      const DatasetOpening& opening = {});

  /// Returns true if opening read every row: there was no index, or it had
  /// another key.
  bool was_read() const;
  /// Writes the index for later openings. Throws FailureError (io).
  void keep_index(const std::filesystem::path& file,
                  const std::string& key) const;

  /// Returns the number of usable rows.
  std::uint32_t size() const;
  /// Returns the tokens of all texts of a row, known from the index.
  std::uint32_t num_tokens(std::uint32_t row) const;
  const DatasetReport& report() const;
  DataKind kind() const;
  /// Returns the names of the files, for messages: "a.jsonl, b.jsonl".
  std::string file() const;
  /// Returns the number of the file, in the order of the options, with a row.
  std::uint32_t file_of(std::uint32_t row) const;
  /// Returns the place of the longest usable row.
  Place longest_place() const;

  /// Returns the samples of the rows, n per row: row i gets the ids [first +
  /// i*n, first + (i+1)*n). As everything that reads rows, throws ConfigError
  /// if one is not what it was when the file was opened or indexed.
  net::Rows rows(std::span<const std::uint32_t> row_indices, SampleId first,
                 std::uint32_t n = 1) const;
  RowText text(std::uint32_t row) const;
  /// Returns a field of the row after `data.fields`, or a member of RowText by
  /// its name; nullopt if the row has neither.
  std::optional<std::string> field(std::uint32_t row,
                                   const std::string& name) const;

private:
  struct State;
  explicit Dataset(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// Throws ConfigError that names `data.train` unless all of it are files.
void require_data_file(const Settings& settings);

/// Logs how many rows were left out or cut, what the first bad one is, and how
/// many turns have no loss. As warnings, since a run opens its log after its
/// data.
void warn_of_lost(const Dataset& dataset);

} // namespace troupe::models
