//===- ElideWaits.cpp - Removes waits that other waits imply --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Passes.h"

#include "dialect/zrt/MemoryUses.h"
#include "dialect/zrt/Paths.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"

#include <array>
#include <limits>

namespace zero {
#define GEN_PASS_DEF_ELIDEWAITSPASS
#include "passes/schedule/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;
using zrt::Stream;

namespace {
constexpr size_t kNumStreams = zrt::getMaxEnumValForStream() + 1;
/// A place in a stream, as the number of records of the path in front of it.
using Place = int32_t;
constexpr Place kNever = std::numeric_limits<Place>::max();
constexpr Place kNow = kNever - 1;
/// By stream.
using Places = std::array<Place, kNumStreams>;

/// For a point of a path: the work that each stream follows.
struct Knowledge {
  /// By event: for each stream, the place from which on it follows the last
  /// record of the event.
  std::vector<Places> follows;
  /// By stream: the place of each other stream up to which it follows that
  /// stream.
  std::array<Places, kNumStreams> upTo;
  /// By event that this path recorded: the place of each stream that its stream
  /// followed at that time.
  llvm::DenseMap<unsigned, Places> atRecord;
  Places records = {};

  bool knows(size_t stream, unsigned event) const {
    for (size_t s = 0; s < kNumStreams; ++s)
      if (follows[event][s] <= upTo[stream][s])
        return true;
    return false;
  }
};

/// A wait of a program: an op, or an event in the `writable` list of a bucket.
using WaitKey = std::pair<const void *, unsigned>;

class Elider {
public:
  explicit Elider(zrt::ProgramOp program)
      : program(program), symbols(program) {}

  void run();

private:
  /// By event: a bit for each stream that follows it.
  using State = std::vector<uint8_t>;

  State walk(const zrt::Path &path, const State &state);
  void visit(Operation *call, FlatSymbolRefAttr arriving, Knowledge &known);
  void runOptional(zrt::PathStep step, Knowledge &known);
  void record(unsigned event, Knowledge &known);
  void wait(WaitKey key, unsigned event, Stream stream, Knowledge &known);
  unsigned number(FlatSymbolRefAttr event) {
    return numbers.lookup(event.getAttr());
  }
  void eraseWaits();
  void eraseEvents();

