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
// so the calls in flight with and without the handler of an arrival are united.
// Each pipeline stage has an order of its own, and runs only the calls that are
// on it.
//
// The caller has a stream, too. It writes each arriving gradient before and
// after the handlers of its arrival, and reads parameters until apply. Another
// call may pass another stream, so nothing that the caller's stream follows is
// known to others. The caller reads parameters of a unit only while the unit is
// unsharded.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Order.h"

#include "passes/prove/InFlight.h"

#include "dialect/zrt/MemoryUses.h"
#include "dialect/zrt/Paths.h"
#include "dialect/zrt/Stages.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;
using zrt::Stream;

namespace {
/// What is in flight in each memory, by its number.
using State = std::vector<SmallVector<Access, 2>>;

/// What a call does with a memory.
struct NumberedUse {
  unsigned memory;
  bool writes;
};

class OrderChecker {
public:
  OrderChecker(Proof &proof, zrt::ProgramOp program)
      : proof(proof), program(program), symbols(program),
        callerStream(static_cast<unsigned>(
            program.isScheduled() ? Stream::caller : Stream::compute)) {}

  void run(ArrayRef<AxisCoordinate> stage);

private:
  void findElsewhere(ArrayRef<AxisCoordinate> stage);
  void findCallerUses();
  unsigned getNumber(StringAttr memory);
  unsigned getNumber(FlatSymbolRefAttr symbol) {
    return getNumber(symbols.getMemory(symbol));
  }
  ArrayRef<NumberedUse> getUses(zrt::RuntimeCall call);
  void begin(const zrt::Path &path, State &state);
  bool walk(const zrt::Path &path);
  void visit(Operation *call, zrt::PathStep step);
  void runHandler(zrt::PathStep step);
  void runOptional(zrt::PathStep step);
  void touchByCaller(unsigned memory, bool writes);
  void checkRelease(zrt::PathStep step);
  void readUnit(zrt::PathStep step);
  SmallVector<Access, 2> &inFlightOn(unsigned memory);
  void checkView(zrt::PathStep step);
  void wait(StringAttr event, unsigned stream);
  void touch(Access access, unsigned memory, bool isOptional);
  void keep(Access &access, unsigned memory, bool pathEnds);
  bool leave(StringAttr target);
  void checkReadable();
  void report(Operation *call, const Access &earlier, unsigned memory);
  void note(InFlightDiagnostic &diagnostic, const Access &earlier);
  std::string describe(unsigned memory) const;
  std::string describePlace(Operation *call);
  bool isBehindOne(ArrayAttr events, const Access &access) const {
    return events &&
           llvm::any_of(events.getAsRange<FlatSymbolRefAttr>(),
                        [&](auto symbol) {
                          return clocks.isBehind(symbol.getAttr(), access);
                        });
  }

  Proof &proof;
  zrt::ProgramOp program;
  zrt::ProgramSymbols symbols;
  /// Without a schedule the caller is ordered with the calls.
  const unsigned callerStream;
  StringAttr initial;
  /// The calls, tables and states that the pipeline stage does not have.
  llvm::DenseSet<Operation *> elsewhere;
  llvm::DenseSet<Attribute> bucketsElsewhere;
  llvm::DenseMap<StringAttr, unsigned> numbers; // of memories
  SmallVector<StringAttr> memories;             // by number
  /// By call and the bucket of the gradient that arrives.
  llvm::DenseMap<std::pair<Operation *, Attribute>, SmallVector<NumberedUse, 4>>
      usesOf;
  /// Memory that the caller may write between steps.
  SmallVector<unsigned> writtenByCaller;
  /// Parameters that the caller may read until apply.
  SmallVector<unsigned> readByCaller;
  /// The memory of accesses that have kept an event.
  llvm::DenseMap<StringAttr, llvm::SetVector<unsigned>> covered;
  llvm::MapVector<StringAttr, State> states; // of the protocol

  // Of the path that is walked.
  const zrt::Path *path = nullptr;
  State state;
  StreamClocks clocks;
  /// What was in flight before the arrival that is walked, where that changed.
  llvm::MapVector<unsigned, SmallVector<Access, 2>> withoutStep;
  bool isOptionalStep = false;
  FlatSymbolRefAttr arriving; // the bucket of the step's gradient, or null
  zrt::UnitTableOp unit;      // the unit whose handlers run, or null
};
} // namespace

