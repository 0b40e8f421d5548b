// Shared parts are computed once and change nothing: the slow reference is the
// same sequences packed whole.
#include "models/engine/engine.hpp"
#include "models/kernels/attention.hpp"
#include "models/parallel/run_context.hpp"
#include "models/transformer/shared_prompt.hpp"

#include "tests/support/models/backend_support.hpp"
#include "tests/support/models/engine_support.hpp"
#include "tests/support/models/io_support.hpp"
#include "tests/support/models/reference.hpp"
#include <gmock/gmock.h>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;
using troupe::testing::first_samples;
using troupe::testing::random_floats;
using troupe::testing::random_responses;
using troupe::testing::small_shape;
using troupe::testing::TempFolder;
using TokenIds = std::vector<std::int32_t>;

std::vector<std::span<const std::int32_t>>
spans_of(const std::vector<TokenIds>& sequences) {
  return {sequences.begin(), sequences.end()};
}

TEST(PackShared, APromptIsPackedOnceAndItsResponsesContinueIt) {
  const std::vector<TokenIds> sequences{
    {1, 2, 10}, {7, 8}, {1, 2, 20, 21}, {1, 2}};
  const std::vector<std::int64_t> prompts{2, 1, 2, 2};
  const auto packed = pack_shared(spans_of(sequences), prompts);
  EXPECT_THAT(packed.tokens.ids_T, ElementsAre(1, 2, 10, 20, 21, 7, 8));
  EXPECT_THAT(packed.tokens.positions_T, ElementsAre(0, 1, 2, 2, 3, 0, 1));
  EXPECT_THAT(packed.tokens.cu_seqlens, ElementsAre(0, 2, 3, 5, 5, 7));
  EXPECT_THAT(packed.tokens.continues, ElementsAre(-1, 0, 0, 0, -1));
  EXPECT_THAT(packed.cu_seqlens, ElementsAre(0, 3, 5, 9, 11));
  EXPECT_THAT(packed.packed_L, ElementsAre(0, 1, 2, 5, 6, 0, 1, 3, 4, 0, 1));
}

TEST(PackShared, SequencesWithoutAPromptShareNothing) {
  const std::vector<TokenIds> sequences{{1, 2}, {1, 2}};
  for (const std::vector<std::int64_t>& prompts :
       {std::vector<std::int64_t>{}, std::vector<std::int64_t>{0, 0}}) {
    const auto packed = pack_shared(spans_of(sequences), prompts);
    EXPECT_THAT(packed.tokens.ids_T, ElementsAre(1, 2, 1, 2));
    EXPECT_THAT(packed.tokens.continues, ElementsAre(-1, -1));
    EXPECT_THAT(packed.packed_L, ElementsAre(0, 1, 2, 3));
  }
}

// Three responses to a prompt, packed whole and shared.
struct SharingCase {
  std::int64_t prompt;
  std::vector<std::int64_t> responses;
  float cap;
  std::int64_t window;
};

class SharedAttention : public ::testing::TestWithParam<SharingCase> {
protected:
  SharedAttention() {
    const auto& c = GetParam();
    std::vector<std::int64_t> prompts;
    for (const std::int64_t response : c.responses) {
      TokenIds& ids = sequences_.emplace_back(c.prompt, 1);
      ids.resize(static_cast<std::size_t>(c.prompt + response), 2);
      prompts.push_back(c.prompt);
    }
    packed_ = pack_shared(spans_of(sequences_), prompts);
  }
  AttentionShape shape(bool shared) const {
    AttentionShape made{4, 2, 6, packed_.cu_seqlens};
    made.cap = GetParam().cap;
    made.window = GetParam().window;
    if (shared) {
      made.cu_seqlens = packed_.tokens.cu_seqlens;
      made.continues = packed_.tokens.continues;
    }
    return made;
  }
  // Rows of T packed tokens as rows of all L.
  std::vector<float> whole(const std::vector<float>& rows_T,
                           std::int64_t width) const {
    std::vector<float> rows_L;
    for (const std::int64_t t : packed_.packed_L)
      rows_L.insert(rows_L.end(), rows_T.begin() + t * width,
                    rows_T.begin() + (t + 1) * width);
    return rows_L;
  }
  // Rows of all L, with those of one packed token added up.
  std::vector<float> folded(const std::vector<float>& rows_L,
                            std::int64_t width) const {
    std::vector<float> rows_T(
      static_cast<std::size_t>(packed_.tokens.num_tokens() * width), 0.0F);
    for (std::size_t l = 0; l < packed_.packed_L.size(); ++l)
      for (std::int64_t j = 0; j < width; ++j)
        rows_T[static_cast<std::size_t>(packed_.packed_L[l] * width + j)]
          += rows_L[l * static_cast<std::size_t>(width)
                    + static_cast<std::size_t>(j)];
    return rows_T;
  }

