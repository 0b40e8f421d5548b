// Constants that only net uses, each with its unit and the reason for its
// value; deadlines and frame limits are in config/base/defaults.hpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::net {

/// Interval at which a waiter checks that its peers are alive; a lost peer is
/// noticed within two such intervals.
inline constexpr std::chrono::milliseconds kLivenessSlice{50};

/// Limit of what a peer can make us allocate before it has shown the token.
inline constexpr std::uint32_t kMaxHelloBytes = 4096;
/// Connections at one port that have not yet shown who they are. Further ones
/// wait in the kernel, where they cost no descriptor.
inline constexpr std::size_t kMaxUngreeted = 64;
/// Time to show it: handshakes take milliseconds, on a host that is overloaded
/// seconds.
inline constexpr std::chrono::seconds kGreetWithin{5};
/// Time after which a connection gives its place to one that waits outside, so
/// that silent strangers delay a member of the run by seconds only.
inline constexpr std::chrono::seconds kYieldAfter{1};

/// Readers of the bytes that one process offers: the ranks of a server, of
/// which none has as many.
inline constexpr std::uint32_t kMaxOfferReaders = 1024;

/// Size of the pieces in which weights are pulled, so that rows on the same
/// connection need not wait for gigabytes.
inline constexpr std::uint64_t kMemoryChunkBytes = 8u << 20;
/// Runs of bytes per request: some ms of short ones, and a bound on what a
/// request makes its holder store.
inline constexpr std::uint64_t kMaxRequestRuns = 8192;
/// Requests in flight to one peer; enough to keep its socket full.
inline constexpr std::size_t kMaxRequestsInFlight = 8;
/// Most bytes requested from the kernel in one read: asio's 64 KiB costs a
/// third of the loopback rate.
inline constexpr std::size_t kMaxReadBytes = 4u << 20;
/// Most bytes that one read of an encrypted connection takes from the kernel:
/// several records of 16 KiB.
inline constexpr std::size_t kTlsReadBytes = 128u << 10;
/// Most bytes that are encrypted before they go to the kernel in one write: a
/// write per record costs more than its encryption. The records stay in a
/// cache.
inline constexpr std::size_t kTlsWriteBytes = 256u << 10;
/// Capacity of one record: shorter pieces are gathered into one.
inline constexpr std::size_t kTlsRecordBytes = 16u << 10;
/// Bytes that one key encrypts: a third of the amount that keeps AES-GCM's
/// proven margin (2^24.5 records, RFC 8446 5.5).
inline constexpr std::uint64_t kTlsKeyBytes = std::uint64_t{128} << 30;
/// Validity of a certificate: its key is only held by processes of the run and
/// ends with it, so longer than any run, and from a day before because clocks
/// differ.
inline constexpr int kCertificateDaysBefore = 1;
inline constexpr int kCertificateDaysAfter = 365;
/// Most bytes of idle received blocks; the rest is freed.
inline constexpr std::uint64_t kMaxIdleBufferBytes = std::uint64_t{512} << 20;

/// Pending messages at one end of a channel: more than a pipeline has
/// micro-batches in flight, and a bound on memory.
inline constexpr std::size_t kMaxChannelMessages = 64;
/// Messages of a direction that are on their way where they are work of
/// streams: the peer is at one while the next is written.
inline constexpr std::size_t kMaxStreamMessages = 2;

/// Part of a buffer that members in different processes exchange at a time: two
/// of these per member stay in the caches, and a barrier is cheap in
/// comparison.
inline constexpr std::size_t kSharedChunkBytes = 1u << 20;
/// Staging memory of an exchange between hosts, for the chunks of all members:
/// long enough that a call per chunk costs little.
inline constexpr std::size_t kExchangeStagingBytes = 16u << 20;
/// Most sends, and most receives, in one group of NCCL's calls: NCCL takes
/// 2048 calls.
inline constexpr std::size_t kNcclGroupCalls = 1024;
/// Most bytes between two GPUs in one such group: a deadline covers one group,
/// and a slow network sends these in half a second.
inline constexpr std::size_t kNcclGroupBytes = 256u << 20;
/// Part of a buffer that is sent along a chain of sockets at a time.
inline constexpr std::size_t kChainChunkBytes = 256u << 10;

/// Memory limit of user programs that answer lines, so that a leak ends the
/// program and not the machine.
inline constexpr std::uint64_t kProgramMemoryBytes = std::uint64_t{16} << 30;
inline constexpr std::uint64_t kProgramFileBytes = std::uint64_t{4} << 30;
/// Longest answer; a longer one is invalid.
inline constexpr std::size_t kMaxReplyBytes = 16u << 20;
/// Time from closing its pipe to the end of a program.
inline constexpr std::chrono::milliseconds kProgramEndsWithin{500};
/// Time for a killed child to end: the kernel needs milliseconds unless the
/// child hangs in a driver or a file system, which may last for ever.
inline constexpr std::chrono::seconds kKilledEndsWithin{5};
/// Time until a program has been found and loaded, from a busy network file
/// system too.
inline constexpr std::chrono::seconds kProgramStartsWithin{30};
/// Consecutive exits without any answer after which a program is not started
/// again.
inline constexpr std::uint32_t kProgramStarts = 3;
/// Time for the name service to find a host: two tries of a resolver.
inline constexpr std::chrono::seconds kHostFoundWithin{10};
/// Pause before a request is sent again; doubled each time.
inline constexpr std::chrono::milliseconds kFirstRetryPause{100};
/// Time for a program to import what it needs.
inline constexpr std::chrono::seconds kProgramReadyWithin{60};

} // namespace troupe::net
