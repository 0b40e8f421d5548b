#include "models/losses/policy_options.hpp"

#include "config/base/error.hpp"

#include <array>
#include <string>
#include <utility>

namespace troupe::models {
namespace {

template <class Kind, std::size_t N>
Kind kind_of(const std::array<std::pair<const char*, Kind>, N>& words,
             const std::string& word, const char* key) {
  for (const auto& [known, kind] : words)
    if (known == word)
      return kind;
  TROUPE_CHECK(false, std::string(key) + " is '" + word + "'");
  return words.front().second;
}

} // namespace

PolicyOptions policy_options(const PolicyLossSettings& loss) {
  using enum PolicyKind;
  constexpr std::array words{
    std::pair{"ppo", ppo},       std::pair{"gspo", gspo},
    std::pair{"cispo", cispo},   std::pair{"sapo", sapo},
    std::pair{"gmpo", gmpo},     std::pair{"clip_cov", clip_cov},
    std::pair{"kl_cov", kl_cov},
  };
  return {.kind = kind_of(words, loss.kind, "algorithm.loss"),
          .dual_clip = loss.dual_clip,
          .tau_positive = loss.sapo_tau[0],
          .tau_negative = loss.sapo_tau[1],
          .cov_kl_coef = loss.cov_kl_coef,
          .ptx_coef = loss.ptx_coef};
}

CorrectionOptions correction_options(const CorrectionSettings& correction) {
  using enum CorrectionKind;
  constexpr std::array words{
    std::pair{"none", none},
    std::pair{"tis", tis},
    std::pair{"icepop", icepop},
    std::pair{"sequence_tis", sequence_tis},
    std::pair{"sequence_mask", sequence_mask},
    std::pair{"geometric_mask", geometric_mask},
    std::pair{"rejection", rejection},
  };
  return {.kind = kind_of(words, correction.kind, "algorithm.correction.kind"),
          .floor = correction.floor,
          .cap = correction.cap};
}

} // namespace troupe::models
