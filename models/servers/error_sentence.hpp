// The sentence in what a server answers to a request that failed: FastAPI, vLLM
// and SGLang put it into JSON at places of their own.
#pragma once

#include <string>
#include <string_view>

namespace troupe::models {

/// Returns that sentence, else the beginning of the answer.
std::string error_sentence(std::string_view body);

} // namespace troupe::models
