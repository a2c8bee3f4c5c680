//===- ProgramReader.cpp - The meaning of a scheduled step ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks the protocol's automaton. In each state memory is one function of what
// arrived so far, however often the state was passed: that is the induction
// over the number of backwards. Each way to apply gives a meaning, and all must
// agree.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/AppliedStep.h"
#include "passes/prove/Calls.h"
#include "passes/prove/Gradient.h"
#include "passes/prove/IdleState.h"
#include "passes/prove/Order.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

namespace {

/// A state of the protocol, and what is known there.
struct Node {
  StringAttr state;
  bool isOpen = false;
  bool hasEarlier = false; // a backward was closed
  Memory memory;

  /// Contents must be a function of these.
  bool isAt(const Node &other) const {
    return state == other.state && isOpen == other.isOpen &&
           hasEarlier == other.hasEarlier && memory.hasSameRoles(other.memory);
  }
};

class ProgramReader {
public:
  ProgramReader(Proof &proof, zrt::ProgramOp program)
      : proof(proof), algebra(proof.algebra), program(program) {}

  std::optional<Meaning> run();

private:
  bool initialize();
  void enter(Node node, Operation *from);
  void explore(const Node &node, zrt::TransitionOp transition);
  void receive(Node &node);
  void receiveInOrder(Node &node, zrt::TransitionOp transition);
  void receiveBucket(Node &node, zrt::TransitionOp transition,
                     FlatSymbolRefAttr bucket);
  void runHandler(FlatSymbolRefAttr symbol, Memory &memory);
  void runHandlers(zrt::TransitionOp transition, Memory &memory);
  void apply(const Node &node, zrt::TransitionOp transition, Memory &memory);
  void requireEvents(const Node &node);
  void compareCollectives(zrt::TransitionOp transition);
  bool returns(zrt::TransitionOp transition);
  bool communicatesBeforeApply(zrt::TransitionOp transition);

  zrt::TransitionOp getTransition(StringAttr state, zrt::Event event) {
    for (zrt::TransitionOp op : transitions)
      if (op.getStateAttr() == state && op.getEvent() == event)
        return op;
    return nullptr;
  }

  Proof &proof;
  Algebra &algebra;
  zrt::ProgramOp program;
  MeshOp mesh;
  Meaning meaning;
  Buckets buckets;
  std::optional<Calls> calls;
  SmallVector<zrt::TransitionOp> transitions;
  SmallVector<zrt::ArrivalsOp> arrivals;
  std::optional<IdleState> idle;
  std::vector<Node> nodes;
  std::vector<Node> pending;
  std::optional<Meaning> applied;
  zrt::TransitionOp appliedBy; // the first
  SmallVector<std::pair<StringRef, DictionaryAttr>> applyCollectives;
};

} // namespace

bool ProgramReader::initialize() {
  auto module = program->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  mesh = symbols.lookup<MeshOp>(program.getMeshAttr().getAttr());
  if (!readMesh(proof, program, mesh, meaning))
    return false;
  meaning.numInputs = program.getInputs().size();
  llvm::append_range(transitions, program.getOps<zrt::TransitionOp>());
  llvm::append_range(arrivals, program.getOps<zrt::ArrivalsOp>());
  for (zrt::TransitionOp op : transitions)
    meaning.communicatesInLoop |= communicatesBeforeApply(op);
  SymbolTable inner(program);
  for (zrt::ArrivalsOp op : arrivals) {
    auto bucket = symbols.lookup<BucketOp>(op.getBucketAttr().getAttr());
    auto gradient = inner.lookup<zrt::BufferOp>(op.getGradientAttr().getAttr());
    for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>()) {
      ParameterMeaning &parameter = meaning.parameters[member.getAttr()];
      if (parameter.op)
        proof.report.error(op) << "gradient of " << member << " arrives twice";
      parameter.op = symbols.lookup<ParameterOp>(member.getAttr());
      parameter.weight = algebra.divide(
          algebra.integer(1),
          getMonomial(algebra, mesh, gradient.getValueType().getScale()));
      parameter.arrival = bucket.getArrivalType();
      parameter.kept = Precision(gradient.getValueType().getElementType());
    }
  }
  buckets = readBuckets(module);
  calls.emplace(proof, program, buckets, meaning);
  idle.emplace(proof, program, buckets, meaning.ranks);
  if (transitions.empty()) {
    proof.report.error(program) << "has no protocol: no gradient can arrive";
    return false;
  }
  return !proof.report.hasErrors();
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

