// Parts of messages: atoms, the Context that comes first in each, and small
// values shared by several messages. Control only: no tensors, and no floating
// point at all (CAF 0.17 hangs on infinities): numbers are `Bits`.
#pragma once

#include "config/base/ids.hpp"
#include "plans/workflow/call_slices.hpp"

#include <caf/all.hpp>

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

/// Makes a struct serializable by CAF; its fields are those of `x`.
#define TROUPE_INSPECT(Type, ...)                                              \
  template <class Inspector>                                                   \
  typename Inspector::result_type inspect(Inspector& f, Type& x) {             \
    return f(caf::meta::type_name(#Type), __VA_ARGS__);                        \
  }

namespace troupe {

template <class Inspector, class Tag>
typename Inspector::result_type inspect(Inspector& f, Id<Tag>& id) {
  return f(id.value);
}

} // namespace troupe

namespace troupe::plans {

TROUPE_INSPECT(SlicePart, x.index, x.count)

} // namespace troupe::plans

namespace troupe::actors {

// -- atoms (at most ten characters) ------------------------------------------

// Texts of atoms are names of messages in traces and in `trace summary --json`:
// they stay when an identifier gets a better one.
using join_atom = caf::atom_constant<caf::atom("join")>;
using setup_atom = caf::atom_constant<caf::atom("setup")>;
using load_atom = caf::atom_constant<caf::atom("load")>;
using fetch_atom = caf::atom_constant<caf::atom("fetch")>;
using run_atom = caf::atom_constant<caf::atom("run")>;
using publish_weights_atom = caf::atom_constant<caf::atom("lend")>;
using move_atom = caf::atom_constant<caf::atom("move")>;
using residency_atom = caf::atom_constant<caf::atom("life")>;
using copy_atom = caf::atom_constant<caf::atom("copy")>;
using snapshot_atom = caf::atom_constant<caf::atom("snapshot")>;
using write_atom = caf::atom_constant<caf::atom("write")>;
using commit_atom = caf::atom_constant<caf::atom("commit")>;
using save_atom = caf::atom_constant<caf::atom("save")>;
using next_atom = caf::atom_constant<caf::atom("next")>;
using ping_atom = caf::atom_constant<caf::atom("ping")>;
using abort_atom = caf::atom_constant<caf::atom("abort")>;
using stop_atom = caf::atom_constant<caf::atom("stop")>;
using open_atom = caf::atom_constant<caf::atom("open")>;
using take_atom = caf::atom_constant<caf::atom("take")>;
using start_atom = caf::atom_constant<caf::atom("start")>;
using done_atom = caf::atom_constant<caf::atom("done")>;
using down_atom = caf::atom_constant<caf::atom("down")>;
using tick_atom = caf::atom_constant<caf::atom("tick")>;
using evaluated_atom = caf::atom_constant<caf::atom("judged")>;
using fail_atom = caf::atom_constant<caf::atom("fail")>;

// -- parts of messages -------------------------------------------------------

/// First argument of every message: its arrow in the trace, its step and its
/// incarnation.
struct Context {
  std::uint64_t flow
    = 0;       ///< id of the arrow in the trace, assigned by the sender
  StepId step; ///< step it belongs to; 0 before the first
  Incarnation incarnation;
};
TROUPE_INSPECT(Context, x.flow, x.step, x.incarnation)

/// A double as its bit pattern.
struct Bits {
  std::uint64_t value = 0;

  Bits() = default;
  explicit Bits(double number) : value(std::bit_cast<std::uint64_t>(number)) {}
  double number() const {
    return std::bit_cast<double>(value);
  }
};
TROUPE_INSPECT(Bits, x.value)

/// A metric's contribution and how contributions combine (models::Sums).
struct SumPart {
  std::string name;
  std::uint8_t kind = 0; ///< models::SumKind
  Bits sum;
  Bits weight;
};
TROUPE_INSPECT(SumPart, x.name, x.kind, x.sum, x.weight)

/// Peak memory of a device during its part of a task, in bytes.
struct PeakMemory {
  Rank device;
  std::uint64_t bytes = 0;
  std::uint64_t process_bytes = 0; ///< resident size of its process at the end
};
TROUPE_INSPECT(PeakMemory, x.device, x.bytes, x.process_bytes)

/// A value carried from step n to n+1.
struct Carried {
  std::string name;
  Bits value;
};
TROUPE_INSPECT(Carried, x.name, x.value)

/// `holder` of rows that every worker reads from the data set itself.
inline constexpr std::uint32_t dataset_holder = 0xFFFF'FFFF;
/// `holder` of rows of eval.data, read likewise.
inline constexpr std::uint32_t evaluation_holder = 0xFFFF'FFFD;

constexpr bool is_data_file(std::uint32_t holder) {
  return holder == dataset_holder || holder == evaluation_holder;
}

/// Tasks that run as one batch, in their order: chunks of a step, or slices of
/// several.
struct JoinedTasks {
  StepId step; ///< of the first
  std::vector<std::uint32_t> tasks;
};
TROUPE_INSPECT(JoinedTasks, x.step, x.tasks)

/// The holder of some keys of some samples.
struct RowSource {
  std::uint32_t holder = dataset_holder; ///< worker number
  std::vector<std::string> keys;
  std::vector<SampleId> samples;   ///< in sample order
  std::vector<std::uint32_t> rows; ///< data-set row per sample; data set only
};
TROUPE_INSPECT(RowSource, x.holder, x.keys, x.samples, x.rows)

/// Numbers of responses and bytes of cache that a generate call may hold at
/// once on a device (plans::ResponseRoom).
struct CallRoom {
  std::uint32_t responses = 0; ///< of full length
  std::uint32_t sequences = 0;
  std::uint64_t cache_bytes = 0;
};
TROUPE_INSPECT(CallRoom, x.responses, x.sequences, x.cache_bytes)

/// A file as its writer knows it: the master compares, and reads none again.
struct FileWritten {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t crc32 = 0;
};
TROUPE_INSPECT(FileWritten, x.path, x.bytes, x.crc32)

/// A failure as a message: carried by asks that `fail_atom` ends.
struct FailureMessage {
  std::uint8_t code = 0;
  std::string who;
  std::string what;
  std::string cause;
};
TROUPE_INSPECT(FailureMessage, x.code, x.who, x.what, x.cause)

} // namespace troupe::actors
