// Self-play of two trained roles: both respond to each prompt, a judge compares
// the two responses, and each role learns from the debates that it won.
#include <troupe/actor.hpp>
#include <troupe/app.hpp>
#include <troupe/loss.hpp>

using troupe::keys::prompt_ids, troupe::keys::response;
constexpr troupe::Key<std::string> b_response{"b_response"};
constexpr troupe::Key<float> a_won{"a_won"};
constexpr troupe::Key<float> b_won{"b_won"};

/// Returns the number of different words in a response.
std::size_t words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find(' ', from), text.size());
    const auto word = text.substr(from, end - from);
    if (std::ranges::find(words, word) == words.end())
      words.push_back(word);
    from = end + 1;
  }
  return words.size();
}

/// Lets the richer response win; a draw has no winner.
std::tuple<float, float> judge(const std::string& a, const std::string& b) {
  const auto rich_a = words_of(a);
  const auto rich_b = words_of(b);
  return {rich_a > rich_b ? 1.F : 0.F, rich_b > rich_a ? 1.F : 0.F};
}

/// Returns the negative log-likelihood of the responses that won.
template <const troupe::Key<float>& Won>
troupe::Loss won_nll(const troupe::TrainBatch& b) {
  return {.loss = -(b[Won] * b.logprobs() * b.mask()).sum() / b.denominator()};
}

int main(int argc, char** argv) {
  troupe::Workflow w{"debate", "two roles learn from what they win"};
  w.role("a", troupe::trained);
  w.role("b", troupe::trained.like("a"));
  w.generate("a_gen", "a");
  w.generate("b_gen", "b", prompt_ids, "b_");
  w.each("judge", judge, reads(response, b_response), writes(a_won, b_won));
  w.train("a_train", "a", won_nll<a_won>, reads(a_won), mean_over(a_won));
  w.train("b_train", "b", won_nll<b_won>, reads(b_won), mean_over(b_won), "b_");
  w.metric("debate/a_won", a_won).metric("debate/b_won", b_won);
  return troupe::App{}.add(w).main(argc, argv);
}
