//===- AssignLayout.cpp - Lays parameters out in buckets ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/layout/FrozenBuckets.h"
#include "passes/layout/Passes.h"
#include "passes/layout/Row.h"
#include "passes/layout/StepShape.h"

#include "dialect/zero/Flattened.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace zero {
#define GEN_PASS_DEF_ASSIGNLAYOUTPASS
#include "passes/layout/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

namespace {
/// Parameters that share a path, and the bucket they are laid out in.
struct Bucket : Row {
  GradientPath path;
  BucketOp op;

  /// The gradients of all members, kept in |type|.
  ValueType getGradientType(Type type) const {
    return withElements(path.arrivalType).withElementType(type);
  }
};

/// Rewrites one step from parameters to buckets.
class Layout {
public:
  Layout(StepShape &shape, SymbolTableCollection &symbols, int64_t bucketBytes)
      : shape(shape), symbols(symbols), bucketBytes(bucketBytes),
        builder(shape.step) {}

  void run();

private:
  void fillBuckets();
  void declareBuckets();
  void rewriteMicroBatches(MicroBatchesOp op);
  void rewriteReduce(ReduceOp op);
  void rewriteNorm(NormOp op);
  void rewriteClip(ClipOp op);
  llvm::MapVector<Operation *, Value> countDelivered(Location loc,
                                                     ArrayAttr axes);
  /// The outcome of the step. |delivered| gets the sums of countDelivered over
  /// the ranks.
  Value buildOutcome(Location loc,
                     llvm::MapVector<Operation *, Value> &delivered);
  void rewriteUpdates(Location loc);
  SmallVector<Value> buildPrepare(UpdateOp update, Value outcome);

  /// The buckets of which |isMember| is true.
  template <typename IsMember>
  SmallVector<size_t> bucketsOf(IsMember isMember) {
    SmallVector<size_t> indices;
    for (auto [i, bucket] : llvm::enumerate(buckets))
      if (isMember(bucket.path))
        indices.push_back(i);
    return indices;
  }

  StepShape &shape;
  SymbolTableCollection &symbols;
  int64_t bucketBytes;
  OpBuilder builder;
  IRMapping scalars;
  /// The values that the step reads from loss scales and schedules.
  SmallVector<Value> rules;
  std::vector<Bucket> buckets;
  /// By bucket: the sum of its gradients over backward passes; the gradient
  /// reduced, after the first clip, and so on.
  SmallVector<Value> sums;
  SmallVector<SmallVector<Value, 2>> gradients;
};
} // namespace

//===----------------------------------------------------------------------===//
// Buckets
//===----------------------------------------------------------------------===//

void Layout::fillBuckets() {
  // Gradients arrive in the reverse order. A bucket that stays open to the end
  // of a backward pass comes last, as it lets no later one be closed before it.
  // Beside units that is each bucket of no unit.
  auto declared = llvm::to_vector(shape.paths);
  bool hasUnits = llvm::any_of(declared, [](auto &entry) {
    return static_cast<bool>(entry.second.unit);
  });
  SmallVector<std::pair<ParameterOp, GradientPath>> parameters;
  for (bool isLast : {false, true})
    for (auto &entry : llvm::reverse(declared)) {
      const GradientPath &path = entry.second;
      if ((path.isOpenToTheEnd || (hasUnits && !path.unit)) == isLast)
        parameters.push_back(entry);
    }
  for (auto &entry : parameters) {
    ParameterOp parameter = entry.first;
    const GradientPath &path = entry.second;
    int64_t extent = Row::getExtent(parameter, shape.mesh);
    int64_t width = cast<MicroBatchesOp>(path.backward->getParentOp())
                        .getAccumulatorType()
                        .getIntOrFloatBitWidth() /
                    8;
    // The open bucket of a path is its last one.
    auto it = llvm::find_if(llvm::reverse(buckets), [&](const Bucket &bucket) {
      return bucket.path == path;
    });
    // A unit is gathered as a whole, so more buckets would only be more calls.
    bool isFull =
        it == buckets.rend() || (!path.unit && !it->members.empty() &&
                                 (it->elements + extent) * width > bucketBytes);
    Bucket &bucket = isFull ? buckets.emplace_back() : *it;
    bucket.path = path;
    bucket.add(parameter, shape.mesh);
  }
  for (Bucket &bucket : buckets)
    bucket.pad(shape.mesh.getNumRanks(
        bucket.path.arrivalType.getAxes(PlacementKind::Partial)));
}

