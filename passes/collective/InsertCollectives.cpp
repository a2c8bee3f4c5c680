//===- InsertCollectives.cpp - Sums over the mesh become collectives ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/collective/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace zero {
#define GEN_PASS_DEF_INSERTCOLLECTIVESPASS
#include "passes/collective/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

namespace {
/// A gradient as (what the collective delivered) times (a scalar): the scalar
/// is multiplied in only where the gradient is used, together with others.
struct Scaled {
  Value raw;
  Value factor; // null: 1
};

/// Rewrites the body of one step.
class Rewriter {
public:
  Rewriter(StepOp step, bool shard)
      : step(step), shard(shard), builder(step.getContext()) {}

  LogicalResult run();

private:
  LogicalResult rewrite(Operation *op);
  LogicalResult checkForm(Operation *op);
  void rewriteReduce(ReduceOp op);
  void rewriteNorm(NormOp op);
  void rewriteClip(ClipOp op);
  void rewriteUpdate(UpdateBucketOp op);
  /// The sum of the squares, and what its root still has to be multiplied by.
  Scaled sumSquares(Location loc, ValueRange inputs);
  Value materialize(Location loc, Value old);
  /// all_reduce over every axis that |value| is partial over.
  Value allReduce(Location loc, Value value);

  StepOp step;
  bool shard;
  OpBuilder builder;
  IRMapping mapping;
  DenseMap<Value, Scaled> gradients; // by old value
  /// Sums of squares already reduced, by their inputs.
  SmallVector<std::pair<SmallVector<Value>, Scaled>> sums;
  /// The factor of each monomial, computed once.
  DenseMap<Attribute, Value> factors;
};
} // namespace

static ArrayAttr axesOf(OpBuilder &builder, ValueType type,
                        PlacementKind kind) {
  SmallVector<Attribute> axes;
  llvm::append_range(axes, type.getAxes(kind));
  return builder.getArrayAttr(axes);
}

Value Rewriter::allReduce(Location loc, Value value) {
  auto type = cast<ValueType>(value.getType());
  if (!type.has(PlacementKind::Partial))
    return value;
  return builder.create<AllReduceOp>(
      loc, value, axesOf(builder, type, PlacementKind::Partial));
}

void Rewriter::rewriteReduce(ReduceOp op) {
  for (auto [old, result] : llvm::zip_equal(op.getInputs(), op.getOutputs())) {
    Value input = mapping.lookupOrDefault(old);
    auto type = cast<ValueType>(input.getType());
    if (type.isScalar()) {
      mapping.map(result, allReduce(op.getLoc(), input));
      continue;
    }
    Scaled gradient;
    gradient.raw = shard
                       ? builder
                             .create<ReduceScatterOp>(
                                 op.getLoc(), input,
                                 axesOf(builder, type, PlacementKind::Partial))
                             .getOutput()
                       : allReduce(op.getLoc(), input);
    if (type.isScaled()) {
      auto scale = ScaleAttr::get(op.getContext(), power(type.getScale(), -1));
      Value &factor = factors[scale];
      if (!factor)
        factor = builder.create<FactorOp>(op.getLoc(), scale);
      gradient.factor = factor;
    }
    gradients[result] = gradient;
  }
}

Scaled Rewriter::sumSquares(Location loc, ValueRange inputs) {
  auto raws = llvm::map_to_vector(
      inputs, [&](Value old) { return gradients.lookup(old).raw; });
  for (auto &[known, sum] : sums)
    if (known == raws)
      return sum;
  // One sum for all gradients that still have to be divided by the same.
  llvm::MapVector<Value, SmallVector<Value>> byFactor;
  for (Value old : inputs) {
    Scaled gradient = gradients.lookup(old);
    byFactor[gradient.factor].push_back(gradient.raw);
  }
  Scaled result;
  for (auto &[factor, group] : byFactor) {
    Value sum =
        allReduce(loc, builder.create<SumSquaresOp>(loc, ValueRange(group)));
    if (byFactor.size() == 1) {
      result = {sum, factor};
      break;
    }
    // Sums with different scales are added as what they stand for.
    if (factor) {
      sum = builder.create<ScaleOp>(loc, sum, factor);
      sum = builder.create<ScaleOp>(loc, sum, factor);
    }
    result.raw =
        result.raw ? builder.create<AddOp>(loc, result.raw, sum).getSum() : sum;
  }
  sums.push_back({raws, result});
  return result;
}

void Rewriter::rewriteNorm(NormOp op) {
  Scaled sum = sumSquares(op.getLoc(), op.getInputs());
  Value norm = builder.create<SqrtOp>(op.getLoc(), sum.raw);
  if (sum.factor)
    norm = builder.create<ScaleOp>(op.getLoc(), norm, sum.factor);
  mapping.map(op.getNorm(), norm);
}

