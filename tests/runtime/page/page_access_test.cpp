// The file that holds the page's token, and who is shown it.
#include "runtime/page/page_access.hpp"

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>

namespace troupe::runtime {
namespace {

TEST(PageToken, IsInAFileOfItsOwnThatOnlyTheOwnerReads) {
  const test::TempFolder temp;
  const RunFolder folder{temp.path()};
  const std::string address = "http://127.0.0.1:4711/";
  EXPECT_EQ(address_with_token(folder, address), address);
  write_page_token(folder, "s3cret");
  EXPECT_EQ(std::filesystem::status(folder.page_token_file()).permissions(),
            std::filesystem::perms::owner_read
              | std::filesystem::perms::owner_write);
  EXPECT_EQ(address_with_token(folder, address), address + "?token=s3cret");
  EXPECT_EQ(address_with_token(folder, ""), "");
}

} // namespace
} // namespace troupe::runtime
