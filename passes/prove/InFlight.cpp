//===- InFlight.cpp - Which streams follow a call in flight ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/InFlight.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// The caller may pass another stream to each call, and need not let it wait.
/// So no other stream of the caller follows the work that one of them follows.
static constexpr auto kCaller = static_cast<unsigned>(zrt::Stream::caller);

/// Of paths that lead to one state one access may be known in several ways. So
/// many are kept apart: a stream may wait for an event of each path.
static constexpr ptrdiff_t kMostVariants = 4;

/// Whether as much is known of |access| as of |other|, or more.
static bool isKnownAs(const Access &access, const Access &other) {
  for (unsigned s = 0; s < kNumStreams; ++s)
    if (access.since[s] > other.since[s])
      return false;
  return llvm::all_of(other.events, [&](const EventOfStream &kept) {
    return access.hasEvent(kept.event);
  });
}

/// Removes from |access| each fact that |other| does not have.
static bool join(Access &access, const Access &other) {
  bool hasChanged = false;
  for (unsigned s = 0; s < kNumStreams; ++s) {
    hasChanged |= access.since[s] < other.since[s];
    access.since[s] = std::max(access.since[s], other.since[s]);
  }
  size_t before = access.events.size();
  llvm::erase_if(access.events, [&](const EventOfStream &kept) {
    return !other.hasEvent(kept.event);
  });
  return hasChanged || access.events.size() != before;
}

bool prove::unite(SmallVectorImpl<Access> &inFlight, const Access &access) {
  Access *same = nullptr;
  ptrdiff_t count = 0;
  for (Access &known : inFlight) {
    if (!known.isSame(access))
      continue;
    if (isKnownAs(access, known))
      return false;
    if (isKnownAs(known, access)) {
      known = access;
      return true;
    }
    same = &known;
    ++count;
  }
  if (count == kMostVariants)
    return join(*same, access);
  inFlight.push_back(access);
  return true;
}

static bool isBehind(const Clock &clock, const Access &access) {
  for (unsigned s = 0; s < kNumStreams; ++s)
    if (access.since[s] != kNever && access.since[s] <= clock[s])
      return true;
  return false;
}

void StreamClocks::begin() {
  now.fill(0);
  recorded.clear();
  for (unsigned s = 0; s < kNumStreams; ++s) {
    records[s].clear();
    followed[s].fill(-1);
    followed[s][s] = kNever - 1; // a stream follows itself
  }
}

void StreamClocks::start(Access &access) const {
  access.since.fill(kNever);
  access.since[access.stream] = now[access.stream] + 1;
}

void StreamClocks::record(StringAttr event, unsigned stream) {
  Clock &clock = recorded[event];
  clock = followed[stream];
  if (stream == kCaller)
    clock.fill(-1);
  clock[stream] = ++now[stream];
  records[stream].push_back({event, clock});
}

void StreamClocks::wait(StringAttr event, unsigned stream) {
  const Clock &clock = recorded.find(event)->second;
  for (unsigned s = 0; s < kNumStreams; ++s)
    followed[stream][s] = std::max(followed[stream][s], clock[s]);
}

void StreamClocks::follow(Access &access, unsigned stream) const {
  access.since[stream] = std::min(access.since[stream], now[stream] + 1);
}

bool StreamClocks::follows(unsigned stream, const Access &access) const {
  return ::isBehind(followed[stream], access);
}

bool StreamClocks::isBehind(StringAttr event, const Access &access) const {
  // An event of the access that is recorded again still follows it, since it is
  // recorded on the same stream.
  auto it = recorded.find(event);
  return access.hasEvent(event) ||
         (it != recorded.end() && ::isBehind(it->second, access));
}

void StreamClocks::keep(Access &access, bool pathEnds) const {
  Clock since;
  std::array<size_t, kNumStreams> kept = {}; // events, by stream
  for (const EventOfStream &event : access.events)
    ++kept[event.stream];
  for (unsigned s = 0; s < kNumStreams; ++s) {
    if (s == kCaller) {
      since[s] = access.stream == kCaller ? access.since[s] : kNever;
      continue;
    }
    bool isFollowing = follows(s, access);
    if (pathEnds)
      since[s] = isFollowing ? 0 : kNever;
    else
      since[s] =
          isFollowing ? std::min(access.since[s], now[s] + 1) : access.since[s];
    ArrayRef<Record> all = records[s];
    if (kept[s] >= kMostEvents || all.empty() ||
        !::isBehind(all.back().clock, access))
      continue; // no record is needed, or none is behind it
    const auto *next = llvm::partition_point(all, [&](const Record &record) {
      return !::isBehind(record.clock, access);
    });
    for (; next != all.end() && kept[s] < kMostEvents; ++next)
      if (!access.hasEvent(next->event)) {
        access.events.push_back({next->event, s});
        ++kept[s];
      }
  }
  access.since = since;
}

StreamClocks::Mark StreamClocks::mark() const {
  Mark mark{followed, {}};
  for (unsigned s = 0; s < kNumStreams; ++s)
    mark.numRecords[s] = records[s].size();
  return mark;
}

void StreamClocks::forget(const Mark &mark) {
  followed = mark.followed;
  for (unsigned s = 0; s < kNumStreams; ++s)
    for (; records[s].size() > mark.numRecords[s]; records[s].pop_back())
      recorded.erase(records[s].back().event);
}
