// The master's side of files that hosts do not share: which are served, and
// what may be written. The network is in tests/e2e/files_test.py.
#include "actors/membership/files_actor.hpp"
#include "config/base/error.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

namespace troupe::actors {
namespace {

using support::write_text;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ListFiles, HasFilesAndThoseOfModelsDirectlyInFolders) {
  const support::TempFolder folder;
  std::filesystem::create_directories(folder / "model/original");
  write_text(folder / "model/config.json", "{}");
  write_text(folder / "model/original/config.json", "...");
  write_text(folder / "model/pytorch_model.bin", "...");
  write_text(folder / "rows.jsonl", "{}\n{}\n");
  const auto listed
    = list_files({folder / "rows.jsonl", folder / "model", folder / "model/",
                  folder / "model/config.json", "", folder / "no_such_file"});
  std::vector<std::string> names;
  for (const auto& file : listed)
    names.push_back(
      std::filesystem::path(file.path).lexically_relative(folder.path()));
  EXPECT_THAT(names, ElementsAre("model/config.json", "rows.jsonl"));
  EXPECT_EQ(listed[1].bytes, 6U);
  EXPECT_GT(listed[1].changed_ns, 0);
}

TEST(FileServer, TakesNoFileOutsideTheRunFolder) {
  const support::TempFolder folder;
  FileServer server({.run_folder = folder / "run", .listen = {}});
  for (const char* file : {"../other/a", "/etc/passwd", "a/../../b", ""}) {
    try {
      server.take({.worker = WorkerId{0}, .file = file});
      ADD_FAILURE() << file;
    } catch (const FailureError& error) {
      EXPECT_EQ(error.failure().code, Errc::refused) << file;
    }
  }
}

TEST(FileServer, TakesNothingFromAWorkerThatOpenedNothing) {
  const support::TempFolder folder;
  FileServer server({.run_folder = folder / "run", .listen = {}});
  EXPECT_THROW(server.take({.worker = WorkerId{0}, .file = "a", .bytes = 1}),
               FailureError);
}

TEST(FileServer, WhatMustBeSharedNamesTheWorkerThatDoesNot) {
  FileServer server({.run_folder = "/runs/x", .must_be_shared = true});
  try {
    server.open({.worker = WorkerId{2}, .host = "10.0.0.7"});
    FAIL() << "not shared";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cluster.shared_files"));
    EXPECT_THAT(error.what(),
                HasSubstr("worker 2 on 10.0.0.7, which does not see /runs/x"));
    EXPECT_THAT(error.what(), HasSubstr("cluster.shared_files=auto"));
  }
}

} // namespace
} // namespace troupe::actors