  zrt::ProgramOp program;
  zrt::ProgramSymbols symbols;
  SmallVector<zrt::EventOp> events;
  llvm::DenseMap<StringAttr, unsigned> numbers;
  llvm::DenseSet<WaitKey> needed;
};
} // namespace

void Elider::record(unsigned event, Knowledge &known) {
  auto stream = static_cast<size_t>(events[event].getStream());
  Place place = ++known.records[stream];
  known.follows[event].fill(kNever);
  // The caller may pass another stream to each call, and need not let it wait.
  // So a record of it implies nothing, and only a wait for this record is one.
  if (events[event].getStream() == Stream::caller)
    return;
  known.follows[event][stream] = place;
  Places &atRecord = known.atRecord[event];
  atRecord = known.upTo[stream];
  atRecord[stream] = place;
}

void Elider::wait(WaitKey key, unsigned event, Stream on, Knowledge &known) {
  auto stream = static_cast<size_t>(on);
  // The caller gets a tensor back by its own wait alone.
  if (on == Stream::caller) {
    needed.insert(key);
    return;
  }
  if (!known.knows(stream, event))
    needed.insert(key);
  auto it = known.atRecord.find(event);
  if (it == known.atRecord.end()) {
    // The record is of an earlier path, and what its stream followed there is
    // unknown.
    Place &from = known.follows[event][stream];
    from = std::min(from, known.records[stream] + 1);
    return;
  }
  for (size_t s = 0; s < kNumStreams; ++s)
    if (s != stream)
      known.upTo[stream][s] = std::max(known.upTo[stream][s], it->second[s]);
}

void Elider::visit(Operation *call, FlatSymbolRefAttr arriving,
                   Knowledge &known) {
  if (auto op = dyn_cast<zrt::RecordOp>(call))
    return record(number(op.getEventAttr()), known);
  if (auto op = dyn_cast<zrt::WaitOp>(call))
    return wait({op, 0}, number(op.getEventAttr()), op.getStream(), known);
  if (!isa<zrt::WaitWritableOp>(call) || !arriving)
    return;
  ArrayAttr list = symbols.getTable(arriving).getWritableAttr();
  if (!list)
    return;
  for (auto symbol : list.getAsRange<FlatSymbolRefAttr>()) {
    unsigned event = number(symbol);
    wait({arriving.getAsOpaquePointer(), event}, event, Stream::compute, known);
  }
}

/// The handler of |step| may not run, so its waits prove nothing for later
/// calls.
void Elider::runOptional(zrt::PathStep step, Knowledge &known) {
  llvm::MapVector<unsigned, Places> before;
  auto keep = [&](FlatSymbolRefAttr symbol) {
    unsigned event = number(symbol);
    before.insert({event, known.follows[event]});
  };
  SmallVector<zrt::RecordOp> records;
  for (zrt::HandlerOp handler : step.getHandlers())
    for (Operation &call : handler.getBody().front())
      if (auto op = dyn_cast<zrt::RecordOp>(call)) {
        keep(op.getEventAttr());
        records.push_back(op);
      } else if (auto op = dyn_cast<zrt::WaitOp>(call)) {
        keep(op.getEventAttr());
      }
  ArrayAttr list = step.arriving
                       ? symbols.getTable(step.arriving).getWritableAttr()
                       : nullptr;
  if (list)
    for (auto symbol : list.getAsRange<FlatSymbolRefAttr>())
      keep(symbol);
  auto upTo = known.upTo;
  for (zrt::HandlerOp handler : step.getHandlers())
    for (Operation &call : handler.getBody().front())
      visit(&call, step.arriving, known);
  known.upTo = upTo;
  for (auto &[event, follows] : before)
    for (size_t s = 0; s < kNumStreams; ++s)
      known.follows[event][s] = std::max(known.follows[event][s], follows[s]);
  for (zrt::RecordOp op : records)
    known.atRecord.erase(number(op.getEventAttr()));
}

Elider::State Elider::walk(const zrt::Path &path, const State &state) {
  Knowledge known;
  known.follows.resize(events.size());
  for (auto [event, follows] : llvm::enumerate(known.follows))
    for (size_t s = 0; s < kNumStreams; ++s)
      follows[s] = state[event] >> s & 1 ? 0 : kNever;
  for (size_t stream = 0; stream < kNumStreams; ++stream) {
    known.upTo[stream].fill(-1);
    known.upTo[stream][stream] = kNow;
  }
  for (zrt::PathStep step : path.steps)
    if (step.isOptional)
      runOptional(step, known);
    else
      for (Operation &call : step.handler.getBody().front())
        visit(&call, /*arriving=*/nullptr, known);
  State after(events.size());
  for (unsigned event = 0; event < events.size(); ++event)
    for (size_t s = 0; s < kNumStreams; ++s)
      if (known.knows(s, event))
        after[event] |= 1 << s;
  return after;
}

void Elider::eraseWaits() {
  for (auto handler : program.getOps<zrt::HandlerOp>())
    for (auto op : llvm::to_vector(handler.getBody().getOps<zrt::WaitOp>()))
      if (!needed.contains({op, 0}))
        op.erase();
  bool anyWritable = false;
  for (auto table : program.getOps<zrt::BucketTableOp>()) {
    if (!table.getWritableAttr())
      continue;
    SmallVector<Attribute> left;
    for (auto symbol : table.getWritableAttr().getAsRange<FlatSymbolRefAttr>())
      if (needed.contains(
              {table.getBucketAttr().getAsOpaquePointer(), number(symbol)}))
        left.push_back(symbol);
    anyWritable |= !left.empty();
    table.setWritableAttr(
        left.empty() ? nullptr : ArrayAttr::get(program.getContext(), left));
  }
  if (anyWritable)
    return;
  for (auto handler : program.getOps<zrt::HandlerOp>())
    for (auto op :
         llvm::to_vector(handler.getBody().getOps<zrt::WaitWritableOp>()))
      op.erase();
}

/// Erases events for which nothing waits.
void Elider::eraseEvents() {
  llvm::DenseSet<StringAttr> used;
  for (auto handler : program.getOps<zrt::HandlerOp>())
    for (auto op : handler.getBody().getOps<zrt::WaitOp>())
      used.insert(op.getEventAttr().getAttr());
  for (auto table : program.getOps<zrt::BucketTableOp>())
    for (ArrayAttr list : {table.getWritableAttr(), table.getReadableAttr()})
      if (list)
        for (auto symbol : list.getAsRange<FlatSymbolRefAttr>())
          used.insert(symbol.getAttr());
  for (auto handler : program.getOps<zrt::HandlerOp>())
    for (auto op : llvm::to_vector(handler.getBody().getOps<zrt::RecordOp>()))
      if (!used.contains(op.getEventAttr().getAttr()))
        op.erase();
  for (zrt::EventOp event : events)
    if (!used.contains(event.getSymNameAttr()))
      event.erase();
}

void Elider::run() {
  for (auto event : program.getOps<zrt::EventOp>()) {
    numbers[event.getSymNameAttr()] = events.size();
    events.push_back(event);
  }
  auto transitions = program.getOps<zrt::TransitionOp>();
  if (events.empty() || transitions.empty())
    return;
  // Nothing is recorded before the first step, so all events have passed.
  llvm::DenseMap<StringAttr, State> states;
  StringAttr initial = (*transitions.begin()).getStateAttr();
  states[initial].assign(events.size(), 0xff);
  // A stream follows less after each change, so this ends. A wait that is
  // needed if streams follow more is needed if they follow less.
  zrt::walkPaths(
      zrt::enumeratePaths(program), initial, [&](const zrt::Path &path) {
        State after = walk(path, states[path.from]);
        State &known = states.try_emplace(path.to, after).first->second;
        bool hasChanged = false;
        for (unsigned event = 0; event < events.size(); ++event) {
          auto both = static_cast<uint8_t>(known[event] & after[event]);
          hasChanged |= both != known[event];
          known[event] = both;
        }
        return hasChanged;
      });
  eraseWaits();
  eraseEvents();
}

namespace {
struct ElideWaitsPass : zero::impl::ElideWaitsPassBase<ElideWaitsPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<zrt::ProgramOp>())
      Elider(program).run();
  }
};
} // namespace
