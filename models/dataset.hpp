// Rows of a JSONL file as samples: prompts for generation, sequences with a
// loss mask for SFT, pairs for preference training, texts for scoring.
// Opening reads and checks every row once (so a bad row stops a run before it
// starts) but keeps only their places; tokens are made again when a step needs
// them, so files may be larger than memory. A run keeps these places in a file
// (models/data_index.hpp), so that one of its processes reads every row once.
//
// A prompt, completion, chosen or rejected may be a list of messages, which the
// tokenizer's chat template renders; of a conversation the loss sees what the
// assistant says, but for earlier turns that the template changes (drops their
// thoughts) once others follow.
//
// Keys (per sample):  prompts     prompt_ids i32[P]
//                     sft, score  sequence_ids i32[L], loss_mask u8[L]
//                     preference  chosen_ids i32[L], chosen_loss_mask u8[L],
//                                 and the same of rejected
#pragma once

#include "config/data_kind.hpp"
#include "config/settings.hpp"
#include "models/data_index.hpp"
#include "models/tokenizer.hpp"
#include "net/rows.hpp"

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

/// What `data.chat` says: `auto` renders rows that are messages, `true` makes
/// messages of string prompts too, `false` refuses messages.
enum class ChatUse : std::uint8_t { automatic, always, never };

struct DatasetOptions {
  std::filesystem::path file;
  DataKind kind = DataKind::prompts;
  std::map<std::string, std::string> fields; ///< INTERFACE, `data.fields`
  std::map<std::string, Place> places;       ///< of settings, for messages
  /// How users write "NAME=COLUMN" of `fields`, for messages.
  std::string fields_word = "data.fields.";
  ChatUse chat = ChatUse::automatic;
  std::size_t first_rows = 0;       ///< of the file are all there is; 0: all
  int max_tokens = 0;               ///< of a prompt, or a sequence; 0: no limit
  std::string overlong = "skip";    ///< skip | truncate | error
  std::string on_bad_row = "error"; ///< error | skip
  bool ends_answers = false; ///< score: an answer is whole unless its row says
                             ///< otherwise (`finish_reason`), so its end token
                             ///< follows, as in training pairs and rollouts
};
/// Options of `data.train` under the workflow's limits.
DatasetOptions train_options(const Settings& settings);

/// How far a pass over the rows is; called from its threads, one at a time.
using OnRows = std::function<void(std::uint64_t done, std::uint64_t rows)>;

/// What an opening may use and tell.
struct DatasetOpening {
  /// The index that an earlier opening kept; empty: every row is read.
  std::filesystem::path index_file;
  std::string index_key; ///< what the index must have been kept under
  OnRows on_rows;        ///< of a pass; may be empty
};

/// What people and reward programs read of a row.
struct RowText {
  int line = 0;
  std::string prompt;
  std::string response; ///< completion, text or chosen; "" for prompts
  std::string rejected;
  std::string ground_truth; ///< also from reward_model.ground_truth
  std::string data_source;
  std::string extra_info; ///< JSON
  std::string json;       ///< the whole row as it stands in the file
};

class Dataset {
public:
  /// Opens `data.train` of the settings. Says nothing of rows that it skips
  /// (warn_of_lost), since a run opens its data more than once. Throws
  /// ConfigError: a missing file, a bad row (FILE:LINE: field: ..), nothing
  /// usable, `messages` without a chat template, a tokenizer without an end
  /// token where one must be appended.
  static Dataset open(const Settings& settings, const Tokenizer& tokenizer,
                      const DatasetOpening& opening = {});
  static Dataset open(const DatasetOptions& options, const Tokenizer& tokenizer,
                      const DatasetOpening& opening = {});

  /// Whether opening read every row: no index was there, or another one.
  bool was_read() const;
  /// Writes what opening found for later ones. Throws FailureError (io).
  void keep_index(const std::filesystem::path& file,
                  const std::string& key) const;

  /// Usable rows.
  std::uint32_t size() const;
  const DatasetReport& report() const;
  DataKind kind() const;
  const std::string& file() const; ///< for messages

  /// Samples of the rows, n a row: row i gives the ids first + i*n .. + n-1.
  net::Rows rows(std::span<const std::uint32_t> row_indices, SampleId first,
                 std::uint32_t n = 1) const;
  RowText text(std::uint32_t row) const;
  /// A field of the row after `data.fields`, or one of RowText's by its name;
  /// nothing where the row has neither.
  std::optional<std::string> field(std::uint32_t row,
                                   const std::string& name) const;

private:
  struct State;
  explicit Dataset(std::shared_ptr<const State> state);
  std::shared_ptr<const State> state_;
};

/// ConfigError that names `data.train` unless it is a file.
void require_data_file(const Settings& settings);

/// Tells the log how many rows were left out or cut, what the first bad one is,
/// and how many turns have no loss. Warnings, since a run's log is not open yet
/// when it looks at its data.
void warn_of_lost(const Dataset& dataset);

} // namespace troupe::models
