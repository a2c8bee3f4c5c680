//===- CoalesceScalars.cpp - Stacks independent scalar all-reduces --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/scalar/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace zero {
#define GEN_PASS_DEF_COALESCESCALARSPASS
#include "passes/scalar/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

static bool isScalarReduction(Operation *op) {
  auto reduce = dyn_cast<AllReduceOp>(op);
  return reduce && cast<ValueType>(reduce.getInput().getType()).isScalar();
}

/// The number of scalar all-reduces on the longest path to each op. Ops with
/// equal numbers cannot depend on each other.
static DenseMap<Operation *, unsigned> computeLevels(Block &block) {
  DenseMap<Operation *, unsigned> levels;
  for (Operation &op : block) {
    unsigned level = 0;
    for (Value operand : op.getOperands())
      if (Operation *producer = operand.getDefiningOp())
        level = std::max(level, levels.lookup(producer) +
                                    (isScalarReduction(producer) ? 1 : 0));
    levels[&op] = level;
  }
  return levels;
}

/// Replaces |reductions|, none of which depends on another, by one all-reduce
/// over the union of their axes. A scalar that is replicated over one of these
/// axes is counted once there.
static void stack(ArrayRef<AllReduceOp> reductions) {
  llvm::SetVector<Attribute> axes;
  for (AllReduceOp op : reductions)
    axes.insert(op.getAxes().begin(), op.getAxes().end());
  // The operand of the last reduction is defined after all other operands.
  AllReduceOp last = reductions.back();
  OpBuilder builder(last);
  Location loc = builder.getFusedLoc(llvm::map_to_vector(
      reductions, [](AllReduceOp op) { return Location(op.getLoc()); }));
  SmallVector<Value> scalars;
  SmallVector<Attribute> scales;
  for (AllReduceOp op : reductions) {
    SmallVector<Attribute> further;
    for (Attribute axis : axes)
      if (!llvm::is_contained(op.getAxes(), axis))
        further.push_back(axis);
    Value scalar = op.getInput();
    if (!further.empty())
      scalar = builder.create<CountReplicatedOnceOp>(
          loc, scalar, builder.getArrayAttr(further));
    auto type = cast<ValueType>(scalar.getType());
    scalars.push_back(scalar);
    scales.push_back(ScaleAttr::get(type.getContext(), type.getScale()));
  }
  auto vector = builder.create<StackOp>(loc, scalars);
  auto reduced = builder.create<AllReduceOp>(
      loc, vector, builder.getArrayAttr(axes.getArrayRef()),
      /*reduceDtype=*/nullptr);
  auto parts =
      builder.create<UnstackOp>(loc, reduced, builder.getArrayAttr(scales));
  for (auto [op, part] : llvm::zip_equal(reductions, parts.getScalars())) {
    AllReduceOp reduction = op;
    reduction.getOutput().replaceAllUsesWith(part);
    reduction.erase();
  }
}

namespace {
struct CoalesceScalarsPass
    : zero::impl::CoalesceScalarsPassBase<CoalesceScalarsPass> {
  void runOnOperation() override {
    for (auto step : getOperation().getOps<StepOp>()) {
      Block &block = step.getBody().front();
      DenseMap<Operation *, unsigned> levels = computeLevels(block);
      llvm::MapVector<unsigned, SmallVector<AllReduceOp>> groups;
      for (auto op : block.getOps<AllReduceOp>())
        if (isScalarReduction(op))
          groups[levels.lookup(op)].push_back(op);
      for (auto &[level, reductions] : groups)
        if (reductions.size() > 1)
          stack(reductions);
      // An earlier reduction may have users in front of the stacked one.
      sortTopologically(&block);
    }
  }
};
} // namespace
