//===- EndOfStep.cpp - What apply and discard leave -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProgramReader.h"

#include "passes/prove/AbsentGroups.h"
#include "passes/prove/AppliedStep.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// Closes all backward passes of |memory|. The calls that follow are in apply.
void ProgramReader::closeAll(const Node &node, Memory &memory) {
  if (node.isOpen)
    closeBackward(memory, !node.hasEarlier);
  memory.map([&](Expr a) { return closed.closeStep(a); });
  for (auto [i, symbol] :
       llvm::enumerate(program.getInputs().getAsRange<FlatSymbolRefAttr>())) {
    Number &input = memory.slots[{symbol.getAttr(), 0}] =
        makeSource(algebra, getInput(algebra, i, semantics.inputs[i]));
    input.narrow(Precision::f64());
  }
  calls->committed = nullptr;
  calls->conditions.clear();
  calls->inApply = true;
  calls->sent.clear();
  calls->sentInApply.clear();
  for (Expr sent : node.sent) {
    if (node.isOpen)
      sent = closed.closeBackward(sent, !node.hasEarlier);
    calls->sent.push_back(closed.closeStep(sent));
  }
}

/// Whether the caller of |transition| learns the outcome.
bool ProgramReader::isCommitted(zrt::TransitionOp transition) {
  if (calls->committed)
    return true;
  proof.report.error(transition)
      << zrt::stringifyEvent(transition.getEvent()) << " in state '"
      << transition.getState()
      << "' never commits: nobody learns whether the step was applied";
  return false;
}

bool EndingPath::isSame(const EndingPath &other) const {
  return (isOpen == other.isOpen || !looksAtOpen) &&
         handlers == other.handlers && sent == other.sent &&
         memory.isSame(other.memory);
}

/// Runs |path| to its end: apply; or measure, with the apply and the discard
/// that may follow.
void ProgramReader::endStep(const Node &node, ArrayRef<zrt::TransitionOp> path,
                            Memory &memory) {
  EndingPath run{memory, calls->sent, node.isOpen};
  for (zrt::TransitionOp transition : path)
    run.handlers.push_back(transition.getHandlersAttr());
  zrt::TransitionOp first = path.front();
  bool isMeasured = first.getEvent() == zrt::Event::measure;
  ArrayRef<zrt::TransitionOp> applied = path.take_front(isMeasured ? 2 : 1);
  for (const EndingPath &known : runs)
    if (known.isSame(run)) {
      calls->inApply = false;
      calls->sent = known.sentUntilEnd;
      calls->sentInApply = known.sentInApply;
      if (llvm::all_of(path.drop_front(applied.size() - 1),
                       [&](auto last) { return returns(last); }))
        compareCollectives(node, applied);
      return;
    }
  calls->looksAtOpen = false;
  if (isMeasured)
    measure(node, path, memory);
  else {
    runHandlers(first, memory);
    apply(node, path, memory);
  }
  if (proof.report.hasErrors())
    return;
  run.looksAtOpen = calls->looksAtOpen;
  run.sentUntilEnd = calls->sent;
  run.sentInApply = calls->sentInApply;
  runs.push_back(std::move(run));
}

/// Between measure and what follows it the caller can do nothing else. So both
/// are one path.
void ProgramReader::measure(const Node &node, ArrayRef<zrt::TransitionOp> path,
                            Memory &memory) {
  zrt::TransitionOp transition = path.front();
  runHandlers(transition, memory);
  if (!isCommitted(transition))
    return;
  idle->checkReadable(transition, transition.getNextAttr(), memory,
                      /*isMeasured=*/true);
  auto runNext = [&](zrt::TransitionOp next, Memory &after) {
    for (auto symbol : next.getHandlers().getAsRange<FlatSymbolRefAttr>())
      runHandler(symbol, after);
  };
  Memory applied = memory;
  auto copied = calls->hostSlots;
  runNext(path[1], applied);
  apply(node, path.take_front(2), applied);
  calls->committed = nullptr;
  calls->hostSlots = std::move(copied); // without what apply copied
  if (proof.report.hasErrors())
    return;
  std::vector<Expr> sent = calls->sent, sentInApply = calls->sentInApply;
  runNext(path[2], memory);
  discard(path[2], memory);
  calls->sent = std::move(sent); // without what discard sent
  calls->sentInApply = std::move(sentInApply);
}