  std::vector<TokenIds> sequences_;
  PackedSequences packed_;
};

TEST_P(SharedAttention, HasTheBitsOfWholeSequences_I1) {
  const std::int64_t width = shape(true).columns();
  const auto qkv = random_floats(packed_.tokens.num_tokens() * width, 1);
  std::vector<float> context(packed_.tokens.num_tokens() * 24);
  attention(shape(true), qkv.data(), context.data());
  std::vector<float> want(packed_.num_tokens() * 24);
  attention(shape(false), whole(qkv, width).data(), want.data());
  EXPECT_EQ(whole(context, 24), want);
}

TEST_P(SharedAttention, GradientIsTheSumOverTheSharingSequences) {
  const std::int64_t width = shape(true).columns();
  const std::int64_t tokens = packed_.tokens.num_tokens();
  const auto qkv = random_floats(tokens * width, 2);
  const auto d_context_L = random_floats(packed_.num_tokens() * 24, 3);
  std::vector<float> context(tokens * 24);
  std::vector<float> lse(tokens * 4);
  std::vector<float> d_qkv(qkv.size(), 9.0F);
  const auto d_context = folded(d_context_L, 24);
  Backend& backend = troupe::testing::backend_under_test();
  backend.attention(shape(true), qkv.data(), context.data(), lse.data());
  backend.attention_backward(shape(true), qkv.data(), context.data(),
                             lse.data(), d_context.data(), d_qkv.data());
  backend.wait();

  const auto qkv_L = whole(qkv, width);
  std::vector<float> context_L(packed_.num_tokens() * 24);
  std::vector<float> lse_L(packed_.num_tokens() * 4);
  std::vector<float> want_L(qkv_L.size());
  attention(shape(false), qkv_L.data(), context_L.data(), lse_L.data());
  attention_backward(shape(false), qkv_L.data(), context_L.data(), lse_L.data(),
                     d_context_L.data(), want_L.data());
  EXPECT_THAT(d_qkv, Pointwise(FloatNear(2e-5F), folded(want_L, width)));
}

INSTANTIATE_TEST_SUITE_P(Cases, SharedAttention,
                         ::testing::Values(SharingCase{3, {5, 1, 9}, 0, 0},
                                           SharingCase{1, {0, 4, 0}, 0, 0},
                                           SharingCase{130, {100, 3, 70}, 0, 0},
                                           SharingCase{96, {96, 1, 2}, 0, 0},
                                           SharingCase{20, {9, 40, 3}, 30, 0},
                                           SharingCase{110, {30, 140, 5}, 0, 7},
                                           SharingCase{
                                             40, {120, 1, 2}, 0, 64}));

class SharedPromptEngine : public ::testing::Test {
protected:
  std::unique_ptr<Engine> engine(bool scalar_head) const {
    Engine::Spec spec = troupe::testing::trained_actor(folder_ / "model");
    spec.scalar_head = scalar_head;
    if (!std::filesystem::exists(spec.folder)) {
      ModelShape shape = small_shape();
      shape.scalar_head = scalar_head;
      troupe::testing::write_random_model(spec.folder, shape, 1);
    }
    auto made = std::make_unique<Engine>(spec);
    made->load_weights();
    return made;
  }
  TempFolder folder_;
};

TEST_F(SharedPromptEngine, LogprobsHaveTheBitsOfUnsharedSequences_I1) {
  const net::Rows rows = random_responses(3, 4, 75, 120, 4);
  RunContext context;
  const auto e = engine(/*scalar_head=*/false);
  const auto shared = e->infer("logprobs", rows, context, {.entropy = true});
  const auto alone = e->infer("logprobs", rows, context,
                              {.entropy = true, .micro_batch_tokens = 1});
  for (const char* key : {"logprobs", "entropy"})
    EXPECT_TRUE(
      std::ranges::equal(shared.at(key).as<float>(), alone.at(key).as<float>()))
      << key;
}

TEST_F(SharedPromptEngine, ValuesAndScoresHaveTheBitsOfUnsharedSequences_I1) {
  const net::Rows rows = random_responses(3, 4, 75, 120, 4);
  RunContext context;
  const auto e = engine(/*scalar_head=*/true);
  for (const std::string key : {"values", "scores"}) {
    const auto shared = e->infer(key, rows, context);
    const auto alone = e->infer(key, rows, context, {.micro_batch_tokens = 1});
    EXPECT_TRUE(
      std::ranges::equal(shared.at(key).as<float>(), alone.at(key).as<float>()))
      << key;
  }
}

} // namespace
} // namespace troupe::models
