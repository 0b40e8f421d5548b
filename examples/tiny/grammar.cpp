#include "examples/tiny/grammar.hpp"

namespace tiny {

namespace {

using Words = std::vector<std::string>;

/// The words for one mark, by its value.
struct Mark {
  Words bad, neutral, good;
};

const Words dishes{"soup",  "bread", "cake", "coffee", "salad", "pizza",
                   "curry", "pie",   "stew", "rice",   "fish",  "tea"};
const Words places{"the harbour", "the mill",   "the bridge",  "the garden",
                   "the market",  "the castle", "the station", "the lake",
                   "the tower",   "the school", "the museum",  "the park"};
const Words askings{"How was the ", "Did you like the ",
                    "What do you say about the "};
const Words people{"waiter", "cook", "owner", "host"};

const Mark taste{{"stale", "awful", "bland", "burnt", "sour"},
                 {"plain", "usual", "simple"},
                 {"tasty", "lovely", "fresh", "superb", "perfect"}};
const Mark manner{{"rude", "grumpy", "careless", "lazy"},
                  {"busy", "quiet", "young"},
                  {"kind", "friendly", "patient", "cheerful"}};
const Mark feeling{{"angry", "sad", "cheated", "sick"},
                   {"full", "sleepy", "older"},
                   {"happy", "glad", "welcome", "proud"}};
const Mark verdict{{"I will never come again", "All my friends stay away"},
                   {"I may come again", "Some of my friends go"},
                   {"I will surely come again", "All my friends must go"}};

/// Returns a word for the mark and adds its value to the review's kindness.
std::string say(const Mark& mark, const Mix& mix, Review& review,
                Seeded& random) {
  const double draw = random.uniform();
  if (draw < mix.bad) {
    review.kindness -= 1;
    return random.one_of(mark.bad);
  }
  if (draw < mix.bad + mix.neutral)
    return random.one_of(mark.neutral);
  review.kindness += 1;
  return random.one_of(mark.good);
}

} // namespace

std::vector<Question> all_questions() {
  std::vector<Question> questions;
  for (const std::string& asking : askings)
    for (const std::string& dish : dishes)
      for (const std::string& place : places) {
        std::string text
          = "Question: " + asking + dish + " at " + place + "?\nAnswer:";
        questions.push_back({std::move(text), dish});
      }
  return questions;
}

Review write_review(const Question& question, const Mix& mix, Seeded& random) {
  Review review;
  const auto word
    = [&](const Mark& mark) { return say(mark, mix, review, random); };
  review.text = " The " + question.dish + " was " + word(taste);
  review.text += " and " + word(taste) + ".";
  std::vector<int> sentences{0, 1, 2}; // two of these three, in any order
  random.shuffle(sentences);
  for (int i : {sentences[0], sentences[1]}) {
    if (i == 0) {
      review.text += " The " + random.one_of(people) + " was ";
      review.text += word(manner) + ".";
    } else if (i == 1) {
      review.text += " I felt " + word(feeling) + ".";
    } else {
      review.text += " " + word(verdict) + ".";
    }
  }
  return review;
}

} // namespace tiny