void OrderChecker::findElsewhere(ArrayRef<AxisCoordinate> stage) {
  SymbolTableCollection places;
  auto visit = [&](Operation *op) {
    ValueType place = zrt::getPlace(places, op);
    if (!place || place.isOnStage(stage))
      return;
    elsewhere.insert(op);
    if (auto table = dyn_cast<zrt::BucketTableOp>(op))
      bucketsElsewhere.insert(table.getBucketAttr());
  };
  for (Operation &op : program.getBody().front()) {
    if (auto handler = dyn_cast<zrt::HandlerOp>(op))
      for (Operation &call : handler.getBody().front())
        visit(&call);
    else if (isa<zrt::BucketTableOp, zrt::StateOp>(op))
      visit(&op);
  }
}

unsigned OrderChecker::getNumber(StringAttr memory) {
  auto [it, isNew] = numbers.try_emplace(memory, memories.size());
  if (isNew)
    memories.push_back(memory);
  return it->second;
}

ArrayRef<NumberedUse> OrderChecker::getUses(zrt::RuntimeCall call) {
  auto [it, isNew] = usesOf.try_emplace({call, arriving});
  if (isNew)
    for (const zrt::MemoryUse &use : symbols.getUses(call, arriving))
      it->second.push_back({getNumber(use.memory), use.writes});
  return it->second;
}

/// The caller's writes between steps are ordered like the compute stream. The
/// host waits for all streams before and after a write to what belongs to
/// sharded parameters.
void OrderChecker::findCallerUses() {
  for (auto op : program.getOps<zrt::StateOp>())
    if (zrt::BucketTableOp table = symbols.getTable(op.getBucketAttr());
        !elsewhere.contains(op) && (!table || !table.getUnshardedAttr()))
      writtenByCaller.push_back(getNumber(op.getBufferAttr()));
  for (auto table : program.getOps<zrt::BucketTableOp>())
    if (!elsewhere.contains(table) && !table.getUnshardedAttr())
      readByCaller.push_back(getNumber(table.getParametersAttr()));
}

void OrderChecker::wait(StringAttr event, unsigned stream) {
  if (clocks.hasRecorded(event))
    return clocks.wait(event, stream);
  // It was recorded on an earlier path, if at all.
  if (auto it = covered.find(event); it != covered.end())
    for (unsigned memory : it->second)
      for (Access &access : inFlightOn(memory))
        if (access.hasEvent(event))
          clocks.follow(access, stream);
}

void OrderChecker::note(InFlightDiagnostic &diagnostic, const Access &earlier) {
  if (earlier.call)
    diagnostic.attachNote(earlier.call->getLoc()) << "which is here";
  else if (earlier.writes &&
           earlier.stream == static_cast<unsigned>(Stream::caller))
    diagnostic.attachNote(program->getLoc())
        << "the caller writes a gradient before the gradient arrives, and may "
           "write it again when the arrival is handled";
  else if (unit)
    diagnostic.attachNote(unit->getLoc())
        << "the caller reads the parameters of a unit until the unit is "
           "resharded";
  else
    diagnostic.attachNote(program->getLoc())
        << "the caller reads parameters until apply, and writes state between "
           "steps";
  if (!earlier.mayHaveMoreEvents())
    return;
  Diagnostic &events = diagnostic.attachNote(program->getLoc());
  events << "the proof knows the first " << kMostEvents
         << " events behind it, so a later one may order it; a wait for one of "
            "these is enough: ";
  llvm::interleaveComma(earlier.events, events, [&](const EventOfStream &kept) {
    events << "@" << kept.event.getValue();
  });
}

