// What the log of a worker that died says of its end.
#pragma once

#include <istream>
#include <string>

namespace troupe::runtime {

struct LastWords {
  std::string work; ///< " in own actor checker .."; empty: in no user's code
  std::string said; ///< the last line that is no warning
};

LastWords last_words_of(std::istream& log);

} // namespace troupe::runtime
