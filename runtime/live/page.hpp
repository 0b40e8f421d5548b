// The page of `trace.port` and `troupe trace serve`: one self-contained HTML
// document, put together at build time from the files of runtime/web.
#pragma once

#include <string_view>

namespace troupe::runtime {

std::string_view trace_page();

} // namespace troupe::runtime