void ProgramReader::runHandler(FlatSymbolRefAttr symbol, Memory &memory) {
  auto handler = program.lookupSymbol<zrt::HandlerOp>(symbol);
  for (Operation &call : handler.getBody().front())
    calls->run(&call, memory);
}

void ProgramReader::runHandlers(zrt::TransitionOp transition, Memory &memory) {
  for (auto symbol : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    runHandler(symbol, memory);
}

void ProgramReader::receiveBucket(Node &node, zrt::TransitionOp transition,
                                  FlatSymbolRefAttr bucket) {
  calls->arriving = calls->getArrivals(bucket);
  runHandlers(transition, node.memory);
  calls->arriving = nullptr;
}

/// With a sequence: in the order in which buckets are closed, each as late as
/// may be; buckets that may be open by then must not be touched.
void ProgramReader::receiveInOrder(Node &node, zrt::TransitionOp transition) {
  auto sequence =
      program.lookupSymbol<zrt::SequenceOp>(transition.getSequenceAttr());
  auto buckets =
      llvm::to_vector(sequence.getBuckets().getAsRange<FlatSymbolRefAttr>());
  for (auto bucket : llvm::ArrayRef(buckets).take_front(sequence.getWindow()))
    if (auto gradient = calls->getArrivals(bucket).getGradientAttr();
        !node.memory.get(gradient).allocated)
      proof.report.error(sequence)
          << gradient << ", into which gradients may arrive at once, is not "
          << "allocated in state '" << node.state.getValue() << "'";
  for (auto [i, handler] : llvm::enumerate(
           sequence.getHandlers().getAsRange<FlatSymbolRefAttr>())) {
    receiveBucket(node, transition, buckets[i]);
    size_t end = std::min(buckets.size(), i + sequence.getWindow());
    for (size_t open = i + 1; open < end; ++open)
      calls->filling.insert(
          node.memory.get(calls->getArrivals(buckets[open]).getGradientAttr())
              .op.getMemory()
              .getAttr());
    runHandler(handler, node.memory);
    calls->filling.clear();
  }
}

/// All gradients of the open backward arrive, or do not: that is in the pieces.
void ProgramReader::receive(Node &node) {
  auto transition = getTransition(node.state, zrt::Event::arrive);
  if (!transition)
    return;
  if (transition.getNextAttr() != node.state)
    proof.report.error(transition)
        << "a gradient that arrives leads to state '" << transition.getNext()
        << "': what comes next would depend on the order of arrivals";
  for (auto symbol : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    for (Operation &call :
         program.lookupSymbol<zrt::HandlerOp>(symbol).getBody().front())
      if (!isa<zrt::PackOp>(call)) {
        proof.report.error(&call)
            << "runs once per arriving gradient, in an order that differs by "
               "rank"
            << (zrt::isCollective(&call) ? ": ranks would wait for each other"
                                         : "");
        return;
      }
  calls->inBackward = true;
  int64_t packs = 0;
  for (auto symbol : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    packs += llvm::range_size(
        program.lookupSymbol<zrt::HandlerOp>(symbol).getBody().front());
  if (packs != 1) {
    proof.report.error(transition)
        << "packs an arriving gradient " << packs << " times, expected once";
    return;
  }
  if (transition.getSequenceAttr())
    return receiveInOrder(node, transition);
  for (zrt::ArrivalsOp op : arrivals)
    receiveBucket(node, transition, op.getBucketAttr());
}

/// What is known where |node| was reached in several ways: what they agree on.
void ProgramReader::enter(Node node, Operation *from) {
  auto known =
      llvm::find_if(nodes, [&](const Node &known) { return known.isAt(node); });
  if (known == nodes.end()) {
    nodes.push_back(node);
    pending.push_back(std::move(node));
    return;
  }
  bool isNew = false;
  for (auto &[name, contents] : known->memory.buffers) {
    const Contents &now = node.memory.buffers.find(name)->second;
    if (contents.holdsSame(now))
      continue;
    if (contents.allocated != now.allocated)
      proof.report.error(from)
          << "state '" << node.state.getValue() << "' is reached with @"
          << name.getValue() << " allocated, and without";
    Contents before = contents;
    contents.forget(algebra, "what @" + name.getValue() +
                                 " holds, which depends on the number of "
                                 "backwards");
    contents.writer = now.writer;
    isNew |= !contents.holdsSame(before);
  }
  for (auto &[slot, number] : known->memory.slots) {
    Number now = node.memory.slots.lookup(slot);
    if (number == now)
      continue;
    Number before = number;
    number = {algebra.undefined("slot " + std::to_string(slot.second) +
                                " of @" + slot.first.getValue().str() +
                                ", which depends on the number of backwards"),
              {}};
    isNew |= !(number == before);
  }
  if (isNew)
    pending.push_back(*known);
}

void ProgramReader::explore(const Node &node, zrt::TransitionOp transition) {
  zrt::Event event = transition.getEvent();
  Node next = node;
  next.state = transition.getNextAttr();
  calls->inBackward = node.isOpen;
  auto refuse = [&](StringRef why) {
    proof.report.error(transition)
        << zrt::stringifyEvent(event) << " in state '" << transition.getState()
        << "' " << why;
  };
  switch (event) {
  case zrt::Event::begin:
    if (node.isOpen)
      return refuse("begins a backward while one is open");
    runHandlers(transition, next.memory);
    next.isOpen = true;
    return enter(std::move(next), transition);
  case zrt::Event::arrive:
    if (!node.isOpen)
      refuse("takes a gradient of no open backward");
    return; // when the state was entered
  case zrt::Event::accumulate:
    if (!node.isOpen)
      return refuse("closes a backward that is not open");
    closeBackward(algebra, next.memory, !node.hasEarlier);
    runHandlers(transition, next.memory);
    calls->settleAbsent(transition, next.memory);
    next.isOpen = false;
    next.hasEarlier = true;
    return enter(std::move(next), transition);
  case zrt::Event::apply:
    if (!node.isOpen && !node.hasEarlier)
      return refuse("applies a step of no backward");
    return apply(node, transition, next.memory);
  case zrt::Event::discard:
    runHandlers(transition, next.memory);
    if (!returns(transition))
      return;
    idle->checkBuffers(transition, next.memory);
    idle->checkSkipped(transition, next.memory);
    return;
  }
}

//===----------------------------------------------------------------------===//
// Applying
//===----------------------------------------------------------------------===//

/// Ranks with unequal numbers of backwards apply from different states, and
/// agree to refuse the step only if they meet at the same collectives on the
/// way.
void ProgramReader::compareCollectives(zrt::TransitionOp transition) {
  SmallVector<std::pair<StringRef, DictionaryAttr>> collectives;
  for (auto symbol : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    for (Operation &call :
         program.lookupSymbol<zrt::HandlerOp>(symbol).getBody().front())
      if (zrt::isCollective(&call))
        collectives.push_back(
            {call.getName().getStringRef(), call.getAttrDictionary()});
  if (!appliedBy) {
    applyCollectives = std::move(collectives);
    appliedBy = transition;
    return;
  }
  if (collectives == applyCollectives || meaning.communicatesInLoop)
    return;
  InFlightDiagnostic diagnostic = proof.report.error(transition);
  diagnostic
      << "apply in state '" << transition.getState()
      << "' has other collectives than in state '" << appliedBy.getState()
      << "': ranks with unequal numbers of backwards would wait for each "
         "other for ever";
  diagnostic.attachNote(appliedBy.getLoc()) << "the other one";
}

/// A step that is over leads to where steps begin.
bool ProgramReader::returns(zrt::TransitionOp transition) {
  StringAttr first = nodes.front().state;
  if (transition.getNextAttr() == first)
    return true;
  proof.report.error(transition)
      << zrt::stringifyEvent(transition.getEvent()) << " leads to state '"
      << transition.getNext() << "', expected '" << first.getValue()
      << "', where steps begin";
  return false;
}

void ProgramReader::apply(const Node &node, zrt::TransitionOp transition,
                          Memory &memory) {
  if (node.isOpen)
    closeBackward(algebra, memory, !node.hasEarlier);
  closeStep(algebra, memory);
  for (auto [i, symbol] :
       llvm::enumerate(program.getInputs().getAsRange<FlatSymbolRefAttr>()))
    memory.slots[{symbol.getAttr(), 0}] = {
        algebra.base({BaseKind::input, "input " + std::to_string(i)}), {}};
  calls->settled = nullptr;
  calls->inApply = true;
  runHandlers(transition, memory);
  calls->inApply = false;
  Operation *settled = calls->settled;
  calls->settled = nullptr;
  if (!returns(transition))
    return;
  idle->checkBuffers(transition, memory);
  compareCollectives(transition);
  if (!settled) {
    proof.report.error(transition)
        << "apply in state '" << transition.getState()
        << "' never settles: nobody learns whether the step was applied";
    return;
  }
  Memory skipped = memory;
  decide(algebra, memory, calls->verdict, /*isApplied=*/true);
  decide(algebra, skipped, calls->verdict, /*isApplied=*/false);

  Meaning before = meaning; // the contract, without what apply does
  readApplied(proof, program, buckets, memory, meaning);
  for (auto &[name, parameter] : meaning.parameters)
    checkArrived(proof, parameter, meaning);
  // What is wrong with gradients is wrong with all that is made of them.
  if (proof.report.hasErrors())
    return;
  readVerdict(proof, settled, calls->verdict, meaning);
  if (proof.report.hasErrors())
    return;
  idle->checkSkipped(transition, skipped);
  idle->checkReplicas(transition, memory);
  if (!applied) {
    applied = meaning;
  } else {
    unsigned errors = proof.report.getNumErrors();
    compareMeanings(proof, *applied, meaning);
    if (proof.report.getNumErrors() > errors)
      mlir::emitRemark(transition.getLoc())
          << "apply in state '" << transition.getState()
          << "' does something else than in state '" << appliedBy.getState()
          << "'";
  }
  meaning = std::move(before);
}

/// That a step may have any number of backwards, and be given up at any time.
void ProgramReader::requireEvents(const Node &node) {
  SmallVector<zrt::Event> events;
  if (node.isOpen)
    events = {zrt::Event::arrive, zrt::Event::accumulate, zrt::Event::apply,
              zrt::Event::discard};
  else if (node.hasEarlier)
    events = {zrt::Event::begin, zrt::Event::apply, zrt::Event::discard};
  else
    events = {zrt::Event::begin};
  for (zrt::Event event : events)
    if (!getTransition(node.state, event))
      proof.report.error(program)
          << zrt::stringifyEvent(event) << " is refused in state '"
          << node.state.getValue() << "'"
          << (node.isOpen       ? ", in which a backward is open"
              : node.hasEarlier ? ", after a backward"
                                : ", in which a step begins");
}

/// Whether ranks meet in the handlers of |transition|, other than at the end.
bool ProgramReader::communicatesBeforeApply(zrt::TransitionOp transition) {
  if (transition.getEvent() >= zrt::Event::apply)
    return false;
  SmallVector<Attribute> handlers(transition.getHandlers().getValue());
  if (FlatSymbolRefAttr symbol = transition.getSequenceAttr())
    llvm::append_range(
        handlers, program.lookupSymbol<zrt::SequenceOp>(symbol).getHandlers());
  return llvm::any_of(handlers, [&](Attribute symbol) {
    auto handler =
        program.lookupSymbol<zrt::HandlerOp>(cast<FlatSymbolRefAttr>(symbol));
    return llvm::any_of(handler.getBody().front(), [](Operation &call) {
      return zrt::isCollective(&call);
    });
  });
}

std::optional<Meaning> ProgramReader::run() {
  if (!initialize())
    return std::nullopt;
  for (auto handler : program.getOps<zrt::HandlerOp>())
    checkOrder(proof, handler);
  Node start;
  start.state = transitions.front().getStateAttr();
  start.memory = idle->getMemory();
  enter(std::move(start), program);
  // What is wrong once is wrong on every way that follows: it is told once.
  while (!pending.empty() && !proof.report.hasErrors()) {
    Node node = std::move(pending.back());
    pending.pop_back();
    requireEvents(node);
    if (node.isOpen)
      receive(node);
    for (zrt::TransitionOp transition : transitions)
      if (transition.getStateAttr() == node.state && !proof.report.hasErrors())
        explore(node, transition);
  }
  if (proof.report.hasErrors())
    return std::nullopt;
  if (!applied) {
    proof.report.error(program) << "can never be applied";
    return std::nullopt;
  }
  return applied;
}

std::optional<Meaning> prove::readProgram(Proof &proof,
                                          zrt::ProgramOp program) {
  return ProgramReader(proof, program).run();
}
