//===- Schedule.cpp - Streams for calls, and waits for hazards ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/schedule/Passes.h"
#include "passes/schedule/Streams.h"

#include "dialect/zrt/MemoryUses.h"
#include "dialect/zrt/Paths.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace zero {
#define GEN_PASS_DEF_SCHEDULEPASS
#include "passes/schedule/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;
using zrt::Stream;

//===----------------------------------------------------------------------===//
// Hazards
//===----------------------------------------------------------------------===//

namespace {
/// A call that may be in flight and touches some memory.
struct InFlight {
  zrt::RuntimeCall call; // null: the caller
  Stream stream;
  bool writes;
  int64_t step = -1; // in the path; -1: a call of an earlier path

  bool operator==(const InFlight &other) const {
    return call == other.call && stream == other.stream &&
           writes == other.writes;
  }
};

/// By number of a memory: the last write, and the reads after it.
using State = std::vector<SmallVector<InFlight, 2>>;

class Scheduler {
public:
  explicit Scheduler(zrt::ProgramOp program)
      : program(program), symbols(program), names(program) {}

  void run();

private:
  struct Use {
    unsigned memory;
    bool writes;
    bool isOptional;
  };
  using Uses = SmallVector<Use>;

  bool walk(const zrt::Path &path, State state);
  void runHandler(zrt::PathStep step, int64_t index, State &state);
  void readUnit(zrt::PathStep step, State &state);
  void runOptional(zrt::PathStep step, int64_t index, State &state);
  void visit(zrt::RuntimeCall call, zrt::PathStep step, int64_t index,
             State &state);
  void addHazard(zrt::RuntimeCall call, zrt::PathStep step, int64_t index,
                 InFlight earlier);
  Uses getUses(zrt::RuntimeCall call, FlatSymbolRefAttr arriving);
  unsigned number(StringAttr memory);
  void touch(unsigned memory, const InFlight &use, bool isOptional,
             State &state);
  bool join(StringAttr name, const State &state);
  void findReadable();

  SmallVector<Operation *> sortSources(Operation *call,
                                       ArrayRef<Operation *> sources);
  FlatSymbolRefAttr createEvent(Location loc, StringRef name, Stream stream);
  FlatSymbolRefAttr getEvent(Operation *source);
  ArrayAttr getEvents(const llvm::SetVector<Operation *> &sources);
  void emit();
  void waitForCaller(zrt::HandlerOp handler, ArrayRef<Stream> streams);
  void emitForCaller();

  zrt::ProgramOp program;
  zrt::ProgramSymbols symbols;
  SymbolTable names;
  zrt::HandlerOp firstHandler;
  llvm::DenseMap<Operation *, unsigned> places; // of calls in their handlers
  llvm::DenseMap<StringAttr, unsigned> numbers;
  llvm::DenseMap<Operation *, Uses> usesOf;
  llvm::DenseMap<StringAttr, State> states; // of the protocol
  StringAttr initial;
  /// The sources of each call's hazards. A source is a call, or the handler of
  /// the call, which stands for the work of the compute stream before that
  /// handler.
  llvm::MapVector<Operation *, llvm::SetVector<Operation *>> waits;
  /// By handler of arrivals or of a unit: the streams that wait for the
  /// caller's stream, and the calls that the caller's stream waits for.
  llvm::MapVector<Operation *, llvm::SmallSetVector<Stream, 2>> callerWaits;
  llvm::MapVector<Operation *, llvm::SetVector<Operation *>> releases;
  /// The streams that wait for the caller's stream in apply.
  llvm::SmallSetVector<Stream, 2> applyWaits;
  llvm::DenseMap<Attribute, llvm::SetVector<Operation *>> writable;
  llvm::MapVector<zrt::BucketTableOp, llvm::SetVector<Operation *>> readable;
  llvm::DenseMap<Operation *, FlatSymbolRefAttr> events;
};
} // namespace

unsigned Scheduler::number(StringAttr memory) {
  return numbers.try_emplace(memory, numbers.size()).first->second;
}

Scheduler::Uses Scheduler::getUses(zrt::RuntimeCall call,
                                   FlatSymbolRefAttr arriving) {
  auto collect = [&] {
    Uses uses;
    for (const zrt::MemoryUse &use : symbols.getUses(call, arriving))
      uses.push_back({number(use.memory), use.writes, use.isOptional});
    return uses;
  };
  if (arriving)
    return collect();
  auto [it, isNew] = usesOf.try_emplace(call);
  if (isNew)
    it->second = collect();
  return it->second;
}

