// Files fetched by the machine's libcurl from a server in this process.
#include "net/fetch/fetch.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <stdexcept>
#include <thread>

namespace troupe::net {
namespace {

using ::testing::HasSubstr;
namespace files_http = boost::beast::http;
using FilesTcp = boost::asio::ip::tcp;

/// Answers one request per connection: "/moved" leads to "/rows", "/none" is
/// 404, all else is "ROWS of PATH for AUTHORIZATION".
class FileHost {
public:
  FileHost() {
    acceptor_.listen();
    serving_ = std::thread([this] { serve(); });
  }
  ~FileHost() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR); // wakes accept
    serving_.join();
  }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:"
           + std::to_string(acceptor_.local_endpoint().port()) + path;
  }

private:
  void serve() {
    for (;;) {
      FilesTcp::socket socket(io_);
      boost::system::error_code error;
      acceptor_.accept(socket, error);
      if (error)
        return;
      boost::beast::flat_buffer buffer;
      files_http::request<files_http::string_body> request;
      files_http::read(socket, buffer, request, error);
      if (!error)
        answer(socket, request);
    }
  }
  static void
  answer(FilesTcp::socket& socket,
         const files_http::request<files_http::string_body>& request) {
    files_http::response<files_http::string_body> response{
      files_http::status::ok, 11};
    response.keep_alive(false);
    const std::string path(request.target());
    if (path == "/none")
      response.result(files_http::status::not_found);
    if (path == "/moved") {
      response.result(files_http::status::found);
      response.set(files_http::field::location, "/rows");
    }
    response.body() = "ROWS of " + path + " for "
                      + std::string(request[files_http::field::authorization]);
    response.prepare_payload();
    boost::system::error_code ignored;
    files_http::write(socket, response, ignored);
  }

  boost::asio::io_context io_;
  FilesTcp::acceptor acceptor_{io_,
                               {boost::asio::ip::make_address("127.0.0.1"), 0}};
  std::thread serving_;
};

class FetchedFile : public ::testing::Test {
protected:
  void SetUp() override {
    if (!CurlLibrary::machine().why_not.empty())
      GTEST_SKIP() << "no libcurl on this machine";
    ::setenv("no_proxy", "127.0.0.1", 1);
  }
  FetchReply get(FetchRequest request) {
    body_.clear();
    return fetch(CurlLibrary::machine(), request,
                 [&](std::string_view part) { body_ += part; });
  }

  FileHost host_;
  std::string body_;
};

TEST_F(FetchedFile, ArrivesOverRedirects) {
  const auto reply = get({.url = host_.url("/moved")});
  EXPECT_TRUE(reply.fetched()) << reply.error;
  EXPECT_EQ(body_, "ROWS of /rows for ");
}

TEST_F(FetchedFile, IsAskedForWithHeadersOrASignature) {
  get({.url = host_.url("/a"), .headers = {"Authorization: Bearer me"}});
  EXPECT_EQ(body_, "ROWS of /a for Bearer me");
  get({.url = host_.url("/a"),
       .sigv4 = "aws:amz:eu-west-1:s3",
       .user = "KEY:SECRET"});
  EXPECT_THAT(body_, HasSubstr("for AWS4-HMAC-SHA256 Credential=KEY/"));
  EXPECT_THAT(body_, HasSubstr("/eu-west-1/s3/aws4_request"));
}

TEST_F(FetchedFile, ARefusalHasItsStatus) {
  const auto reply = get({.url = host_.url("/none")});
  EXPECT_FALSE(reply.fetched());
  EXPECT_EQ(reply.error, "");
  EXPECT_EQ(reply.status, 404);
}

TEST_F(FetchedFile, NoConnectionIsSaidInWords) {
  const auto reply = get({.url = "http://127.0.0.1:1/a"});
  EXPECT_FALSE(reply.fetched());
  EXPECT_THAT(reply.error, HasSubstr("127.0.0.1"));
  EXPECT_FALSE(get({.url = "file:///etc/hostname"}).fetched())
    << "no file of this machine is read as one of another";
}

TEST_F(FetchedFile, WhatItsWriterThrowsEndsTheTransfer) {
  EXPECT_THROW(
    fetch(CurlLibrary::machine(), {.url = host_.url("/a")},
          [](std::string_view) { throw std::runtime_error("disk full"); }),
    std::runtime_error);
}

} // namespace
} // namespace troupe::net
