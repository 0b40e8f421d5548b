// The server of programs of a run, asked over sockets.
#include "config/base/error.hpp"
#include "net/child_programs/http_client.hpp"
#include "net/http_server/api_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
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

TEST(ApiServerTest, TheKeyIsThatOfTheBearer) {
  std::string key;
  const ApiServer server(
    "test", 0, [&](const ApiCall& call, const ApiServer::Answer& answer) {
      key = call.key;
      answer({.body = "ok"});
    });
  boost::asio::io_context io;
  tcp::socket socket(io);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), server.port()});
  api_http::request<api_http::string_body> request{api_http::verb::get, "/",
                                                   11};
  request.set(api_http::field::authorization, "Bearer abc");
  api_http::write(socket, request);
  boost::beast::flat_buffer buffer;
  api_http::response<api_http::string_body> response;
  api_http::read(socket, buffer, response);
  EXPECT_EQ(response.body(), "ok");
  EXPECT_EQ(key, "abc");
}

TEST(ApiServerTest, APortInUseIsAFailure) {
  const ApiServer first("test", 0, echo);
  EXPECT_THROW(ApiServer("second", first.port(), echo), FailureError);
}

} // namespace
} // namespace troupe::net
