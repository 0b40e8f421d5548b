// The follower returns the bytes of the trace files, whole records only.
#include "config/trace/trace_writer.hpp"
#include "runtime/page/trace_follower.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

#include <cstring>
#include <deque>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using troupe::test::read_text;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

constexpr std::size_t whole_file = std::size_t{1} << 24;
constexpr std::uint64_t all_history = std::uint64_t{1} << 30;

class TraceFollowerTest : public ::testing::Test {
protected:
  TraceFollowerTest() : folder_(temp_.path() / "run") {
    folder_.create();
  }
  std::filesystem::path file(const std::string& name) const {
    return folder_.trace_folder() / name;
  }
  static std::string joined(const std::vector<TraceChunk>& chunks) {
    std::string text;
    for (const auto& chunk : chunks)
      text += chunk.bytes;
    return text;
  }

  TempFolder temp_;
  RunFolder folder_;
  std::deque<trace::TrackInfo> tracks_{{"device 0", trace::TrackKind::device}};
  std::deque<std::string> names_{"actor_gen"};
};

TEST_F(TraceFollowerTest, ReturnsEachFileUnchanged) {
  trace::TraceWriter writer(file("master_01.events"), "master", 0, 0);
  writer.add_texts(tracks_, names_);
  writer.write({trace::Event{}}, 0);
  TraceFollower follower(folder_, all_history);
  EXPECT_THAT(follower.find_files(), ElementsAre("master_01.events"));
  EXPECT_EQ(joined(follower.read(whole_file)),
            read_text(file("master_01.events")));
  EXPECT_THAT(follower.find_files(), IsEmpty());
  EXPECT_THAT(follower.read(whole_file), IsEmpty());
}

TEST_F(TraceFollowerTest, ReturnsAppendedEventsAndLaterFiles) {
  trace::TraceWriter first(file("master_01.events"), "master", 0, 0);
  TraceFollower follower(folder_, all_history);
  follower.find_files();
  std::string seen = joined(follower.read(whole_file));
  first.add_texts(tracks_, names_);
  first.write({trace::Event{}, trace::Event{}}, 0);
  seen += joined(follower.read(whole_file));
  EXPECT_EQ(seen, read_text(file("master_01.events")));
  const trace::TraceWriter second(file("worker_00_01.events"), "worker 0", 1,
                                  0);
  EXPECT_THAT(follower.find_files(), ElementsAre("worker_00_01.events"));
  const auto chunks = follower.read(whole_file);
  ASSERT_EQ(chunks.size(), 1u);
  EXPECT_EQ(chunks[0].file, 1u);
}

TEST_F(TraceFollowerTest, WithholdsARecordUntilItIsComplete) {
  {
    trace::TraceWriter writer(file("whole.events"), "master", 0, 0);
    writer.add_texts(tracks_, names_);
    writer.write({trace::Event{}}, 0);
  }
  const std::string whole = read_text(file("whole.events"));
  std::filesystem::remove(file("whole.events"));
  std::ofstream growing(file("growing.events"), std::ios::binary);
  growing << whole.substr(0, whole.size() - 1) << std::flush;
  TraceFollower follower(folder_, all_history);
  follower.find_files();
  const std::string early = joined(follower.read(whole_file));
  EXPECT_EQ(early.size(),
            whole.size() - sizeof(trace::RecordHead) - sizeof(trace::Event));
  growing << whole.back() << std::flush;
  EXPECT_EQ(early + joined(follower.read(whole_file)), whole);
}

TEST_F(TraceFollowerTest, OmitsOldEventsButNoNames) {
  trace::TraceWriter writer(file("master_01.events"), "master", 0, 0);
  writer.add_texts(tracks_, names_);
  trace::Event old;
  old.time_ns = 1;
  trace::Event young;
  young.time_ns = 2;
  writer.write({old}, 0);
  names_.emplace_back("actor_train");
  writer.add_texts(tracks_, names_);
  writer.write({young}, 0);
  TraceFollower follower(folder_,
                         sizeof(trace::RecordHead) + sizeof(trace::Event));
  follower.find_files();
  const std::string seen = joined(follower.read(whole_file));
  const auto bytes_of = [](const trace::Event& event) {
    return std::string(reinterpret_cast<const char*>(&event), sizeof event);
  };
  EXPECT_EQ(seen.find(bytes_of(old)), std::string::npos);
  EXPECT_NE(seen.find(bytes_of(young)), std::string::npos);
  EXPECT_NE(seen.find("actor_gen"), std::string::npos);
  EXPECT_EQ(follower.skipped_bytes(),
            sizeof(trace::RecordHead) + sizeof(trace::Event));
}

