// How the Python programs that we start tell of mistakes in a user's file: the
// place, the error, and where its traceback is.
#pragma once

#include <string>

namespace troupe::models {

/// Returns Python text that comes before a program whose `file` is the user's:
/// `trouble_of(error, here)`, a sentence, `here` being the function's place.
std::string python_errors();
/// Returns these and a program's beginning: it loads the user's file, `file`,
/// and sets `function`, `here`, and `answers`, which is what we read. `needs`
/// is Python text that runs before the file.
std::string python_loader(const std::string& needs);

} // namespace troupe::models
