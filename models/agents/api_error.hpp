// A mistake of a program at the endpoint of its session: a status and a
// sentence that it gets back, as OpenAI's servers answer. Never the run's
// failure.
#pragma once

#include <stdexcept>
#include <string>

namespace troupe::models {

struct ApiError : std::runtime_error {
  static constexpr unsigned bad_request = 400;

  /// `field` is the member of the request that is wrong; empty: none.
  ApiError(const std::string& sentence, std::string field = "",
           unsigned http_status = bad_request)
    : std::runtime_error(sentence),
      param(std::move(field)),
      status(http_status) {}

  std::string param;
  unsigned status;
  std::string code = {}; ///< a word that clients know; empty: the status
};

} // namespace troupe::models
