// Addresses of files on other machines, and the requests that fetch them.
#include "config/base/error.hpp"
#include "models/data/remote_file.hpp"

#include <gmock/gmock.h>

#include <map>
#include <string>

namespace troupe::models {
namespace {

using ::testing::Contains, ::testing::ElementsAre;
using ::testing::HasSubstr, ::testing::IsEmpty;

Variables variables_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) {
    const auto at = values.find(name);
    return at == values.end() ? std::string{} : at->second;
  };
}

RemoteFile parsed(const std::string& name,
                  const std::map<std::string, std::string>& values = {}) {
  return parse_remote_file(name, variables_of(values));
}

std::string address_complaint(const std::string& name) {
  try {
    parsed(name);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no complaint";
}

TEST(RemoteFile, AddressesAreToldFromPaths) {
  for (const char* name : {"https://h/a", "http://h/a", "s3://b/a", "hf://x"})
    EXPECT_TRUE(is_remote_file(name)) << name;
  for (const char* name : {"", "a.jsonl", "/s3://a", "file://a", "s3:/a"})
    EXPECT_FALSE(is_remote_file(name)) << name;
}

TEST(RemoteFile, AnAddressIsFetchedAsItIs) {
  const auto file = parsed("https://host:9/a%20b/rows.jsonl.gz?v=2");
  EXPECT_EQ(file.request.url, "https://host:9/a%20b/rows.jsonl.gz?v=2");
  EXPECT_EQ(file.host, "host:9");
  EXPECT_EQ(file.file_name, "rows.jsonl.gz");
  EXPECT_EQ(file.sha256, "");
  EXPECT_THAT(file.request.headers, IsEmpty());
}

TEST(RemoteFile, AChecksumIsNoPartOfTheAddress) {
  const std::string sum(64, 'A');
  const auto file = parsed("https://host/a.jsonl#sha256=" + sum);
  EXPECT_EQ(file.request.url, "https://host/a.jsonl");
  EXPECT_EQ(file.sha256, std::string(64, 'a'));
  EXPECT_THAT(address_complaint("https://host/a.jsonl#sha256=12"),
              HasSubstr("expected #sha256= and 64 hexadecimal digits"));
  EXPECT_THAT(address_complaint("https://host/a.jsonl#part"),
              HasSubstr("got '#part'"));
}

TEST(RemoteFile, ADataSetOfTheHubIsFetchedFromItsRevision) {
  const auto file
    = parsed("hf://datasets/openai/gsm8k/main/train-00000-of-00001.parquet");
  EXPECT_EQ(file.request.url,
            "https://huggingface.co/datasets/openai/gsm8k/resolve/main/main/"
            "train-00000-of-00001.parquet");
  EXPECT_EQ(file.file_name, "train-00000-of-00001.parquet");
  EXPECT_THAT(file.request.headers, IsEmpty());
  const auto other
    = parsed("hf://datasets/a/b@v1/c d.jsonl",
             {{"HF_ENDPOINT", "https://mirror/"}, {"HF_TOKEN", "secret"}});
  EXPECT_EQ(other.request.url,
            "https://mirror/datasets/a/b/resolve/v1/c%20d.jsonl");
  EXPECT_THAT(other.request.headers,
              ElementsAre("Authorization: Bearer secret"));
  EXPECT_THAT(address_complaint("hf://datasets/gsm8k"),
              HasSubstr("expected hf://datasets/OWNER/NAME"));
}

TEST(RemoteFile, ABucketIsReadOpenlyOrSigned) {
  const auto open = parsed("s3://bucket/a/b+c.jsonl");
  EXPECT_EQ(open.request.url,
            "https://bucket.s3.us-east-1.amazonaws.com/a/b%2Bc.jsonl");
  EXPECT_EQ(open.request.sigv4, "");
  const auto file = parsed("s3://bucket/a.parquet",
                           {{"AWS_ACCESS_KEY_ID", "key"},
                            {"AWS_SECRET_ACCESS_KEY", "secret"},
                            {"AWS_SESSION_TOKEN", "session"},
                            {"AWS_REGION", "eu-west-1"},
                            {"AWS_ENDPOINT_URL", "http://minio:9000"}});
  EXPECT_EQ(file.request.url, "http://minio:9000/bucket/a.parquet");
  EXPECT_EQ(file.request.sigv4, "aws:amz:eu-west-1:s3");
  EXPECT_EQ(file.request.user, "key:secret");
  EXPECT_THAT(file.request.headers, Contains("x-amz-security-token: session"));
  EXPECT_THAT(address_complaint("s3://bucket"), HasSubstr("s3://BUCKET/KEY"));
}

TEST(RemoteFile, AFolderIsNoFile) {
  EXPECT_THAT(address_complaint("https://host/folder/"),
              HasSubstr("expected the address of a file, got a folder"));
}

} // namespace
} // namespace troupe::models
