//===- ProgramReader.cpp - The meaning of a scheduled step ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProgramReader.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

bool ProgramReader::initialize() {
  auto module = program->getParentOfType<ModuleOp>();
  SymbolTable outer(module);
  mesh = outer.lookup<MeshOp>(program.getMeshAttr().getAttr());
  if (!readMesh(proof, program, mesh, semantics))
    return false;
  for (zrt::SlotsOp slots : program.getInputSlots()) {
    ArrayAttr over = slots.getOverAttr();
    semantics.inputs.push_back({over ? semantics.axes.getSet(over) : 0,
                                slots.isTokens(), slots.getPositive()});
  }
  // Only the step in the zero dialect knows by which numbers the caller
  // divides.
  semantics.oneBackward = program.getOneBackward();
  semantics.takesUnequal =
      !semantics.oneBackward &&
      llvm::any_of(semantics.inputs, [&](const InputSemantics &input) {
        return input.isTokens && input.over == semantics.axes.getAll();
      });
  semantics.isResumable = !program.getOps<zrt::AccumulatorOp>().empty();
  if (ArrayAttr batches = program.getBatchesAttr())
    semantics.batches = semantics.axes.getSet(batches);
  semantics.lossScale = program.getLossScale().value_or("").str();
  semantics.hasUnits = !program.getOps<zrt::UnitTableOp>().empty();
  llvm::append_range(transitions, program.getOps<zrt::TransitionOp>());
  measures = llvm::any_of(transitions, [](zrt::TransitionOp op) {
    return op.getEvent() == zrt::Event::measure;
  });
  llvm::append_range(arrivals, program.getOps<zrt::BucketTableOp>());
  // A buffer that gradients are only stored in holds no sum. The sums are where
  // collectives put them, or in an accumulator, and are to be of the type of
  // the bucket at least.
  llvm::DenseMap<Attribute, FlatSymbolRefAttr> sumsOf, accumulatorOf;
  program.walk([&](Operation *call) {
    if (auto pack = dyn_cast<zrt::PackOp>(call))
      accumulates |= pack.getAccumulate();
    if (auto collective = dyn_cast<zrt::Collective>(call))
      if (zrt::Exchange exchange = collective.getExchange(); exchange.scatters)
        sumsOf[exchange.source] = exchange.target;
  });
  llvm::DenseMap<Attribute, Expr> prescaled; // by bucket
  for (auto op : program.getOps<zrt::AccumulatorOp>()) {
    prescaled[op.getBucketAttr()] = getMonomial(
        algebra, mesh, mesh.expandFlattened(op.getPrescaled().getFactors()));
    accumulatorOf[op.getBucketAttr()] = op.getBufferAttr();
  }
  for (zrt::BucketTableOp op : arrivals) {
    auto bucket = outer.lookup<BucketOp>(op.getBucketAttr().getAttr());
    auto gradient =
        symbols.lookup<zrt::BufferOp>(op.getGradientAttr().getAttr());
    Precision kept(gradient.getValueType().getElementType());
    if (!accumulates) {
      kept = Precision(bucket.getDtype());
      for (FlatSymbolRefAttr sum : {sumsOf.lookup(op.getGradientAttr()),
                                    accumulatorOf.lookup(op.getBucketAttr())})
        if (auto buffer =
                sum ? symbols.lookup<zrt::BufferOp>(sum.getAttr()) : nullptr)
          kept =
              kept.widenedTo(Precision(buffer.getValueType().getElementType()));
    }
    bool isScaled = gradient.getValueType().isScaledBy(kLossScale);
    if (isScaled == semantics.lossScale.empty())
      proof.report.error(op)
          << "gradients arrive with " << (isScaled ? "a" : "no")
          << " loss scale, and callers are told "
          << (isScaled ? "none" : "@" + semantics.lossScale);
    for (auto member : bucket.getMembers().getAsRange<FlatSymbolRefAttr>()) {
      ParameterSemantics &parameter = semantics.parameters[member.getAttr()];
      if (parameter.op)
        proof.report.error(op) << "gradient of " << member << " arrives twice";
      parameter.op = outer.lookup<ParameterOp>(member.getAttr());
      parameter.elements = mesh.getNumHeld(parameter.op.getValueType());
      parameter.arrivesOver = semantics.axes.getSet(
          gradient.getValueType().getAxes(PlacementKind::Partial));
      parameter.normalization = algebra.divide(
          algebra.integer(1),
          getMonomial(algebra, mesh, gradient.getValueType().getScale()));
      ArrayRef<ScaleFactor> divided = gradient.getValueType().getScale();
      semantics.dividesByTokens |= getExponent(divided, kTokens) != 0;
      semantics.takesUnequal &=
          parameter.arrivesOver == semantics.axes.getAll() &&
          getExponent(divided, kTokens) == 1 &&
          getExponent(divided, kAccumulation) == 0;
      parameter.prescaled = prescaled.lookup(op.getBucketAttr());
      parameter.arrival = bucket.getArrivalType();
      parameter.kept = kept;
    }
  }
  buckets = readBuckets(module);
  calls.emplace(proof, program, symbols, buckets, semantics);
  idle.emplace(proof, program, symbols, buckets, semantics.axes);
  if (transitions.empty()) {
    proof.report.opError(program) << "has no protocol: no gradient can arrive";
    return false;
  }
  resumable = findResumable();
  findMeetings();
  return !proof.report.hasErrors();
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

void ProgramReader::runHandler(FlatSymbolRefAttr symbol, Memory &memory) {
  auto handler = symbols.lookup<zrt::HandlerOp>(symbol.getAttr());
  for (Operation &call : handler.getBody().front())
    calls->run(&call, memory);
}

void ProgramReader::runHandlers(zrt::TransitionOp transition, Memory &memory) {
  calls->begin();
  for (auto symbol : transition.getHandlers().getAsRange<FlatSymbolRefAttr>())
    runHandler(symbol, memory);
}

/// Adds |node|. If its state was reached before, keeps the numbers that agree.
void ProgramReader::enter(Node node, Operation *from) {
  // The caller may read the loss scale in this state and multiply by it.
  for (auto slots : program.getOps<zrt::SlotsOp>())
    if (slots.isLossScale() &&
        node.memory.slots.lookup({slots.getSymNameAttr(), 0}).expr !=
            algebra.symbol(kLossScale))
      proof.report.error(from)
          << "state '" << node.state.getValue() << "' is reached with another @"
          << semantics.lossScale << " than gradients are divided by";
  auto known =
      llvm::find_if(nodes, [&](const Node &known) { return known.isAt(node); });
  if (known == nodes.end()) {
    pending.insert(nodes.size());
    nodes.push_back(std::move(node));
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
    if (contents.isNothing())
      continue; // and stays nothing, whatever |now| is
    Contents before = contents;
    if (!contents.join(now)) {
      contents.forget(algebra, "what @" + name.getValue() +
                                   " holds, which depends on the number of "
                                   "backward passes or on how they were begun");
      contents.writer = now.writer;
    }
    isNew |= !contents.holdsSame(before);
  }
  if (known->met != node.met)
    proof.report.error(from)
        << "state '" << node.state.getValue()
        << "' is reached after other collectives, depending on how "
           "backward passes "
           "were begun: ranks that are told otherwise would wait for each "
           "other "
           "for ever";
  if (known->sent != node.sent) {
    std::vector<Expr> some = {
        algebra.undefined("what other ranks got, which depends on the number "
                          "of backward passes")};
    isNew |= known->sent != some;
    known->sent = std::move(some);
  }
  for (auto &[slot, number] : known->memory.slots) {
    Number now = node.memory.slots.lookup(slot);
    if ((number == now && number.isComputedAs(now)) || number.expr->isNothing())
      continue;
    Number before = number;
    number.joinPath(now);
    number.narrowAs(now);
    if (number.expr != now.expr)
      number = {algebra.undefined(
          "slot " + std::to_string(slot.second) + " of @" +
          slot.first.getValue().str() +
          ", which depends on the number of backward passes")};
    isNew |= !(number == before && number.isComputedAs(before));
  }
  if (isNew)
    pending.insert(known - nodes.begin());
}

void ProgramReader::explore(const Node &node, bool endsStep) {
  firstFromState.reset();
  for (zrt::TransitionOp transition : transitions) {
    zrt::Event event = transition.getEvent();
    bool isEnd = event == zrt::Event::apply || event == zrt::Event::measure ||
                 event == zrt::Event::discard;
    if (transition.getStateAttr() == node.state && isEnd == endsStep &&
        !proof.report.hasErrors())
      explore(node, transition);
  }
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
  case zrt::Event::begin_last:
    if (node.isOpen)
      return refuse("begins a backward pass while one is open");
    runHandlers(transition, next.memory);
    next.isOpen = true;
    next.met.clear();
    next.sent.clear();
    return enter(std::move(next), transition);
  case zrt::Event::arrive:
    if (!node.isOpen)
      refuse("takes a gradient of no open backward pass");
    return; // when the state was entered
  case zrt::Event::unshard:
  case zrt::Event::reshard:
    return; // when the state was entered
  case zrt::Event::accumulate:
    if (!node.isOpen)
      return refuse("closes a backward pass that is not open");
    closeBackward(next.memory, !node.hasEarlier);
    calls->sent.clear();
    runHandlers(transition, next.memory);
    calls->settleAbsent(transition, next.memory);
    next.met = getMet(node, transition);
    for (Expr &sent : next.sent)
      sent = closed.closeBackward(sent, !node.hasEarlier);
    llvm::append_range(next.sent, calls->sent);
    next.isOpen = false;
    next.hasEarlier = true;
    if (next.state == resumable)
      keepResumable(next.memory);
    return enter(std::move(next), transition);
  case zrt::Event::apply:
    if (!node.isOpen && !node.hasEarlier)
      return refuse("applies a step of no backward pass");
    closeAll(node, next.memory);
    return endStep(node, {transition}, next.memory);
  case zrt::Event::measure:
    if (!node.isOpen && !node.hasEarlier)
      return refuse("measures a step of no backward pass");
    closeAll(node, next.memory);
    return endStep(node,
                   {transition, getTransition(next.state, zrt::Event::apply),
                    getTransition(next.state, zrt::Event::discard)},
                   next.memory);
  case zrt::Event::discard:
    runHandlers(transition, next.memory);
    return discard(transition, next.memory);
  }
}

