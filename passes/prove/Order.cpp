//===- Order.cpp - Which calls of a program may race ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The proof follows each path of the protocol. For each memory it has the calls
// that touched the memory and may be in flight: the last write, and reads
// behind it. A call that touches the memory must follow those that it conflicts
// with. Of paths that lead to one state, calls in flight are united, and a
// stream follows a call only if it does on each path. Gradients may be missing,
// and buckets may be on other pipeline stages, so what is in flight behind
// their handlers is united with what is without them.
//
// The caller has a stream, too. It writes each arriving gradient before and
// after the handlers of its arrival, and reads parameters until apply. Another
// call may pass another stream, so nothing that the caller's stream follows is
// known to others.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Order.h"

#include "dialect/zrt/MemoryUses.h"
#include "dialect/zrt/Paths.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;
using zrt::Stream;

namespace {
constexpr unsigned kNumStreams = zrt::getMaxEnumValForStream() + 1;

/// How far each stream has come, or is followed: counted in records.
using Clock = std::array<int64_t, kNumStreams>;

/// A call that touched some memory.
struct Access {
  Operation *call = nullptr; // null: the caller
  unsigned stream = 0;
  bool writes = false;
  /// The time of each stream from which on the stream follows the call.
  Clock since = {};
  /// The first event that its handler recorded behind it; null before that.
  StringAttr event;

  bool isSame(const Access &other) const {
    return call == other.call && stream == other.stream &&
           writes == other.writes;
  }
};

/// Leaves in |access| what holds of |other|, too. Returns whether it changed.
bool join(Access &access, const Access &other) {
  Access before = access;
  for (unsigned s = 0; s < kNumStreams; ++s)
    access.since[s] = std::max(access.since[s], other.since[s]);
  if (access.event != other.event)
    access.event = nullptr;
  return access.since != before.since || access.event != before.event;
}

using State = llvm::DenseMap<StringAttr, SmallVector<Access, 2>>;

class OrderChecker {
public:
  OrderChecker(Proof &proof, zrt::ProgramOp program)
      : proof(proof), program(program), symbols(program),
        callerStream(static_cast<unsigned>(
            program.isScheduled() ? Stream::caller : Stream::compute)) {}

  void run();

private:
  static constexpr int64_t kNever = INT64_MAX;

  void findCovered();
  void begin(const zrt::Path &path, State &state);
  void walk(const zrt::Path &path);
  void visit(Operation *call, zrt::PathStep step);
  void runHandler(zrt::PathStep step);
  void runOptional(zrt::PathStep step);
  void touchByCaller(StringAttr memory, bool writes);
  void checkRelease(zrt::PathStep step);
  SmallVector<Access, 2> &inFlightOn(StringAttr memory);
  void checkView(zrt::PathStep step);
  void record(zrt::RecordOp op);
  void wait(StringAttr event, unsigned stream);
  void touch(Access access, StringAttr memory, bool isOptional);
  bool follows(unsigned stream, const Access &access) const;
  void leave(StringAttr target);
  void checkReadable();
  void report(Operation *call, const Access &earlier, StringAttr memory);
  std::string describe(StringAttr memory) const;
  static bool isListed(ArrayAttr events, StringAttr event) {
    return events &&
           llvm::any_of(events.getAsRange<FlatSymbolRefAttr>(),
                        [&](auto symbol) { return symbol.getAttr() == event; });
  }

  Proof &proof;
  zrt::ProgramOp program;
  zrt::ProgramSymbols symbols;
  /// Without a schedule the caller is ordered with the calls.
  const unsigned callerStream;
  StringAttr initial;
  /// The memory of calls behind which an event is the first.
  llvm::DenseMap<StringAttr, SmallVector<StringAttr>> covered;
  llvm::MapVector<StringAttr, State> states; // of the protocol
  bool hasChanged = false;

  // Of the path that is walked.
  const zrt::Path *path = nullptr;
  State state;
  Clock now = {};
  std::array<Clock, kNumStreams> followed; // by stream
  llvm::DenseMap<StringAttr, Clock> recorded;
  /// What was in flight before the arrival that is walked, where that changed.
  llvm::MapVector<StringAttr, SmallVector<Access, 2>> withoutStep;
  bool isOptionalStep = false;
  FlatSymbolRefAttr arriving; // the bucket of the step's gradient, or null
};
} // namespace

