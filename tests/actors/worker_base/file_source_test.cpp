// The master's files on a worker: in place where hosts share them, else fetched
// once per host, and handed over when written. The network is a fake here;
// tests/e2e/files_test.py has a real one.
#include "actors/worker_base/file_source.hpp"
#include "config/base/error.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <cstring>
#include <future>

namespace troupe::actors {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using support::read_text;
using support::write_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The files that a master serves, and what it got.
struct MasterHost {
  std::vector<SharedFile> files;
  std::vector<std::string> contents;
  std::mutex mutex; ///< guards the next two
  std::vector<std::uint64_t> read;
  std::vector<std::pair<TakeFileOrder, std::string>> taken;
  std::promise<void> first_taken;

  void serve(const fs::path& path, const std::string& text,
             std::int64_t changed_ns = 1) {
    files.push_back({path.string(), text.size(), changed_ns});
    contents.push_back(text);
  }
  std::string text_of(const std::string& file) const {
    std::string text;
    for (const auto& [order, bytes] : taken)
      if (order.file == file)
        text += bytes;
    return text;
  }
};

class FakeExchange final : public FileExchange {
public:
  explicit FakeExchange(MasterHost& master) : master_(master) {}
  std::vector<SharedFile> open() override {
    return master_.files;
  }
  void read(std::uint64_t number, std::uint64_t offset,
            std::span<std::byte> into) override {
    const std::lock_guard lock{master_.mutex};
    master_.read.push_back(number);
    std::memcpy(into.data(), master_.contents.at(number).data() + offset,
                into.size());
  }
  void give(TakeFileOrder order, std::span<const std::byte> bytes) override {
    const std::lock_guard lock{master_.mutex};
    master_.taken.emplace_back(
      order,
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    if (master_.taken.size() == 1)
      master_.first_taken.set_value();
  }

private:
  MasterHost& master_;
};

class FileSourceTest : public ::testing::Test {
protected:
  FileSourceTest() {
    const char* old = std::getenv("TMPDIR");
    old_ = old == nullptr ? "" : old;
    fs::create_directories(tmp_);
    ::setenv("TMPDIR", tmp_.c_str(), 1);
  }
  ~FileSourceTest() override {
    if (old_.empty())
      ::unsetenv("TMPDIR");
    else
      ::setenv("TMPDIR", old_.c_str(), 1);
  }

  std::unique_ptr<FileSource> source(std::uint32_t worker = 0,
                                     const std::string& mode = "false",
                                     FileShare share = {}) {
    share.mode = mode;
    share.probe = (folder_ / "runs/x/.probe-1").string();
    share.folder = "runs/x";
    auto made = std::make_unique<FileSource>(share, folder_ / "runs/x", "1234",
                                             WorkerId{worker});
    made->connect(std::make_unique<FakeExchange>(master_));
    return made;
  }
  std::vector<std::string> in_tmp() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(tmp_))
      names.push_back(entry.path().filename().string());
    return names;
  }

  const support::TempFolder folder_;
  const fs::path tmp_ = folder_ / "tmp";
  MasterHost master_;
  std::string old_;
};

TEST_F(FileSourceTest, SharedFilesKeepTheirPaths) {
  fs::create_directories(folder_ / "runs/x");
  write_text(folder_ / "runs/x/.probe-1", "");
  for (const char* mode : {"auto", "true"}) {
    const auto files = source(0, mode);
    EXPECT_TRUE(files->is_shared());
    EXPECT_EQ(files->run_folder(), folder_ / "runs/x");
    EXPECT_EQ(files->local("models/a"), "models/a");
    EXPECT_EQ(files->to_write("runs/x/checkpoints/a"), "runs/x/checkpoints/a");
    EXPECT_EQ(files->give("runs/x/checkpoints/a"), "runs/x/checkpoints/a");
    files->append(folder_ / "runs/x/samples.jsonl", "line\n");
    files->close();
  }
  EXPECT_EQ(read_text(folder_ / "runs/x/samples.jsonl"), "line\nline\n");
  EXPECT_THAT(master_.taken, IsEmpty());
  EXPECT_THAT(in_tmp(), IsEmpty());
}

