// Answers that are better than the others to their prompt become likelier, near
// a reference that is no frozen model but a moving average of the actor's own
// weights: it follows, so the actor may go far, and never fast.
#include <troupe/app.hpp>
#include <troupe/loss.hpp>

#include <numeric>

using troupe::keys::ref_logprobs, troupe::keys::response;
constexpr troupe::Key<float> variety{"variety"};
constexpr troupe::Key<float> advantage{"advantage"};

/// How many different letters an answer has.
float count_letters(const std::string& text) {
  std::string letters = text;
  std::ranges::sort(letters);
  letters.erase(std::ranges::unique(letters).begin(), letters.end());
  return static_cast<float>(letters.size());
}

/// Over the answers to one prompt.
std::vector<float> above_mean(std::span<const float> scores) {
  const float mean = std::accumulate(scores.begin(), scores.end(), 0.F)
                     / static_cast<float>(scores.size());
  std::vector<float> above;
  for (const float score : scores)
    above.push_back(score - mean);
  return above;
}

/// -advantage_t log p_t + (log p_t - log ref_t)^2 / 2, a mean over tokens.
troupe::Loss near_reference(const troupe::TrainBatch& b) {
  const at::Tensor apart = b.logprobs() - b[ref_logprobs];
  const at::Tensor gain = b[advantage] * b.logprobs();
  const at::Tensor kl = 0.5 * apart * apart * b.mask();
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
  w.train("actor_train", "actor", near_reference,
          reads(advantage, ref_logprobs));
  w.metric("ema_reference/variety", variety);
  return troupe::App{}.add(w).main(argc, argv);
}