void Scheduler::addHazard(zrt::RuntimeCall call, zrt::PathStep step,
                          int64_t index, InFlight earlier) {
  Operation *handler = call->getParentOp();
  if (earlier.stream == Stream::caller) {
    (step.arriving || step.unit ? callerWaits[handler] : applyWaits)
        .insert(call.getStream());
    return;
  }
  // A unit is gathered beside other work of the compute stream, and waits for
  // no more of it than it must.
  bool hasEvent = earlier.call && (earlier.step == index || step.unit ||
                                   earlier.stream != Stream::compute);
  Operation *source = hasEvent ? earlier.call.getOperation() : handler;
  if (isa<zrt::PackOp>(call))
    writable[step.arriving].insert(source);
  else
    waits[call].insert(source);
}

void Scheduler::touch(unsigned memory, const InFlight &use, bool isOptional,
                      State &state) {
  if (memory >= state.size())
    state.resize(memory + 1);
  // A write follows all accesses in flight. A read replaces an earlier read on
  // its stream.
  llvm::erase_if(state[memory], [&](const InFlight &other) {
    if (isOptional)
      return other == use;
    return use.writes || (!other.writes && other.stream == use.stream);
  });
  state[memory].push_back(use);
}

void Scheduler::visit(zrt::RuntimeCall call, zrt::PathStep step, int64_t index,
                      State &state) {
  Stream stream = call.getStream();
  Uses uses = getUses(call, step.arriving);
  // All hazards are found first: a call does not wait for itself.
  for (auto [memory, writes, isOptional] : uses) {
    if (memory >= state.size())
      state.resize(memory + 1);
    for (const InFlight &earlier : state[memory])
      if (earlier.stream != stream && (writes || earlier.writes))
        addHazard(call, step, index, earlier);
  }
  for (auto [memory, writes, isOptional] : uses)
    touch(memory, {call, stream, writes, index}, isOptional, state);
}

void Scheduler::runHandler(zrt::PathStep step, int64_t index, State &state) {
  // The caller has written the arriving gradient, and writes it again when it
  // gets it back.
  unsigned arriving = number(symbols.getArrivingGradient());
  InFlight written{nullptr, Stream::caller, /*writes=*/true};
  if (step.arriving)
    touch(arriving, written, /*isOptional=*/false, state);
  for (auto call : step.handler.getBody().getOps<zrt::RuntimeCall>())
    visit(call, step, index, state);
  if (step.unit)
    readUnit(step, state);
  if (step.reshard)
    for (auto call : step.reshard.getBody().getOps<zrt::RuntimeCall>())
      visit(call, step, index, state);
  if (!step.arriving)
    return;
  for (const InFlight &use : state[arriving])
    if (use.call)
      releases[step.handler].insert(use.call);
  touch(arriving, written, /*isOptional=*/false, state);
}

/// The caller's stream reads the parameters of an unsharded unit behind the
/// calls that write them.
void Scheduler::readUnit(zrt::PathStep step, State &state) {
  for (const zrt::UnitPart &part : symbols.getPartsOf(step.unit)) {
    unsigned memory = number(symbols.getMemory(part.unsharded));
    for (const InFlight &use : state[memory])
      if (use.call && use.writes)
        releases[step.handler].insert(use.call);
    touch(memory, {nullptr, Stream::caller, /*writes=*/false},
          /*isOptional=*/false, state);
  }
}

/// |step| may not run. What was in flight before it then still is.
void Scheduler::runOptional(zrt::PathStep step, int64_t index, State &state) {
  llvm::MapVector<unsigned, SmallVector<InFlight, 2>> without;
  for (zrt::HandlerOp handler : step.getHandlers())
    for (auto call : handler.getBody().getOps<zrt::RuntimeCall>())
      for (auto [memory, writes, isOptional] : getUses(call, step.arriving))
        if (memory < state.size())
          without.insert({memory, state[memory]});
  runHandler(step, index, state);
  for (auto &[memory, before] : without)
    for (const InFlight &use : before)
      if (!llvm::is_contained(state[memory], use))
        state[memory].push_back(use);
}

/// Adds |state| to what may be in flight in the state |name| of the protocol.
/// Returns whether more is.
bool Scheduler::join(StringAttr name, const State &state) {
  bool hasChanged = false;
  State &known = states[name];
  known.resize(std::max(known.size(), state.size()));
  for (size_t memory = 0; memory < state.size(); ++memory)
    for (InFlight use : state[memory]) {
      use.step = -1;
      // The caller of another path may have another stream.
      if (use.stream == Stream::caller ||
          llvm::is_contained(known[memory], use))
        continue;
      known[memory].push_back(use);
      hasChanged = true;
    }
  return hasChanged;
}

