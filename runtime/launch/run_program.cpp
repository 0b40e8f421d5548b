#include "runtime/launch/run_program.hpp"

#include "runtime/base/jsonl_file.hpp"

#include <future>
#include <sstream>
#include <utility>

namespace troupe::runtime {

std::optional<net::ChildExit>
run_program(net::ChildSpec program,
            std::optional<std::chrono::milliseconds> deadline) {
  std::promise<net::ChildExit> end;
  auto ended = end.get_future();
  net::ChildPool pool([&](const net::ChildExit& exit) { end.set_value(exit); });
  pool.start(std::move(program));
  if (deadline && ended.wait_for(*deadline) != std::future_status::ready)
    return std::nullopt; // the pool's destructor kills it
  return ended.get();
}

std::string last_line(const std::filesystem::path& output) {
  std::stringstream text(read_file(output));
  std::string last;
  for (std::string line; std::getline(text, line);)
    if (!line.empty())
      last = line;
  return last;
}

} // namespace troupe::runtime
