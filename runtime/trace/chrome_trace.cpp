#include "runtime/trace/chrome_trace.hpp"

#include "config/base/atomic_file.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <iterator>
#include <utility>

namespace troupe::runtime {

namespace {

constexpr std::size_t chrome_buffer_bytes = std::size_t{1} << 20;

std::string chrome_quoted(const std::string& text) {
  using TraceJson = nlohmann::json;
  return TraceJson(text).dump(-1, ' ', false,
                              TraceJson::error_handler_t::replace);
}

/// Appends events to a file that becomes `path` in finish().
class ChromeWriter {
public:
  explicit ChromeWriter(const std::filesystem::path& path)
    : file_(path, "trace export"),
      text_("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n") {}

  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    if (!first_)
      text_ += ",\n";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), format,
                   std::forward<Args>(args)...);
    if (text_.size() >= chrome_buffer_bytes)
      write();
  }

  void finish() {
    text_ += "\n]}\n";
    write();
    file_.commit();
  }

private:
  void write() {
    file_.write(text_);
    text_.clear();
  }

  AtomicFile file_;
  std::string text_;
  bool first_ = true;
};

/// One process's names, quoted once, and its numbers in the JSON.
class ChromeProcess {
public:
  ChromeProcess(const TracedProcess& process, std::uint32_t index)
    : pid_(index + 1) {
    for (const auto& name : process.names)
      names_.push_back(chrome_quoted(name));
  }
  std::uint32_t pid() const {
    return pid_; // real pids repeat over hosts and containers
  }
  const std::string& name(std::uint32_t id) const {
    return names_[id];
  }

private:
  std::uint32_t pid_;
  std::vector<std::string> names_;
};

class ChromeExport {
public:
  ChromeExport(const MergedTrace& trace, ChromeWriter& out)
    : trace_(trace),
      out_(out) {
    for (std::uint32_t i = 0; i < trace.processes.size(); ++i)
      processes_.emplace_back(trace.processes[i], i);
  }

  void write() {
    for (std::uint32_t i = 0; i < processes_.size(); ++i)
      name_tracks(i);
    for (const auto& slice : trace_.slices)
      write_slice(slice);
    std::uint64_t number = 0;
    for (const auto& arrow : trace_.arrows)
      write_arrow(arrow, ++number);
    for (const auto& point : trace_.counters)
      write_counter(point);
    for (const auto& mark : trace_.marks)
      write_mark(mark);
  }

private:
  static std::uint32_t tid(TrackRef where) {
    return where.track + 1;
  }
  /// Returns microseconds since the trace's start, exact to the nanosecond.
  std::string time_us(std::int64_t time_ns) const {
    const auto since_ns = time_ns - trace_.begin_ns;
    return fmt::format("{}.{:03}", since_ns / 1000, since_ns % 1000);
  }
  const ChromeProcess& process(TrackRef where) const {
    return processes_[where.process];
  }

  void name_tracks(std::uint32_t index) {
    const auto& traced = trace_.processes[index];
    const auto pid = processes_[index].pid();
    const auto title = fmt::format("{} (pid {})", traced.name, traced.pid);
    out_.event("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},"
               "\"args\":{{\"name\":{}}}}}",
               pid, chrome_quoted(title));
    out_.event("{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{},"
               "\"args\":{{\"sort_index\":{}}}}}",
               pid, index);
    for (std::uint32_t track = 0; track < traced.tracks.size(); ++track) {
      const auto& info = traced.tracks[track];
      out_.event("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},"
                 "\"tid\":{},\"args\":{{\"name\":{}}}}}",
                 pid, track + 1, chrome_quoted(info.name));
      // devices first in their process, then actors in the order of appearance
      const auto order
        = track + (info.kind == trace::TrackKind::device ? 0u : 100'000u);
      out_.event("{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{},"
                 "\"tid\":{},\"args\":{{\"sort_index\":{}}}}}",
                 pid, track + 1, order);
    }
  }

  void write_slice(const Slice& slice) {
    const auto length_ns = slice.end_ns - slice.begin_ns;
    const char* kind = slice.message ? "message" : "span";
    out_.event("{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":{},\"pid\":{},"
               "\"tid\":{},\"ts\":{},\"dur\":{}.{:03},\"args\":{{\"step\":{},"
               "\"amount\":{}{}}}}}",
               kind, process(slice.where).name(slice.name),
               process(slice.where).pid(), tid(slice.where),
               time_us(slice.begin_ns), length_ns / 1000, length_ns % 1000,
               slice.step, slice.amount,
               slice.unfinished ? ",\"unfinished\":true" : "");
  }

  void write_arrow(const Arrow& arrow, std::uint64_t number) {
    const auto& name = process(arrow.from.where).name(arrow.name);
    out_.event("{{\"ph\":\"s\",\"cat\":\"message\",\"name\":{},\"id\":{},"
               "\"pid\":{},\"tid\":{},\"ts\":{},\"args\":{{\"bytes\":{}}}}}",
               name, number, process(arrow.from.where).pid(),
               tid(arrow.from.where), time_us(arrow.from.time_ns), arrow.bytes);
    out_.event("{{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"message\",\"name\":{},"
               "\"id\":{},\"pid\":{},\"tid\":{},\"ts\":{}}}",
               name, number, process(arrow.to.where).pid(), tid(arrow.to.where),
               time_us(arrow.to.time_ns));
  }

  void write_counter(const CounterPoint& point) {
    if (!std::isfinite(point.value))
      return; // JSON has no such number
    out_.event("{{\"ph\":\"C\",\"name\":{},\"pid\":{},\"tid\":{},\"ts\":{},"
               "\"args\":{{\"value\":{}}}}}",
               process(point.where).name(point.name),
               process(point.where).pid(), tid(point.where),
               time_us(point.time_ns), point.value);
  }

  void write_mark(const Mark& mark) {
    const char* kind = mark.kind == trace::Kind::spawn  ? "spawn"
                       : mark.kind == trace::Kind::exit ? "exit"
                                                        : "failure";
    out_.event("{{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"{}\",\"name\":{},"
               "\"pid\":{},\"tid\":{},\"ts\":{}}}",
               kind, process(mark.where).name(mark.name),
               process(mark.where).pid(), tid(mark.where),
               time_us(mark.time_ns));
  }

  const MergedTrace& trace_;
  ChromeWriter& out_;
  std::vector<ChromeProcess> processes_;
};

} // namespace

void write_chrome_trace(const MergedTrace& trace,
                        const std::filesystem::path& path) {
  ChromeWriter out(path);
  ChromeExport(trace, out).write();
  out.finish();
}

void write_chrome_trace(const std::filesystem::path& run_folder) {
  const RunFolder folder(run_folder);
  write_chrome_trace(read_run_trace(folder), folder.trace_json());
}

} // namespace troupe::runtime
