//===- ProgramInterpreter.cpp - Runs a zrt.program: the protocol ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/interpret/ProgramInterpreter.h"

using namespace mlir;
using namespace zero;
using zrt::Event;

static std::string getKey(StringRef state, Event event) {
  return (state + "/" + zrt::stringifyEvent(event)).str();
}

//===----------------------------------------------------------------------===//
// What is known before the first step
//===----------------------------------------------------------------------===//

LogicalResult ProgramInterpreter::initialize() {
  auto module = program.getOp()->getParentOfType<ModuleOp>();
  auto mesh = module.lookupSymbol<MeshOp>(program.getOp().getMeshAttr());
  if (!mesh)
    return program.getOp().emitOpError() << "is on no mesh of this module";
  ranks = Ranks(mesh);
  initializeProtocol();
  initializePlaces();
  return failure(failed(initializeParameters()) ||
                 failed(program.initialize(ranks)));
}

LogicalResult ProgramInterpreter::initializeParameters() {
  auto module = program.getOp()->getParentOfType<ModuleOp>();
  llvm::StringMap<Parameter> placed;
  for (auto arrivals : program.getOp().getOps<zrt::ArrivalsOp>()) {
    auto bucket = module.lookupSymbol<BucketOp>(arrivals.getBucketAttr());
    for (auto [i, member] :
         llvm::enumerate(bucket.getMembers().getAsRange<FlatSymbolRefAttr>())) {
      auto op = module.lookupSymbol<ParameterOp>(member);
      int64_t begin = bucket.getOffsets()[i];
      placed[op.getSymName()] = {op,
                                 bucket,
                                 arrivals,
                                 {begin, begin + bucket.getNumHeld(op)},
                                 begin + bucket.getExtents()[i]};
    }
  }
  for (auto op : module.getOps<ParameterOp>()) {
    auto it = placed.find(op.getSymName());
    if (it == placed.end())
      continue;
    indices[op.getSymName()] = parameters.size();
    parameters.push_back(it->second);
    expected.push_back({op.getSymName().str(), it->second.range.size(),
                        op.getOptional(), ranks.getHolders(op.getValueType())});
  }
  return success();
}

void ProgramInterpreter::initializePlaces() {
  SymbolTableCollection symbols;
  program.getOp().walk([&](zrt::HandlerOp handler) {
    for (Operation &call : handler.getBody().front())
      if (ValueType type = zrt::getPlace(symbols, &call);
          type && !type.getPresent().empty())
        places[&call] = type;
  });
}

void ProgramInterpreter::initializeProtocol() {
  states.assign(ranks.size(), {});
  for (auto op : program.getOp().getOps<zrt::TransitionOp>()) {
    // The first transition's state is the initial one.
    if (transitions.empty())
      for (RankState &state : states)
        state.protocol = op.getState().str();
    transitions[getKey(op.getState(), op.getEvent())] = op;
  }
}

//===----------------------------------------------------------------------===//
// The protocol
//===----------------------------------------------------------------------===//

LogicalResult ProgramInterpreter::runSideBySide(std::vector<Calls> calls) {
  std::vector<size_t> cursors(calls.size(), 0);
  while (true) {
    for (size_t rank = 0; rank < calls.size(); ++rank)
      for (; cursors[rank] < calls[rank].size(); ++cursors[rank]) {
        Operation *call = calls[rank][cursors[rank]];
        if (zrt::isCollective(call))
          break;
        if (failed(run(call, rank)))
          return failure();
      }
    // Every rank is at a collective, or done.
    auto getNext = [&](size_t rank) {
      return cursors[rank] < calls[rank].size() ? calls[rank][cursors[rank]]
                                                : nullptr;
    };
    Operation *first = getNext(0);
    for (size_t rank = 1; rank < calls.size(); ++rank) {
      Operation *other = getNext(rank);
      if (other == first)
        continue;
      auto describe = [](Operation *op) -> StringRef {
        return op ? op->getName().getStringRef() : "no collective";
      };
      return (first ? first : other)->emitOpError()
             << "would wait forever: rank 0 is at " << describe(first)
             << " and rank " << rank << " at " << describe(other)
             << (first && other ? ", which are not the same op" : "");
    }
    if (!first)
      return success();
    if (failed(runCollective(first)))
      return failure();
    for (size_t &cursor : cursors)
      ++cursor;
  }
}

