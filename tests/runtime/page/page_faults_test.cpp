// Faults of one connection, which end neither the page nor the run.
#include "runtime/page/http_server.hpp"
#include "runtime/page/trace_server.hpp"

#include "tests/support/runtime/page_client.hpp"
#include "tests/support/runtime/temp_folder.hpp"
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>

namespace troupe::runtime {
namespace {

namespace http = boost::beast::http;
using test::PageClient;
using test::TempFolder;
using test::write_text;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PageFaults, FilesInTheLogFolderThatAreNoLogsOfWorkersAreLeftAlone) {
  const TempFolder temp;
  const RunFolder folder{temp.path() / "run"};
  folder.create();
  const auto logs = folder.root() / "logs";
  write_text(logs / "backup_20251124153000.log", "x\n");
  write_text(logs / "worker_20251124153000.log", "x\n");
  write_text(logs / "worker_03.log", "hello\n");
  const TraceServer server(folder, {});
  PageClient client(server.url());
  auto events = client.events();
  std::string type;
  while (type != "log worker 3") {
    type = nlohmann::json::parse(PageClient::next(events))["type"];
    EXPECT_THAT(type, Not(HasSubstr("worker 2")));
  }
}

TEST(PageFaults, ARunNameThatIsNoUtf8IsShownAsFarAsItIs) {
  const TempFolder temp;
  const RunFolder folder{temp.path() / "run\xff"};
  folder.create();
  const TraceServer server(folder, {});
  PageClient client(server.url());
  auto events = client.events();
  EXPECT_THAT(PageClient::next(events), HasSubstr("run\xef\xbf\xbd"));
}

TEST(PageFaults, AHandlerThatThrowsEndsItsConnectionOnly) {
  const HttpServer server(
    "test", "127.0.0.1", 0, [](const HttpRequest& request, auto&) {
      if (path_of(request) == "/bad")
        throw std::out_of_range("no such thing");
      return http_reply(request, http::status::ok, "text/plain", "fine");
    });
  PageClient client("http://127.0.0.1:" + std::to_string(server.port()) + "/");
  EXPECT_THROW(client.get("/bad"), boost::system::system_error);
  EXPECT_EQ(client.get("/good").body(), "fine");
}

} // namespace
} // namespace troupe::runtime