void Layout::declareBuckets() {
  builder.setInsertionPoint(shape.step);
  SymbolTable &table = symbols.getSymbolTable(shape.step->getParentOp());
  for (auto [i, bucket] : llvm::enumerate(buckets)) {
    Type kept = cast<MicroBatchesOp>(bucket.path.backward->getParentOp())
                    .getAccumulatorType();
    ValueType type = bucket.getGradientType(kept).withScale({});
    for (AxisPlacement placement : llvm::to_vector(type.getPlacements())) {
      placement.reduced = false;
      if (placement.kind != PlacementKind::Sharded)
        placement.kind = PlacementKind::Replicated;
      type = type.withPlacement(placement);
    }
    bucket.op = builder.create<BucketOp>(
        bucket.path.backward.getLoc(), ("b" + Twine(i)).str(), type,
        bucket.path.arrivalType.getElementType(), bucket.getMembers(builder),
        bucket.offsets, bucket.extents,
        bucket.path.unit ? FlatSymbolRefAttr::get(bucket.path.unit)
                         : FlatSymbolRefAttr());
    table.insert(bucket.op, Block::iterator(shape.step));
  }
}

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

void Layout::rewriteMicroBatches(MicroBatchesOp op) {
  Region body;
  // A block without a parent has no context of its own.
  OpBuilder inner(op.getContext());
  inner.setInsertionPointToEnd(&body.emplaceBlock());
  SmallVector<Value> yields;
  SmallVector<size_t> indices;
  for (auto backward : op.getBody().front().getOps<BackwardOp>()) {
    SmallVector<Attribute> sources;
    SmallVector<Type> types;
    for (size_t i : bucketsOf([&](const GradientPath &path) {
           return path.backward == backward;
         })) {
      sources.push_back(FlatSymbolRefAttr::get(buckets[i].op));
      // Arriving gradients are converted when they are packed.
      types.push_back(buckets[i].getGradientType(op.getAccumulatorType()));
      indices.push_back(i);
    }
    auto packed = inner.create<BackwardOp>(
        backward.getLoc(), types, inner.getArrayAttr(sources),
        backward.getPrescaledAttr(), backward.getReplicatedAttr());
    llvm::append_range(yields, packed.getGradients());
  }
  inner.create<YieldOp>(op.getLoc(), yields);
  auto loop = builder.create<MicroBatchesOp>(op.getLoc(),
                                             op.getAccumulatorType(), body);
  for (auto [i, sum] : llvm::zip_equal(indices, loop.getSums()))
    sums[i] = sum;
}

void Layout::rewriteReduce(ReduceOp op) {
  SmallVector<size_t> indices =
      bucketsOf([&](const GradientPath &path) { return path.reduce == op; });
  auto inputs = llvm::map_to_vector(indices, [&](size_t i) { return sums[i]; });
  auto reduce =
      builder.create<ReduceOp>(op.getLoc(), inputs, op.getReduceDtypeAttr());
  for (auto [i, output] : llvm::zip_equal(indices, reduce.getOutputs()))
    gradients[i] = {output};
}

void Layout::rewriteNorm(NormOp op) {
  // Buckets without elements are left out: a clip coefficient that is nan, or a
  // number of tokens that is 0, would make nan of their 0.
  auto hasElements = [](const Bucket &bucket) {
    return llvm::any_of(bucket.members, [](ParameterOp parameter) {
      return parameter.getNumElements() > 0;
    });
  };
  SmallVector<Value> inputs;
  for (auto [i, bucket] : llvm::enumerate(buckets))
    for (auto [norm, clips] : bucket.path.norms)
      if (norm == op && hasElements(bucket))
        inputs.push_back(gradients[i][clips]);
  Value norm;
  if (inputs.empty())
    norm = builder.create<ConstantOp>(op.getLoc(), builder.getF64FloatAttr(0));
  else
    norm = builder.create<NormOp>(op.getLoc(), inputs);
  scalars.map(op.getNorm(), norm);
}

void Layout::rewriteClip(ClipOp op) {
  SmallVector<size_t> indices = bucketsOf([&](const GradientPath &path) {
    return llvm::is_contained(path.clips, op);
  });
  auto inputs = llvm::map_to_vector(
      indices, [&](size_t i) { return gradients[i].back(); });
  auto clip = builder.create<ClipOp>(
      op.getLoc(), inputs, scalars.lookup(op.getNorm()), op.getMax(),
      op.getConstantMaxAttr(), op.getEpsilonAttr());
  for (auto [i, output] : llvm::zip_equal(indices, clip.getOutputs()))
    gradients[i].push_back(output);
}