LogicalResult ProgramInterpreter::runEvent(Event event,
                                           ArrayRef<int64_t> participants) {
  std::vector<Calls> calls(ranks.size());
  for (int64_t rank : participants) {
    RankState &state = states[rank];
    auto transition = transitions.lookup(getKey(state.protocol, event));
    if (!transition)
      return program.getOp().emitError()
             << zrt::stringifyEvent(event) << " is not allowed in state '"
             << state.protocol << "'";
    for (auto symbol :
         transition.getHandlers().getAsRange<FlatSymbolRefAttr>()) {
      zrt::HandlerOp handler = program.getHandler(symbol);
      for (Operation &call : handler.getBody().front())
        calls[rank].push_back(&call);
    }
    state.protocol = transition.getNext().str();
  }
  return runSideBySide(std::move(calls));
}

void ProgramInterpreter::closeBackward(int64_t rank) {
  RankState &state = states[rank];
  for (const ExpectedGradient &gradient : expected)
    state.missing += gradient.arrivesOn[rank] && !gradient.optional &&
                     !state.arrived.contains(gradient.name);
}

LogicalResult ProgramInterpreter::arrive(const Parameter &parameter,
                                         ArrayRef<int64_t> participants) {
  StringRef name = expected[&parameter - parameters.data()].name;
  SmallVector<int64_t> receivers;
  llvm::copy_if(participants, std::back_inserter(receivers), [&](int64_t rank) {
    return window->find(rank, states[rank].backward, name) != nullptr;
  });
  arriving = &parameter;
  LogicalResult result = runEvent(Event::arrive, receivers);
  arriving = nullptr;
  for (int64_t rank : receivers)
    ++states[rank].arrived[name];
  return result;
}

/// One order of arrivals that is allowed: bucket by bucket. Others differ in
/// when a bucket is closed, and not in what is in it.
LogicalResult ProgramInterpreter::runSequence(FlatSymbolRefAttr symbol,
                                              ArrayRef<int64_t> participants) {
  auto sequence = program.getOp().lookupSymbol<zrt::SequenceOp>(symbol);
  for (auto [bucket, handler] : llvm::zip_equal(
           sequence.getBuckets(),
           sequence.getHandlers().getAsRange<FlatSymbolRefAttr>())) {
    for (const Parameter &parameter : parameters) {
      BucketOp own = parameter.bucket;
      if (FlatSymbolRefAttr::get(own) != bucket)
        continue;
      zrt::ArrivalsOp arrivals = parameter.arrivals;
      program.poisonMemoryOf(arrivals.getGradientAttr());
      break;
    }
    for (const Parameter &parameter : parameters) {
      BucketOp own = parameter.bucket;
      if (FlatSymbolRefAttr::get(own) == bucket &&
          failed(arrive(parameter, participants)))
        return failure();
    }
    std::vector<Calls> calls(ranks.size());
    for (int64_t rank : participants)
      for (Operation &call : program.getHandler(handler).getBody().front())
        calls[rank].push_back(&call);
    if (failed(runSideBySide(std::move(calls))))
      return failure();
  }
  return success();
}

LogicalResult ProgramInterpreter::runBackward(int64_t backward) {
  SmallVector<int64_t> participants;
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    if (backward < window->getBackwards(rank))
      participants.push_back(rank);
  for (int64_t rank : participants) {
    states[rank].backward = backward;
    states[rank].arrived.clear();
  }
  if (failed(runEvent(Event::begin, participants)))
    return failure();

  auto transition = transitions.lookup(
      getKey(states[participants.front()].protocol, Event::arrive));
  if (transition && transition.getSequenceAttr()) {
    if (failed(runSequence(transition.getSequenceAttr(), participants)))
      return failure();
  } else {
    for (const Parameter &parameter : parameters)
      if (failed(arrive(parameter, participants)))
        return failure();
  }

  // A rank's last backward may be closed by apply.
  SmallVector<int64_t> closing;
  for (int64_t rank : participants) {
    closeBackward(rank);
    if (backward + 1 < window->getBackwards(rank) || window->closesLast(rank))
      closing.push_back(rank);
  }
  return runEvent(Event::accumulate, closing);
}

