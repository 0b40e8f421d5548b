#include "plans/memory/server_cache.hpp"

#include "config/base/error.hpp"
#include "config/settings/settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe::plans {

namespace {

constexpr double gib = 1024.0 * 1024 * 1024;
/// Cache that models/servers/vllm_start sets on CPUs where nothing else is.
constexpr double started_cache_gib = 1;
/// vLLM's own default of --gpu-memory-utilization.
constexpr double vllm_share = 0.92;
constexpr std::string_view cache_variable = "VLLM_CPU_KVCACHE_SPACE";

/// Returns the words of a command without quotes around them.
std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words;
  std::istringstream text(command);
  for (std::string word; text >> word;) {
    std::erase_if(word, [](char c) { return c == '\'' || c == '"'; });
    words.push_back(std::move(word));
  }
  return words;
}

/// Returns the value of `name`, the last one; `--a b`, `--a=b` and `--a_b=c`
/// are ways to write an option.
std::optional<std::string> option_in(const std::string& command,
                                     std::string_view name) {
  std::optional<std::string> value;
  const auto words = words_of(command);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    auto written = words[i].substr(0, equals);
    if (written.starts_with("--"))
      std::ranges::replace(written, '_', '-');
    if (written != name)
      continue;
    if (equals != std::string::npos)
      value = words[i].substr(equals + 1);
    else if (name.starts_with("--") && i + 1 < words.size())
      value = words[i + 1];
  }
  return value;
}

/// Returns a number with what follows it; nothing where text begins otherwise.
std::optional<std::pair<double, std::string>>
number_in(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str())
    return std::nullopt;
  return std::pair(number, std::string(end));
}

std::optional<double> number_of(const std::optional<std::string>& text) {
  const auto number = text ? number_in(*text) : std::nullopt;
  return number && number->second.empty() ? std::optional(number->first)
                                          : std::nullopt;
}

/// Returns a number of bytes as vLLM reads it: 4g are 4e9, 4G are 4 GiB.
std::uint64_t bytes_in(const std::string& text) {
  const auto number = number_in(text);
  if (!number || number->first <= 0 || number->second.size() > 1)
    return 0;
  double unit = 1;
  if (!number->second.empty()) {
    constexpr std::string_view decimal = "kmgt", binary = "KMGT";
    const auto letter = number->second.front();
    const bool is_binary = binary.find(letter) != std::string_view::npos;
    const auto power = (is_binary ? binary : decimal).find(letter);
    if (power == std::string_view::npos)
      return 0;
    for (std::size_t i = 0; i <= power; ++i)
      unit *= is_binary ? 1024 : 1000;
  }
  return static_cast<std::uint64_t>(number->first * unit);
}

/// Returns the share of a device's memory that an option gives, or `otherwise`.
double share_of(const std::string& command, const char* name,
                double otherwise) {
  const auto text = option_in(command, name);
  if (!text)
    return otherwise;
  const auto share = number_of(text);
  if (share && !(*share > 0 && *share <= 1))
    throw ConfigError({.place = {},
                       .path = "rollout.server_command",
                       .expected = std::string(name) + " above 0, up to 1",
                       .got = *text,
                       .hint = "0.4"});
  return share.value_or(0); // text that the shell replaces
}

/// Returns the variable as the server sees it: of its command, of the run, of
/// this process.
std::optional<std::string> cache_space(const Settings& settings) {
  const auto& command = settings.rollout.engine.server_command;
  if (const auto written = option_in(command, cache_variable))
    return written;
  const auto& env = settings.cluster.env;
  if (const auto set = env.find(std::string(cache_variable)); set != env.end())
    return set->second;
  const char* own = std::getenv(std::string(cache_variable).c_str());
  return own == nullptr ? std::nullopt : std::optional<std::string>(own);
}

ServerCache vllm_cache(const Settings& settings, std::uint64_t device_bytes) {
  const auto& command = settings.rollout.engine.server_command;
  ServerCache cache{.own_dtype
                    = option_in(command, "--kv-cache-dtype").value_or("auto")
                      != "auto"};
  if (settings.cluster.device != "gpu") {
    const auto text = cache_space(settings);
    const auto space = text ? number_of(text) : started_cache_gib;
    if (space && *space > 0)
      cache.host_bytes = static_cast<std::uint64_t>(*space * gib);
    return cache;
  }
  if (const auto bytes = option_in(command, "--kv-cache-memory-bytes")) {
    cache.device_bytes = bytes_in(*bytes); // vLLM ignores the share then
    return cache;
  }
  cache.device_limit = static_cast<std::uint64_t>(
    share_of(command, "--gpu-memory-utilization", vllm_share)
    * static_cast<double>(device_bytes));
  return cache;
}

/// SGLang's own share depends on much that it finds out itself.
ServerCache sglang_cache(const Settings& settings, std::uint64_t device_bytes) {
  const auto& command = settings.rollout.engine.server_command;
  ServerCache cache{.own_dtype
                    = option_in(command, "--kv-cache-dtype").value_or("auto")
                      != "auto"};
  const auto share = share_of(command, "--mem-fraction-static", 0);
  if (settings.cluster.device == "gpu")
    cache.device_limit
      = static_cast<std::uint64_t>(share * static_cast<double>(device_bytes));
  return cache;
}

} // namespace

ServerCache server_cache(const Settings& settings, std::uint64_t device_bytes) {
  const auto& engine = settings.rollout.engine;
  if (engine.is_own() || engine.server_command.empty())
    return {};
  return engine.kind == "sglang" ? sglang_cache(settings, device_bytes)
                                 : vllm_cache(settings, device_bytes);
}

} // namespace troupe::plans
