#include "troupe/detail/crash_context.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

namespace troupe {

namespace {

/// Plain memory, which a signal handler may read.
struct WorkText {
  std::array<char, 160> text;
  std::size_t size;
};
thread_local constinit WorkText work_text{};

extern "C" void troupe_on_crash(int number) {
  if (work_text.size > 0) {
    std::array<char, crash_prefix.size() + sizeof work_text.text + 1> line{};
    auto* end = std::ranges::copy(crash_prefix, line.data()).out;
    end = std::copy_n(work_text.text.data(), work_text.size, end);
    *end++ = '\n';
    [[maybe_unused]] const auto written = ::write(
      STDERR_FILENO, line.data(), static_cast<std::size_t>(end - line.data()));
  }
  std::raise(number); // with the default handler by now
}

} // namespace

CrashContext::CrashContext(std::string_view what) {
  work_text.size = std::min(what.size(), work_text.text.size());
  std::memcpy(work_text.text.data(), what.data(), work_text.size);
}

CrashContext::~CrashContext() {
  work_text.size = 0;
}

std::string_view CrashContext::now() {
  return {work_text.text.data(), work_text.size};
}

void tell_work_on_crash() {
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) {
    struct sigaction old {};
    if (::sigaction(number, nullptr, &old) != 0 || old.sa_handler != SIG_DFL)
      continue;
    struct sigaction action {};
    action.sa_handler = troupe_on_crash;
    action.sa_flags = SA_RESETHAND;
    ::sigaction(number, &action, nullptr);
  }
}

} // namespace troupe
