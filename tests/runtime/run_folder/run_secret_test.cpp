#include "config/base/error.hpp"
#include "runtime/base/jsonl_file.hpp"
#include "runtime/run_folder/run_secret.hpp"

#include "tests/support/temp_folder.hpp"
#include <gmock/gmock.h>

#include <string>

namespace troupe::runtime {
namespace {

using ::testing::HasSubstr;

class RunSecretFile : public ::testing::Test {
protected:
  RunSecret read_back(const std::string& text) {
    const auto file = folder_.path() / ".token";
    replace_file(file, text);
    return read_run_secret(file);
  }
  support::TempFolder folder_;
};

TEST_F(RunSecretFile, AWorkerReadsWhatTheMasterWrote) {
  const auto encrypted = make_run_secret(true);
  EXPECT_EQ(encrypted.token.size(), 64u);
  const auto read = read_back(encrypted.text);
  EXPECT_EQ(read.token, encrypted.token);
  EXPECT_NE(read.tls, nullptr);
  EXPECT_EQ(read.data_tls(), read.tls);
}

TEST_F(RunSecretFile, MessagesAreEncryptedEvenWhereDataIsNot) {
  const auto in_clear = make_run_secret(false);
  EXPECT_NE(in_clear.token, make_run_secret(true).token);
  EXPECT_NE(in_clear.tls, nullptr);
  EXPECT_EQ(in_clear.data_tls(), nullptr);
  const auto read = read_back(in_clear.text);
  EXPECT_EQ(read.token, in_clear.token);
  EXPECT_NE(read.tls, nullptr);
  EXPECT_EQ(read.data_tls(), nullptr);
}

TEST_F(RunSecretFile, ALastingSecretIsMadeOnceForItsOwner) {
  const auto file = folder_.path() / "secrets" / "run";
  const auto made = lasting_run_secret(file, true);
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read
              | std::filesystem::perms::owner_write);
  EXPECT_EQ(lasting_run_secret(file, true).text, made.text);
  EXPECT_NE(made.data_tls(), nullptr);
  replace_file(file, "token\n");
  EXPECT_THROW(lasting_run_secret(file, true), ConfigError);
}

TEST_F(RunSecretFile, AnUnfinishedCopyIsNamed) {
  const auto secret = make_run_secret(true);
  try {
    read_back(secret.text.substr(0, secret.text.size() - 100));
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr(".token"));
    EXPECT_THAT(error.what(), HasSubstr("RUN/.token"));
  }
}

} // namespace
} // namespace troupe::runtime