TEST_F(FileSourceTest, AMissingProbeOrFalseMeansNotShared) {
  EXPECT_FALSE(source(0, "auto")->is_shared());
  EXPECT_FALSE(source(0, "true")->is_shared());
  fs::create_directories(folder_ / "runs/x");
  write_text(folder_ / "runs/x/.probe-1", "");
  EXPECT_FALSE(source(0, "false")->is_shared());
}

TEST_F(FileSourceTest, AFileIsFetchedOncePerHost) {
  master_.serve("rows.jsonl", "some rows");
  master_.serve("empty.jsonl", "");
  const auto one = source(0);
  const auto two = source(1);
  const auto path = one->local("rows.jsonl");
  EXPECT_EQ(read_text(path), "some rows");
  EXPECT_EQ(two->local("./rows.jsonl"), path);
  EXPECT_THAT(master_.read, ElementsAre(0));
  EXPECT_EQ(read_text(one->local("empty.jsonl")), "");
  EXPECT_GT(one->progress(), two->progress());
}

TEST_F(FileSourceTest, LongFilesArriveInPieces) {
  std::string text(40 << 20, 'a');
  for (std::size_t i = 0; i < text.size(); i += 4093)
    text[i] = static_cast<char>('a' + i % 26);
  master_.serve("rows.jsonl", text);
  EXPECT_EQ(read_text(source()->local("rows.jsonl")), text);
  EXPECT_THAT(master_.read, ElementsAre(0, 0, 0));
}

TEST_F(FileSourceTest, AModelsWeightsAreFetchedOnlyWhereTheyAreRead) {
  master_.serve("models/a/config.json", "{}");
  master_.serve("models/a/model.safetensors", "weights");
  master_.serve("models/a/tokenizer.json", "tokens");
  master_.serve("models/b/model.safetensors", "others");
  const auto files = source();
  const auto folder = files->local("models/a", ModelFiles::all_but_weights);
  EXPECT_EQ(read_text(folder / "tokenizer.json"), "tokens");
  EXPECT_FALSE(fs::exists(folder / "model.safetensors"));
  EXPECT_EQ(files->local("models/a/"), folder);
  EXPECT_EQ(read_text(folder / "model.safetensors"), "weights");
  EXPECT_THAT(master_.read, ElementsAre(0, 2, 1));
}