/// Closes a backward pass, the first one of its step if |isFirst|.
void ProgramReader::closeBackward(Memory &memory, bool isFirst) {
  memory.map([&](Expr a) { return closed.closeBackward(a, isFirst); });
}

std::optional<StepSemantics> ProgramReader::run() {
  if (!initialize())
    return std::nullopt;
  checkUnitMemory();
  Node start;
  start.state = transitions.front().getStateAttr();
  start.memory = idle->getMemory();
  start.memory.oneBackward = semantics.oneBackward;
  for (zrt::BucketTableOp op : arrivals)
    start.memory.get(op.getGradientAttr()).holdsOneBackward = !accumulates;
  enter(std::move(start), program);
  std::vector<Node> ready; // like nodes, with the gradients that arrived
  // An error would repeat on every path that follows. It is reported once.
  while (!pending.empty() && !proof.report.hasErrors()) {
    size_t next = pending.pop_back_val();
    Node node = nodes[next];
    requireEvents(node);
    checkUnits(node);
    calls->sent.clear();
    if (node.isOpen)
      receive(node);
    idle->checkReadable(program, node.state, node.memory,
                        /*isMeasured=*/false);
    llvm::append_range(node.sent, calls->sent);
    explore(node, /*endsStep=*/false);
    if (!isOnce)
      explore(node, /*endsStep=*/true);
    ready.resize(nodes.size());
    ready[next] = std::move(node);
  }
  if (isOnce)
    for (const Node &node : ready)
      explore(node, /*endsStep=*/true);
  if (!proof.report.hasErrors())
    for (zrt::TransitionOp op : meetsSometimes)
      proof.report.error(op)
          << "ranks meet in some backward passes and not in each: "
             "with different numbers of them they would "
             "wait for each other for ever";
  if (!proof.report.hasErrors())
    checkResumable();
  if (!proof.report.hasErrors())
    checkAccumulators();
  if (!proof.report.hasErrors())
    idle->checkAccesses();
  if (!proof.report.hasErrors())
    checkHints();
  if (proof.report.hasErrors() && !proof.report.hasOnlyConsequences())
    return std::nullopt;
  if (!applied) {
    proof.report.opError(program) << "can never be applied";
    return std::nullopt;
  }
  return applied;
}

/// Of each state the ends of steps are first explored once, when all that is
/// not known there is found. This decides. If it fails, they are explored
/// whenever more of a state is not known: messages show the first wrong number,
/// and not that it depends on what follows.
std::optional<StepSemantics> prove::readProgram(Proof &proof,
                                                zrt::ProgramOp program) {
  std::vector<Diagnostic> errors;
  {
    ScopedDiagnosticHandler keep(program.getContext(), [&](Diagnostic &error) {
      errors.push_back(std::move(error));
      return success();
    });
    auto found = ProgramReader(proof, program, /*isOnce=*/true).run();
    if (!proof.report.hasErrors())
      return found;
  }
  proof.report.reset();
  auto found = ProgramReader(proof, program, /*isOnce=*/false).run();
  if (proof.report.hasErrors())
    return found;
  proof.report.count();
  for (Diagnostic &error : errors)
    program.getContext()->getDiagEngine().emit(std::move(error));
  return std::nullopt;
}