/// For each group that is skipped if its gradients are absent: the number of
/// gradients that arrived on this rank.
llvm::MapVector<Operation *, Value> Layout::countDelivered(Location loc,
                                                           ArrayAttr axes) {
  llvm::MapVector<Operation *, Value> counts;
  for (auto update : shape.step.getBody().getOps<UpdateOp>()) {
    auto group =
        symbols.lookupNearestSymbolFrom<GroupOp>(update, update.getGroupAttr());
    if (!group.getSkipsAbsent())
      continue;
    auto delivered =
        builder.create<DeliveredCountOp>(loc, group.getMembers(), axes);
    // In pairs: the proof looks at each sum on the way, and they are short.
    SmallVector<Value> sums(delivered.getCounts());
    for (size_t step = 1; step < sums.size(); step *= 2)
      for (size_t i = 0; i + step < sums.size(); i += 2 * step)
        sums[i] = builder.create<AddOp>(loc, sums[i], sums[i + step]);
    counts[update] = sums.front();
  }
  return counts;
}

Value Layout::buildOutcome(Location loc,
                           llvm::MapVector<Operation *, Value> &delivered) {
  SmallVector<Attribute> names;
  for (auto axis : shape.mesh.getAxes().getAsRange<MeshAxisAttr>())
    names.push_back(axis.getName());
  ArrayAttr axes = builder.getArrayAttr(names);
  auto arrivals = builder.create<ArrivalCountOp>(loc, axes);
  // Ranks that may make different numbers of backward passes do not compare
  // them.
  bool compares = !shape.step.takesUnequalBackwards();
  SmallVector<Value> counts{arrivals.getMissing()};
  if (compares)
    counts = {arrivals.getBackwards(), arrivals.getSquared(),
              arrivals.getMissing()};
  delivered = countDelivered(loc, axes);
  size_t numCounts = counts.size();
  for (auto &[update, count] : delivered)
    counts.push_back(count);
  auto totals = builder.create<ReduceOp>(loc, counts, /*reduceDtype=*/nullptr);
  for (auto [i, entry] : llvm::enumerate(delivered))
    entry.second = totals.getOutputs()[numCounts + i];
  Value tokens;
  if (shape.step.dividesByTokens())
    tokens = builder
                 .create<ReduceOp>(loc, ValueRange(shape.step.getTokens()),
                                   /*reduceDtype=*/nullptr)
                 .getOutputs()[0];
  // Not finite if any gradient is not.
  Nonfinite nonfinite = shape.step.getNonfinite();
  SmallVector<Value> norms;
  if (nonfinite != Nonfinite::apply) {
    SmallVector<Location> reduces;
    for (const Bucket &bucket : buckets)
      if (reduces.empty() || reduces.back() != bucket.path.reduce->getLoc())
        reduces.push_back(bucket.path.reduce->getLoc());
    auto reduced = llvm::map_to_vector(
        gradients, [](const auto &values) { return values.front(); });
    norms.push_back(
        builder.create<NormOp>(builder.getFusedLoc(reduces), reduced));
  }
  return builder.create<OutcomeOp>(loc, norms,
                                   totals.getOutputs()[numCounts - 1],
                                   compares ? totals.getOutputs()[0] : Value(),
                                   compares ? totals.getOutputs()[1] : Value(),
                                   tokens, shape.mesh.getNumRanks(), nonfinite);
}

SmallVector<Value> Layout::buildPrepare(UpdateOp update, Value outcome) {
  auto optimizer = symbols.lookupNearestSymbolFrom<OptimizerOp>(
      update, update.getOptimizerAttr());
  SmallVector<Value> hyper;
  for (auto name : optimizer.getHyperNames().getAsRange<StringAttr>()) {
    auto names = update.getHyperNames().getAsRange<StringAttr>();
    auto it = llvm::find(names, name);
    if (it != names.end()) {
      size_t index = std::distance(names.begin(), it);
      hyper.push_back(scalars.lookup(update.getHyper()[index]));
      continue;
    }
    Attribute value = update.getHyperConstants().get(name);
    if (!value)
      value = optimizer.getHyperDefaults().get(name);
    hyper.push_back(
        builder.create<ConstantOp>(update.getLoc(), cast<FloatAttr>(value)));
  }
  auto prepare = builder.create<PrepareOp>(
      update.getLoc(), update.getGroupAttr(), update.getOptimizerAttr(),
      builder.getI64IntegerAttr(optimizer.getNumScalars()), hyper, outcome);
  return SmallVector<Value>(prepare.getScalars());
}