TEST_F(FileSourceTest, WhatAHostHasWithTheSameTimeIsUsedInPlace) {
  const auto here = folder_ / "rows.jsonl";
  write_text(here, "rows");
  struct stat found {};
  ASSERT_EQ(::stat(here.c_str(), &found), 0);
  const auto changed = found.st_mtim.tv_sec * std::int64_t{1'000'000'000}
                       + found.st_mtim.tv_nsec;
  master_.serve(here, "rows", changed);
  EXPECT_EQ(source(0, "auto")->local(here), here);
  EXPECT_NE(source(0, "false")->local(here), here);
  master_.files.front().changed_ns += 1;
  EXPECT_NE(source(0, "auto")->local(here), here);
  master_.files.front() = {here.string(), 5, changed};
  master_.contents.front() = "rows!";
  EXPECT_EQ(read_text(source(0, "auto")->local(here)), "rows!");
}

TEST_F(FileSourceTest, SmallTextsAreThereBeforeAnythingIsAsked) {
  FileShare share;
  share.texts["models/a/config.json"] = "{}";
  share.mode = "false";
  FileSource files(share, "/runs/x", "1234", WorkerId{0});
  EXPECT_EQ(read_text(files.local("models/a/config.json")), "{}");
}

TEST_F(FileSourceTest, FilesOfTheRunFolderAreReadByTheirNameThere) {
  master_.serve("runs/x/data.index", "index");
  const auto files = source();
  EXPECT_EQ(read_text(files->local(files->run_folder() / "data.index")),
            "index");
}

TEST_F(FileSourceTest, WrittenFilesGoToTheMasterAndLeaveTheHost) {
  const auto files = source(3);
  const auto path = files->to_write("runs/x/checkpoints/.tmp/actor/a.json");
  write_text(path, "{}");
  EXPECT_EQ(files->give(path), "runs/x/checkpoints/.tmp/actor/a.json");
  ASSERT_EQ(master_.taken.size(), 1U);
  EXPECT_EQ(master_.taken[0].first.file, "checkpoints/.tmp/actor/a.json");
  EXPECT_EQ(master_.taken[0].first.how, TakeFile::whole);
  EXPECT_EQ(master_.taken[0].second, "{}");
  EXPECT_FALSE(fs::exists(path));
  EXPECT_THROW((void)files->to_write("runs/y/a.json"), InvariantError);
  EXPECT_THROW((void)files->to_write("runs/x/../y/a.json"), InvariantError);
}

TEST_F(FileSourceTest, LinesOfTheRunFolderAreAppendedThere) {
  const auto files = source();
  files->append(files->run_folder() / "samples.jsonl", "one\n");
  files->append(files->run_folder() / "samples.jsonl", "two\n");
  EXPECT_EQ(master_.text_of("samples.jsonl"), "one\ntwo\n");
  EXPECT_EQ(master_.taken[0].first.how, TakeFile::append);
}

TEST_F(FileSourceTest, LogsAndTracesFollowAsTheyGrow) {
  const auto files = source();
  const auto trace = files->run_folder() / "trace/worker_00_01.events";
  const auto log = files->run_folder() / "logs/worker_00.log";
  write_text(trace, "old events");
  auto taken = master_.first_taken.get_future();
  ASSERT_EQ(taken.wait_for(20s), std::future_status::ready);
  write_text(log, "a line\n");
  fs::remove(trace); // a full trace drops its oldest file
  files->close();
  EXPECT_EQ(master_.text_of("trace/worker_00_01.events"), "old events");
  EXPECT_EQ(master_.text_of("logs/worker_00.log"), "a line\n");
  EXPECT_EQ(master_.taken.back().first.how, TakeFile::remove);
  EXPECT_EQ(master_.taken.back().first.file, "trace/worker_00_01.events");
}

TEST_F(FileSourceTest, TheLastWorkerRemovesTheFolderOfTheHost) {
  const auto one = source(0);
  const auto two = source(1);
  one->close();
  EXPECT_THAT(in_tmp(), ElementsAre("troupe-files-1234"));
  two->leave();
  EXPECT_THAT(in_tmp(), IsEmpty());
}

TEST_F(FileSourceTest, TheFolderOfAKilledWorkerIsRemovedByTheNext) {
  fs::create_directories(tmp_ / "troupe-files-dead/models");
  fs::create_directories(tmp_ / "another");
  const auto files = source();
  EXPECT_THAT(in_tmp(),
              ::testing::UnorderedElementsAre("another", "troupe-files-1234"));
}

TEST_F(FileSourceTest, AHostWithoutRoomSaysSo) {
  master_.serve("big.jsonl", "");
  master_.files.front().bytes = std::uint64_t{1} << 60;
  try {
    source()->local("big.jsonl");
    FAIL() << "there is no such disk";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::io);
    EXPECT_THAT(error.failure().what, HasSubstr("no room for big.jsonl"));
    EXPECT_THAT(error.failure().what, HasSubstr("TMPDIR"));
  }
}

TEST_F(FileSourceTest, AnAbortEndsTheWaitForAnotherProcess) {
  master_.serve("rows.jsonl", "rows");
  const auto one = source(0);
  const auto path = one->local("rows.jsonl");
  fs::remove(path); // another process is still fetching it
  HostFileLock held(path.string() + ".lock");
  ASSERT_TRUE(held.try_lock());
  auto waits
    = std::async(std::launch::async, [&] { return one->local("rows.jsonl"); });
  one->abort();
  EXPECT_THROW(waits.get(), FailureError);
}

TEST(PathWithin, IsNothingOutsideTheFolder) {
  EXPECT_EQ(path_within("runs/x", "runs/x/a/b"), "a/b");
  EXPECT_EQ(path_within("./runs/x/", "runs/x/a/../b"), "b");
  EXPECT_EQ(path_within("runs/x", "runs/x"), std::nullopt);
  EXPECT_EQ(path_within("runs/x", "runs/x2/a"), std::nullopt);
  EXPECT_EQ(path_within("runs/x", "runs/x/../y"), std::nullopt);
  EXPECT_EQ(path_within("runs/x", "/runs/x/a"), std::nullopt);
}

} // namespace
} // namespace troupe::actors
