#include "runtime/base/text_table.hpp"

#include <gtest/gtest.h>

using troupe::runtime::TextTable;

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCell) {
  TextTable table({"call", ">lag", "note"});
  table.row({"actor_gen", "1", ""});
  table.row({"x", "12", "slow"});
  EXPECT_EQ(table.print(), "call       lag  note\n"
                           "actor_gen    1\n"
                           "x           12  slow\n");
}

TEST(TextTable, WithoutTitlesItHasNoTitleLine) {
  TextTable table({"", ">"});
  table.row({"rows", "64"});
  EXPECT_EQ(table.print(2), "  rows  64\n");
}