bool Scheduler::walk(const zrt::Path &path, State state) {
  auto getMemory = [&](FlatSymbolRefAttr buffer) {
    return number(symbols.getMemory(buffer));
  };
  // Between steps the caller may write parameters and state, and need not. It
  // is ordered like the compute stream. The host waits for all streams before
  // and after a write to what belongs to sharded parameters.
  if (path.from == initial)
    for (auto op : program.getOps<zrt::StateOp>())
      if (zrt::BucketTableOp table = symbols.getTable(op.getBucketAttr());
          !table || !table.getUnshardedAttr())
        touch(getMemory(op.getBufferAttr()),
              {nullptr, Stream::compute, /*writes=*/true}, /*isOptional=*/true,
              state);
  // Before apply the caller has read parameters.
  if (path.event == zrt::Event::apply)
    for (auto table : program.getOps<zrt::BucketTableOp>())
      if (!table.getUnshardedAttr())
        touch(getMemory(table.getParametersAttr()),
              {nullptr, Stream::caller, /*writes=*/false}, /*isOptional=*/false,
              state);
  int64_t index = 0;
  for (zrt::PathStep step : path.steps) {
    if (step.isOptional)
      runOptional(step, index, state);
    else
      runHandler(step, index, state);
    ++index;
  }
  return join(path.to, state);
}

