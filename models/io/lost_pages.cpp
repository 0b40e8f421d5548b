#include "models/io/lost_pages.hpp"

#include "config/base/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>

namespace troupe::models {

namespace {

/// A mapping and its file, in plain memory that a signal handler may read.
struct NamedMapping {
  std::atomic<std::uintptr_t> begin{0}; ///< 0: free
  std::atomic<std::size_t> size{0};
  std::array<char, 256> file{};
};

/// More than a process maps at a time; further ones end it without a name.
constinit std::array<NamedMapping, 128> mappings{};
std::mutex mappings_mutex; ///< for those who change them
struct sigaction before_lost_pages {};

const NamedMapping* mapping_at(std::uintptr_t address) {
  for (const auto& mapping : mappings)
    if (address >= mapping.begin
        && address - mapping.begin < mapping.size.load())
      return &mapping;
  return nullptr;
}

void write_text(const char* text) {
  [[maybe_unused]] const auto written
    = ::write(STDERR_FILENO, text, std::strlen(text));
}

extern "C" void troupe_on_lost_page(int number, siginfo_t* info, void*) {
  const auto* lost
    = mapping_at(reinterpret_cast<std::uintptr_t>(info->si_addr));
  if (lost == nullptr) { // something else: as if this handler were not there
    ::sigaction(number, &before_lost_pages, nullptr);
    return;
  }
  write_text("error: ");
  write_text(lost->file.data());
  write_text(": became shorter while it was read\n");
  ::_exit(static_cast<int>(ExitCode::wrong_input));
}

void watch_lost_pages() {
  struct sigaction action {};
  action.sa_sigaction = troupe_on_lost_page;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, &before_lost_pages);
}

} // namespace

void name_mapping(std::span<const std::byte> bytes, std::string_view file) {
  static std::once_flag watched;
  std::call_once(watched, watch_lost_pages);
  const std::lock_guard lock(mappings_mutex);
  const auto free = std::ranges::find_if(
    mappings, [](const auto& mapping) { return mapping.size == 0; });
  if (free == mappings.end())
    return;
  const auto kept = std::min(file.size(), free->file.size() - 1);
  std::memcpy(free->file.data(), file.data(), kept);
  free->file[kept] = '\0';
  free->begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  free->size = bytes.size();
}

void forget_mapping(std::span<const std::byte> bytes) noexcept {
  const std::lock_guard lock(mappings_mutex);
  for (auto& mapping : mappings)
    if (mapping.begin == reinterpret_cast<std::uintptr_t>(bytes.data())
        && mapping.size == bytes.size())
      mapping.size = 0;
}

} // namespace troupe::models
