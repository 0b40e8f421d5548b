// The demo's language: questions about a dish somewhere, and short reviews as
// answers. A review has four marks, each good, neutral or bad and independent
// of the others, so a language model can learn the form from a mixed corpus, a
// reward model can learn to add up the marks, and PPO has room to improve.
#pragma once

#include "examples/tiny/seeded.hpp"

#include <string>
#include <vector>

namespace tiny {

/// A question: what a prompt says, and the dish it asks about.
struct Question {
  std::string text; ///< "Question: How was the soup at the mill?\nAnswer:"
  std::string dish; ///< "soup"
};

/// An answer to a question.
struct Review {
  std::string text; ///< begins with a space, ends with a full stop
  int kindness = 0; ///< sum of four marks in {-1, 0, 1}
};

/// How often a mark is bad or neutral; the rest is good.
struct Mix {
  double bad;
  double neutral;
};
inline constexpr Mix grumpy_mix{0.55, 0.2}; ///< of the texts: room to improve
inline constexpr Mix even_mix{0.34, 0.32};  ///< of the pairs: every difference

/// Every question there is, in a fixed order.
std::vector<Question> all_questions();

/// A review of the dish: marks by `mix`, words of one mark alike often.
Review write_review(const Question& question, const Mix& mix, Seeded& random);

} // namespace tiny
