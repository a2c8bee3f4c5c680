//===- InsertCollectives.cpp - Sums over the mesh become collectives ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/collective/Passes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace zero {
#define GEN_PASS_DEF_INSERTCOLLECTIVESPASS
#include "passes/collective/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

namespace {
/// A gradient, as the result of a collective and a scalar factor. Uses of the
/// gradient multiply by the factor, together with other scalars.
struct Scaled {
  Value raw;
  Value factor; // null: 1
};

/// Rewrites the body of one step.
class Rewriter {
public:
  /// If |owners| is given, slices are owned over these axes. Else they are
  /// owned over all axes that a gradient is partial over.
  Rewriter(StepOp step, int stage, ArrayRef<StringRef> owners,
           SymbolTableCollection &symbols)
      : step(step), stage(stage), owners(owners), symbols(symbols),
        builder(step.getContext()) {}

  LogicalResult run();

private:
  LogicalResult rewrite(Operation *op);
  LogicalResult checkForm(Operation *op);
  void rewriteReduce(ReduceOp op);
  void rewriteNorm(NormOp op);
  void rewriteClip(ClipOp op);
  void rewriteOutcome(OutcomeOp op);
  void rewriteUpdate(UpdateBucketOp op);
  /// Sums of squares, each with the factor by which its root must still be
  /// multiplied. There is one sum for all |inputs| of one placement and factor.
  SmallVector<Scaled> sumSquares(Location loc, ValueRange inputs);
  Value materialize(Location loc, Value old);
  /// The axes whose ranks own slices of |gradient|.
  SmallVector<Attribute> getOwners(ValueType gradient);
  /// all_reduce over every axis that |value| is partial over; addends travel as
  /// |reduceDtype|.
  Value allReduce(Location loc, Value value, TypeAttr reduceDtype = nullptr);
  /// The sum over the ranks of the argument that counts tokens, taken once.
  Value sumTokens(Location loc);
  /// What a value of |type| is multiplied by to have no scale; null: 1.
  Value getFactor(Location loc, ValueType type);

  StepOp step;
  int stage; // of ZeRO
  ArrayRef<StringRef> owners;
  SymbolTableCollection &symbols;
  OpBuilder builder;
  IRMapping mapping;
  DenseMap<Value, Scaled> gradients; // by old value
  /// Sums of squares already reduced, by their inputs.
  SmallVector<std::pair<SmallVector<Value>, Value>> sums;
  /// The factor of each monomial, computed once.
  DenseMap<Attribute, Value> factors;
  Value tokens;
  Value lossScale;
};
} // namespace

static ArrayAttr axesOf(OpBuilder &builder, ValueType type,
                        PlacementKind kind) {
  SmallVector<Attribute> axes;
  llvm::append_range(axes, type.getAxes(kind));
  return builder.getArrayAttr(axes);
}

Value Rewriter::allReduce(Location loc, Value value, TypeAttr reduceDtype) {
  auto type = cast<ValueType>(value.getType());
  if (!type.has(PlacementKind::Partial))
    return value;
  return builder.create<AllReduceOp>(
      loc, value, axesOf(builder, type, PlacementKind::Partial), reduceDtype);
}

Value Rewriter::sumTokens(Location loc) {
  if (!tokens)
    tokens = allReduce(loc, step.getTokens());
  return tokens;
}

SmallVector<Attribute> Rewriter::getOwners(ValueType gradient) {
  // Tied parameters are whole on each of their stages.
  SmallVector<Attribute> axes;
  if (stage > 0)
    for (StringAttr axis : gradient.getAxes(PlacementKind::Partial))
      if (gradient.getCoordinates(axis).empty() &&
          (owners.empty() || llvm::is_contained(owners, axis.getValue())))
        axes.push_back(axis);
  return axes;
}

Value Rewriter::getFactor(Location loc, ValueType type) {
  if (!type.isScaled())
    return nullptr;
  auto scale = ScaleAttr::get(step.getContext(), power(type.getScale(), -1));
  Value &factor = factors[scale];
  if (!factor)
    factor = builder.create<FactorOp>(
        loc, scale, type.isScaledBy(kTokens) ? sumTokens(loc) : nullptr,
        type.isScaledBy(kLossScale) ? lossScale : nullptr);
  return factor;
}

