#include "config/base/listen_ports.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace troupe {

ListenPorts listen_ports(const std::string& bind, const std::string& ports) {
  ListenPorts where;
  if (bind != "auto")
    where.address = bind;
  if (ports == "auto")
    return where;
  char rest = 0;
  if (std::sscanf(ports.c_str(), "%hu-%hu%c", &where.first, &where.last, &rest)
        != 2
      || where.first == 0 || where.first > where.last)
    throw ConfigError({.place = {"command line", 0},
                       .path = "--ports",
                       .expected = "FIRST-LAST or auto",
                       .got = "'" + ports + "'",
                       .hint = ""});
  return where;
}

void listen_on_first_free(const ListenPorts& where, const std::string& who,
                          const std::function<void(std::uint16_t)>& listen) {
  Failure failure;
  for (std::uint32_t port = where.first; port <= where.last; ++port) {
    try {
      return listen(static_cast<std::uint16_t>(port));
    } catch (const FailureError& error) {
      failure = error.failure();
    }
  }
  throw FailureError{
    {.code = Errc::io,
     .who = who,
     .what = where.first == 0
               ? fmt::format("cannot listen on {}", where.address)
               : fmt::format("no free port on {} in cluster.ports {}-{}",
                             where.address, where.first, where.last),
     .cause = failure.cause.empty() ? failure.what : failure.cause}};
}

} // namespace troupe
