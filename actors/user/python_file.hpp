// The beginning of the programs that run a Python file of the user's: they load
// FILE, the first argument, and find NAME, the second, in it; a mistake is the
// last line on stderr, which becomes the error that users see.
#pragma once

#include "troupe/key.hpp"
#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace troupe::actors {

/// Returns Python text after which there are `answers` (the file to write
/// answers to), `about` (the third argument), `file`, `name`, `function`,
/// `here` and trouble_of(). `needs` is run before the file is loaded.
std::string python_file_loader(const std::string& needs);

/// Returns keys as the programs read them: [[name, "f32", "sample"], ...].
nlohmann::json keys_json(const std::vector<KeyInfo>& keys);

} // namespace troupe::actors