void Rewriter::rewriteReduce(ReduceOp op) {
  for (auto [old, result] : llvm::zip_equal(op.getInputs(), op.getOutputs())) {
    Value input = mapping.lookupOrDefault(old);
    auto type = cast<ValueType>(input.getType());
    if (type.isScalar()) {
      Value sum = input == step.getTokens() ? sumTokens(op.getLoc())
                                            : allReduce(op.getLoc(), input);
      if (Value factor = getFactor(op.getLoc(), type))
        sum = builder.create<ScaleOp>(op.getLoc(), sum, factor);
      mapping.map(result, sum);
      continue;
    }
    Scaled gradient;
    gradient.raw = input;
    // Addends are rounded once. A sum travels in its own type.
    TypeAttr reduceDtype = op.getReduceDtypeAttr();
    if (reduceDtype && reduceDtype.getValue() == type.getElementType())
      reduceDtype = nullptr;
    if (SmallVector<Attribute> axes = getOwners(type); !axes.empty()) {
      gradient.raw = builder.create<ReduceScatterOp>(
          op.getLoc(), input, builder.getArrayAttr(axes), reduceDtype);
      reduceDtype = nullptr;
    }
    gradient.raw = allReduce(op.getLoc(), gradient.raw, reduceDtype);
    gradient.factor = getFactor(op.getLoc(), type);
    gradients[result] = gradient;
  }
}

SmallVector<Scaled> Rewriter::sumSquares(Location loc, ValueRange inputs) {
  // Each rank adds its own squares first, so that it sends one number.
  llvm::MapVector<std::pair<Value, ValueType>, SmallVector<Value>> groups;
  for (Value old : inputs) {
    Scaled gradient = gradients.lookup(old);
    // The key has only the parts of the type in which partial sums differ.
    auto type = cast<ValueType>(gradient.raw.getType());
    ValueType placement = ValueType::getSorted(
        type.getContext(), SmallVector<int64_t>(type.getShape().size(), 1),
        type.getElementType(), SmallVector<AxisPlacement>(type.getPlacements()),
        SmallVector<AxisCoordinate>(type.getPresent()), Scale(type.getScale()));
    groups[{gradient.factor, placement}].push_back(gradient.raw);
  }
  SmallVector<Scaled> results;
  for (auto &[key, raws] : groups) {
    auto *known = llvm::find_if(
        sums, [&raws = raws](auto &entry) { return entry.first == raws; });
    if (known == sums.end()) {
      Value sum = builder.create<SumSquaresOp>(loc, ValueRange(raws));
      // Only the pipeline stages of the gradients have this sum, so it counts
      // once over the stages.
      if (SmallVector<StringAttr> stages = key.second.getStageAxes();
          !stages.empty())
        sum = builder.create<CountReplicatedOnceOp>(
            loc, sum,
            builder.getArrayAttr(
                SmallVector<Attribute>(stages.begin(), stages.end())));
      sums.push_back({raws, allReduce(loc, sum)});
      known = &sums.back();
    }
    results.push_back({known->second, key.first});
  }
  return results;
}

void Rewriter::rewriteNorm(NormOp op) {
  // An outcome needs the sums only.
  if (llvm::all_of(op->getUsers(),
                   [](Operation *user) { return isa<OutcomeOp>(user); }))
    return;
  Location loc = op.getLoc();
  SmallVector<Scaled> squares = sumSquares(loc, op.getInputs());
  Scaled total = squares.front();
  bool haveOneFactor = llvm::all_of(
      squares, [&](const Scaled &each) { return each.factor == total.factor; });
  for (auto [i, each] : llvm::enumerate(squares)) {
    // Sums with different scales are unscaled before they are added.
    Value sum = each.raw;
    if (!haveOneFactor && each.factor) {
      sum = builder.create<ScaleOp>(loc, sum, each.factor);
      sum = builder.create<ScaleOp>(loc, sum, each.factor);
    }
    total.raw = i == 0 ? sum : builder.create<AddOp>(loc, total.raw, sum);
  }
  Value norm = builder.create<SqrtOp>(loc, total.raw);
  if (haveOneFactor && total.factor)
    norm = builder.create<ScaleOp>(loc, norm, total.factor);
  mapping.map(op.getNorm(), norm);
}