/// In a handler, the first event behind a call is that of the next record on
/// the call's stream.
void OrderChecker::findCovered() {
  for (auto handler : program.getOps<zrt::HandlerOp>()) {
    std::array<SmallVector<StringAttr>, kNumStreams> open;
    for (auto call : handler.getBody().getOps<zrt::RuntimeCall>()) {
      auto record = dyn_cast<zrt::RecordOp>(call.getOperation());
      if (!record) {
        SmallVector<zrt::MemoryUse> uses;
        call.getMemoryUses(symbols, nullptr, uses);
        for (const zrt::MemoryUse &use : uses)
          open[static_cast<unsigned>(call.getStream())].push_back(use.memory);
        continue;
      }
      auto event = symbols.lookup<zrt::EventOp>(record.getEventAttr());
      llvm::append_range(
          covered[event.getSymNameAttr()],
          std::exchange(open[static_cast<unsigned>(event.getStream())], {}));
    }
  }
}

bool OrderChecker::follows(unsigned stream, const Access &access) const {
  for (unsigned s = 0; s < kNumStreams; ++s)
    if (access.since[s] != kNever && access.since[s] <= followed[stream][s])
      return true;
  return false;
}

void OrderChecker::record(zrt::RecordOp op) {
  auto event = symbols.lookup<zrt::EventOp>(op.getEventAttr());
  auto stream = static_cast<unsigned>(event.getStream());
  Clock &clock = recorded[event.getSymNameAttr()];
  if (event.getStream() == Stream::caller)
    clock.fill(-1);
  else
    clock = followed[stream];
  clock[stream] = ++now[stream];
  for (StringAttr memory : covered.lookup(event.getSymNameAttr()))
    for (Access &access : inFlightOn(memory))
      if (access.call && access.stream == stream && !access.event)
        access.event = event.getSymNameAttr();
}

void OrderChecker::wait(StringAttr event, unsigned stream) {
  if (auto it = recorded.find(event); it != recorded.end()) {
    for (unsigned s = 0; s < kNumStreams; ++s)
      followed[stream][s] = std::max(followed[stream][s], it->second[s]);
    return;
  }
  // It was recorded on an earlier path, if at all.
  for (StringAttr memory : covered.lookup(event))
    for (Access &access : inFlightOn(memory))
      if (access.event == event)
        access.since[stream] = std::min(access.since[stream], now[stream] + 1);
}

static void note(InFlightDiagnostic &diagnostic, const Access &earlier,
                 Operation *program) {
  if (earlier.call)
    diagnostic.attachNote(earlier.call->getLoc()) << "which is here";
  else if (earlier.writes &&
           earlier.stream == static_cast<unsigned>(Stream::caller))
    diagnostic.attachNote(program->getLoc())
        << "the caller writes a gradient before the gradient arrives, and may "
           "write it again when the arrival is handled";
  else
    diagnostic.attachNote(program->getLoc())
        << "the caller reads parameters until apply, and writes state between "
           "steps";
}

std::string OrderChecker::describe(StringAttr memory) const {
  std::string text = zrt::describeMemory(memory);
  if (memory == symbols.getArrivingGradient() && arriving)
    text += (" of bucket @" + arriving.getValue()).str();
  return text;
}

static std::string describe(const Access &access) {
  if (!access.call)
    return "the caller";
  return ("'" + access.call->getName().getStringRef() + "' on stream '" +
          zrt::stringifyStream(static_cast<Stream>(access.stream)) + "'")
      .str();
}

void OrderChecker::report(Operation *call, const Access &earlier,
                          StringAttr memory) {
  auto stream = cast<zrt::RuntimeCall>(call).getStream();
  InFlightDiagnostic diagnostic = proof.report.opError(call);
  diagnostic << "races with " << ::describe(earlier) << " for "
             << describe(memory) << ": on " << zrt::stringifyEvent(path->event)
             << " in state '" << path->from.getValue() << "', stream '"
             << zrt::stringifyStream(stream)
             << "' does not wait for an event behind that";
  note(diagnostic, earlier, program);
}

