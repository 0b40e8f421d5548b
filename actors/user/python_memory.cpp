#include "actors/user/python_memory.hpp"

#include "config/base/error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace troupe::actors {

namespace {

constexpr std::size_t python_alignment = 64; ///< of a column: a cache line

[[noreturn]] void memory_failure(const char* what) {
  throw FailureError{{.code = Errc::io,
                      .who = "memory of Python functions",
                      .what = fmt::format("{}: {}", what, std::strerror(errno)),
                      .cause = ""}};
}

std::size_t python_element_bytes(const KeyInfo& key) {
  return key.type == KeyType::f32 || key.type == KeyType::i32 ? 4 : 1;
}

/// Returns the place after which a column begins.
std::size_t align(std::string& packed) {
  packed.resize((packed.size() + python_alignment - 1) / python_alignment
                * python_alignment);
  return packed.size();
}

const std::string& bytes_of_key(const Sample& sample, const KeyInfo& key) {
  const auto& entries = sample.entries();
  const auto at = std::ranges::find(entries, key.name, &Sample::Entry::key);
  TROUPE_CHECK(at != entries.end(), "a sample has no " + key.name);
  return at->bytes;
}

void set_bytes(Sample& sample, const KeyInfo& key, std::string bytes) {
  auto& entries = sample.entries();
  const auto at = std::ranges::find(entries, key.name, &Sample::Entry::key);
  Sample::Entry& entry = at == entries.end() ? entries.emplace_back() : *at;
  entry = {key.name, static_cast<std::uint8_t>(key.type), std::move(bytes)};
}

} // namespace

PythonMemory::PythonMemory()
  : file_(::memfd_create("troupe-python", MFD_CLOEXEC)) {
  if (file_.get() < 0)
    memory_failure("no memory file");
}

std::string PythonMemory::path() const {
  return fmt::format("/proc/{}/fd/{}", ::getpid(), file_.get());
}

nlohmann::json PythonMemory::write(std::span<const Sample> samples,
                                   std::span<const KeyInfo> keys) {
  std::string packed(python_alignment, '\0'); // an empty file has no mapping
  auto places = nlohmann::json::array();
  for (const KeyInfo& key : keys) {
    const auto lengths = align(packed);
    for (const Sample& sample : samples) {
      const auto length = static_cast<std::uint32_t>(
        bytes_of_key(sample, key).size() / python_element_bytes(key));
      packed.append(reinterpret_cast<const char*>(&length), sizeof length);
    }
    const auto data = align(packed);
    for (const Sample& sample : samples)
      packed += bytes_of_key(sample, key);
    places.push_back({{"lengths", lengths}, {"data", data}});
  }
  for (std::size_t done = 0; done < packed.size();) {
    const auto written
      = ::pwrite(file_.get(), packed.data() + done, packed.size() - done,
                 static_cast<off_t>(done));
    if (written <= 0 && errno != EINTR)
      memory_failure("values do not fit into memory");
    done += written > 0 ? static_cast<std::size_t>(written) : 0;
  }
  return places;
}

std::string PythonMemory::bytes_at(std::uint64_t begin,
                                   std::uint64_t size) const {
  struct stat found = {};
  if (::fstat(file_.get(), &found) != 0
      || begin > static_cast<std::uint64_t>(found.st_size)
      || size > static_cast<std::uint64_t>(found.st_size) - begin)
    throw std::runtime_error("its values are not where it says");
  std::string bytes(size, '\0');
  for (std::size_t done = 0; done < size;) {
    const auto got = ::pread(file_.get(), bytes.data() + done, size - done,
                             static_cast<off_t>(begin + done));
    if (got <= 0 && errno != EINTR)
      throw std::runtime_error("its values cannot be read");
    done += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return bytes;
}

void PythonMemory::read(const nlohmann::json& places,
                        std::span<const KeyInfo> keys,
                        std::span<Sample> samples) const {
  if (places.size() != keys.size())
    throw std::runtime_error("it wrote other keys than those of writes");
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const auto stored = bytes_at(places[k].at("lengths").get<std::uint64_t>(),
                                 samples.size() * sizeof(std::uint32_t));
    std::vector<std::uint32_t> lengths(samples.size());
    std::memcpy(lengths.data(), stored.data(), stored.size());
    auto begin = places[k].at("data").get<std::uint64_t>();
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const auto size = lengths[i] * python_element_bytes(keys[k]);
      set_bytes(samples[i], keys[k], bytes_at(begin, size));
      begin += size;
    }
  }
}

} // namespace troupe::actors
