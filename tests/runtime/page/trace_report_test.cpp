// The page as a document: its reader of the trace format beside ours, and a run
// inside it.
#include "config/base/error.hpp"
#include "config/trace/trace_writer.hpp"
#include "runtime/page/trace_report.hpp"
#include "runtime/page/trace_server.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

#include <cstddef>
#include <cstring>
#include <map>
#include <regex>
#include <string>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;
using ::testing::Not;
using troupe::test::read_text;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

using Numbers = std::map<std::string, std::size_t>;

/// Returns the number of `const NAME = number;` in the page.
std::size_t number_in_page(const std::string& name) {
  const std::string page(trace_page());
  std::smatch found;
  return std::regex_search(page, found,
                           std::regex("const " + name + " = (\\w+);"))
           ? std::stoul(found[1], nullptr, 0)
           : 0;
}

/// Returns the numbers of `const NAME = { field: number, ... };` in the page.
Numbers table_in_page(const std::string& name) {
  const std::string page(trace_page());
  std::smatch found;
  if (!std::regex_search(page, found,
                         std::regex("const " + name + " = \\{([^}]*)\\};")))
    return {};
  const std::string fields = found[1];
  const std::regex field("(\\w+): (\\d+)");
  Numbers numbers;
  for (std::sregex_iterator at(fields.begin(), fields.end(), field), end;
       at != end; ++at)
    numbers[(*at)[1]] = std::stoul((*at)[2]);
  return numbers;
}

template <class Enum>
std::size_t number(Enum value) {
  return static_cast<std::size_t>(value);
}

TEST(TracePageTest, TheTwoReadersShareOneTable) {
  using trace::Event;
  using trace::Kind;
  using trace::ProcessRecord;
  using trace::RecordKind;
  EXPECT_EQ(table_in_page("EVENT"),
            (Numbers{{"time", offsetof(Event, time_ns)},
                     {"flow", offsetof(Event, flow)},
                     {"amount", offsetof(Event, amount)},
                     {"track", offsetof(Event, track)},
                     {"name", offsetof(Event, name)},
                     {"step", offsetof(Event, step)},
                     {"kind", offsetof(Event, kind)},
                     {"bytes", sizeof(Event)}}));
  EXPECT_EQ(table_in_page("KIND"),
            (Numbers{{"begin", number(Kind::begin)},
                     {"end", number(Kind::end)},
                     {"send", number(Kind::send)},
                     {"receive", number(Kind::receive)},
                     {"counter", number(Kind::counter)},
                     {"spawn", number(Kind::spawn)},
                     {"exit", number(Kind::exit)},
                     {"failure", number(Kind::failure)}}));
  EXPECT_EQ(table_in_page("RECORD"),
            (Numbers{{"process", number(RecordKind::process)},
                     {"track", number(RecordKind::track)},
                     {"name", number(RecordKind::name)},
                     {"events", number(RecordKind::events)},
                     {"dropped", number(RecordKind::dropped)},
                     {"closed", number(RecordKind::closed)},
                     {"earlier", number(RecordKind::earlier)}}));
  EXPECT_EQ(table_in_page("PROCESS"),
            (Numbers{{"number", offsetof(ProcessRecord, process_number)},
                     {"pid", offsetof(ProcessRecord, pid)},
                     {"monotonic", offsetof(ProcessRecord, monotonic_ns)},
                     {"realtime", offsetof(ProcessRecord, realtime_ns)},
                     {"size", sizeof(ProcessRecord)}}));
  EXPECT_EQ(table_in_page("EARLIER"),
            (Numbers{{"events", offsetof(trace::EarlierRecord, events)},
                     {"last_step", offsetof(trace::EarlierRecord, last_step)},
                     {"size", sizeof(trace::EarlierRecord)}}));
  std::uint32_t magic = 0;
  std::memcpy(&magic, trace::file_magic.data(), sizeof magic);
  EXPECT_EQ(number_in_page("MAGIC"), magic);
  EXPECT_EQ(number_in_page("MAGIC_BYTES"), trace::file_magic.size());
  EXPECT_EQ(table_in_page("HEAD"),
            (Numbers{{"kind", offsetof(trace::RecordHead, kind)},
                     {"bytes", offsetof(trace::RecordHead, payload_bytes)},
                     {"size", sizeof(trace::RecordHead)}}));
}

TEST(TraceReport, IsOneFileThatLoadsNothingAndHoldsTheRun) {
  const TempFolder temp;
  RunFolder folder(temp.path() / "run");
  folder.create();
  write_text(folder.metrics_file(), "{\"step\": 1}\n");
  const auto file = temp.path() / "run.html";
  const auto bytes = write_trace_report(folder, file);
  const auto text = read_text(file);
  EXPECT_EQ(text.size(), bytes);
  EXPECT_THAT(text, HasSubstr("id=\"recorded\">H4sI")); // gzip in base64
  EXPECT_THAT(text, HasSubstr("class Timeline"));
  EXPECT_THAT(text, Not(HasSubstr("src=\"")));
  EXPECT_THAT(text, Not(HasSubstr("<!--RECORDED-->")));
}

TEST(TraceReport, FramesOfAnyLengthArePadded) {
  for (const std::string frames : {"", "a", "ab", "abc"}) {
    const auto page = page_with("<!--RECORDED-->", frames);
    const auto begin = page.find('>') + 1;
    const auto length = page.find("</script>") - begin;
    EXPECT_EQ(length % 4, 0U) << frames.size();
  }
}

TEST(TraceReport, AFileThatCannotBeWrittenIsNamed) {
  const TempFolder temp;
  RunFolder folder(temp.path() / "run");
  folder.create();
  EXPECT_THROW(write_trace_report(folder, temp.path() / "none/run.html"),
               FailureError);
}

} // namespace
