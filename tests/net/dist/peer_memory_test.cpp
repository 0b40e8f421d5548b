// Memory of another process: mapped through its handle where there is one, else
// pulled.
#include "net/data_plane/data_plane.hpp"
#include "net/data_plane/peer_memory.hpp"

#include <gtest/gtest.h>

#include "tests/net/dist/forked_peer.hpp"
#include "tests/support/net/far_pages.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace troupe::net {
namespace {

using testing::ForkedPeer;
using testing::Talk;
using troupe::testing::FarPages;

constexpr std::size_t kPlaneBytes = 4 << 20;
constexpr std::uint64_t kShared = 1, kPrivate = 2, kMisnamed = 3;

DataPlaneOptions peer_options(std::uint32_t self) {
  DataPlaneOptions options;
  options.self = WorkerId(self);
  options.token = "secret";
  return options;
}

/// Exports a block with its handle, one without, and one with a wrong handle.
void publish(const Talk& talk) {
  PageBlock shared(kPlaneBytes, PageSharing::by_descriptor);
  PageBlock alone(kPlaneBytes, PageSharing::none);
  MemoryHandle place = *shared.place();
  MemoryHandle wrong = place;
  wrong.descriptor = 0;
  DataPlane plane(peer_options(1));
  for (const auto id : {kShared, kMisnamed})
    plane.export_memory(id, shared.data(), kPlaneBytes);
  plane.export_memory(kPrivate, alone.data(), kPlaneBytes);
  plane.export_memory(handle_id(kShared), &place, sizeof(place));
  plane.export_memory(handle_id(kMisnamed), &wrong, sizeof(wrong));
  talk.say(plane.port());
  for (int value = 1; talk.hear<char>() != 'q'; ++value) {
    std::memset(shared.data(), value, kPlaneBytes);
    talk.say(value);
  }
}

TEST(PeerMemory, IsReadInPlaceAndRequestedOnce) {
  ForkedPeer peer(publish);
  DataPlane plane(peer_options(0));
  plane.set_peer(WorkerId(1), "127.0.0.1", peer.talk().hear<std::uint16_t>());
  PeerMemory memory;
  const auto bytes = memory.find(plane, WorkerId(1), kShared).bytes;
  ASSERT_EQ(bytes.size(), kPlaneBytes);
  const auto asked = plane.counters().pulls;
  for (int value = 1; value < 3; ++value) {
    peer.talk().say('w');
    EXPECT_EQ(peer.talk().hear<int>(), value);
    EXPECT_EQ(std::ranges::count(bytes, std::byte(value)),
              std::ptrdiff_t{kPlaneBytes});
  }
  EXPECT_EQ(memory.find(plane, WorkerId(1), kShared).bytes.data(),
            bytes.data());
  EXPECT_EQ(plane.counters().pulls, asked);
  peer.talk().say('q');
}

TEST(PeerMemory, UnmappableMemoryIsPulled) {
  ForkedPeer peer(publish);
  DataPlane plane(peer_options(0));
  plane.set_peer(WorkerId(1), "127.0.0.1", peer.talk().hear<std::uint16_t>());
  PeerMemory memory;
  EXPECT_TRUE(memory.find(plane, WorkerId(1), kPrivate).bytes.empty());
  EXPECT_TRUE(memory.find(plane, WorkerId(1), kMisnamed).bytes.empty());
  peer.talk().say('q');
}

/// Exports a block of a device with its handle.
void publish_of_device(const Talk& talk) {
  const BlockMemory& device = FarPages::memory();
  const PageBlock other(100,
                        device); // the block is not the first of its region
  const PageBlock block(kPlaneBytes, device);
  const std::vector<char> numbers(kPlaneBytes, 'n');
  device.write(numbers.data(), block.data(), kPlaneBytes);
  const auto place = block.place();
  DataPlane plane(peer_options(1));
  plane.export_memory(kShared, {block.data(), kPlaneBytes, &device});
  plane.export_memory(handle_id(kShared), &*place, sizeof(*place));
  talk.say(plane.port());
  talk.hear<char>();
}

TEST(PeerMemory, OfADeviceIsReadInPlaceByItsDevice) {
  ForkedPeer peer(publish_of_device);
  DataPlane plane(peer_options(0));
  plane.set_peer(WorkerId(1), "127.0.0.1", peer.talk().hear<std::uint16_t>());
  EXPECT_TRUE(PeerMemory{}.find(plane, WorkerId(1), kShared).bytes.empty())
    << "this process has no such device";
  const BlockMemory& device = FarPages::memory();
  PeerMemory memory;
  const auto found = memory.find(plane, WorkerId(1), kShared, &device);
  ASSERT_EQ(found.bytes.size(), kPlaneBytes);
  EXPECT_EQ(found.memory, &device);
  const PageBlock target(kPlaneBytes, device);
  const ByteRuns whole{.bytes = kPlaneBytes};
  device.copy(found.bytes.data(), target.data(), {&whole, 1});
  std::vector<char> got(kPlaneBytes);
  device.read(target.data(), got.data(), kPlaneBytes);
  EXPECT_EQ(std::ranges::count(got, 'n'), std::ptrdiff_t{kPlaneBytes});
  peer.talk().say('q');
}

TEST(PeerMemory, ALostPeerIsAFailure_I7) {
  DataPlane plane(peer_options(0));
  plane.set_peer(WorkerId(1), "127.0.0.1", 1); // no listener
  PeerMemory memory;
  EXPECT_THROW(memory.find(plane, WorkerId(1), kShared), FailureError);
}

} // namespace
} // namespace troupe::net
