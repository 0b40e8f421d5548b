// One line of samples.jsonl: prompt and response, token by token, and the
// reward. Numbers are printed so that they read back bit-exactly: `run.replay`
// feeds recorded responses to another plan (I1).
#pragma once

#include "config/base/ids.hpp"
#include "net/base/rows.hpp"
#include "plans/schedule/slice_versions.hpp"

#include "troupe/key.hpp"

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

namespace troupe::models {

class Tokenizer;

/// A file that is opened once, for appending. Whoever puts another one in its
/// place gets nothing that is appended here afterwards.
class AppendFile {
public:
  /// Creates the file if it is missing. Throws FailureError (io).
  explicit AppendFile(const std::filesystem::path& file);
  /// Appends `text` as a whole. Throws FailureError (io).
  void append(const std::string& text);

private:
  std::filesystem::path path_;
  std::ofstream stream_;
};

/// Writes `text` next to `file`, in a folder that is created if missing, then
/// renames it. Throws FailureError (io).
void write_file_whole(const std::filesystem::path& file,
                      const std::string& text);

/// Returns a line per sample of `rows`, in sample order: sequence_ids,
/// loss_mask, logprobs, truncated; scores, ref_logprobs and advantages if
/// present, the last two to four decimals, since nothing is computed from them
/// again (`kl` is in nats per sequence); `keys` are further keys of the
/// responses. Steps are counted from 1 in the lines. `versions`: which weights
/// made which tokens, written as [index in sequence_ids, version]; none: left
/// out.
std::string sample_lines(StepId step, const net::Rows& rows,
                         std::span<const KeyInfo> keys,
                         const Tokenizer& tokenizer,
                         std::span<const plans::VersionSpan> versions = {});

} // namespace troupe::models
