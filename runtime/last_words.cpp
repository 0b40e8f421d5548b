#include "runtime/last_words.hpp"

#include "config/log.hpp"

#include "troupe/at_work.hpp"

namespace troupe::runtime {

LastWords last_words_of(std::istream& log) {
  LastWords words;
  for (std::string line; std::getline(log, line);)
    if (line.starts_with(crash_words))
      words.work = " in " + line.substr(crash_words.size());
    else if (!line.empty() && line.find(" warning ") != log::stamp_length)
      words.said = line;
  return words;
}

} // namespace troupe::runtime