void OrderChecker::touch(Access access, StringAttr memory, bool isOptional) {
  SmallVector<Access, 2> &inFlight = inFlightOn(memory);
  bool reported = false;
  for (const Access &earlier : inFlight)
    if ((access.writes || earlier.writes) && access.call && !reported &&
        !follows(access.stream, earlier)) {
      report(access.call, earlier, memory);
      reported = true;
    }
  // Whoever follows a write follows all that it conflicted with, and whoever
  // follows a call follows those before it on its stream.
  llvm::erase_if(inFlight, [&](const Access &earlier) {
    if (isOptional)
      return earlier.isSame(access);
    return access.writes ||
           (!earlier.writes && earlier.stream == access.stream);
  });
  access.since.fill(kNever);
  access.since[access.stream] = now[access.stream] + 1;
  inFlight.push_back(access);
}

SmallVector<Access, 2> &OrderChecker::inFlightOn(StringAttr memory) {
  SmallVector<Access, 2> &inFlight = state[memory];
  if (isOptionalStep)
    withoutStep.insert({memory, inFlight});
  return inFlight;
}

void OrderChecker::touchByCaller(StringAttr memory, bool writes) {
  Access caller;
  caller.stream = callerStream;
  caller.writes = writes;
  touch(caller, memory, /*isOptional=*/false);
}

/// The caller may write a gradient again when its stream has waited at the end
/// of the handler, or at the timepoint that stands for this wait.
void OrderChecker::checkRelease(zrt::PathStep step) {
  StringAttr memory = symbols.getArrivingGradient();
  for (const Access &earlier : inFlightOn(memory)) {
    if (!earlier.call || follows(callerStream, earlier))
      continue;
    InFlightDiagnostic diagnostic = proof.report.opError(step.handler);
    diagnostic << "gives " << describe(memory) << " back to the caller while "
               << ::describe(earlier)
               << " may read it: let stream 'caller' wait for an event behind "
                  "that call";
    note(diagnostic, earlier, program);
    return;
  }
}

void OrderChecker::runHandler(zrt::PathStep step) {
  arriving = step.arriving;
  if (arriving)
    touchByCaller(symbols.getArrivingGradient(), /*writes=*/true);
  for (Operation &call : step.handler.getBody().front())
    visit(&call, step);
  if (!arriving)
    return;
  checkRelease(step);
  touchByCaller(symbols.getArrivingGradient(), /*writes=*/true);
}

/// Walks a handler that may not run.
void OrderChecker::runOptional(zrt::PathStep step) {
  auto followedBefore = followed;
  isOptionalStep = true;
  runHandler(step);
  isOptionalStep = false;
  followed = followedBefore;
  // Whether they were recorded is not known: they count as of earlier paths.
  for (auto op : step.handler.getBody().getOps<zrt::RecordOp>())
    recorded.erase(op.getEventAttr().getAttr());
  for (auto &[memory, before] : withoutStep) {
    SmallVector<Access, 2> &inFlight = state[memory];
    for (const Access &access : before) {
      auto *same = llvm::find_if(
          inFlight, [&](const Access &other) { return other.isSame(access); });
      if (same == inFlight.end()) {
        inFlight.push_back(access);
        continue;
      }
      join(*same, access);
    }
  }
  withoutStep.clear();
}

/// The caller writes to a view of a gradient when it likes, after the events of
/// the bucket's table.
void OrderChecker::checkView(zrt::PathStep step) {
  zrt::BucketTableOp table = symbols.getTable(step.arriving);
  StringAttr memory = symbols.getMemory(table.getGradientAttr());
  for (const Access &earlier : state[memory]) {
    if (follows(static_cast<unsigned>(Stream::compute), earlier) ||
        isListed(table.getWritableAttr(), earlier.event))
      continue;
    InFlightDiagnostic diagnostic = proof.report.opError(table);
    diagnostic << "lends @" << memory.getValue() << " to the caller while "
               << ::describe(earlier)
               << " may use it: add the event of that call to 'writable'";
    note(diagnostic, earlier, program);
    return;
  }
}

