// The demo's language: questions about a dish somewhere, and short reviews as
// answers. A review has four marks, each good, neutral or bad and independent
// of the others, so a language model can learn the form from a mixed corpus, a
// reward model can learn to add up the marks, and PPO has room to improve.
#pragma once

#include "examples/tiny/seeded.hpp"

#include <string>
#include <vector>

namespace tiny {

/// A question: the text of a prompt, and the dish that it asks about.
struct Question {
  std::string text; ///< "Question: How was the soup at the mill?\nAnswer:"
  std::string dish; ///< "soup"
};

/// An answer to a question.
struct Review {
  std::string text; ///< begins with a space, ends with a full stop
  int kindness = 0; ///< sum of four marks in {-1, 0, 1}
};

/// Frequencies of bad and neutral marks; the rest is good.
struct Mix {
  double bad;
  double neutral;
};
inline constexpr Mix grumpy_mix{0.55, 0.2}; ///< of the texts: room to improve
inline constexpr Mix even_mix{0.34, 0.32};  ///< of the pairs: every difference

/// Returns all questions in a fixed order.
std::vector<Question> all_questions();

/// Writes a review of the dish: marks by `mix`, all words of one mark equally
/// often.
Review write_review(const Question& question, const Mix& mix, Seeded& random);

} // namespace tiny