void Rewriter::rewriteClip(ClipOp op) {
  Value coefficient = builder.create<ClipCoefficientOp>(
      op.getLoc(), mapping.lookupOrDefault(op.getNorm()), op.getMax(),
      op.getConstantMaxAttr(), op.getEpsilonAttr());
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

void Rewriter::rewriteOutcome(OutcomeOp op) {
  // A norm is finite exactly if its sums are, and these are all-reduced anyway.
  llvm::SetVector<Value> parts;
  for (Value sum : op.getSums()) {
    auto norm = sum.getDefiningOp<NormOp>();
    if (!norm) {
      parts.insert(mapping.lookupOrDefault(sum));
      continue;
    }
    // Sums that norms need cover most of the gradients, or all. Of many sums
    // each would be tested, and the proof would look at each.
    constexpr size_t kMostTested = 16;
    llvm::SetVector<Value> left;
    for (Value input : norm.getInputs())
      left.insert(gradients.lookup(input).raw);
    for (auto &[raws, sum] : sums)
      if (sums.size() <= kMostTested &&
          llvm::all_of(raws, [&](Value raw) { return left.contains(raw); })) {
        parts.insert(sum);
        left.set_subtract(raws);
      }
    SmallVector<Value> inputs(norm.getInputs());
    llvm::erase_if(inputs, [&](Value input) {
      return !left.contains(gradients.lookup(input).raw);
    });
    for (const Scaled &part : sumSquares(norm.getLoc(), inputs))
      parts.insert(part.raw);
  }
  auto lookup = [&](Value operand) {
    return operand ? mapping.lookupOrDefault(operand) : Value();
  };
  auto outcome = builder.create<OutcomeOp>(
      op.getLoc(), parts.getArrayRef(), lookup(op.getMissing()),
      lookup(op.getBackwards()), lookup(op.getSquared()),
      lookup(op.getTokens()), op.getRanks(), op.getNonfinite());
  mapping.map(op.getOutcome(), outcome.getOutcome());
}

void Rewriter::rewriteUpdate(UpdateBucketOp op) {
  auto lookup = [&](Value scalar) { return mapping.lookupOrDefault(scalar); };
  auto outcomes = llvm::map_to_vector(op.getOutcomes(), lookup);
  auto rows = llvm::map_to_vector(op.getRows(), lookup);
  Value parameters = builder.create<UpdateBucketOp>(
      op.getLoc(), op.getBucketAttr(), op.getOptimizerAttr(),
      op.getParameterTypeAttr(), materialize(op.getLoc(), op.getGradient()),
      outcomes, rows, op.getRowOfAttr());
  auto type = cast<ValueType>(parameters.getType());
  SmallVector<StringAttr> owners =
      type.getAxesOfDim(type.getShape().size() - 1);
  auto bucket =
      symbols.lookupNearestSymbolFrom<BucketOp>(op, op.getBucketAttr());
  bool keepsSlices = stage == 3 && bucket.getUnit();
  if (!owners.empty() && !keepsSlices)
    parameters =
        builder.create<AllGatherOp>(op.getLoc(), parameters,
                                    builder.getArrayAttr(SmallVector<Attribute>(
                                        owners.begin(), owners.end())));
  mapping.map(op.getParameters(), parameters);
}

/// Whether |op| has the form that zero-assign-layout leaves: buckets have one
/// dimension, and ops that are not linear work on reduced gradients.
LogicalResult Rewriter::checkForm(Operation *op) {
  bool ok = true;
  if (auto reduce = dyn_cast<ReduceOp>(op))
    ok = llvm::all_of(reduce.getInputs(), [](Value input) {
      auto type = cast<ValueType>(input.getType());
      return type.isScalar() ||
             type.getAxesOfDim(type.getShape().size() - 1).empty();
    });
  else if (isa<NormOp, ClipOp>(op))
    ok = llvm::all_of(isa<ClipOp>(op) ? cast<ClipOp>(op).getInputs()
                                      : op->getOperands(),
                      [&](Value input) { return gradients.contains(input); });
  else if (auto update = dyn_cast<UpdateBucketOp>(op))
    ok = gradients.contains(update.getGradient());
  if (auto reduce = dyn_cast<ReduceOp>(op))
    ok &= lossScale || llvm::none_of(reduce.getInputs(), [](Value input) {
            return cast<ValueType>(input.getType()).isScaledBy(kLossScale);
          });
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
  if (auto outcome = dyn_cast<OutcomeOp>(op)) {
    rewriteOutcome(outcome);
    return success();
  }
  if (auto update = dyn_cast<UpdateBucketOp>(op)) {
    rewriteUpdate(update);
    return success();
  }
  for (Value operand : op->getOperands())
    if (gradients.contains(operand))
      return op->emitOpError() << "of a reduced gradient is not laid out; run "
                                  "zero-assign-layout first";
  Operation *copy = builder.clone(*op, mapping);
  if (auto read = dyn_cast<ReadScaleOp>(copy))
    lossScale = read.getValue();
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

  /// Checks that stage 3 has units, and that no unit is gathered by ranks of
  /// different pipeline stages: each stage uses units at its own times.
  LogicalResult checkUnits() {
    if (getOperation().getOps<UnitOp>().empty())
      return emitError(getOperation().getLoc())
             << "stage 3 shards the parameters of units, and there is none; "
                "list the parameters of each layer in a zero.unit, or lower at "
                "stage 2";
    llvm::MapVector<StringAttr, ParameterOp> divided; // by axis
    for (auto parameter : getOperation().getOps<ParameterOp>())
      for (StringAttr axis : parameter.getValueType().getStageAxes())
        divided.insert({axis, parameter});
    SymbolTableCollection symbols;
    for (auto [axis, parameter] : divided)
      for (auto unit : getOperation().getOps<UnitOp>()) {
        if (!unit.getPlace(symbols).getCoordinates(axis).empty())
          continue;
        auto ofThese = [name = axis](StepOp step) {
          return hasExperts(step, name);
        };
        bool isOfExperts =
            llvm::any_of(getOperation().getOps<StepOp>(), ofThese);
        InFlightDiagnostic diag = unit.emitOpError()
                                  << "@" << unit.getSymName() << " is on all ";
        if (isOfExperts)
          diag
              << "coordinates of " << axis
              << ", and each of them has experts of its own; shard the experts "
                 "over "
              << axis << " instead, or lower at stage 2";
        else
          diag << "pipeline stages of " << axis
               << ", and stages use units at their own times; say in the type "
                  "of each member on which it is, such as on = ["
               << axis.getValue() << " : 0, " << axis.getValue()
               << " : 1], or take them out of the unit";
        diag.attachNote(parameter.getLoc())
            << "@" << parameter.getSymName() << " is on some of them";
        return diag;
      }
    return success();
  }

  /// Whether ranks of one coordinate of |axis| have experts: gradients of all
  /// batches along it reach them there. Others may be sharded over it.
  static bool hasExperts(StepOp step, StringAttr axis) {
    return step
        .walk([&](BackwardOp op) {
          bool isReduced = llvm::any_of(op.getResultTypes(), [&](Type type) {
            return cast<ValueType>(type).getPlacement(axis).reduced;
          });
          return isReduced ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Gives each rank a slice of each frozen bucket, over the axes that
  /// gradients of |step| are summed over.
  void shardFrozen(StepOp step, ArrayRef<StringRef> owners) {
    SmallVector<StringAttr> axes = step.getSummedAxes();
    llvm::erase_if(axes, [&](StringAttr axis) {
      return !owners.empty() && !llvm::is_contained(owners, axis.getValue());
    });
    for (auto bucket : getOperation().getOps<FrozenBucketOp>()) {
      ValueType type = bucket.getValueType();
      AxisPlacement slice;
      slice.kind = PlacementKind::Sharded;
      slice.dim = type.getShape().size() - 1;
      for (StringAttr axis : axes) {
        slice.axis = axis;
        // On each of its pipeline stages a parameter is whole.
        if (type.getCoordinates(axis).empty() &&
            type.getPlacement(axis).kind == PlacementKind::Replicated)
          type = type.withPlacement(slice);
      }
      bucket.setType(type);
    }
  }

  void runOnOperation() override {
    if (stage < 0 || stage > 3) {
      emitError(getOperation().getLoc())
          << "stage must be 0, 1, 2 or 3, got " << int(stage);
      return signalPassFailure();
    }
    if (stage == 3 && failed(checkUnits()))
      return signalPassFailure();
    SmallVector<StringRef> owners;
    StringRef(shardOver).split(owners, ',', -1, /*KeepEmpty=*/false);
    SymbolTableCollection symbols;
    for (auto step : llvm::to_vector(getOperation().getOps<StepOp>())) {
      auto mesh =
          symbols.lookupNearestSymbolFrom<MeshOp>(step, step.getMeshAttr());
      for (StringRef axis : owners)
        if (!mesh.getAxisSize(axis)) {
          InFlightDiagnostic diag = step.emitOpError()
                                    << "cannot shard over '" << axis
                                    << "', which is no axis of its mesh; names "
                                       "are separated by commas";
          diag.attachNote(mesh.getLoc()) << "axes are declared here";
          return signalPassFailure();
        }
      for (auto bucket : getOperation().getOps<LaidOut>())
        for (StringAttr axis : bucket.getValueType().getStageAxes())
          if (llvm::is_contained(owners, axis.getValue()) &&
              !hasExperts(step, axis)) {
            bucket.emitOpError() << "cannot shard over '" << axis.getValue()
                                 << "', whose ranks are pipeline stages";
            return signalPassFailure();
          }
      if (failed(Rewriter(step, stage, owners, symbols).run()))
        return signalPassFailure();
      if (stage == 3)
        shardFrozen(step, owners);
    }
  }
};
} // namespace