void Layout::rewriteUpdates(Location loc) {
  llvm::MapVector<Operation *, Value> delivered;
  Value outcome = buildOutcome(loc, delivered);
  llvm::MapVector<Operation *, SmallVector<Value>> rows;
  llvm::DenseMap<Operation *, Value> outcomes;
  for (auto update : shape.step.getBody().getOps<UpdateOp>()) {
    Value &own = outcomes[update] = outcome;
    if (Value count = delivered.lookup(update))
      own = builder.create<GroupOutcomeOp>(update.getLoc(), outcome, count);
    rows[update] = buildPrepare(update, own);
  }
  for (auto [i, bucket] : llvm::enumerate(buckets)) {
    // Rows of the groups that have a member here, in order of first use.
    llvm::MapVector<Operation *, int64_t> rowOf;
    SmallVector<int64_t> memberRows;
    SmallVector<Value> operands;
    for (ParameterOp member : bucket.members) {
      Operation *update = shape.updates.lookup(member);
      // Groups without scalars differ in their outcomes only.
      if (rows[update].empty())
        for (auto &[other, row] : rowOf)
          if (rows[other].empty() && outcomes[other] == outcomes[update])
            update = other;
      auto [it, isNew] = rowOf.insert({update, rowOf.size()});
      if (isNew)
        llvm::append_range(operands, rows[update]);
      memberRows.push_back(it->second);
    }
    auto ofRows = llvm::map_to_vector(
        rowOf, [&](auto &entry) { return outcomes.lookup(entry.first); });
    if (llvm::all_equal(ofRows))
      ofRows.truncate(1);
    Location from = builder.getFusedLoc(llvm::map_to_vector(
        rowOf, [](auto &entry) { return entry.first->getLoc(); }));
    auto updated = builder.create<UpdateBucketOp>(
        from, FlatSymbolRefAttr::get(bucket.op),
        FlatSymbolRefAttr::get(bucket.path.optimizer),
        TypeAttr::get(bucket.path.storageType), gradients[i].back(), ofRows,
        operands, builder.getDenseI64ArrayAttr(memberRows));
    builder.create<AssignOp>(from, FlatSymbolRefAttr::get(bucket.op),
                             updated.getParameters());
  }
  for (Value read : rules)
    builder.create<AdvanceOp>(read.getLoc(), read, outcome);
}

void Layout::run() {
  fillBuckets();
  declareBuckets();
  sums.resize(buckets.size());
  gradients.resize(buckets.size());

  // The new body is built before the old one, which is erased at the end.
  Block &block = shape.step.getBody().front();
  SmallVector<Operation *> old =
      llvm::map_to_vector(block, [](Operation &op) { return &op; });
  builder.setInsertionPointToStart(&block);
  for (BlockArgument argument : block.getArguments())
    scalars.map(argument, argument);
  if (FlatSymbolRefAttr scale = shape.step.getLossScaleAttr())
    rules.push_back(builder.create<ReadScaleOp>(
        symbols.lookupNearestSymbolFrom(shape.step, scale)->getLoc(), scale));
  for (Operation *op : old) {
    if (auto microBatches = dyn_cast<MicroBatchesOp>(op)) {
      rewriteMicroBatches(microBatches);
    } else if (auto reduce = dyn_cast<ReduceOp>(op);
               reduce && !isOfScalars(reduce)) {
      rewriteReduce(reduce);
    } else if (auto norm = dyn_cast<NormOp>(op)) {
      rewriteNorm(norm);
    } else if (auto clip = dyn_cast<ClipOp>(op)) {
      rewriteClip(clip);
    } else if (auto done = dyn_cast<ReturnOp>(op)) {
      rewriteUpdates(done.getLoc());
      builder.clone(*done, scalars);
    } else if (!isa<UpdateOp>(op)) {
      Operation *copy = builder.clone(*op, scalars);
      if (auto read = dyn_cast<ReadScheduleOp>(copy))
        rules.push_back(read.getValue());
    }
  }
  for (Operation *op : llvm::reverse(old))
    op->erase();
}

namespace {
struct AssignLayoutPass : zero::impl::AssignLayoutPassBase<AssignLayoutPass> {
  using AssignLayoutPassBase::AssignLayoutPassBase;

  void runOnOperation() override {
    if (bucketBytes < 1) {
      getOperation().emitError("bucket-bytes must be at least 1, got ")
          << int64_t(bucketBytes);
      return signalPassFailure();
    }
    if (MeshOp mesh = findFlattened(getOperation())) {
      mesh.emitError("has flattened axes; run zero-expand-flattened first");
      return signalPassFailure();
    }
    SymbolTableCollection symbols;
    MeshOp mesh;
    llvm::SmallSetVector<StringAttr, 4> summed; // over which gradients are
    for (auto step : llvm::to_vector(getOperation().getOps<StepOp>())) {
      FailureOr<StepShape> shape = readStep(step, symbols);
      if (failed(shape))
        return signalPassFailure();
      mesh = shape->mesh;
      for (StringAttr axis : step.getSummedAxes())
        summed.insert(axis);
      Layout(*shape, symbols, bucketBytes).run();
    }
    if (mesh)
      declareFrozenBuckets(getOperation(), mesh, summed.getArrayRef());
  }
};
} // namespace