void OrderChecker::visit(Operation *op, zrt::PathStep step) {
  if (auto wait = dyn_cast<zrt::WaitOp>(op))
    return this->wait(wait.getEventAttr().getAttr(),
                      static_cast<unsigned>(wait.getStream()));
  if (auto record = dyn_cast<zrt::RecordOp>(op))
    return this->record(record);
  if (isa<zrt::WaitWritableOp>(op)) {
    ArrayAttr events = step.arriving
                           ? symbols.getTable(step.arriving).getWritableAttr()
                           : nullptr;
    if (events)
      for (auto event : events.getAsRange<FlatSymbolRefAttr>())
        wait(event.getAttr(), static_cast<unsigned>(Stream::compute));
    return;
  }
  auto call = cast<zrt::RuntimeCall>(op);
  Access access;
  access.call = call;
  access.stream = static_cast<unsigned>(call.getStream());
  for (const zrt::MemoryUse &use : symbols.getUses(call, step.arriving)) {
    access.writes = use.writes;
    touch(access, use.memory, use.isOptional);
  }
}

void OrderChecker::begin(const zrt::Path &next, State &entered) {
  path = &next;
  state = entered;
  now.fill(0);
  recorded.clear();
  for (unsigned s = 0; s < kNumStreams; ++s) {
    followed[s].fill(-1);
    followed[s][s] = kNever - 1; // a stream follows itself
  }
  // The host waits for the caller's writes between steps, so they are ordered
  // like the compute stream.
  Access caller;
  if (path->from == initial) {
    caller.writes = true;
    for (auto op : program.getOps<zrt::StateOp>())
      // The caller may write, and may not.
      touch(caller, symbols.getMemory(op.getBufferAttr()), /*isOptional=*/true);
  }
  for (auto table : program.getOps<zrt::BucketTableOp>())
    touchByCaller(symbols.getMemory(table.getParametersAttr()),
                  /*writes=*/false);
}

void OrderChecker::walk(const zrt::Path &next) {
  begin(next, states[next.from]);
  for (zrt::PathStep step : next.steps) {
    if (step.arriving)
      checkView(step);
    if (step.isOptional)
      runOptional(step);
    else
      runHandler(step);
  }
  leave(next.to);
}

/// Joins what is in flight with what other paths leave in |target|.
void OrderChecker::leave(StringAttr target) {
  hasChanged |= !states.contains(target);
  State &joined = states[target];
  for (auto &[memory, accesses] : state) {
    SmallVector<Access, 2> &known = joined[memory];
    for (Access access : accesses) {
      if (access.stream == static_cast<unsigned>(Stream::caller))
        continue; // each path has its own
      Clock since;
      for (unsigned s = 0; s < kNumStreams; ++s)
        since[s] = follows(s, access) ? 0 : kNever;
      access.since = since;
      auto same = llvm::find_if(
          known, [&](const Access &other) { return other.isSame(access); });
      if (same == known.end()) {
        known.push_back(access);
        hasChanged = true;
        continue;
      }
      hasChanged |= join(*same, access);
    }
  }
}

/// What writes parameters must have an event that `parameter_wait` waits for.
void OrderChecker::checkReadable() {
  for (auto table : program.getOps<zrt::BucketTableOp>()) {
    StringAttr memory = symbols.getMemory(table.getParametersAttr());
    ArrayAttr events = table.getReadableAttr();
    for (auto &[name, left] : states)
      for (const Access &access : left.lookup(memory)) {
        constexpr auto compute = static_cast<unsigned>(Stream::compute);
        if (!access.call || !access.writes ||
            (events ? isListed(events, access.event)
                    : access.since[compute] == 0))
          continue;
        InFlightDiagnostic diagnostic = proof.report.opError(table);
        diagnostic << "lets the caller read @" << memory.getValue() << " while "
                   << ::describe(access)
                   << " may write it: add the event of that call to 'readable'";
        note(diagnostic, access, program);
        return;
      }
  }
}

void OrderChecker::run() {
  auto transitions = program.getOps<zrt::TransitionOp>();
  if (transitions.empty())
    return;
  findCovered();
  initial = (*transitions.begin()).getStateAttr();
  states[initial];
  std::vector<zrt::Path> paths = zrt::enumeratePaths(program);
  // More is in flight each time, and less is followed, so this ends.
  do {
    hasChanged = false;
    for (const zrt::Path &next : paths) {
      if (!states.contains(next.from))
        continue;
      walk(next);
      if (proof.report.hasErrors())
        return;
    }
  } while (hasChanged);
  checkReadable();
}

void prove::checkOrder(Proof &proof, zrt::ProgramOp program) {
  OrderChecker(proof, program).run();
}
