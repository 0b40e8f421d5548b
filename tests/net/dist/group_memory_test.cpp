// Shared memory that a killed program leaves, as Python's programs name it.
#include "net/child_programs/child_pool.hpp"
#include "net/child_programs/group_memory.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;

/// Makes shared memory, writes its name to a file, and waits to be killed.
constexpr const char* memory_program
  = "import os, sys\n"
    "from multiprocessing import shared_memory\n"
    "block = shared_memory.SharedMemory(create=True, size=4096)\n"
    "with open(sys.argv[1] + '.new', 'w') as file:\n"
    "    file.write('/dev/shm/' + block.name.lstrip('/'))\n"
    "os.rename(sys.argv[1] + '.new', sys.argv[1])\n"
    "import signal\n"
    "signal.pause()\n";

class GroupMemoryTest : public ::testing::Test {
protected:
  /// Starts such a program and waits until it has its memory.
  std::filesystem::path start() {
    ChildSpec spec;
    spec.name = "child";
    spec.argv
      = {"python3", "-c", memory_program, (temp_.path() / "name").string()};
    spec.trust = Trust::users;
    group_ = pool_.start(spec);
    for (int look = 0; look < 200; ++look) {
      if (std::filesystem::exists(temp_.path() / "name"))
        return support::read_text(temp_.path() / "name");
      EXPECT_FALSE(pool_.wait_all(100ms)) << "it ended";
    }
    ADD_FAILURE() << "it makes no memory";
    return {};
  }
  void kill() {
    pool_.signal_all(SIGKILL);
    ASSERT_TRUE(pool_.wait_all(20s));
  }

  const support::TempFolder temp_;
  pid_t group_ = 0;
  ChildPool pool_;
};

TEST_F(GroupMemoryTest, WhatAKilledProgramLeavesIsRemoved) {
  const auto file = start();
  GroupMemory memory;
  memory.note(group_);
  kill();
  ASSERT_TRUE(std::filesystem::exists(file)) << "else there is nothing to do";
  EXPECT_EQ(memory.remove(), 1U);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_EQ(memory.remove(), 0U);
}

TEST_F(GroupMemoryTest, MemoryOfOtherProgramsStays) {
  const auto file = start();
  GroupMemory memory;
  memory.note(::getpgid(0)); // ours, which has none
  EXPECT_EQ(memory.remove(), 0U);
  EXPECT_TRUE(std::filesystem::exists(file));
  GroupMemory own;
  own.note(group_);
  kill();
  EXPECT_EQ(own.remove(), 1U);
}

TEST_F(GroupMemoryTest, AFileOfTheSameNameThatCameLaterStays) {
  const auto file = start();
  GroupMemory memory;
  memory.note(group_);
  kill();
  // a link keeps the inode, so that the new file cannot have it
  const auto kept = std::filesystem::path(file.string() + "-kept");
  std::filesystem::rename(file, kept);
  std::ofstream(file) << "another's";
  EXPECT_EQ(memory.remove(), 0U);
  EXPECT_TRUE(std::filesystem::exists(file));
  std::filesystem::remove(file);
  std::filesystem::remove(kept);
}

} // namespace
} // namespace troupe::net