void ProgramReader::discard(zrt::TransitionOp transition, Memory &memory) {
  if (!returns(transition))
    return;
  idle->checkBuffers(transition, memory);
  idle->checkNotApplied(transition, memory, NotApplied::discarded);
}

bool EndOfStep::isSame(const EndOfStep &other) const {
  return outcome == other.outcome && memory.holdsSame(other.memory) &&
         llvm::equal(conditions, other.conditions);
}

void ProgramReader::apply(const Node &node, ArrayRef<zrt::TransitionOp> path,
                          Memory &memory) {
  zrt::TransitionOp transition = path.back();
  calls->inApply = false;
  if (!isCommitted(transition))
    return;
  Operation *committed = std::exchange(calls->committed, nullptr);
  if (!returns(transition))
    return;
  idle->checkBuffers(transition, memory);
  EndOfStep end{std::move(memory), calls->outcome, calls->conditions};
  // Ranks take several paths: they may get other hints, or make other numbers
  // of backward passes.
  idle->checkWays(transition, end.memory,
                  ends.empty() ? end.memory : ends.front().memory);
  if (llvm::none_of(ends,
                    [&](const EndOfStep &known) { return known.isSame(end); }))
    checkEnd(path, std::move(end), committed);
  compareCollectives(node, path);
}

/// Checks |end|, which |path| leads to.
void ProgramReader::checkEnd(ArrayRef<zrt::TransitionOp> path, EndOfStep end,
                             Operation *committed) {
  zrt::TransitionOp transition = path.back();
  Memory memory = end.memory;
  StepSemantics before = semantics; // the contract, without what apply does
  readResultsIfNotApplied(algebra, program, memory, calls->outcome.expr,
                          semantics);
  Memory skipped = memory, refused = memory;
  decide(algebra, memory, calls->outcome.expr, Decision::applied,
         semantics.dividesByTokens);
  decide(algebra, skipped, calls->outcome.expr, Decision::skipped,
         semantics.dividesByTokens);
  decide(algebra, refused, calls->outcome.expr, Decision::refused,
         semantics.dividesByTokens);

  readApplied(proof, program, buckets, memory, semantics);
  auto module = program->getParentOfType<ModuleOp>();
  noteAbsentGroups(module, semantics);
  checkAbsentGroups(proof, module,
                    getAppliedOutcome(algebra, calls->outcome.expr,
                                      semantics.dividesByTokens),
                    semantics);
  readSkipped(program, skipped, semantics);
  for (auto &[name, parameter] : semantics.parameters)
    checkArrived(proof, parameter, semantics);
  // An error in a gradient is also in every number that depends on it.
  if (proof.report.hasErrors())
    return;
  readOutcome(proof, committed, calls->outcome, semantics);
  if (proof.report.hasErrors()) {
    applied = std::move(semantics); // the numbers may tell the cause
    semantics = std::move(before);
    return;
  }
  // Flags of kernels and of counters decide as the outcome does.
  for (auto &[condition, number] : calls->conditions)
    if (isDecided(condition, calls->outcome.expr)) {
      semantics.decidedBy = semantics.decidedBy.limitedBy(number.roundings);
      semantics.rounding =
          semantics.rounding ? semantics.rounding : number.rounding;
    }
  idle->checkNotApplied(transition, refused, NotApplied::refused);
  if (!proof.report.hasErrors() && maySkip(semantics))
    idle->checkNotApplied(transition, skipped, NotApplied::skipped);
  idle->checkReplicas(transition, memory);
  idle->checkFrozen(transition, memory);
  if (!applied) {
    applied = semantics;
  } else {
    unsigned errors = proof.report.getNumErrors();
    joinReduceDtypes(*applied, semantics);
    compareSemantics(proof, *applied, semantics);
    if (proof.report.getNumErrors() > errors)
      mlir::emitRemark(transition.getLoc())
          << "apply " << describe(path) << " does something else than "
          << describe(firstApply->path);
    // What is checked of one is checked of all.
    if (!proof.report.hasErrors())
      joinRoundings(*applied, semantics);
  }
  semantics = std::move(before);
  if (!proof.report.hasErrors())
    ends.push_back(std::move(end));
}
