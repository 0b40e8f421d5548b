// Measured times of whole operations of a model, by tensor degree and tokens:
// what `troupe profile` writes into a hardware file. The cost model looks here
// first, interpolates between measured sizes (linear in tokens), and uses
// formulas where nothing near was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace troupe::plans {

enum class ProfileOp : std::uint8_t { forward, train, prefill, decode };
std::string_view to_string(ProfileOp op);

/// An inference pass, a forward with backward, the prompts of a generation up
/// to the first token, or a decode step of one model. The optimizer step is not
/// part of training here: it is among the hardware's rates.
struct ProfileEntry {
  ProfileOp op = ProfileOp::forward;
  std::uint64_t parameters = 0; ///< of the model that was measured
  std::uint32_t tp = 1;
  double tokens = 0;   ///< of one pass; decode: responses in the batch
  double median_s = 0; ///< `troupe profile` stores the lower quartile
  bool operator==(const ProfileEntry&) const = default;
};

class ProfileTable {
public:
  ProfileTable() = default;
  explicit ProfileTable(std::vector<ProfileEntry> entries);

  bool empty() const {
    return entries_.empty();
  }
  const std::vector<ProfileEntry>& entries() const {
    return entries_;
  }
  /// Multiplies the measured times of `op` by `times`.
  void scale(ProfileOp op, std::uint64_t parameters, std::uint32_t tp,
             double times);
  /// Returns the seconds of `op` over `tokens` for a model of exactly
  /// `parameters`; nullopt if fewer than two sizes were measured, or `tokens`
  /// is more than a factor of two outside the measured range.
  std::optional<double> seconds(ProfileOp op, std::uint64_t parameters,
                                std::uint32_t tp, double tokens) const;

private:
  std::vector<ProfileEntry> entries_; ///< sorted
};

/// Parses the `profile:` list of a hardware file. Throws ConfigError with
/// FILE:LINE.
ProfileTable parse_profile(const std::string& yaml, const std::string& file);
ProfileTable load_profile(const std::string& file);
std::string print(const ProfileTable& table);

} // namespace troupe::plans
