#pragma once
// How much longer a test's limits of time are under sanitizers, which
// instrument every access to memory.

namespace troupe::testing {

#ifdef __SANITIZE_ADDRESS__
constexpr int sanitizer_slowdown = 6; // seen: 6 s without, 35 s with
#else
constexpr int sanitizer_slowdown = 1;
#endif

} // namespace troupe::testing
