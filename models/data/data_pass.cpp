#include "models/data/data_pass.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <ranges>
#include <thread>
#include <utility>

namespace troupe::models::internal {

namespace {

constexpr auto bad_row_messages = DatasetReport::most_messages;
/// Rows that a thread takes at once: few enough for frequent progress reports
/// and threads that end together, enough to make taking them cheap.
constexpr std::size_t rows_at_once = 256;

[[noreturn]] void too_long(const Place& place, const DatasetOptions& options,
                           std::size_t tokens) {
  const bool prompts = options.kind == DataKind::prompts;
  throw ConfigError(ConfigError::Parts{
    place, prompts ? "prompt" : "",
    "at most " + std::to_string(options.max_tokens) + " tokens",
    std::to_string(tokens),
    prompts ? "a larger data.max_prompt_tokens, or data.overlong: skip"
            : "a larger data.max_tokens, or data.overlong: skip"});
}

/// Result of a range of rows, or of consecutive ranges.
struct PassPart {
  std::vector<IndexedRow> usable;
  DatasetReport report;
  std::exception_ptr error; ///< for the first refused row

  void add_bad(const std::string& message) {
    ++report.bad_rows;
    if (report.messages.size() < bad_row_messages)
      report.messages.push_back(message);
  }
  void add_longest(std::size_t tokens, int line) {
    if (tokens <= report.longest)
      return;
    report.longest = tokens;
    report.longest_line = line;
  }
  /// Appends the next part of the file.
  void append(PassPart next) {
    usable.insert(usable.end(), next.usable.begin(), next.usable.end());
    report.bad_rows += next.report.bad_rows;
    report.overlong_rows += next.report.overlong_rows;
    report.truncated_rows += next.report.truncated_rows;
    report.unlearned_turns += next.report.unlearned_turns;
    add_longest(next.report.longest, next.report.longest_line);
    const auto room = bad_row_messages - report.messages.size();
    std::ranges::copy(next.report.messages
                        | std::views::take(static_cast<std::ptrdiff_t>(room)),
                      std::back_inserter(report.messages));
  }
};

class DataPass {
public:
  DataPass(const JsonLines& lines, const SampleReader& reader,
           const DatasetOptions& options, const DatasetOpening& opening)
    : lines_(lines),
      reader_(reader),
      options_(options),
      on_rows_(opening.on_rows),
      num_threads_(opening.num_threads > 0
                     ? opening.num_threads
                     : std::thread::hardware_concurrency()),
      parts_((lines.size() + rows_at_once - 1) / rows_at_once) {}

  PassPart run() {
    const auto threads
      = std::min(static_cast<std::size_t>(num_threads_), parts_.size());
    {
      std::vector<std::jthread> others;
      for (std::size_t i = 1; i < threads; ++i)
        others.emplace_back([this] { read_parts(); });
      read_parts();
    }
    PassPart all;
    all.usable.reserve(lines_.size());
    for (auto& part : parts_) {
      if (part.error)
        std::rethrow_exception(part.error);
      all.append(std::exchange(part, {}));
    }
    all.report.rows = lines_.size();
    return all;
  }

private:
  /// Takes parts until there are none, or one has an error: all parts before it
  /// were taken earlier, so no part with an earlier error is left.
  void read_parts() {
    while (!failed_) {
      const auto number = next_++;
      if (number >= parts_.size())
        return;
      auto& part = parts_[number];
      const auto first = number * rows_at_once;
      const auto end = std::min(first + rows_at_once, lines_.size());
      try {
        for (auto row = first; row < end; ++row)
          read_row(row, part);
        tell(end - first);
      } catch (...) {
        part.error = std::current_exception();
        failed_ = true;
      }
    }
  }

  void read_row(std::size_t row, PassPart& part) const {
    const auto& line = lines_.line(row);
    const Place place{lines_.file(), static_cast<int>(line.number)};
    SampleTokens tokens;
    try {
      tokens = reader_.tokens(lines_.text(row), place);
    } catch (const ConfigError& error) {
      if (options_.on_bad_row != "skip")
        throw;
      return part.add_bad(error.what());
    }
    const auto length = std::max(tokens.ids.size(), tokens.rejected.size());
    if (tokens.overlong && options_.overlong == "error")
      too_long(place, options_, length);
    if (tokens.overlong && !tokens.truncated) {
      ++part.report.overlong_rows;
      return;
    }
    part.report.truncated_rows += tokens.truncated ? 1 : 0;
    part.report.unlearned_turns += tokens.unlearned_turns;
    part.add_longest(length, place.line);
    part.usable.push_back(
      {line,
       static_cast<std::uint32_t>(tokens.ids.size() + tokens.rejected.size()),
       row_hash(lines_.text(row))});
  }

  void tell(std::size_t rows) {
    const std::lock_guard lock{mutex_};
    done_ += rows;
    if (on_rows_)
      on_rows_(done_, lines_.size());
  }

  const JsonLines& lines_;
  const SampleReader& reader_;
  const DatasetOptions& options_;
  const OnRows& on_rows_;
  std::uint32_t num_threads_;
  std::vector<PassPart> parts_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::uint64_t done_ = 0; ///< guarded by the mutex
};

} // namespace

DataIndex read_all_rows(const JsonLines& lines, const SampleReader& reader,
                        const DatasetOptions& options,
                        const DatasetOpening& opening) {
  auto all = DataPass(lines, reader, options, opening).run();
  return {std::move(all.usable), std::move(all.report)};
}

} // namespace troupe::models::internal
