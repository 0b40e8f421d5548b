// Self-play: one model plays both sides of a game and learns from each game
// that it wins or loses. Two players take 1 to 3 stones from a pile in turn;
// the one that takes the last stone wins, an invalid move loses.
#include <troupe/actor.hpp>
#include <troupe/app.hpp>
#include <troupe/loss.hpp>

using troupe::keys::prompt, troupe::keys::sequence_ids, troupe::keys::turn;
/// Worth of each token: 1 in the moves of the winner, -1 in the other's.
constexpr troupe::Key<float, troupe::per_token> worth{"worth"};
constexpr troupe::Key<float> legal{"legal"};
constexpr troupe::Key<float> moves{"moves"};

struct Referee {
  static constexpr const char* name = "referee";
  std::size_t games = 0;
};
using Self = troupe::SampleActor::stateful_pointer<Referee>;

/// Returns 2 for "take 2" and a line break; 0: no move.
int stones_of(const std::string& said) {
  for (int stones = 1; stones <= 3; ++stones)
    if (said == "take " + std::to_string(stones) + "\n")
      return stones;
  return 0;
}

/// Returns the worth of each token; `ends` is the number of tokens before the
/// first move and after each.
std::vector<float> worth_of(const std::vector<std::size_t>& ends,
                            bool last_wins) {
  std::vector<float> tokens(ends.back(), 0.F);
  for (std::size_t i = 1; i < ends.size(); ++i) {
    const bool by_last = (ends.size() - 1 - i) % 2 == 0;
    std::fill(tokens.begin() + static_cast<std::ptrdiff_t>(ends[i - 1]),
              tokens.begin() + static_cast<std::ptrdiff_t>(ends[i]),
              by_last == last_wins ? 1.F : -1.F);
  }
  return tokens;
}

troupe::Task<troupe::Sample> play(Self self, troupe::Model model,
                                  troupe::Sample sample) {
  ++self->state.games;
  int left = std::atoi(sample[prompt].c_str() + sizeof "pile");
  std::vector ends{sample[sequence_ids].size()};
  bool fair = true;
  while (fair && left > 0) {
    sample = co_await model.extend(std::move(sample), {.max_tokens = 8});
    ends.push_back(sample[sequence_ids].size());
    const int stones = stones_of(sample[turn]);
    fair = stones > 0 && stones <= left;
    left -= stones;
    if (fair && left > 0)
      sample.append("left " + std::to_string(left) + "\n");
  }
  sample.set(worth, worth_of(ends, fair));
  co_return sample.set(legal, fair ? 1.F : 0.F)
    .set(moves, static_cast<float>(ends.size() - 1));
}
troupe::SampleActor::behavior_type referee(Self self, troupe::Model model) {
  return {
    [=](troupe::run_atom, troupe::Sample x) -> caf::result<troupe::Sample> {
      return play(self, model, std::move(x));
    }};
}

/// Increases the probability of winning moves, decreases that of losing ones.
troupe::Loss policy_gradient(const troupe::TrainBatch& b) {
  return {.loss
          = -(b[worth] * b.logprobs() * b.mask()).sum() / b.denominator()};
}

int main(int argc, char** argv) {
  troupe::Workflow w{"self_play", "one model plays both sides of a game"};
  w.role("player", troupe::trained);
  w.converse("play", "player", referee, reads(prompt),
             writes(worth, legal, moves));
  w.train("player_train", "player", policy_gradient, reads(worth));
  w.metric("game/legal", legal).metric("game/moves", moves);
  return troupe::App{}.spawnable("referee", referee).add(w).main(argc, argv);
}