void Rewriter::rewriteClip(ClipOp op) {
  Value coefficient = builder.create<ClipCoefficientOp>(
      op.getLoc(), mapping.lookupOrDefault(op.getNorm()), op.getMaxAttr(),
      op.getEpsilonAttr());
  // Gradients share their factor, so their products are shared, too.
  DenseMap<Value, Value> products;
  for (auto [input, output] :
       llvm::zip_equal(op.getInputs(), op.getOutputs())) {
    Scaled gradient = gradients.lookup(input);
    Value &product = products[gradient.factor];
    if (!product)
      product =
          gradient.factor
              ? builder
                    .create<ScaleOp>(op.getLoc(), gradient.factor, coefficient)
                    .getOutput()
              : coefficient;
    gradients[output] = {gradient.raw, product};
  }
}

Value Rewriter::materialize(Location loc, Value old) {
  Scaled gradient = gradients.lookup(old);
  if (!gradient.factor)
    return gradient.raw;
  return builder.create<ScaleOp>(loc, gradient.raw, gradient.factor);
}

void Rewriter::rewriteUpdate(UpdateBucketOp op) {
  auto rows = llvm::map_to_vector(
      op.getRows(), [&](Value row) { return mapping.lookupOrDefault(row); });
  Value parameters = builder.create<UpdateBucketOp>(
      op.getLoc(), op.getBucketAttr(), op.getOptimizerAttr(),
      op.getParameterTypeAttr(), materialize(op.getLoc(), op.getGradient()),
      mapping.lookupOrDefault(op.getVerdict()), rows, op.getRowOfAttr());
  auto type = cast<ValueType>(parameters.getType());
  if (type.has(PlacementKind::Sharded))
    parameters = builder.create<AllGatherOp>(
        op.getLoc(), parameters, axesOf(builder, type, PlacementKind::Sharded));
  mapping.map(op.getParameters(), parameters);
}

/// Whether |op| has the form that zero-assign-layout leaves: buckets have one
/// dimension, and what is not linear works on reduced gradients.
LogicalResult Rewriter::checkForm(Operation *op) {
  bool ok = true;
  if (auto reduce = dyn_cast<ReduceOp>(op))
    ok = llvm::all_of(reduce.getInputs(), [](Value input) {
      auto type = cast<ValueType>(input.getType());
      return type.getShape().size() <= 1 && !type.has(PlacementKind::Sharded);
    });
  else if (isa<NormOp, SumSquaresOp, ClipOp>(op))
    ok = llvm::all_of(op->getOperands(), [&](Value operand) {
      return gradients.contains(operand) ||
             (isa<ClipOp>(op) && operand == cast<ClipOp>(op).getNorm());
    });
  else if (auto update = dyn_cast<UpdateBucketOp>(op))
    ok = gradients.contains(update.getGradient());
  if (ok)
    return success();
  return op->emitOpError() << "is not of the form that zero-assign-layout "
                              "leaves; run that first, and this pass once";
}

LogicalResult Rewriter::rewrite(Operation *op) {
  if (failed(checkForm(op)))
    return failure();
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    rewriteReduce(reduce);
    return success();
  }
  if (auto norm = dyn_cast<NormOp>(op)) {
    rewriteNorm(norm);
    return success();
  }
  if (auto clip = dyn_cast<ClipOp>(op)) {
    rewriteClip(clip);
    return success();
  }
  if (auto squares = dyn_cast<SumSquaresOp>(op)) {
    mapping.map(squares.getSum(),
                sumSquares(squares.getLoc(), squares.getInputs()).raw);
    return success();
  }
  if (auto update = dyn_cast<UpdateBucketOp>(op)) {
    rewriteUpdate(update);
    return success();
  }
  for (Value operand : op->getOperands())
    if (gradients.contains(operand))
      return op->emitError() << "of a reduced gradient is not laid out; run "
                                "zero-assign-layout first";
  builder.clone(*op, mapping);
  return success();
}

LogicalResult Rewriter::run() {
  Block &block = step.getBody().front();
  SmallVector<Operation *> old =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  builder.setInsertionPointToStart(&block);
  for (Operation *op : old)
    if (failed(rewrite(op)))
      return failure();
  for (Operation *op : llvm::reverse(old))
    op->erase();
  return success();
}

namespace {
struct InsertCollectivesPass
    : zero::impl::InsertCollectivesPassBase<InsertCollectivesPass> {
  using InsertCollectivesPassBase::InsertCollectivesPassBase;

  void runOnOperation() override {
    if (stage < 0 || stage > 2) {
      emitError(getOperation().getLoc())
          << "stage must be 0, 1 or 2, got " << int(stage)
          << (stage == 3 ? " (stage 3 is not supported yet)" : "");
      return signalPassFailure();
    }
    for (auto step : llvm::to_vector(getOperation().getOps<StepOp>()))
      if (failed(Rewriter(step, /*shard=*/stage > 0).run()))
        return signalPassFailure();
  }
};
} // namespace
