// Makes responses that are better than the others to their prompt more likely,
// near a reference that is not frozen but the exponential moving average of the
// actor's weights: it follows, so the actor may move far, but never fast. The
// strength of the pull is carried from step to step.
#include <troupe/app.hpp>
#include <troupe/loss.hpp>

#include <numeric>

using troupe::keys::logprobs, troupe::keys::ref_logprobs;
using troupe::keys::response;
constexpr troupe::Key<float> variety{"variety"};
constexpr troupe::Key<float> advantage{"advantage"};
constexpr troupe::Key<float> pull{"pull"};
// name, and value in the first step
constexpr troupe::Carried<float> strength{"strength", 1.F};

/// Returns the number of different letters in a response.
float count_letters(const std::string& text) {
  std::string letters = text;
  std::ranges::sort(letters);
  letters.erase(std::ranges::unique(letters).begin(), letters.end());
  return static_cast<float>(letters.size());
}

/// Returns each score minus the mean over the responses to one prompt.
std::vector<float> above_mean(std::span<const float> scores) {
  const float mean = std::accumulate(scores.begin(), scores.end(), 0.F)
                     / static_cast<float>(scores.size());
  std::vector<float> above;
  for (const float score : scores)
    above.push_back(score - mean);
  return above;
}

using Tokens = std::span<const float>;
/// Pulls each sample as set by the previous step; increases the next step's
/// pull if these responses moved far, decreases it if they stayed near.
std::tuple<std::vector<float>, float>
steer(std::span<const Tokens> ours, std::span<const Tokens> theirs, float now) {
  float apart = 0;
  for (std::size_t i = 0; i < ours.size(); ++i)
    for (std::size_t t = 0; t < ours[i].size(); ++t)
      apart = std::max(apart, std::abs(ours[i][t] - theirs[i][t]));
  const float next = apart > 0.5F ? now * 1.25F : now / 1.25F;
  return {std::vector<float>(ours.size(), now), next};
}

/// Returns the mean of -advantage_t log p_t + pull (log p_t - log ref_t)^2 / 2.
troupe::Loss near_reference(const troupe::TrainBatch& b) {
  const at::Tensor apart = b.logprobs() - b[ref_logprobs];
  const at::Tensor gain = b[advantage] * b.logprobs();
  const at::Tensor kl = 0.5 * b[pull] * apart * apart * b.mask();
  return {.loss = (kl - gain * b.mask()).sum() / b.denominator(),
          .sums = {{"kl", kl.sum()}}};
}

int main(int argc, char** argv) {
  troupe::Workflow w{"ema_reference", "a policy near its own moving average"};
  w.role("actor", troupe::trained);
  w.role("ref", troupe::frozen.like("actor").follows("actor"));
  w.generate("actor_gen", "actor");
  w.infer("ref_inf", "ref", troupe::Infer::logprobs, writes(ref_logprobs));
  w.each("letters", count_letters, reads(response), writes(variety));
  w.groups("above_mean", above_mean, reads(variety), writes(advantage));
  w.batch("steer", steer, reads(logprobs, ref_logprobs, strength),
          writes(pull, strength));
  w.train("actor_train", "actor", near_reference,
          reads(advantage, ref_logprobs, pull));
  w.metric("ema_reference/variety", variety);
  w.metric("ema_reference/strength", strength);
  return troupe::App{}.add(w).main(argc, argv);
}
