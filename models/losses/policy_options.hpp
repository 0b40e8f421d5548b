// Which policy loss and which correction a run uses, as losses read them: the
// words of `algorithm.loss` and `algorithm.correction` as enums, and their
// numbers.
#pragma once

#include "config/settings/settings_types.hpp"

#include <cstdint>

namespace troupe::models {

/// `algorithm.loss`; each has a file of its name in this folder.
enum class PolicyKind : std::uint8_t {
  ppo,
  gspo,
  cispo,
  sapo,
  gmpo,
  clip_cov,
  kl_cov
};

struct PolicyOptions {
  PolicyKind kind = PolicyKind::ppo;
  double dual_clip = 0; ///< ppo; 0 = off
  double tau_positive = PolicyLossSettings{}.sapo_tau[0];
  double tau_negative = PolicyLossSettings{}.sapo_tau[1];
  double cov_kl_coef = PolicyLossSettings{}.cov_kl_coef;
  double ptx_coef = PolicyLossSettings{}.ptx_coef;
};

/// `algorithm.correction.kind`; see correction.hpp.
enum class CorrectionKind : std::uint8_t {
  none,
  tis,
  icepop,
  sequence_tis,
  sequence_mask,
  geometric_mask,
  rejection
};

struct CorrectionOptions {
  CorrectionKind kind = CorrectionKind::none;
  double floor = CorrectionSettings{}.floor;
  double cap = CorrectionSettings{}.cap;
};

/// Reads the words of the settings, which the settings' table has checked.
/// Throws InvariantError for others.
PolicyOptions policy_options(const PolicyLossSettings& loss);
CorrectionOptions correction_options(const CorrectionSettings& correction);

} // namespace troupe::models
