// The server of the page: what it serves, and to which clients.
#include "config/base/error.hpp"
#include "config/trace/trace_file.hpp"
#include "config/trace/trace_writer.hpp"
#include "net/base/defaults.hpp"
#include "runtime/page/trace_server.hpp"

#include "tests/support/net/strangers.hpp"
#include "tests/support/runtime/page_client.hpp"
#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace troupe;
using namespace troupe::runtime;
using ::testing::HasSubstr;
using ::testing::Not;
using troupe::test::TempFolder;
using troupe::test::write_text;

namespace {

namespace http = boost::beast::http;
using test::PageClient;
using Reply = PageClient::Reply;

class TraceServerTest : public ::testing::Test {
protected:
  TraceServerTest() : folder_(temp_.path() / "run") {
    folder_.create();
  }
  static nlohmann::json next(PageClient::Events& events) {
    return nlohmann::json::parse(PageClient::next(events));
  }

  TempFolder temp_;
  RunFolder folder_;
};

TEST_F(TraceServerTest, ThePageIsOneDocumentThatLoadsNothing) {
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  const Reply answer = client.get("/" + client.query());
  EXPECT_EQ(answer.result(), http::status::ok);
  EXPECT_THAT(answer.body(), HasSubstr("class Timeline"));
  EXPECT_THAT(answer.body(), HasSubstr("--accent"));
  EXPECT_THAT(answer.body(), Not(HasSubstr("/*SCRIPT*/")));
  EXPECT_THAT(answer.body(), Not(HasSubstr("src=\"")));
  EXPECT_EQ(client.get("/other" + client.query()).result(),
            http::status::not_found);
}

TEST_F(TraceServerTest, ThePageIsRefusedToOtherSites) {
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  EXPECT_EQ(client.get("/", "evil.example").result(), http::status::forbidden);
  EXPECT_EQ(client.get("/" + client.query(), "127.0.0.1", "http://evil.example")
              .result(),
            http::status::forbidden);
}

TEST_F(TraceServerTest, ThePageNeedsItsTokenOnLoopbackToo) {
  const TraceServer server(folder_, {.token = "s3cret"});
  EXPECT_THAT(server.url(), ::testing::EndsWith("/?token=s3cret"));
  EXPECT_THAT(server.address(), Not(HasSubstr("s3cret")));
  PageClient client(server.url());
  for (const std::string target :
       {"/", "/?token=", "/?token=wrong", "/?token=s3cretx", "/?xtoken=s3cret",
        "/?token=s3cre", "/events"})
    EXPECT_EQ(client.get(target).result(), http::status::forbidden) << target;
  for (const std::string target : {"/?token=s3cret", "/?a=b&token=s3cret"})
    EXPECT_EQ(client.get(target, "any.host").result(), http::status::ok)
      << target;
  EXPECT_THROW(PageClient(server.address()).events(),
               boost::system::system_error);
}

TEST_F(TraceServerTest, APageOfThisHostGetsTheEventsOfOneWhoseTokenItKnows) {
  const TraceServer server(folder_, {.token = "s3cret"});
  PageClient client(server.url());
  const auto host = "127.0.0.1:" + std::to_string(client.port());
  const auto ask = [&](const std::string& target, const std::string& origin,
                       const std::string& cookie = "") {
    return client.get(target, host, origin, cookie).result();
  };
  const auto cookie = "troupe_" + std::to_string(client.port()) + "=s3cret";
  // no upgrade to a WebSocket: what is not refused is not found
  for (const std::string origin :
       {"http://127.0.0.1:9", "http://localhost:9", "http://localhost"})
    EXPECT_EQ(ask("/events?token=s3cret", origin), http::status::not_found);
  EXPECT_EQ(ask("/events", "http://" + host, cookie), http::status::not_found);
  for (const std::string target : {"/events", "/events?token=s3cre"})
    EXPECT_EQ(ask(target, "http://127.0.0.1:9", cookie),
              http::status::forbidden)
      << "a cookie is sent by itself";
  EXPECT_EQ(ask("/?token=s3cret", "http://127.0.0.1:9"),
            http::status::forbidden);
  for (const std::string origin :
       {"http://evil.example", "https://127.0.0.1:9", "null",
        "http://127.0.0.1.evil.example:9", "http://evil.example:127"})
    EXPECT_EQ(ask("/events?token=s3cret", origin), http::status::forbidden)
      << origin;
}

TEST_F(TraceServerTest, ThePageRunsItsOwnScriptOnly) {
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  std::set<std::string> nonces;
  for (int i = 0; i < 2; ++i) {
    const Reply answer = client.get("/" + client.query());
    const std::string rule(answer["Content-Security-Policy"]);
    EXPECT_THAT(rule, HasSubstr("default-src 'none'; "));
    const std::string opening = "script-src 'nonce-";
    const auto at = rule.find(opening) + opening.size();
    const auto nonce = rule.substr(at, rule.find('\'', at) - at);
    nonces.insert(nonce);
    EXPECT_THAT(rule, Not(HasSubstr("unsafe-eval")));
    EXPECT_THAT(answer.body(), HasSubstr(" nonce=\"" + nonce + '"'));
  }
  EXPECT_EQ(nonces.size(), 2U) << "a new one for each visit";
  EXPECT_EQ(nonces.begin()->size(), 32U);
}

TEST_F(TraceServerTest, AViewerGetsTheSamplesOfAnOldStepItAsksFor) {
  const std::string rest
    = ",\"response\":\"" + std::string(99'999, 'x') + "\"}\n";
  std::string text;
  for (int step = 1; step <= 90; ++step) // 9 MB, of which 4 MB are sent
    text += "{\"step\":" + std::to_string(step) + rest;
  write_text(folder_.samples_file(), text);
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  auto events = client.events();
  const auto next_of = [&](const std::string& type) {
    for (;;)
      if (const auto message = next(events); message["type"] == type)
        return message["text"].get<std::string>();
  };
  EXPECT_THAT(next_of("samples"), Not(HasSubstr("\"step\":3,")));
  for (const std::string wish : {R"({"samples":3})", R"({"samples":91})"})
    events.write(boost::asio::buffer(wish));
  EXPECT_EQ(next_of("samples of 3"), "{\"step\":3" + rest);
  EXPECT_EQ(next_of("samples of 91"), "");
}

TEST_F(TraceServerTest, EachPageHasATokenOfItsOwn) {
  const TraceServer one(folder_, {});
  const TraceServer other(folder_, {});
  EXPECT_EQ(one.token().size(), 64U);
  EXPECT_NE(one.token(), other.token());
}

TEST_F(TraceServerTest, AVisitGetsACookieThatStandsForTheToken) {
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  const std::string given(client.get("/" + client.query())["Set-Cookie"]);
  EXPECT_THAT(given, HasSubstr("; HttpOnly; SameSite=Strict"));
  const auto cookie = given.substr(0, given.find(';'));
  EXPECT_THAT(cookie, HasSubstr(std::to_string(client.port())));
  EXPECT_EQ(client.get("/", "127.0.0.1", "", "a=b; " + cookie).result(),
            http::status::ok);
  EXPECT_EQ(client.get("/", "127.0.0.1", "", cookie + "x").result(),
            http::status::forbidden);
}

TEST_F(TraceServerTest, NamesThePortInUse) {
  const TraceServer server(folder_, {});
  const auto port = PageClient(server.url()).port();
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

TEST_F(TraceServerTest, SendsTheRunThenNewEvents) {
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  auto events = client.events();
  const auto run = next(events);
  EXPECT_EQ(run["type"], "run");
  const auto graph = nlohmann::json::parse(run["text"].get<std::string>());
  EXPECT_EQ(graph["name"], "run");
  const auto loading = next(events);
  EXPECT_EQ(loading["type"], "loading");
  EXPECT_EQ(loading["text"], "100");
  write_text(folder_.metrics_file(), "{\"step\":1}\n");
  const auto metrics = next(events);
  EXPECT_EQ(metrics["type"], "metrics");
  EXPECT_EQ(metrics["text"], "{\"step\":1}\n");
  std::ofstream(folder_.metrics_file(), std::ios::app) << "{\"step\":2}\n";
  EXPECT_EQ(next(events)["text"], "{\"step\":2}\n");
}

TEST_F(TraceServerTest, RunsToCompareWithHaveAddressesOfTheirOwn) {
  RunFolder other(temp_.path() / "other");
  other.create();
  write_text(other.config_file(), "run:\n  name: other\n");
  const TraceServer server(folder_, {.beside = {other}});
  PageClient client(server.url());
  auto events = client.events();
  EXPECT_EQ(next(events)["type"], "run");
  const auto beside = next(events);
  EXPECT_EQ(beside["type"], "beside");
  EXPECT_EQ(beside["text"], "[\"other\"]");
  auto second = client.events("&run=1");
  EXPECT_THAT(next(second)["text"].get<std::string>(),
              HasSubstr("\"name\":\"other\""));
  const auto settings = next(second);
  EXPECT_EQ(settings["type"], "settings");
  EXPECT_EQ(settings["text"], "run:\n  name: other\n");
  EXPECT_THROW(client.events("&run=2"), boost::system::system_error);
}

TEST_F(TraceServerTest, SilentStrangersCostFewDescriptorsAndAreClosed) {
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  const auto before = test::num_descriptors();
  const test::SilentStrangers strangers(client.port(), 4 * net::kMaxUngreeted);
  EXPECT_EQ(client.get("/" + client.query()).result(), http::status::ok);
  EXPECT_LE(test::num_descriptors() - before, 5 * net::kMaxUngreeted + 8);
  EXPECT_EQ(strangers.num_closed(2 * net::kGreetWithin),
            4 * net::kMaxUngreeted);
}

TEST_F(TraceServerTest, AViewerGetsTheEventsOfAStepItAsksFor) {
  trace::TraceWriter writer(folder_.trace_folder() / "master_01.events",
                            "master", 0, 0);
  writer.add_texts({{"device 0", trace::TrackKind::device}}, {"gen"});
  for (std::uint32_t step = 0; step < 40; ++step) {
    std::vector<trace::Event> events(50'000); // 2.4 MB
    for (auto& event : events)
      event.step = step;
    writer.write(events, 0);
  }
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  auto events = client.events();
  trace::TraceFile seen;
  std::string part;
  const auto until_loaded = [&] {
    for (;;) {
      const auto bytes = PageClient::next(events);
      if (!events.got_text()) {
        trace::append_trace(seen, bytes.substr(4), "page");
        continue;
      }
      const auto message = nlohmann::json::parse(bytes);
      if (message["type"] == "part")
        part = message["text"];
      if (message["type"] == "loading" && message["text"] == "100")
        return;
    }
  };
  until_loaded();
  EXPECT_EQ(seen.events.back().step, 39U);
  EXPECT_GT(seen.events.front().step, 10U);
  for (const std::string bad : {"", "7", "{}", "{\"step\":-1}", "[\"step\"]",
                                "{\"step\":4294967296}", "{\"step\":\"a\"}"})
    events.write(boost::asio::buffer(bad)); // ignored
  seen = {};
  events.write(boost::asio::buffer(std::string("{\"step\":5}")));
  until_loaded();
  const auto shown = nlohmann::json::parse(part);
  EXPECT_EQ(shown["step"], 5);
  EXPECT_LE(seen.events.front().step + 1, shown["first"].get<unsigned>());
  EXPECT_LE(shown["first"].get<unsigned>(), 5U);
  EXPECT_LE(shown["last"].get<unsigned>(), seen.events.back().step + 1);
  EXPECT_EQ(std::ranges::count(seen.events, 4U, &trace::Event::step), 50'000);
  seen = {};
  events.write(boost::asio::buffer(std::string("{\"step\":0}")));
  until_loaded();
  EXPECT_EQ(part, "null");
  EXPECT_EQ(seen.events.back().step, 39U);
}

TEST_F(TraceServerTest, AViewerThatSendsMuchIsSentAway) {
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  auto events = client.events();
  const auto send_and_read = [&] { // sent away while or after it sends
    events.write(boost::asio::buffer(std::string(100'000, 'x')));
    for (;;)
      PageClient::next(events);
  };
  EXPECT_THROW(send_and_read(), boost::system::system_error);
}

TEST_F(TraceServerTest, ReportsItsProgressUntilTheRunIsSent) {
  const std::string line
    = "{\"step\":1,\"x\":\"" + std::string(999, 'y') + "\"}\n";
  std::string text;
  for (int i = 0; i < 5000; ++i)
    text += line;
  write_text(folder_.metrics_file(), text);
  const TraceServer server(folder_, {});
  PageClient client(server.url());
  auto events = client.events();
  std::vector<int> percents;
  std::size_t bytes = 0;
  while (percents.empty() || percents.back() < 100) {
    const auto message = next(events);
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
