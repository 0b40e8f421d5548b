// Requests to a server in this process, which answers each on a thread of its
// own.
#include "config/base/error.hpp"
#include "net/child_programs/http_client.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace troupe::net {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace beast_http = boost::beast::http;
using boost::asio::ip::tcp;

/// Echoes method, target and body; "/refuse" is 500, "/silent" nothing.
class EchoServer {
public:
  EchoServer() {
    acceptor_.listen();
    accepting_ = std::thread([this] { accept(); });
  }
  ~EchoServer() {
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR); // wakes accept
    accepting_.join();
    boost::system::error_code ignored;
    for (auto& socket : sockets_)
      socket->shutdown(tcp::socket::shutdown_both, ignored);
    for (auto& thread : serving_)
      thread.join();
  }
  HttpClient client() const {
    return {
      {"127.0.0.1", std::to_string(acceptor_.local_endpoint().port()), "/"},
      "echo"};
  }
  std::size_t connections() const {
    return sockets_.size();
  }

private:
  void accept() {
    for (;;) {
      auto socket = std::make_shared<tcp::socket>(io_);
      boost::system::error_code error;
      acceptor_.accept(*socket, error);
      if (error)
        return;
      sockets_.push_back(socket);
      serving_.emplace_back([socket] { serve(*socket); });
    }
  }
  static void serve(tcp::socket& socket) {
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    for (;;) {
      beast_http::request<beast_http::string_body> request;
      beast_http::read(socket, buffer, request, error);
      if (error)
        return;
      if (request.target() == "/silent")
        continue;
      beast_http::response<beast_http::string_body> response{
        request.target() == "/refuse"
          ? beast_http::status::internal_server_error
          : beast_http::status::ok,
        11};
      response.keep_alive(true);
      response.body() = std::string(request.method_string()) + " "
                        + std::string(request.target()) + " " + request.body();
      response.prepare_payload();
      beast_http::write(socket, response, error);
    }
  }

  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_, {boost::asio::ip::make_address("127.0.0.1"), 0}};
  std::thread accepting_;
  // of the accepting thread until it has ended
  std::vector<std::shared_ptr<tcp::socket>> sockets_;
  std::vector<std::thread> serving_;
};

TEST(HttpClient, EachRequestGetsItsOwnReply) {
  const EchoServer server;
  std::vector<HttpCall> calls;
  for (int i = 0; i < 20; ++i)
    calls.push_back({.target = "/" + std::to_string(i), .body = "b"});
  std::map<std::size_t, std::string> replies;
  server.client().send_all(
    calls, {.within = 5s, .connections = 3},
    [&](std::size_t i, const HttpReply& reply) { replies[i] = reply.body; });
  EXPECT_EQ(replies.size(), 20U);
  EXPECT_EQ(replies.at(7), "POST /7 b");
  EXPECT_LE(server.connections(), 3U); // kept between requests
}

/// Requests that a test adds while others are under way.
struct ComingCalls {
  Coming<HttpCall> source() {
    return {.take =
              [this] {
                const std::lock_guard lock(mutex);
                return std::exchange(come,
                                     {.requests = {}, .closed = come.closed});
              },
            .listen =
              [this](std::function<void()> told) {
                const std::lock_guard lock(mutex);
                wake = std::move(told);
              }};
  }
  void add(const std::string& target, bool closed) {
    const std::lock_guard lock(mutex);
    come.requests.push_back({.target = target});
    come.closed = closed;
    if (wake)
      wake();
  }

  std::mutex mutex;
  Coming<HttpCall>::Intake come;
  std::function<void()> wake;
};

TEST(HttpClient, RequestsMayComeWhileOthersAreUnderWay) {
  const EchoServer server;
  ComingCalls coming;
  coming.add("/0", false);
  coming.add("/silent", false);
  std::thread other;
  std::vector<std::string> replies(4);
  server.client().send_coming(
    coming.source(), {.within = 2s, .connections = 2},
    [&](std::size_t i, const HttpReply& reply) {
      replies[i] = reply.late() ? "late" : reply.body;
      if (i == 0) // "/silent" still waits for its answer
        other = std::thread([&] { coming.add("/2", false); });
      if (i == 2)
        coming.add("/3", true);
      if (i == 3) {
        EXPECT_EQ(replies[1], "");
      }
    });
  other.join();
  EXPECT_THAT(replies, ::testing::ElementsAre("POST /0 ", "late", "POST /2 ",
                                              "POST /3 "));
  EXPECT_FALSE(coming.wake); // nobody is called any more
}

TEST(HttpClient, NothingIsSentUntilSomethingComes) {
  const EchoServer server;
  ComingCalls coming;
  std::vector<std::string> replies;
  std::thread other([&] { coming.add("/0", true); });
  server.client().send_coming(coming.source(), {.within = 5s, .connections = 2},
                              [&](std::size_t, const HttpReply& reply) {
                                replies.push_back(reply.body);
                              });
  other.join();
  EXPECT_THAT(replies, ::testing::ElementsAre("POST /0 "));
}

TEST(HttpClient, AGetHasNoBody) {
  const EchoServer server;
  const auto reply = server.client().send({.target = "/health", .is_get = true},
                                          {.within = 5s});
  EXPECT_TRUE(reply.answered());
  EXPECT_EQ(reply.body, "GET /health ");
}

TEST(HttpClient, ARefusalAndASilenceAreRepliesThatSayWhy) {
  const EchoServer server;
  const auto refused
    = server.client().send({.target = "/refuse"}, {.within = 5s});
  EXPECT_FALSE(refused.answered());
  EXPECT_THAT(refused.text(), HasSubstr("HTTP status 500"));
  const auto silent
    = server.client().send({.target = "/silent"}, {.within = 100ms});
  EXPECT_TRUE(silent.late());
}

TEST(HttpClient, AnAbsentServerIsAnErrorOfTheConnection) {
  const HttpClient client({"127.0.0.1", free_local_port(), "/"}, "absent");
  const auto reply = client.send({.target = "/"}, {.within = 5s});
  EXPECT_TRUE(reply.error);
  EXPECT_THAT(reply.text(), HasSubstr("refused"));
}

TEST(HttpClient, PortsOfDifferentIndicesAreNeverTheSame) {
  constexpr std::uint32_t count = 5;
  for (std::uint32_t draw = 0; draw < 20; ++draw)
    for (std::uint32_t index = 0; index < count; ++index)
      EXPECT_EQ(std::stoul(free_local_port(index, count)) % count, index);
}

TEST(HttpClient, AStopEndsTheWait) {
  const EchoServer server;
  const std::atomic<bool> stop{true};
  std::atomic<std::uint64_t> progress{0};
  try {
    server.client().send(
      {.target = "/silent"},
      {.within = 1min, .stop = &stop, .progress = &progress});
    FAIL() << "nothing was thrown";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::aborted);
  }
  EXPECT_GT(progress, 0U);
}

} // namespace
} // namespace troupe::net