/// The writes of parameters that may be in flight when the caller reads them.
/// If all of them are on the compute stream, the caller waits for that stream.
void Scheduler::findReadable() {
  llvm::SetVector<StringAttr> stateNames;
  for (auto transition : program.getOps<zrt::TransitionOp>())
    stateNames.insert(transition.getNextAttr());
  for (auto table : program.getOps<zrt::BucketTableOp>()) {
    if (table.getUnshardedAttr())
      continue; // the caller waits in each handler that unshards
    unsigned memory = number(symbols.getMemory(table.getParametersAttr()));
    llvm::SetVector<Operation *> writes;
    bool isOnCompute = true;
    for (StringAttr name : stateNames) {
      State &known = states[name];
      if (memory < known.size())
        for (const InFlight &use : known[memory])
          if (use.call && use.writes) {
            writes.insert(use.call);
            isOnCompute &= use.stream == Stream::compute;
          }
    }
    if (!isOnCompute)
      readable[table] = std::move(writes);
  }
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

/// The name of an event. It begins with the buffer that the call writes or
/// works on, as in "b0.reduced.reduce_scatter".
static std::string getEventName(Operation *source) {
  if (auto handler = dyn_cast<zrt::HandlerOp>(source))
    return (handler.getSymName() + ".begin").str();
  std::string kind = source->getName().stripDialect().str();
  if (isa<zrt::PackOp>(source))
    return (source->getParentOfType<zrt::HandlerOp>().getSymName() + "." + kind)
        .str();
  if (auto launch = dyn_cast<zrt::LaunchOp>(source))
    // If the kernel writes a buffer, the last buffer is one that it writes.
    if (!launch.getBuffers().empty())
      return (cast<FlatSymbolRefAttr>(launch.getBuffers().getValue().back())
                  .getValue() +
              "." + kind)
          .str();
  for (StringRef name : {"target", "buffer", "bucket", "slots", "program"})
    if (auto own = source->getInherentAttr(name))
      if (auto symbol = dyn_cast_if_present<FlatSymbolRefAttr>(*own))
        return (symbol.getValue() + "." + kind).str();
  return kind;
}

FlatSymbolRefAttr Scheduler::createEvent(Location loc, StringRef name,
                                         Stream stream) {
  auto event = OpBuilder(firstHandler).create<zrt::EventOp>(loc, name, stream);
  names.insert(event);
  return FlatSymbolRefAttr::get(event);
}

/// The event of |source|. It is recorded behind a call, or at the beginning of
/// a handler.
FlatSymbolRefAttr Scheduler::getEvent(Operation *source) {
  FlatSymbolRefAttr &symbol = events[source];
  if (symbol)
    return symbol;
  auto handler = dyn_cast<zrt::HandlerOp>(source);
  Stream stream =
      handler ? Stream::compute : cast<zrt::RuntimeCall>(source).getStream();
  symbol = createEvent(source->getLoc(), getEventName(source), stream);
  OpBuilder builder(source);
  if (handler)
    builder.setInsertionPointToStart(&handler.getBody().front());
  else
    builder.setInsertionPointAfter(source);
  builder.create<zrt::RecordOp>(source->getLoc(), symbol);
  return symbol;
}

ArrayAttr Scheduler::getEvents(const llvm::SetVector<Operation *> &sources) {
  SmallVector<Attribute> symbols;
  for (Operation *source : sources)
    symbols.push_back(getEvent(source));
  return ArrayAttr::get(program.getContext(), symbols);
}

/// Sorts the sources so that those which may imply others are first: calls of
/// the same handler from the last to the first, then the beginning of the
/// handler, then calls of other handlers.
SmallVector<Operation *> Scheduler::sortSources(Operation *call,
                                                ArrayRef<Operation *> sources) {
  SmallVector<Operation *> inHandler, atBegin, others;
  for (Operation *source : sources)
    (source->getBlock() == call->getBlock() &&
             places.lookup(source) < places.lookup(call)
         ? inHandler
     : isa<zrt::HandlerOp>(source) ? atBegin
                                   : others)
        .push_back(source);
  llvm::sort(inHandler, [&](Operation *a, Operation *b) {
    return places.lookup(a) > places.lookup(b);
  });
  llvm::append_range(inHandler, atBegin);
  llvm::append_range(inHandler, others);
  return inHandler;
}

/// |handler| begins with waits of |streams| for the caller.
void Scheduler::waitForCaller(zrt::HandlerOp handler,
                              ArrayRef<Stream> streams) {
  Location loc = handler.getLoc();
  FlatSymbolRefAttr event = createEvent(
      loc, (handler.getSymName() + ".caller").str(), Stream::caller);
  auto builder = OpBuilder::atBlockBegin(&handler.getBody().front());
  builder.create<zrt::RecordOp>(loc, event);
  for (Stream stream : streams)
    builder.create<zrt::WaitOp>(
        loc, event, zrt::StreamAttr::get(program.getContext(), stream));
}

/// Apply begins with the waits for the caller, in a handler of their own: a
/// wait between calls would divide a graph. A handler of arrivals or of a unit
/// begins with them, and ends with those of the caller.
void Scheduler::emitForCaller() {
  MLIRContext *context = program.getContext();
  for (auto &[handler, streams] : callerWaits)
    waitForCaller(cast<zrt::HandlerOp>(handler), streams.getArrayRef());
  if (!applyWaits.empty()) {
    auto transitions = program.getOps<zrt::TransitionOp>();
    OpBuilder builder(*transitions.begin());
    auto handler =
        builder.create<zrt::HandlerOp>(program.getLoc(), "begin_apply");
    handler.getBody().emplaceBlock();
    names.insert(handler);
    waitForCaller(handler, applyWaits.getArrayRef());
    for (zrt::TransitionOp transition : transitions) {
      if (transition.getEvent() != zrt::Event::apply)
        continue;
      SmallVector<Attribute> handlers{FlatSymbolRefAttr::get(handler)};
      llvm::append_range(handlers, transition.getHandlers());
      transition.setHandlersAttr(builder.getArrayAttr(handlers));
    }
  }
  for (auto &[op, sources] : releases)
    for (Operation *source : sources) {
      FlatSymbolRefAttr event = getEvent(source);
      auto builder = OpBuilder::atBlockEnd(source->getBlock());
      builder.create<zrt::WaitOp>(
          source->getLoc(), event,
          zrt::StreamAttr::get(context, Stream::caller));
    }
}

void Scheduler::emit() {
  for (auto &[call, sources] : waits)
    for (Operation *source : sortSources(call, sources.getArrayRef())) {
      FlatSymbolRefAttr event = getEvent(source);
      OpBuilder(call).create<zrt::WaitOp>(
          call->getLoc(), event,
          zrt::StreamAttr::get(program.getContext(),
                               cast<zrt::RuntimeCall>(call).getStream()));
    }
  for (auto table : program.getOps<zrt::BucketTableOp>())
    if (auto it = writable.find(table.getBucketAttr()); it != writable.end())
      table.setWritableAttr(getEvents(it->second));
  for (auto &[table, sources] : readable)
    table.setReadableAttr(getEvents(sources));
  emitForCaller();
  if (writable.empty())
    return;
  for (auto handler : program.getOps<zrt::HandlerOp>())
    for (auto pack : llvm::to_vector(handler.getBody().getOps<zrt::PackOp>()))
      OpBuilder(pack).create<zrt::WaitWritableOp>(pack.getLoc());
}

void Scheduler::run() {
  auto transitions = program.getOps<zrt::TransitionOp>();
  if (transitions.empty())
    return;
  assignStreams(program, symbols);
  for (auto handler : program.getOps<zrt::HandlerOp>()) {
    if (!firstHandler)
      firstHandler = handler;
    // Positions are counted once, since an insertion invalidates the order of a
    // block.
    for (auto [place, call] : llvm::enumerate(handler.getBody().front()))
      places[&call] = place;
  }
  initial = (*transitions.begin()).getStateAttr();
  // Accesses in flight are only added, so this ends.
  zrt::walkPaths(
      zrt::enumeratePaths(program), initial,
      [&](const zrt::Path &path) { return walk(path, states[path.from]); });
  findReadable();
  emit();
}

namespace {
struct SchedulePass : zero::impl::SchedulePassBase<SchedulePass> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<zrt::ProgramOp>())
      Scheduler(program).run();
  }
};
} // namespace
