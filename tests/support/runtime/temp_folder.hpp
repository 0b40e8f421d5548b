// tests/support/temp_folder.hpp under the name that tests of runtime use.
#pragma once

#include "tests/support/temp_folder.hpp"

#include <sstream>

namespace troupe::test {

using support::read_text;
using support::TempFolder;
using support::write_text;

} // namespace troupe::test
