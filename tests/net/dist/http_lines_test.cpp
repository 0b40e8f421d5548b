// A server in this process that replies to lines over HTTP, correctly and
// wrongly.
#include "config/base/error.hpp"
#include "net/base/wake_event.hpp"
#include "net/child_programs/http_lines.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "tests/support/net/heard_lines.hpp"
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <netdb.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <thread>

namespace troupe::net {
namespace {

using test::HeardLines;
using test::number_lines;
using ::testing::HasSubstr;
using namespace std::chrono_literals;
namespace http = boost::beast::http;
using boost::asio::ip::tcp;

constexpr const char* silent_host = "host.of.a.silent.name.service";
std::atomic<int> name_service_asked{0};

struct Reply {
  unsigned status = 200;
  std::string body;
  bool silent = false;
};

/// Serves each connection on its own thread.
class Server {
public:
  using Answering = std::function<Reply(const std::string& body, int request)>;

  explicit Server(Answering reply) : reply_(std::move(reply)) {
    acceptor_.listen();
    accepting_ = std::thread([this] { accept(); });
  }
  ~Server() {
    boost::system::error_code ignored;
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR); // wakes accept
    accepting_.join();
    for (auto& socket : sockets_)
      socket->shutdown(tcp::socket::shutdown_both, ignored);
    for (auto& thread : serving_)
      thread.join();
  }
  HttpLineOptions options() const {
    HttpLineOptions options;
    options.name = "reward.url";
    options.url
      = {"127.0.0.1", std::to_string(acceptor_.local_endpoint().port()), "/r"};
    options.workers = 3;
    options.deadline.silence = 5s;
    return options;
  }
  int requests() const {
    return requests_;
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
      serving_.emplace_back([this, socket] { serve(*socket); });
    }
  }
  void serve(tcp::socket& socket) {
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    while (!error) {
      http::request<http::string_body> request;
      http::read(socket, buffer, request, error);
      if (error)
        return;
      const auto reply = reply_(request.body(), ++requests_);
      if (reply.silent)
        continue;
      http::response<http::string_body> response{
        static_cast<http::status>(reply.status), 11};
      response.keep_alive(true);
      response.body() = reply.body;
      response.prepare_payload();
      http::write(socket, response, error);
    }
  }

  Answering reply_;
  std::atomic<int> requests_{0};
  boost::asio::io_context io_;
  tcp::acceptor acceptor_{io_, {boost::asio::ip::make_address("127.0.0.1"), 0}};
  std::thread accepting_;
  // of the accepting thread until it has ended
  std::vector<std::shared_ptr<tcp::socket>> sockets_;
  std::vector<std::thread> serving_;
};

TEST(HttpLines, EveryLineIsPostedAndGetsAReply) {
  Server server([](const std::string& body, int) {
    return Reply{.body = std::to_string(std::stoi(body)) + " ok\n"};
  });
  HttpLines lines(server.options());
  HeardLines heard;
  lines.run(number_lines(20), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 20U);
  EXPECT_EQ(heard.replies.at(19), "19 ok");
}

TEST(HttpLines, LinesAddedMeanwhileArePosted) {
  Server server(
    [](const std::string& body, int) { return Reply{.body = body}; });
  HttpLines lines(server.options());
  WakeEvent more;
  int next = 0;
  LineSource source;
  source.more = &more;
  source.take = [&] {
    return next < 9 ? std::vector{std::to_string(next++)}
                    : std::vector<std::string>{};
  };
  more.ring();
  HeardLines heard;
  lines.run(source, heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 9U);
}

TEST(HttpLines, OverloadIsRetriedButARefusalIsNot) {
  Server server([](const std::string& body, int request) {
    if (request % 2 == 1)
      return Reply{.status = 503, .body = "busy"};
    return std::stoi(body) == 2 ? Reply{.status = 404, .body = "no row"}
                                : Reply{.body = body};
  });
  auto options = server.options();
  options.workers = 1;
  HttpLines lines(options);
  HeardLines heard;
  lines.run(number_lines(4), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 3U);
  EXPECT_THAT(heard.losses.at(2), HasSubstr("404: no row"));
  EXPECT_EQ(server.requests(), 8);
}

TEST(HttpLines, ATimeoutFailsOnlyItsLine) {
  Server server([](const std::string& body, int) {
    return Reply{.body = body, .silent = std::stoi(body) == 1};
  });
  auto options = server.options();
  options.deadline.silence = 1s;
  HttpLines lines(options);
  HeardLines heard;
  lines.run(number_lines(3), heard.handler(), nullptr);
  EXPECT_EQ(heard.replies.size(), 2U);
  EXPECT_EQ(heard.losses.count(1), 1U);
  EXPECT_EQ(heard.late, 1);
}

TEST(HttpLines, AReplyWithAnotherIdIsUnmatched) {
  Server server([](const std::string&, int) { return Reply{.body = "7 ok"}; });
  HttpLines lines(server.options());
  HeardLines heard;
  lines.run(number_lines(1), heard.handler(), nullptr);
  EXPECT_EQ(heard.unmatched, 1);
  EXPECT_EQ(heard.losses.size(), 1U);
}

TEST(HttpLines, AnAbsentServerIsRefused) {
  auto options = Server([](const std::string&, int) {
                   return Reply{};
                 }).options(); // removed again
  options.deadline.silence = 300ms;
  HttpLines lines(options);
  HeardLines heard;
  try {
    lines.run(number_lines(2), heard.handler(), nullptr);
    FAIL() << "nothing was thrown";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::bad_input);
    EXPECT_THAT(error.what(), HasSubstr("reward.url"));
    EXPECT_THAT(error.what(), HasSubstr("refused"));
  }
}

TEST(HttpLines, StoppingEndsTheWait) {
  Server server([](const std::string&, int) { return Reply{.silent = true}; });
  HttpLines lines(server.options());
  HeardLines heard;
  const std::atomic<bool> stop{true};
  EXPECT_THROW(lines.run(number_lines(1), heard.handler(), &stop),
               FailureError);
}

TEST(HttpLines, StoppingEndsTheWaitForANameServiceThatDoesNotAnswer) {
  HttpLineOptions options;
  options.name = "reward.url";
  options.url.host = silent_host;
  options.url.port = "80";
  HttpLines lines(options);
  HeardLines heard;
  std::atomic<bool> stop{false};
  std::thread stopper([&] {
    while (name_service_asked == 0)
      std::this_thread::yield();
    stop = true;
  });
  const auto begin = std::chrono::steady_clock::now();
  try {
    lines.run(number_lines(1), heard.handler(), &stop);
    ADD_FAILURE() << "no failure";
  } catch (const FailureError& error) {
    EXPECT_EQ(error.failure().code, Errc::aborted) << error.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  stopper.join();
}

} // namespace
} // namespace troupe::net

/// Stands in for the system's function in this program: never answers for one
/// host.
extern "C" int getaddrinfo(const char* host, const char* port,
                           const addrinfo* hints, addrinfo** found) {
  using namespace troupe::net;
  if (host != nullptr && std::strcmp(host, silent_host) == 0) {
    ++name_service_asked;
    ::pause();
  }
  static const auto system = reinterpret_cast<decltype(&getaddrinfo)>(
    ::dlsym(RTLD_NEXT, "getaddrinfo"));
  return system(host, port, hints, found);
}
