//===- ArrivalCalls.cpp - Gradients that arrive, and that do not ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/Calls.h"
#include "passes/prove/Example.h"
#include "passes/prove/Gradient.h"

using namespace mlir;
using namespace zero;
using namespace zero::prove;

void Calls::reportRole(zrt::PackOp op, const Contents &contents) {
  InFlightDiagnostic diagnostic = proof.report.opError(op);
  diagnostic << (op.getAccumulate() ? "adds to " : "writes over ")
             << arriving.getGradientAttr() << ", which counts as "
             << zrt::stringifyRole(contents.role) << ": what earlier "
             << (op.getAccumulate() ? "steps left stays in it"
                                    : "backward passes left is lost");
  if (!op.getAccumulate())
    Report::attach(diagnostic, op.getLoc(),
                   findExample(algebra, algebra.gradient(Epoch::last, 0),
                               algebra.gradient(Epoch::all, 0),
                               semantics.getNumRanks()));
  noteMembers(diagnostic, buckets.find(contents.bucket)->second);
}

template <> void Calls::runOp(zrt::PackOp op) {
  if (!arriving) {
    proof.report.opError(op) << "packs where no gradient arrives";
    return;
  }
  StringAttr bucket = arriving.getBucketAttr().getAttr();
  // The old contents are read only if the gradient is added to them.
  Contents &before = memory->get(arriving.getGradientAttr());
  if (op.getAccumulate() && before.bucket && before.bucket != bucket)
    proof.report.opError(op) << "adds gradients of @" << bucket.getValue()
                             << " to those of @" << before.bucket.getValue();
  Contents &contents = write(op, arriving.getGradientAttr(), bucket);
  auto kernel = symbols.lookup<zrt::KernelOp>(
      (op.getAccumulate() ? arriving.getAddAttr() : arriving.getStoreAttr())
          .getAttr());
  auto add = symbols.lookup<zrt::KernelOp>(arriving.getAddAttr().getAttr());
  Precision kept(contents.op.getValueType().getElementType());
  // All members of a bucket arrive alike.
  AxisSet over = semantics.axes.getSet(
      contents.op.getValueType().getAxes(PlacementKind::Partial));
  Number gradient = makeSource(algebra, algebra.gradient(Epoch::current, over));
  // The sum of several pieces has more bits than each of them.
  if (!buckets.lookup(bucket).isUsedTwice)
    gradient.arrive(Precision(buckets.lookup(bucket).op.getArrivalType()));
  auto evaluate = [&](zrt::KernelOp kernel, Number old) -> Number {
    Number arguments[] = {gradient, old};
    auto values =
        evaluateBody(algebra, kernel.getBody().front(),
                     ArrayRef(arguments, kernel.getBody().getNumArguments()));
    if (failed(values)) {
      proof.report.count();
      return {algebra.undefined("an unknown kernel")};
    }
    Number value = values->front();
    value.narrow(kept);
    value.beforeConversion.reset();
    // The order of additions is no way. A step may have any number of backward
    // passes, so that these additions count no errors.
    value.error = kernel.getBody().getNumArguments() == 1 ? 0 : old.error;
    value.way = kernel.getBody().getNumArguments() == 1 ? 0 : old.way;
    return value;
  };
  // A gradient that was written in place meets neither kernel, and a further
  // use within this backward pass is added.
  Number sum = makeSource(algebra, algebra.state("sum"));
  Expr added = algebra.add(sum.expr, gradient.expr);
  Number packed = evaluate(kernel, sum);
  if (packed.expr != (op.getAccumulate() ? added : gradient.expr) ||
      packed.roundings.hasLost() ||
      !packed.roundings.getNarrowest().holds(kept) ||
      countAdditions(kernel) != unsigned(op.getAccumulate()))
    proof.report.error(op) << FlatSymbolRefAttr::get(kernel)
                           << " does not keep a gradient as it arrives";
  Number further = evaluate(add, sum), plain = sum;
  plain.add(algebra, gradient);
  if (buckets.lookup(bucket).isUsedTwice &&
      (further.expr != added || further.roundings.hasLost() ||
       countAdditions(add) != 1u ||
       !further.roundings.getNarrowest().holds(kept) ||
       further.roundings.findBeyond(plain.roundings)))
    proof.report.error(op) << "a further use of a parameter of @"
                           << bucket.getValue()
                           << " is not added: " << arriving.getAddAttr()
                           << " makes another number of it";
  // A buffer that a gradient is written into in place is handed out by its
  // role.
  if (op.getAccumulate() != (contents.role == zrt::Role::accumulator))
    reportRole(op, contents);
  for (Pieces *pieces : {&contents.own, &contents.other})
    for (Piece &piece : *pieces) {
      Number before = piece.element;
      Number padBefore = piece.pad;
      piece.element = evaluate(kernel, before);
      if (!op.getAccumulate())
        piece.pad = {algebra.integer(0)};
      piece.absent = before.expr;
      piece.absentPad = padBefore.expr;
      piece.expected = withoutCurrent(algebra, piece.element.expr);
      if (!piece.expected)
        piece.expected = algebra.undefined("no number");
    }
}

template <> void Calls::runOp(zrt::FillMissingOp op) {
  looksAtOpen = true;
  if (!inBackward) {
    proof.report.opError(op)
        << "fills gradients where no backward pass is open";
    return;
  }
  Contents &contents =
      require(op, getArrivals(op.getBucketAttr()).getGradientAttr());
  overwrite(contents);
  if (contents.isForgotten())
    return; // lost already; the cause is what a message should name
  for (Pieces *pieces : {&contents.own, &contents.other})
    for (Piece &piece : *pieces) {
      if (piece.absent) {
        piece.absent = piece.absentPad = algebra.integer(0);
        continue;
      }
      // It is no gradient of this backward pass any more.
      Number lost{
          algebra.undefined("what is 0 where gradients did not arrive")};
      piece.element = piece.pad = lost;
    }
}

/// Whether backward passes in |a| do not count alike.
static bool isStale(Expr a) {
  bool stale = false;
  visitBases(a, [&](BaseRef base) {
    stale |= base->kind == BaseKind::gradient &&
             (base->epoch == Epoch::former || base->epoch == Epoch::last);
  });
  return stale;
}

/// A gradient that did not arrive must have the effect of zeros.
void Calls::settleAbsent(Operation *call, Contents &contents) {
  bool hasElements = buckets.lookup(contents.bucket).hasElements;
  bool reported = false;
  for (Pieces *pieces : {&contents.own, &contents.other})
    for (Piece &piece : *pieces) {
      if (!piece.absent)
        continue;
      bool wrongPad = piece.absentPad != piece.pad.expr;
      // A gradient that is lost where all arrived is told of as such.
      bool wrongElement = hasElements && piece.absent != piece.expected &&
                          !isStale(piece.element.expr);
      if ((wrongElement || wrongPad) && !reported) {
        proof.report.opError(call)
            << "uses " << FlatSymbolRefAttr::get(contents.op)
            << ": where a gradient of @" << contents.bucket.getValue()
            << " did not arrive, it reads "
            << (wrongPad ? "pads of " + toString(piece.absentPad)
                         : toString(piece.absent))
            << ", expected "
            << toString(wrongPad ? piece.pad.expr : piece.expected);
        reported = true;
      }
      piece.absent = piece.absentPad = piece.expected = nullptr;
    }
}

void Calls::settleAbsent(Operation *op, Memory &memory) {
  for (auto &[name, contents] : memory.buffers)
    settleAbsent(op, contents);
}
