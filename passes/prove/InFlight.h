//===- InFlight.h - Which streams follow a call in flight -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Within a path of the protocol each record of an event has the times up to
// which its stream follows the other streams. Times of two paths cannot be
// compared. So two facts of an access outlive a path, or a handler that may not
// run: the streams that follow the access, and the events whose last record
// follows it.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_PASSES_PROVE_INFLIGHT_H
#define ZERO_PASSES_PROVE_INFLIGHT_H

#include "dialect/zrt/ZrtDialect.h"

#include <array>
#include <vector>

namespace zero::prove {

constexpr unsigned kNumStreams = zrt::getMaxEnumValForStream() + 1;

/// How far each stream has come, or is followed: counted in records.
using Clock = std::array<int64_t, kNumStreams>;
constexpr int64_t kNever = INT64_MAX;

struct EventOfStream {
  mlir::StringAttr event;
  unsigned stream;
};

/// The events of a stream that an access keeps. Later ones are not known to
/// follow it, so work is linear in the number of events.
constexpr size_t kMostEvents = 4;

/// A call, or the caller, that touched some memory.
struct Access {
  mlir::Operation *call = nullptr; // null: the caller
  unsigned stream = 0;
  bool writes = false;
  /// The time of each stream from which on the stream follows the access.
  Clock since = {};
  /// The first events of each stream whose last record follows the access, of
  /// earlier paths and of handlers that may not run.
  llvm::SmallVector<EventOfStream, 1> events;

  bool isSame(const Access &other) const {
    return call == other.call && stream == other.stream &&
           writes == other.writes;
  }
  /// Whether later ones of its stream may be left out.
  bool mayHaveMoreEvents() const {
    return llvm::count_if(events, [&](const EventOfStream &kept) {
             return kept.stream == stream;
           }) == ptrdiff_t(kMostEvents);
  }
  bool hasEvent(mlir::StringAttr event) const {
    return llvm::any_of(
        events, [&](const EventOfStream &kept) { return kept.event == event; });
  }
};

/// Adds |access|, which may be in flight. Removes accesses of which more is
/// known, so that the remaining facts hold on each path. Returns whether
/// |inFlight| changed.
bool unite(llvm::SmallVectorImpl<Access> &inFlight, const Access &access);

/// What the streams of one path have recorded and waited for.
class StreamClocks {
public:
  void begin();
  /// |access| is the next work of its stream.
  void start(Access &access) const;
  void record(mlir::StringAttr event, unsigned stream);
  bool hasRecorded(mlir::StringAttr event) const {
    return recorded.contains(event);
  }
  /// |stream| waits for |event|, which this path has recorded.
  void wait(mlir::StringAttr event, unsigned stream);
  /// |stream| waits for the last record of an event of |access|, of an earlier
  /// path.
  void follow(Access &access, unsigned stream) const;
  bool follows(unsigned stream, const Access &access) const;
  /// Whether the last record of |event| follows |access|.
  bool isBehind(mlir::StringAttr event, const Access &access) const;
  /// Keeps the facts of |access| that hold after the path ends or, if it goes
  /// on, without the records since the mark.
  void keep(Access &access, bool pathEnds) const;

  /// What was known before a handler that may not run.
  struct Mark {
    std::array<Clock, kNumStreams> followed;
    std::array<size_t, kNumStreams> numRecords;
  };
  Mark mark() const;
  /// Whether events were recorded and waited for since |mark| is not known:
  /// they count as of earlier paths.
  void forget(const Mark &mark);

private:
  struct Record {
    mlir::StringAttr event;
    Clock clock;
  };

  Clock now = {};
  std::array<Clock, kNumStreams> followed; // by stream
  llvm::DenseMap<mlir::StringAttr, Clock> recorded;
  /// By stream, in order. Each follows all that those before it follow.
  std::array<std::vector<Record>, kNumStreams> records;
};

} // namespace zero::prove

#endif // ZERO_PASSES_PROVE_INFLIGHT_H