/// Whether a handler of |event| has a collective, anywhere in the protocol.
bool ProgramInterpreter::communicatesBefore(Event event) {
  for (auto op : program.getOp().getOps<zrt::TransitionOp>()) {
    if (op.getEvent() == Event::discard || op.getEvent() >= event)
      continue;
    SmallVector<Attribute> handlers(op.getHandlers().getValue());
    if (FlatSymbolRefAttr symbol = op.getSequenceAttr())
      llvm::append_range(
          handlers,
          program.getOp().lookupSymbol<zrt::SequenceOp>(symbol).getHandlers());
    for (Attribute symbol : handlers)
      for (Operation &call : program.getHandler(cast<FlatSymbolRefAttr>(symbol))
                                 .getBody()
                                 .front())
        if (zrt::isCollective(&call))
          return true;
  }
  return false;
}

LogicalResult ProgramInterpreter::openWindow(ArrayRef<RankInputs> perRank) {
  zrt::ProgramOp op = program.getOp();
  FailureOr<Window> created = Window::create(
      op, ranks.size(), op.getInputs().size(), expected, perRank);
  if (failed(created))
    return failure();
  window = *created;
  return success();
}

bool ProgramInterpreter::isStuck() {
  return !window->isEqual() && communicatesBefore(Event::apply);
}

LogicalResult ProgramInterpreter::runBackwards() {
  program.poisonGradients();
  for (RankState &state : states) {
    state.missing = 0;
    state.settled = false;
  }
  for (int64_t b = 0; b < window->getLargestBackwards(); ++b)
    if (failed(runBackward(b)))
      return failure();
  return success();
}

LogicalResult ProgramInterpreter::discard(ArrayRef<RankInputs> perRank) {
  if (failed(openWindow(perRank)))
    return failure();
  if (isStuck())
    return program.getOp().emitError()
           << "ranks that wait for each other in each backward make "
              "different numbers of them";
  if (failed(runBackwards()))
    return failure();
  return runEvent(Event::discard, getEveryone());
}

FailureOr<StepResult> ProgramInterpreter::apply(ArrayRef<RankInputs> perRank) {
  if (failed(openWindow(perRank)))
    return failure();
  if (isStuck()) {
    StepResult refused;
    refused.verdict = 3;
    refused.backwards = window->getBackwards(0);
    refused.message = window->describe(3);
    return refused;
  }
  if (failed(runBackwards()))
    return failure();
  zrt::ProgramOp op = program.getOp();
  for (int64_t rank = 0; rank < ranks.size(); ++rank)
    for (auto [symbol, value] :
         llvm::zip_equal(op.getInputs().getAsRange<FlatSymbolRefAttr>(),
                         window->getInputs(rank)))
      program.getSlots(rank)[program.getFirstSlot(symbol)] = {value, 0};
  if (failed(runEvent(Event::apply, getEveryone())))
    return failure();
  return collectResult();
}

FailureOr<StepResult> ProgramInterpreter::collectResult() {
  zrt::ProgramOp op = program.getOp();
  StepResult result;
  result.verdict = states[0].verdict;
  result.backwards = window->getBackwards(0);
  for (int64_t rank = 0; rank < ranks.size(); ++rank) {
    if (!states[rank].settled)
      return op.emitError()
             << "apply ends on rank " << rank << " without zrt.settle";
    if (states[rank].verdict != result.verdict)
      return op.emitError()
             << "ranks 0 and " << rank << " disagree on the verdict, "
             << result.verdict << " and " << states[rank].verdict;
  }
  for (auto symbol : op.getResults().getAsRange<FlatSymbolRefAttr>()) {
    Number slot = program.getSlots(0)[program.getFirstSlot(symbol)];
    result.values.push_back(slot.value);
    result.bounds.push_back(slot.bound);
  }
  result.message = window->describe(result.verdict, op.getTokensInput());
  return result;
}
