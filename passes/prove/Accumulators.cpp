//===- Accumulators.cpp - What a checkpoint saves within a step -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A checkpoint may be saved between two backward passes. To load it, the
// runtime makes one backward pass without gradients, and overwrites state and
// accumulators. This is right if accumulators hold nothing but the sums of the
// gradients so far, which does not depend on the program that saved them, and
// if the step needs nothing else that is there. So all else is forgotten there,
// and a later read of it is an error.
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProgramReader.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

/// The state behind a first backward pass that was begun without a hint; null
/// if there is none, and where the program has no accumulators.
StringAttr ProgramReader::findResumable() {
  if (program.getOps<zrt::AccumulatorOp>().empty())
    return nullptr;
  StringAttr state = transitions.front().getStateAttr();
  for (zrt::Event event : {zrt::Event::begin, zrt::Event::accumulate}) {
    zrt::TransitionOp next = getTransition(state, event);
    if (!next)
      return nullptr;
    state = next.getNextAttr();
  }
  return state;
}

/// Checks that later backward passes lead to the same state: a checkpoint of
/// any number of them is loaded there.
void ProgramReader::checkResumable() {
  if (!resumable)
    return;
  zrt::TransitionOp begin = getTransition(resumable, zrt::Event::begin);
  zrt::TransitionOp closed =
      begin ? getTransition(begin.getNextAttr(), zrt::Event::accumulate)
            : nullptr;
  if (closed && closed.getNextAttr() != resumable)
    proof.report.error(closed)
        << "state '" << closed.getNext() << "' is behind a second backward "
        << "pass, and '" << resumable.getValue()
        << "' behind the first: a checkpoint between two backward passes could "
           "be saved in one of them only";
}

/// Forgets what of |memory| a checkpoint does not have.
void ProgramReader::keepResumable(Memory &memory) {
  llvm::DenseSet<StringAttr> accumulators;
  for (auto op : program.getOps<zrt::AccumulatorOp>())
    accumulators.insert(op.getBufferAttr().getAttr());
  idle->forgetOthers(accumulators, memory,
                     ", which no checkpoint of an accumulation has");
}

/// Checks that accumulators hold the sums of gradients, wherever a checkpoint
/// may be saved within a step. A sum that is wrong there is wrong in apply,
/// too, and apply tells more about it. So this comes last.
void ProgramReader::checkAccumulators() {
  for (Node &node : nodes)
    if (node.state == resumable && node.hasEarlier && !node.isOpen)
      for (auto op : program.getOps<zrt::AccumulatorOp>())
        checkAccumulator(op, node.memory.get(op.getBufferAttr()));
}

void ProgramReader::checkAccumulator(zrt::AccumulatorOp op,
                                     const Contents &contents) {
  StringAttr bucket = op.getBucketAttr().getAttr();
  if (!buckets.lookup(bucket).hasElements)
    return;
  ValueType type = zrt::BufferOp(contents.op).getValueType();
  Expr expected = algebra.gradient(
      Epoch::earlier,
      semantics.axes.getSet(type.getAxes(PlacementKind::Partial)));
  for (const Piece &piece :
       llvm::concat<const Piece>(contents.own, contents.other)) {
    bool isSum = piece.element.expr == expected;
    if (isSum && contents.bucket == bucket)
      continue;
    InFlightDiagnostic diagnostic = proof.report.error(op);
    diagnostic << op.getBufferAttr() << " holds ";
    if (isSum)
      diagnostic << "gradients of another bucket, expected those of @"
                 << bucket.getValue();
    else
      diagnostic << toString(piece.element.expr, expected) << ", expected "
                 << toString(expected, piece.element.expr);
    diagnostic << ": a checkpoint between two backward passes would not have "
                  "the sum of the gradients so far";
    noteMembers(diagnostic, buckets.find(bucket)->second);
    return;
  }
}
