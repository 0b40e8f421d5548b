// A message to a viewer of a run: records of traces as they are in the files,
// or a text with a type.
#pragma once

#include <string>

namespace troupe::runtime {

struct FeedMessage {
  bool binary = false; ///< records of one trace; else JSON {type, text}
  std::string bytes;
};

/// Returns a text as a message; invalid UTF-8 becomes U+FFFD, never an error.
FeedMessage text_message(const std::string& type, const std::string& text);

} // namespace troupe::runtime