TEST_F(TraceFollowerTest, ReadsInPortionsOfAboutTheRequestedSize) {
  trace::TraceWriter writer(file("master_01.events"), "master", 0, 0);
  for (int i = 0; i < 1000; ++i)
    writer.write({trace::Event{}}, 0);
  TraceFollower follower(folder_, all_history);
  follower.find_files();
  std::string seen;
  int portions = 0;
  for (auto chunks = follower.read(4096); !chunks.empty();
       chunks = follower.read(4096), ++portions) {
    EXPECT_LE(joined(chunks).size(), 8192u);
    seen += joined(chunks);
  }
  EXPECT_GT(portions, 5);
  EXPECT_EQ(seen, read_text(file("master_01.events")));
}

/// Writes `count` events, one per step.
void write_steps(const std::deque<trace::TrackInfo>& tracks,
                 const std::deque<std::string>& names, std::uint32_t first,
                 std::uint32_t count, trace::TraceWriter& writer) {
  writer.add_texts(tracks, names);
  for (std::uint32_t i = 0; i < count; ++i) {
    trace::Event event;
    event.time_ns = event.step = first + i;
    writer.write({event}, 0);
  }
}

TEST_F(TraceFollowerTest, ContinuesWithTheNextSegmentOfAFullTrace) {
  trace::TraceWriter writer(file("master_01.events"), "master", 0, 4096);
  TraceFollower follower(folder_, all_history);
  trace::TraceFile seen;
  std::uint32_t written = 0;
  for (int look = 0; look < 20; ++look) { // often enough to miss nothing
    write_steps(tracks_, names_, written, 7, writer);
    written += 7;
    EXPECT_EQ(follower.find_files().size(), look == 0 ? 1u : 0u);
    for (const auto& chunk : follower.read(whole_file)) {
      EXPECT_EQ(chunk.file, 0u);
      trace::append_trace(seen, chunk.bytes, "master");
    }
    EXPECT_EQ(seen.position, written);
  }
  EXPECT_EQ(seen.events.size(), written);
  EXPECT_EQ(seen.removed.count, 0u);
  EXPECT_FALSE(std::filesystem::exists(file("master_01.events")));
}

TEST_F(TraceFollowerTest, ReportsEventsRemovedBetweenReads) {
  trace::TraceWriter writer(file("master_01.events"), "master", 0, 4096);
  write_steps(tracks_, names_, 0, 5, writer);
  TraceFollower follower(folder_, all_history);
  follower.find_files();
  trace::TraceFile seen;
  for (const auto& chunk : follower.read(whole_file))
    trace::append_trace(seen, chunk.bytes, "master");
  EXPECT_EQ(seen.events.size(), 5u);
  write_steps(tracks_, names_, 5, 1000, writer);
  follower.find_files();
  for (const auto& chunk : follower.read(whole_file))
    trace::append_trace(seen, chunk.bytes, "master");
  EXPECT_EQ(seen.events.size() + seen.removed.count, 1005u);
  EXPECT_EQ(seen.events.front().step, seen.removed.whole_from());
  EXPECT_EQ(seen.events.back().step, 1004u);
}

TEST_F(TraceFollowerTest, ReportsOmittedEvents) {
  trace::TraceWriter writer(file("master_01.events"), "master", 0, 0);
  write_steps(tracks_, names_, 0, 100, writer);
  TraceFollower follower(
    folder_, 10 * (sizeof(trace::RecordHead) + sizeof(trace::Event)));
  follower.find_files();
  const auto before = follower.unread_bytes();
  trace::TraceFile seen;
  for (const auto& chunk : follower.read(whole_file))
    trace::append_trace(seen, chunk.bytes, "master");
  EXPECT_EQ(seen.events.size(), 10u);
  EXPECT_EQ(seen.removed.count, 90u);
  EXPECT_EQ(seen.removed.whole_from(), 90u);
  EXPECT_EQ(before, std::filesystem::file_size(file("master_01.events")));
  EXPECT_EQ(follower.unread_bytes(), 0u);
}

