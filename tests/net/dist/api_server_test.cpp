// The server of programs of a run, asked over sockets.
#include "config/base/error.hpp"
#include "net/child_programs/http_client.hpp"
#include "net/http_server/api_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include <gmock/gmock.h>

#include <future>
#include <thread>

namespace troupe::net {
namespace {

using namespace std::chrono_literals;
namespace api_http = boost::beast::http;
using boost::asio::ip::tcp;

HttpClient client_of(const ApiServer& server) {
  return {{"127.0.0.1", std::to_string(server.port()), "/"}, "server"};
}

HttpLimits soon(std::size_t connections = 1) {
  return {.within = 20s, .connections = connections};
}

/// Answers with the call's path and body.
void echo(const ApiCall& call, const ApiServer::Answer& answer) {
  answer({.status = call.is_post ? 200U : 404U,
          .body = call.path + " " + call.body});
}

TEST(ApiServerTest, PassesRequestsOnAndAnswersBack) {
  const ApiServer server("test", 0, echo);
  const auto client = client_of(server);
  EXPECT_EQ(client.send({.target = "/v1/x?y=1", .body = "hi"}, soon()).body,
            "/v1/x hi");
  EXPECT_EQ(client.send({.target = "/", .is_get = true}, soon()).status, 404U);
}

TEST(ApiServerTest, ConnectionsLiveOnForManyRequests) {
  const ApiServer server("test", 0, echo);
  std::vector<HttpCall> calls;
  for (int i = 0; i < 100; ++i)
    calls.push_back({.target = "/", .body = std::to_string(i)});
  int right = 0;
  client_of(server).send_all(
    calls, soon(2), [&](std::size_t i, const HttpReply& reply) {
      right += reply.body == "/ " + std::to_string(i) ? 1 : 0;
    });
  EXPECT_EQ(right, 100);
}

TEST(ApiServerTest, AnAnswerMayComeLaterFromAnotherThread) {
  std::vector<std::thread> threads;
  {
    const ApiServer server(
      "test", 0, [&](const ApiCall& call, const ApiServer::Answer& answer) {
        threads.emplace_back([=] { answer({.body = call.body + "!"}); });
      });
    EXPECT_EQ(
      client_of(server).send({.target = "/", .body = "late"}, soon()).body,
      "late!");
  }
  for (auto& thread : threads)
    thread.join();
}

TEST(ApiServerTest, AnAnswerAfterTheServersEndIsDropped) {
  ApiServer::Answer kept;
  std::thread asks;
  {
    std::promise<void> came;
    const ApiServer server(
      "test", 0, [&](const ApiCall&, const ApiServer::Answer& answer) {
        kept = answer;
        came.set_value();
      });
    asks = std::thread([client = client_of(server)] {
      EXPECT_FALSE(
        client.send({.target = "/", .body = "x"}, soon()).answered());
    });
    came.get_future().wait();
  }
  kept({.body = "nobody reads this"});
  asks.join();
}

/// A connection of a program that shows a key.
class KeyBearer {
public:
  explicit KeyBearer(const ApiServer& server) {
    socket_.connect(
      {boost::asio::ip::make_address("127.0.0.1"), server.port()});
  }

  api_http::response<api_http::string_body> send(const std::string& key,
                                                 const std::string& body = "") {
    api_http::request<api_http::string_body> request{api_http::verb::post, "/",
                                                     11};
    request.set(api_http::field::authorization, "Bearer " + key);
    request.body() = body;
    request.prepare_payload();
    api_http::write(socket_, request);
    return answer();
  }
  /// Announces a body and sends none.
  api_http::response<api_http::string_body> announce(const std::string& key,
                                                     std::size_t bytes) {
    const auto head = "POST / HTTP/1.1\r\nAuthorization: Bearer " + key
                      + "\r\nContent-Length: " + std::to_string(bytes)
                      + "\r\n\r\n";
    boost::asio::write(socket_, boost::asio::buffer(head));
    return answer();
  }
  /// Returns whether the server has ended the connection; waits for it.
  bool ends() {
    boost::system::error_code error;
    char byte = 0;
    socket_.read_some(boost::asio::buffer(&byte, 1), error);
    return static_cast<bool>(error);
  }

private:
  api_http::response<api_http::string_body> answer() {
    api_http::response<api_http::string_body> response;
    api_http::read(socket_, buffer_, response);
    return response;
  }

  boost::asio::io_context io_;
  tcp::socket socket_{io_};
  boost::beast::flat_buffer buffer_;
};

/// Answers with the call's key, and whether its body was too long.
void tell_key(const ApiCall& call, const ApiServer::Answer& answer) {
  answer({.status = call.is_too_long ? 413U : 200U, .body = call.key});
}

ApiAccess known_key(const std::string& known) {
  return {.knows = [known](const std::string& key) { return key == known; }};
}

TEST(ApiServerTest, TheKeyIsThatOfTheBearer) {
  const ApiServer server("test", 0, tell_key);
  EXPECT_EQ(KeyBearer(server).send("abc").body(), "abc");
}

TEST(ApiServerTest, AnUnknownKeyGetsOneShortAnswerAndNoPlace) {
  const ApiServer server("test", 0, tell_key, known_key("friend"));
  KeyBearer stranger(server);
  EXPECT_FALSE(stranger.send("guessed", "hi").keep_alive());
  EXPECT_TRUE(stranger.ends());
  KeyBearer friend_of_run(server);
  EXPECT_TRUE(friend_of_run.send("friend", "hi").keep_alive());
  EXPECT_EQ(friend_of_run.send("friend", "hi").result_int(), 200U);
}

TEST(ApiServerTest, ABodyThatIsTooLongIsToldAndNotRead) {
  const ApiServer server("test", 0, tell_key, known_key("friend"));
  const auto long_body = std::string(max_stranger_request_bytes + 1, 'x');
  EXPECT_EQ(KeyBearer(server).send("friend", long_body).result_int(), 200U);
  EXPECT_EQ(
    KeyBearer(server).announce("guessed", long_body.size()).result_int(), 413U);
  KeyBearer friend_of_run(server);
  const auto answer
    = friend_of_run.announce("friend", max_api_request_bytes + 1);
  EXPECT_EQ(answer.result_int(), 413U);
  EXPECT_EQ(answer.body(), "friend");
  EXPECT_TRUE(friend_of_run.ends());
}

TEST(ApiServerTest, APortInUseIsAFailure) {
  const ApiServer first("test", 0, echo);
  EXPECT_THROW(ApiServer("second", first.port(), echo), FailureError);
}

} // namespace
} // namespace troupe::net
