// Reads values of a foreign configuration by key and keeps account: a value
// that is asked for is understood, what nobody asks for is listed as not
// understood, and a default that is used is listed as assumed.
#pragma once

#include "plans/foreign/recipe.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace troupe::plans {

/// Spellings of one key, through a system's versions.
using ForeignKeys = std::initializer_list<const char*>;

class ForeignReader {
public:
  ForeignReader(const ForeignConfig& config, Recipe& recipe)
    : config_(config),
      recipe_(recipe) {}

  bool has(ForeignKeys keys) const;
  /// Returns the value of the first key that is set, else nothing. `meaning` is
  /// what it becomes, in our words.
  std::optional<std::string> find_text(ForeignKeys keys,
                                       const std::string& meaning);
  /// Throws ConfigError at the value's place unless it is a whole number.
  std::optional<std::int64_t> find_integer(ForeignKeys keys,
                                           const std::string& meaning);
  std::optional<double> find_number(ForeignKeys keys,
                                    const std::string& meaning);

  /// The same with the system's default, which is then listed as assumed.
  std::string text(ForeignKeys keys, const std::string& otherwise,
                   const std::string& meaning);
  std::int64_t integer(ForeignKeys keys, std::int64_t otherwise,
                       const std::string& meaning);
  double number(ForeignKeys keys, double otherwise, const std::string& meaning);
  /// Returns a number of devices, engines, samples, or a degree. Throws
  /// ConfigError at the value's place below `least` or beyond any cluster.
  std::uint32_t count(ForeignKeys keys, std::uint32_t otherwise,
                      const std::string& meaning, std::uint32_t least = 1);
  /// The same without a default.
  std::optional<std::uint32_t> find_count(ForeignKeys keys,
                                          const std::string& meaning,
                                          std::uint32_t least = 1);
  bool flag(ForeignKeys keys, bool otherwise, const std::string& meaning);

  /// Returns a model's name or folder. Throws ConfigError if none is set, or a
  /// variable that the file does not set.
  std::string model(ForeignKeys keys, const std::string& meaning);

  /// Copies a value into a setting of ours under its own text, if it is set.
  void copy(ForeignKeys keys, const std::string& ours);
  /// Marks values that the plan does not show, where they are not `off`.
  void not_modelled(ForeignKeys keys, const std::string& why,
                    const std::string& off = "");
  /// Marks all values whose key begins so, or ends so after a dot.
  void irrelevant(std::span<const char* const> beginnings);
  void irrelevant(ForeignKeys beginnings) {
    irrelevant(std::span(beginnings.begin(), beginnings.size()));
  }
  void irrelevant_endings(ForeignKeys endings);
  void assume(const std::string& key, const std::string& value,
              const std::string& meaning);
  /// Throws ConfigError: a number makes no sense with the others.
  [[noreturn]] void refuse(ForeignKeys keys, const std::string& expected,
                           const std::string& hint) const;

  /// Hands the account to the recipe.
  void finish();

private:
  const ForeignValue* find(ForeignKeys keys) const;
  void mark(const std::string& key, Fate fate, const std::string& meaning);

  const ForeignConfig& config_;
  Recipe& recipe_;
  std::map<std::string, std::pair<Fate, std::string>> fates_;
};

/// Returns `dividend / divisor` if that is whole, else throws ConfigError of
/// the reader for `keys`.
std::uint32_t divided(const ForeignReader& reader, ForeignKeys keys,
                      std::uint32_t dividend, std::uint32_t divisor,
                      const std::string& what);

/// Each system has a source of its own.
void read_verl(ForeignReader& reader, Recipe& recipe);
void read_openrlhf(ForeignReader& reader, Recipe& recipe);
void read_trl(ForeignReader& reader, Recipe& recipe);
void read_nemo_rl(ForeignReader& reader, Recipe& recipe);
void read_areal(ForeignReader& reader, Recipe& recipe);
void read_deepspeed_chat(ForeignReader& reader, Recipe& recipe);

} // namespace troupe::plans
