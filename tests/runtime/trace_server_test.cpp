// The page's door: what it serves, and to whom.
#include "config/error.hpp"
#include "runtime/live/trace_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;
using ::testing::Not;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace websocket = boost::beast::websocket;
using Answer = http::response<http::string_body>;

class TracePage : public ::testing::Test {
protected:
  TracePage() : folder_(temp_.path() / "run") {
    folder_.create();
  }
  static std::uint16_t port_of(const TraceServer& server) {
    const std::string url = server.url();
    return static_cast<std::uint16_t>(
      std::stoi(url.substr(url.rfind(':') + 1)));
  }
  asio::ip::tcp::socket connected(std::uint16_t port) {
    asio::ip::tcp::socket socket(io_);
    socket.connect({asio::ip::make_address("127.0.0.1"), port});
    return socket;
  }
  Answer get(std::uint16_t port, const std::string& target,
             const std::string& host, const std::string& origin = "") {
    auto socket = connected(port);
    http::request<http::string_body> request(http::verb::get, target, 11);
    request.set(http::field::host, host);
    if (!origin.empty())
      request.set(http::field::origin, origin);
    http::write(socket, request);
    boost::beast::flat_buffer buffer;
    Answer answer;
    http::read(socket, buffer, answer);
    return answer;
  }

  TempFolder temp_;
  RunFolder folder_;
  asio::io_context io_;
};

TEST_F(TracePage, IsOneDocumentThatLoadsNothing) {
  const TraceServer server(folder_, {});
  const Answer answer = get(port_of(server), "/", "127.0.0.1");
  EXPECT_EQ(answer.result(), http::status::ok);
  EXPECT_THAT(answer.body(), HasSubstr("class Timeline"));
  EXPECT_THAT(answer.body(), HasSubstr("--accent"));
  EXPECT_THAT(answer.body(), Not(HasSubstr("/*SCRIPT*/")));
  EXPECT_THAT(answer.body(), Not(HasSubstr("src=\"")));
  EXPECT_EQ(get(port_of(server), "/other", "localhost").result(),
            http::status::not_found);
}

TEST_F(TracePage, IsRefusedToOtherSites) {
  const TraceServer server(folder_, {});
  const auto port = port_of(server);
  EXPECT_EQ(get(port, "/", "evil.example").result(), http::status::forbidden);
  EXPECT_EQ(get(port, "/", "127.0.0.1", "http://evil.example").result(),
            http::status::forbidden);
}

TEST_F(TracePage, NeedsItsTokenWhereItHasOne) {
  const TraceServer server(folder_, {.token = "s3cret"});
  const std::string url = server.url();
  EXPECT_THAT(url, ::testing::EndsWith("/?token=s3cret"));
  const auto port = port_of(server);
  EXPECT_EQ(get(port, "/", "any.host").result(), http::status::forbidden);
  EXPECT_EQ(get(port, "/?token=wrong", "any.host").result(),
            http::status::forbidden);
  EXPECT_EQ(get(port, "/?token=s3cret", "any.host").result(), http::status::ok);
}

TEST_F(TracePage, SaysWhichPortIsInUse) {
  const TraceServer server(folder_, {});
  const auto port = port_of(server);
  try {
    TraceServerOptions taken;
    taken.port = port;
    const TraceServer second(folder_, taken);
    FAIL() << "two servers on one port";
  } catch (const FailureError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot listen on 127.0.0.1:"
                                        + std::to_string(port)));
  }
}

TEST_F(TracePage, SendsTheRunThenWhatIsWritten) {
  const TraceServer server(folder_, {});
  websocket::stream<asio::ip::tcp::socket> socket(connected(port_of(server)));
  socket.handshake("127.0.0.1", "/events");
  const auto next = [&] {
    boost::beast::flat_buffer buffer;
    socket.read(buffer);
    return nlohmann::json::parse(
      boost::beast::buffers_to_string(buffer.data()));
  };
  const auto run = next();
  EXPECT_EQ(run["type"], "run");
  const auto graph = nlohmann::json::parse(run["text"].get<std::string>());
  EXPECT_EQ(graph["name"], "run");
  const auto loading = next();
  EXPECT_EQ(loading["type"], "loading");
  EXPECT_EQ(loading["text"], "100");
  write_text(folder_.metrics_file(), "{\"step\":1}\n");
  const auto metrics = next();
  EXPECT_EQ(metrics["type"], "metrics");
  EXPECT_EQ(metrics["text"], "{\"step\":1}\n");
  std::ofstream(folder_.metrics_file(), std::ios::app) << "{\"step\":2}\n";
  EXPECT_EQ(next()["text"], "{\"step\":2}\n");
}

TEST_F(TracePage, SaysHowMuchOfTheRunItHasSentUntilThatIsAll) {
  const std::string line
    = "{\"step\":1,\"x\":\"" + std::string(999, 'y') + "\"}\n";
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += line;
  write_text(folder_.metrics_file(), text);
  const TraceServer server(folder_, {});
  websocket::stream<asio::ip::tcp::socket> socket(connected(port_of(server)));
  socket.handshake("127.0.0.1", "/events");
  std::vector<int> percents;
  std::size_t bytes = 0;
  while (percents.empty() || percents.back() < 100) {
    boost::beast::flat_buffer buffer;
    socket.read(buffer);
    const auto message
      = nlohmann::json::parse(boost::beast::buffers_to_string(buffer.data()));
    const auto said = message["text"].get<std::string>();
    if (message["type"] == "loading") {
      percents.push_back(std::stoi(said));
      EXPECT_NEAR(percents.back(),
                  100. * static_cast<double>(bytes)
                    / static_cast<double>(text.size()),
                  2);
    } else if (message["type"] == "metrics") {
      bytes += said.size();
    }
  }
  EXPECT_EQ(bytes, text.size());
  EXPECT_GT(percents.size(), 3u);
  EXPECT_TRUE(std::ranges::is_sorted(percents));
}

} // namespace