TEST_F(TraceFollowerTest, PassesOverOldEventsButReturnsTheNamesBetweenThem) {
  trace::TraceWriter writer(file("master_01.events"), "master", 0, 0);
  writer.add_texts(tracks_, names_);
  const std::uint32_t records = 1000;
  const std::uint32_t events = 500; // 24 MB, of which the last 10 are wanted
  for (std::uint32_t i = 0; i < records; ++i) {
    trace::Event event;
    event.time_ns = event.step = i;
    event.name = trace::Name{static_cast<std::uint32_t>(names_.size() - 1)};
    writer.write(std::vector(events, event), 0);
    if (i % 50 == 0)
      names_.push_back("name " + std::to_string(i));
    writer.add_texts(tracks_, names_);
  }
  constexpr std::uint64_t record_bytes
    = sizeof(trace::RecordHead) + events * sizeof(trace::Event);
  TraceFollower follower(folder_, 10 * record_bytes);
  follower.find_files();
  trace::TraceFile seen;
  std::uint64_t returned = 0;
  for (int looks = 0; follower.unread_bytes() > 0; ++looks) {
    ASSERT_LT(looks, 100);
    for (const auto& chunk : follower.read(1 << 16)) {
      returned += chunk.bytes.size();
      trace::append_trace(seen, chunk.bytes, "master");
    }
  }
  EXPECT_EQ(seen.names.size(), names_.size());
  EXPECT_EQ(seen.names.back(), names_.back());
  EXPECT_EQ(seen.events.size(), 10U * events);
  EXPECT_EQ(seen.removed.count, (records - 10U) * events);
  EXPECT_EQ(seen.removed.whole_from(), records - 10);
  EXPECT_LT(returned, 11 * record_bytes);
}

TEST_F(TraceFollowerTest, ADamagedRecordAmongOldOnesEndsTheTrace) {
  {
    trace::TraceWriter writer(file("whole.events"), "master", 0, 0);
    writer.add_texts(tracks_, names_);
    for (int i = 0; i < 500; ++i)
      writer.write(std::vector<trace::Event>(500), 0);
  }
  auto bytes = read_text(file("whole.events"));
  std::filesystem::remove(file("whole.events"));
  const trace::RecordHead beyond{trace::RecordKind::events, 1U << 27};
  const auto record_bytes = sizeof beyond + 500 * sizeof(trace::Event);
  std::memcpy(bytes.data() + bytes.size() - 400 * record_bytes, &beyond,
              sizeof beyond); // beyond what is read at first
  write_text(file("bad.events"), bytes);
  TraceFollower follower(folder_, 1 << 12);
  follower.find_files();
  for (int looks = 0; follower.unread_bytes() > 0; ++looks) {
    ASSERT_LT(looks, 10'000);
    follower.read(1 << 16);
  }
}

TEST_F(TraceFollowerTest, SkipsWholeOldSegments) {
  trace::TraceWriter writer(file("master_01.events"), "master", 0, 1 << 15);
  write_steps(tracks_, names_, 0, 400, writer);
  TraceFollower follower(folder_, 1 << 12);
  follower.find_files();
  EXPECT_LT(follower.unread_bytes(), 1u << 13);
  trace::TraceFile seen;
  for (const auto& chunk : follower.read(whole_file))
    trace::append_trace(seen, chunk.bytes, "master");
  EXPECT_EQ(seen.events.size() + seen.removed.count, 400u);
  EXPECT_EQ(seen.events.front().step, seen.removed.whole_from());
  EXPECT_GT(seen.events.size(), 50u);
  EXPECT_LT(seen.events.size(), 80u);
}

TEST_F(TraceFollowerTest, IgnoresAFileThatIsNoTrace) {
  write_text(file("bad.events"), "not a trace at all");
  std::string hostile(trace::file_magic);
  const trace::RecordHead head{trace::RecordKind::events, 0xffffffff};
  hostile.append(reinterpret_cast<const char*>(&head), sizeof head);
  write_text(file("hostile.events"), hostile);
  TraceFollower follower(folder_, all_history);
  follower.find_files();
  EXPECT_THAT(follower.read(whole_file), IsEmpty());
  EXPECT_THAT(follower.read(whole_file), IsEmpty());
}

} // namespace
