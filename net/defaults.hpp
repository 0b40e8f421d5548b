// Constants that only net knows, each with its unit and the reason for its
// value; deadlines and frame limits are in config/defaults.hpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::net {

/// How often a waiter looks whether its peers live; a lost peer is noticed
/// within two such slices.
inline constexpr std::chrono::milliseconds kLivenessSlice{50};

/// Before the token was shown nobody may make us allocate more than this.
inline constexpr std::uint32_t kMaxHelloBytes = 4096;
/// Connections that one process accepts at a time: 1,000 workers and spare.
inline constexpr std::size_t kMaxConnections = 2048;

/// Weights are pulled in pieces of this size, so that rows on the same
/// connection need not wait for gigabytes.
inline constexpr std::uint64_t kMemoryChunkBytes = 8u << 20;
/// Runs of bytes that one request asks for: some ms of short ones, and a bound
/// on what a request makes its holder remember.
inline constexpr std::uint64_t kMaxRequestRuns = 8192;
/// Requests on the way to one peer; enough to keep its socket full.
inline constexpr std::size_t kMaxRequestsInFlight = 8;
/// Most bytes asked of the kernel in one read: asio's own 64 KiB costs a third
/// of the loopback rate.
inline constexpr std::size_t kMaxReadBytes = 4u << 20;
/// Most bytes that one read of an encrypted connection takes from the kernel:
/// several records of 16 KiB.
inline constexpr std::size_t kTlsReadBytes = 128u << 10;
/// Most bytes that are encrypted before they go to the kernel in one write: a
/// write a record costs more than its encryption. The records stay in a cache.
inline constexpr std::size_t kTlsWriteBytes = 256u << 10;
/// What one record holds: shorter pieces are gathered into one.
inline constexpr std::size_t kTlsRecordBytes = 16u << 10;
/// Bytes that one key encrypts: a third of what keeps AES-GCM's proven margin
/// (2^24.5 records, RFC 8446 5.5).
inline constexpr std::uint64_t kTlsKeyBytes = std::uint64_t{128} << 30;
/// A certificate is worth no more than the processes that hold its key, which
/// end with the run: longer than any run, from a day before for clocks that
/// differ.
inline constexpr int kCertificateDaysBefore = 1;
inline constexpr int kCertificateDaysAfter = 365;
/// Received blocks that wait for reuse; above this they are freed.
inline constexpr std::uint64_t kMaxIdleBufferBytes = std::uint64_t{512} << 20;

/// Messages that one end of a channel may have on their way: more than a
/// pipeline has micro-batches in flight, and a bound on memory.
inline constexpr std::size_t kMaxChannelMessages = 64;

/// Part of a buffer that members in different processes exchange at a time:
/// two of these a member stay in the caches, and a barrier is small beside it.
inline constexpr std::size_t kSharedChunkBytes = 1u << 20;
/// Part of a buffer that travels along a chain of sockets at a time.
inline constexpr std::size_t kChainChunkBytes = 256u << 10;

/// Programs of users that answer lines: what one may use at most, so that a
/// leak ends the program and not the machine.
inline constexpr std::uint64_t kProgramMemoryBytes = std::uint64_t{16} << 30;
inline constexpr std::uint64_t kProgramFileBytes = std::uint64_t{4} << 30;
/// A longer answer is none.
inline constexpr std::size_t kMaxAnswerBytes = 16u << 20;
/// From its last word on a pipe to its end.
inline constexpr std::chrono::milliseconds kProgramEndsWithin{500};
/// Ends in a row, before any answer, after which it is not started again.
inline constexpr std::uint32_t kProgramStarts = 3;
/// Before a request is sent again; doubled each time.
inline constexpr std::chrono::milliseconds kFirstRetryPause{100};
/// To import what it needs.
inline constexpr std::chrono::seconds kProgramReadyWithin{60};

} // namespace troupe::net