std::string OrderChecker::describe(unsigned memory) const {
  std::string text = zrt::describeMemory(memories[memory]);
  if (memories[memory] == symbols.getArrivingGradient() && arriving)
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

/// What the caller calls when |call| runs. A unit's calls are on many paths.
std::string OrderChecker::describePlace(Operation *call) {
  if (!unit)
    return zrt::stringifyEvent(path->event).str();
  auto handler =
      FlatSymbolRefAttr::get(call->getParentOfType<zrt::HandlerOp>());
  return ((handler == unit.getReshardAttr() ? "reshard of @" : "unshard of @") +
          unit.getUnit())
      .str();
}

void OrderChecker::report(Operation *call, const Access &earlier,
                          unsigned memory) {
  auto stream = cast<zrt::RuntimeCall>(call).getStream();
  InFlightDiagnostic diagnostic = proof.report.opError(call);
  diagnostic << "races with " << ::describe(earlier) << " for "
             << describe(memory) << ": on " << describePlace(call)
             << " in state '" << path->from.getValue() << "', stream '"
             << zrt::stringifyStream(stream)
             << "' does not wait for an event behind that";
  note(diagnostic, earlier);
}

void OrderChecker::touch(Access access, unsigned memory, bool isOptional) {
  SmallVector<Access, 2> &inFlight = inFlightOn(memory);
  bool reported = false;
  for (const Access &earlier : inFlight)
    if ((access.writes || earlier.writes) && access.call && !reported &&
        !clocks.follows(access.stream, earlier)) {
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
  clocks.start(access);
  inFlight.push_back(access);
}

SmallVector<Access, 2> &OrderChecker::inFlightOn(unsigned memory) {
  if (memory >= state.size())
    state.resize(memories.size());
  SmallVector<Access, 2> &inFlight = state[memory];
  if (isOptionalStep)
    withoutStep.insert({memory, inFlight});
  return inFlight;
}

void OrderChecker::touchByCaller(unsigned memory, bool writes) {
  Access caller;
  caller.stream = callerStream;
  caller.writes = writes;
  touch(caller, memory, /*isOptional=*/false);
}

/// The caller may write a gradient again when its stream has waited at the end
/// of the handler, or at the timepoint that stands for this wait.
void OrderChecker::checkRelease(zrt::PathStep step) {
  unsigned memory = getNumber(symbols.getArrivingGradient());
  for (const Access &earlier : inFlightOn(memory)) {
    if (!earlier.call || clocks.follows(callerStream, earlier))
      continue;
    InFlightDiagnostic diagnostic = proof.report.opError(step.handler);
    diagnostic << "gives " << describe(memory) << " back to the caller while "
               << ::describe(earlier)
               << " may read it: let stream 'caller' wait for an event behind "
                  "that call";
    note(diagnostic, earlier);
    return;
  }
}

/// While a unit is unsharded, the caller reads it on its stream.
void OrderChecker::readUnit(zrt::PathStep step) {
  for (const zrt::UnitPart &part : symbols.getPartsOf(step.unit)) {
    unsigned memory = getNumber(part.unsharded);
    for (const Access &earlier : inFlightOn(memory)) {
      if (!earlier.call || !earlier.writes ||
          clocks.follows(callerStream, earlier))
        continue;
      InFlightDiagnostic diagnostic = proof.report.opError(step.handler);
      diagnostic << "lets the caller read " << describe(memory) << " while "
                 << ::describe(earlier)
                 << " may write it: let stream 'caller' wait for an event "
                    "behind that call";
      note(diagnostic, earlier);
      break;
    }
    touchByCaller(memory, /*writes=*/false);
  }
}

void OrderChecker::runHandler(zrt::PathStep step) {
  arriving = step.arriving;
  unit = step.unit;
  if (arriving)
    touchByCaller(getNumber(symbols.getArrivingGradient()), /*writes=*/true);
  for (Operation &call : step.handler.getBody().front())
    visit(&call, step);
  if (step.unit) {
    readUnit(step);
    for (Operation &call : step.reshard.getBody().front())
      visit(&call, step);
  }
  unit = nullptr;
  if (!arriving)
    return;
  checkRelease(step);
  touchByCaller(getNumber(symbols.getArrivingGradient()), /*writes=*/true);
}

void OrderChecker::keep(Access &access, unsigned memory, bool pathEnds) {
  clocks.keep(access, pathEnds);
  for (const EventOfStream &kept : access.events)
    covered[kept.event].insert(memory);
}

/// Walks a handler that may not run. If a call of the handler is in flight, the
/// handler has run, so its own calls may rely on the waits of its streams.
void OrderChecker::runOptional(zrt::PathStep step) {
  StreamClocks::Mark before = clocks.mark();
  isOptionalStep = true;
  runHandler(step);
  isOptionalStep = false;
  for (auto &[memory, ignored] : withoutStep)
    for (Access &access : state[memory])
      keep(access, memory, /*pathEnds=*/false);
  clocks.forget(before);
  for (auto &[memory, before] : withoutStep)
    for (const Access &access : before)
      unite(state[memory], access);
  withoutStep.clear();
}

/// The caller writes to a view of a gradient when it likes, after the events of
/// the bucket's table.
void OrderChecker::checkView(zrt::PathStep step) {
  zrt::BucketTableOp table = symbols.getTable(step.arriving);
  unsigned memory = getNumber(table.getGradientAttr());
  for (const Access &earlier : inFlightOn(memory)) {
    if (clocks.follows(static_cast<unsigned>(Stream::compute), earlier) ||
        isBehindOne(table.getWritableAttr(), earlier))
      continue;
    InFlightDiagnostic diagnostic = proof.report.opError(table);
    diagnostic << "lends @" << memories[memory].getValue()
               << " to the caller while " << ::describe(earlier)
               << " may use it: add the event of that call to 'writable'";
    note(diagnostic, earlier);
    return;
  }
}

void OrderChecker::visit(Operation *op, zrt::PathStep step) {
  if (auto wait = dyn_cast<zrt::WaitOp>(op))
    return this->wait(wait.getEventAttr().getAttr(),
                      static_cast<unsigned>(wait.getStream()));
  if (auto record = dyn_cast<zrt::RecordOp>(op)) {
    auto event = symbols.lookup<zrt::EventOp>(record.getEventAttr());
    return clocks.record(event.getSymNameAttr(),
                         static_cast<unsigned>(event.getStream()));
  }
  if (isa<zrt::WaitWritableOp>(op)) {
    ArrayAttr events = step.arriving
                           ? symbols.getTable(step.arriving).getWritableAttr()
                           : nullptr;
    if (events)
      for (auto event : events.getAsRange<FlatSymbolRefAttr>())
        wait(event.getAttr(), static_cast<unsigned>(Stream::compute));
    return;
  }
  if (elsewhere.contains(op))
    return;
  auto call = cast<zrt::RuntimeCall>(op);
  Access access;
  access.call = call;
  access.stream = static_cast<unsigned>(call.getStream());
  for (const NumberedUse &use : getUses(call)) {
    access.writes = use.writes;
    touch(access, use.memory, /*isOptional=*/false);
  }
}

void OrderChecker::begin(const zrt::Path &next, State &entered) {
  path = &next;
  state = entered;
  clocks.begin();
  if (path->from == initial) {
    Access caller;
    caller.writes = true;
    for (unsigned memory : writtenByCaller)
      touch(caller, memory, /*isOptional=*/true); // it may, and may not
  }
  for (unsigned memory : readByCaller)
    touchByCaller(memory, /*writes=*/false);
}

bool OrderChecker::walk(const zrt::Path &next) {
  if (proof.report.hasErrors())
    return false; // others would be told again
  begin(next, states[next.from]);
  for (zrt::PathStep step : next.steps) {
    if (bucketsElsewhere.contains(step.arriving) ||
        bucketsElsewhere.contains(step.closed))
      continue;
    if (step.arriving)
      checkView(step);
    if (step.arriving || step.unit)
      runOptional(step);
    else
      runHandler(step);
  }
  return leave(next.to);
}

/// Joins what is in flight with what other paths leave in |target|. Returns
/// whether more is in flight there.
bool OrderChecker::leave(StringAttr target) {
  bool hasChanged = false;
  State &joined = states[target];
  if (joined.size() < state.size())
    joined.resize(state.size());
  for (unsigned memory = 0; memory < state.size(); ++memory) {
    SmallVector<Access, 2> &known = joined[memory];
    for (Access &access : state[memory]) {
      if (access.stream == static_cast<unsigned>(Stream::caller))
        continue; // each path has its own
      keep(access, memory, /*pathEnds=*/true);
      hasChanged |= unite(known, access);
    }
  }
  return hasChanged;
}

/// What writes parameters must have an event that `parameter_wait` waits for.
void OrderChecker::checkReadable() {
  clocks.begin(); // each event is of an earlier path
  for (auto table : program.getOps<zrt::BucketTableOp>()) {
    if (elsewhere.contains(table) || table.getUnshardedAttr())
      continue;
    unsigned memory = getNumber(table.getParametersAttr());
    ArrayAttr events = table.getReadableAttr();
    for (auto &[name, left] : states) {
      if (memory >= left.size())
        continue;
      for (const Access &access : left[memory]) {
        constexpr auto compute = static_cast<unsigned>(Stream::compute);
        if (!access.call || !access.writes ||
            (events ? isBehindOne(events, access) : access.since[compute] == 0))
          continue;
        InFlightDiagnostic diagnostic = proof.report.opError(table);
        diagnostic << "lets the caller read @" << memories[memory].getValue()
                   << " while " << ::describe(access)
                   << " may write it: add the event of that call to 'readable'";
        note(diagnostic, access);
        return;
      }
    }
  }
}

void OrderChecker::run(ArrayRef<AxisCoordinate> stage) {
  auto transitions = program.getOps<zrt::TransitionOp>();
  if (transitions.empty())
    return;
  if (!stage.empty())
    findElsewhere(stage);
  initial = (*transitions.begin()).getStateAttr();
  findCallerUses();
  std::vector<zrt::Path> paths = zrt::enumeratePaths(program);
  // More is in flight after each change, and less is followed, so this ends.
  zrt::walkPaths(paths, initial,
                 [&](const zrt::Path &next) { return walk(next); });
  if (proof.report.hasErrors())
    return;
  checkReadable();
}

void prove::checkOrder(Proof &proof, zrt::ProgramOp program) {
  for (const zrt::Stage &stage : zrt::enumerateStages(program)) {
    OrderChecker(proof, program).run(stage);
    if (proof.report.hasErrors())
      return;
  }
  checkCollectiveStream(proof, program);
}
