// Kinds of rows of a data file, by the workflow that reads them.
#pragma once

#include <cstdint>

namespace troupe {

enum class DataKind : std::uint8_t {
  prompts,    ///< `prompt`, `prompt_ids` or `messages`
  sft,        ///< `prompt` + `completion`, `text` or `messages`
  preference, ///< `prompt` (optional), `chosen`, `rejected`
  labelled,   ///< `prompt` + `completion` + `label`
  score,      ///< `ids`, `text`, `messages`, or a prompt + `response` or
              ///< `response_ids`
};

} // namespace troupe
