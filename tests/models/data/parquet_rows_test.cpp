// A Parquet file where python3 does its part, or does not. A
// script stands in for python3; tests/e2e/parquet_test.py has the real one.
#include "config/base/error.hpp"
#include "models/data/parquet_rows.hpp"
#include "models/data/plain_rows.hpp"

#include "tests/support/models/io_support.hpp"
#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

namespace troupe::models {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::read_text;
using testing::TempFolder;
using testing::write_text;

class ParquetRows : public ::testing::Test {
protected:
  ParquetRows() {
    path_before_ = std::getenv("PATH");
    ::setenv("PATH", (folder_ / "bin").c_str(), 1);
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    write_text(table_, "PAR1");
  }
  ~ParquetRows() override {
    ::setenv("PATH", path_before_.c_str(), 1);
  }
  /// Sets what python3 does with `-c HELPER FILE TARGET`.
  void python_does(const std::string& script) {
    const auto file = folder_ / "bin" / "python3";
    write_text(file, "#!/bin/sh\n" + script + "\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  std::string complaint() {
    try {
      plain_rows(table_);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no complaint";
  }

  TempFolder folder_;
  fs::path table_ = folder_ / "t.parquet";
  std::string path_before_;
};

TEST_F(ParquetRows, AreConvertedOnceByAHelper) {
  python_does(
    "[ \"$1\" = -c ] && echo \"{\\\"file\\\": \\\"$3\\\"}\" > \"$4\"");
  const auto plain = plain_rows(table_);
  EXPECT_EQ(plain.filename(), "t.jsonl");
  EXPECT_EQ(read_text(plain), "{\"file\": \"" + table_.string() + "\"}\n");
  python_does("exit 9");
  EXPECT_EQ(plain_rows(table_), plain);
}

TEST_F(ParquetRows, NeedAPythonWithPyarrow) {
  python_does("echo \"No module named 'pyarrow'\" >&2; exit 3");
  EXPECT_THAT(complaint(),
              HasSubstr("t.parquet: expected python3 with pyarrow"));
  EXPECT_THAT(complaint(), HasSubstr("got one without (No module named 'pyarrow"
                                     "'); try `python3 -m pip install"));
  fs::remove_all(folder_ / "bin");
  EXPECT_THAT(complaint(),
              HasSubstr("t.parquet: expected python3 with pyarrow"));
}

TEST_F(ParquetRows, WhatPyarrowCannotReadIsRefusedByName) {
  python_does("echo 'no footer' >&2; exit 4");
  EXPECT_THAT(complaint(), HasSubstr("t.parquet: expected a Parquet file that "
                                     "pyarrow reads, got no footer"));
  EXPECT_THAT(complaint(), HasSubstr("read_parquet"));
  python_does("echo half > \"$4\"; kill -9 $$");
  EXPECT_THAT(complaint(), HasSubstr("killed by signal 9"));
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "cache"))
    EXPECT_TRUE(entry.is_directory()) << "left: " << entry.path();
}

} // namespace
} // namespace troupe::models
