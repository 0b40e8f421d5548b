#include "config/base/error.hpp"

#include <fmt/format.h>

namespace troupe {

namespace {

std::string error_line(const ConfigError::Parts& parts) {
  return to_string(parts.place) + (parts.path.empty() ? "" : parts.path + ": ")
         + expectation(parts.expected, parts.got, parts.hint);
}

} // namespace

std::string to_string(const Place& place) {
  if (place.file.empty())
    return "";
  if (place.line == 0)
    return place.file + ": ";
  return fmt::format("{}:{}: ", place.file, place.line);
}

std::string expectation(const std::string& expected, const std::string& got,
                        const std::string& hint) {
  return fmt::format("expected {}, got {}{}{}", expected, got,
                     hint.empty() ? "" : "; try ", hint);
}

ConfigError::ConfigError(Parts parts)
  : std::runtime_error(error_line(parts)),
    parts_(std::move(parts)) {}

ConfigError::ConfigError(Place place, const std::string& sentence)
  : std::runtime_error(to_string(place) + sentence) {
  parts_.place = std::move(place);
}

PlanError::PlanError(const ConfigError::Parts& parts)
  : std::runtime_error(error_line(parts)) {}

const char* to_string(Errc code) noexcept {
  switch (code) {
  case Errc::ok:
    return "ok";
  case Errc::peer_lost:
    return "peer_lost";
  case Errc::deadline:
    return "deadline";
  case Errc::aborted:
    return "aborted";
  case Errc::stale:
    return "stale";
  case Errc::refused:
    return "refused";
  case Errc::io:
    return "io";
  case Errc::out_of_memory:
    return "out_of_memory";
  case Errc::numerics:
    return "numerics";
  case Errc::bad_input:
    return "bad_input";
  case Errc::bug:
    return "bug";
  }
  return "unknown";
}

const char* explain(Errc code) noexcept {
  switch (code) {
  case Errc::ok:
    return "nothing failed";
  case Errc::peer_lost:
    return "a process ended or stopped answering";
  case Errc::deadline:
    return "no progress within the deadline";
  case Errc::aborted:
    return "stopped because something else failed first";
  case Errc::stale:
    return "a message of an older incarnation or version";
  case Errc::refused:
    return "wrong token or a different binary";
  case Errc::io:
    return "a file or socket operation failed";
  case Errc::out_of_memory:
    return "memory ran out";
  case Errc::numerics:
    return "a number that must be finite is not";
  case Errc::bad_input:
    return "wrong settings or input data";
  case Errc::bug:
    return "a broken invariant: please report it";
  }
  return "unknown";
}

std::string to_string(const Failure& failure) {
  std::string text = fmt::format("{}: {} ({})", failure.who, failure.what,
                                 to_string(failure.code));
  if (!failure.cause.empty())
    text += "; root cause: " + failure.cause;
  return text;
}

FailureError::FailureError(Failure failure)
  : std::runtime_error(to_string(failure)),
    failure_(std::move(failure)) {}

void internal::check_failed(const char* file, int line, const char* text,
                            const std::string& message) {
  throw InvariantError(
    fmt::format("{}:{}: {} does not hold: {}", file, line, text, message));
}

} // namespace troupe
