#include "net/base/buffer_pool.hpp"
#include "net/base/wire.hpp"

#include <msgpack.hpp>

#include <gmock/gmock.h>

#include <cstring>
#include <random>

namespace troupe::net {
namespace {

using ::testing::ElementsAre;

const FrameLimits kWireTestLimits{1 << 20, 1 << 20};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Prelude prelude_of(const std::string& frame,
                   const FrameLimits& limits = kWireTestLimits) {
  return decode_prelude(bytes_of(frame).first<kPreludeBytes>(), limits);
}

template <class T>
T round_trip(const T& message) {
  const std::string frame = encode_frame(message, 0);
  EXPECT_EQ(prelude_of(frame).header_bytes, frame.size() - kPreludeBytes);
  return std::get<T>(decode_header(bytes_of(frame).subspan(kPreludeBytes)));
}

TEST(Wire, MessagesRoundTrip) {
  const Hello hello = round_trip(Hello{1, "secret", WorkerId(3), "g/dp", 2});
  EXPECT_EQ(hello.token, "secret");
  EXPECT_EQ(hello.from, WorkerId(3));
  EXPECT_EQ(hello.group, "g/dp");
  EXPECT_EQ(hello.rank, 2u);
  const PullRows pull = round_trip(PullRows{
    7, Incarnation(2), StepId(5), {"a", "b"}, {SampleId(9), SampleId(1)}});
  EXPECT_EQ(pull.step, StepId(5));
  EXPECT_THAT(pull.keys, ElementsAre("a", "b"));
  EXPECT_THAT(pull.samples, ElementsAre(SampleId(9), SampleId(1)));
  const RowsReply rows
    = round_trip(RowsReply{8, {{"a", DType::bf16, {1, 0, 4000000000u}}}});
  EXPECT_EQ(rows.columns[0].dtype, DType::bf16);
  EXPECT_THAT(rows.columns[0].lengths, ElementsAre(1, 0, 4000000000u));
  const PullMemory memory
    = round_trip(PullMemory{UINT64_MAX,
                            Incarnation(1),
                            11,
                            {{std::uint64_t{1} << 40, 6}, {7, 8, 9, 10}}});
  EXPECT_EQ(memory.request, UINT64_MAX);
  EXPECT_THAT(memory.parts,
              ElementsAre(MemoryRuns{std::uint64_t{1} << 40, 6, 1, 0},
                          MemoryRuns{7, 8, 9, 10}));
  const Refusal refusal
    = round_trip(Refusal{4, {Errc::stale, "who", "what", "cause"}});
  EXPECT_EQ(refusal.failure.code, Errc::stale);
  EXPECT_EQ(refusal.failure.cause, "cause");
}

TEST(Wire, SizesAreCheckedBeforeAnythingIsAllocated) {
  std::string frame = encode_frame(Welcome{}, (1 << 20) + 1);
  EXPECT_THROW(prelude_of(frame), WireError);
  frame = encode_frame(Welcome{}, 0);
  const std::uint32_t huge = UINT32_MAX;
  std::memcpy(frame.data() + 4, &huge, 4);
  EXPECT_THROW(prelude_of(frame), WireError);
  frame = encode_frame(Welcome{}, 0);
  frame[0] ^= 1;
  EXPECT_THROW(prelude_of(frame), WireError);
}

TEST(Wire, HeadersThatPromiseMoreThanTheyHoldAreErrors) {
  const std::string cases[] = {
    std::string("\xdd\xff\xff\xff\xff", 5),             // array of 2^32 - 1
    std::string("\x93\x03\x01\xdd\x7f\xff\xff\xff", 8), // of columns
    std::string("\x96\x02\x01\x00\x00\x90\xc6\xff\xff\xff\xfc", 11), // bin
    std::string("\xdb\xff\xff\xff\xff", 5),                          // text
    std::string(40, '\x91'),                       // deep nesting
    std::string("\xdf\xff\xff\xff\xff", 5),        // map
    std::string("\x91\x01\x01", 3),                // bytes after the end
    std::string("\x91\x09", 2),                    // unknown kind
    std::string("\x92\x01\x01", 3),                // one field too many
    std::string("\x92\x05\xff", 3),                // negative request
    std::string("\x96\x02\x01\x00\x00\x90\xc4\x03" // 3 bytes of samples
                "abc",
                11),
    std::string(),
  };
  for (const std::string& text : cases)
    EXPECT_THROW(decode_header(bytes_of(text)), WireError) << text.size();
}

TEST(Wire, EveryTruncationOfAHeaderIsAnError) {
  const std::string frame
    = encode_frame(PullRows{7, {}, {}, {"key"}, {SampleId(1)}}, 0);
  const auto header = bytes_of(frame).subspan(kPreludeBytes);
  for (std::size_t size = 0; size < header.size(); ++size)
    EXPECT_THROW(decode_header(header.first(size)), WireError);
}

TEST(Wire, RandomDamageGivesAMessageOrAnErrorOnly) {
  const std::string good = encode_frame(
    RowsReply{8, {{"a", DType::f32, {1, 2}}, {"b", DType::i32, {3, 4}}}}, 0);
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string bad = good.substr(kPreludeBytes);
    for (int i = 0; i < 3; ++i)
      bad[random() % bad.size()] = static_cast<char>(random());
    try {
      decode_header(bytes_of(bad));
    } catch (const WireError&) {
      // the valid message
    }
  }
}

TEST(Wire, TokensCompareByContent) {
  EXPECT_TRUE(same_token("abc", "abc"));
  EXPECT_FALSE(same_token("abc", "abd"));
  EXPECT_FALSE(same_token("abc", "ab"));
  EXPECT_FALSE(same_token("", "a"));
}

TEST(BufferPool, ReusesReturnedMemory) {
  BufferPool pool(1 << 20);
  Buffer first = pool.take(10'000);
  const auto* data = first.data();
  EXPECT_EQ(first.size_bytes(), 10'000u);
  Buffer copy = first;
  first = {};
  EXPECT_EQ(pool.idle_bytes(), 0u) << "a copy still reads it";
  copy = {};
  EXPECT_GE(pool.idle_bytes(), 10'000u);
  EXPECT_EQ(pool.take(9'999).data(), data) << "same class";
}

TEST(BufferPool, BoundsIdleMemory) {
  BufferPool pool(1 << 20);
  { Buffer large = pool.take(4 << 20); }
  EXPECT_EQ(pool.idle_bytes(), 0u);
  Buffer outlives;
  {
    BufferPool gone(1 << 20);
    outlives = gone.take(100);
  }
  outlives.as<char>()[99] = 1;
}

} // namespace
} // namespace troupe::net
