//===- StepLowering.cpp - Lowers one step to a program --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/StepLowering.h"

using namespace mlir;
using namespace zero;

/// |type| without the axis of backward passes: the type of a buffer that holds
/// one backward pass. In this buffer a sum by autograd is a gradient like any
/// other.
static ValueType withoutMicro(Type type) {
  auto value = cast<ValueType>(type);
  for (AxisPlacement placement : llvm::to_vector(value.getPlacements())) {
    placement.reduced = false;
    value = value.withPlacement(placement);
  }
  return value.withPlacement({StringAttr::get(type.getContext(), kMicroAxis)});
}

//===----------------------------------------------------------------------===//
// What the step is made of
//===----------------------------------------------------------------------===//

bool StepLowering::isOfSeveral(ArrayAttr axes) {
  return llvm::any_of(axes.getAsRange<StringAttr>(), [&](StringAttr axis) {
    return mesh.getAxisSize(axis) != 1;
  });
}

LogicalResult StepLowering::readMicroBatches(MicroBatchesOp op) {
  auto isReduction = [&](Operation *user) {
    auto sum = dyn_cast<AllReduceOp>(user);
    return isa<ReduceScatterOp>(user) ||
           (sum && (sum.getReduceDtype() || isOfSeveral(sum.getAxes())));
  };
  Operation *yield = op.getBody().front().getTerminator();
  for (auto [value, sum] :
       llvm::zip_equal(yield->getOperands(), op.getSums())) {
    auto scatter = value.getDefiningOp<ReduceScatterOp>();
    auto gradient = dyn_cast<OpResult>(scatter ? scatter.getInput() : value);
    auto backward =
        gradient ? dyn_cast<BackwardOp>(gradient.getOwner()) : BackwardOp();
    auto source = backward
                      ? cast<FlatSymbolRefAttr>(
                            backward.getSources()[gradient.getResultNumber()])
                      : FlatSymbolRefAttr();
    auto bucket = source
                      ? symbols.lookupNearestSymbolFrom<BucketOp>(step, source)
                      : BucketOp();
    if (!bucket)
      return op.emitError()
             << "has a sum that is not the gradient of a bucket, scattered or "
                "not; run zero-assign-layout first";
    BucketBuffers &buffers = buckets[source.getAttr()];
    buffers.op = bucket;
    buffers.isOpenToTheEnd = bucket.isOpenToTheEnd(symbols);
    buffers.gradientType = withoutMicro(gradient.getType());
    buffers.prescaled = backward.getPrescaledAttr();
    buffers.summedInLoop = static_cast<bool>(scatter);
    if (scatter) {
      buffers.reducedType = withoutMicro(scatter.getOutput().getType());
      buffers.scatterAxes = scatter.getAxesAttr();
      buffers.scatterLoc = scatter.getLoc();
      buffers.reduceDtype = scatter.getReduceDtype().value_or(Type());
      // One backward pass stores a gradient, and does not add to it. So it can
      // stay as it arrives.
      if (buffers.reduceDtype == bucket.getArrivalType() &&
          bucket.arrivesInOnePiece(symbols)) {
        buffers.gradientType =
            buffers.gradientType.withElementType(buffers.reduceDtype);
        buffers.reduceDtype = nullptr;
      }
    } else if (step.getOneBackward() && bucket.arrivesNarrower(symbols) &&
               llvm::none_of(sum.getUsers(), isReduction)) {
      buffers.gradientType =
          buffers.gradientType.withElementType(bucket.getArrivalType());
    }
    bucketOfValue[sum] = source;
  }
  return success();
}

LogicalResult StepLowering::readApart() {
  auto loops = llvm::to_vector(step.getBody().getOps<MicroBatchesOp>());
  if (llvm::none_of(loops, [](MicroBatchesOp op) { return op.getApart(); }))
    return success();
  for (MicroBatchesOp op : loops) {
    for (Value sum : op.getSums()) {
      BucketBuffers &bucket = bucketOf(bucketOfValue.lookup(sum));
      auto scatter = sum.hasOneUse()
                         ? dyn_cast<ReduceScatterOp>(*sum.user_begin())
                         : ReduceScatterOp();
      const char *reason = nullptr;
      if (!op.getApart() || step.getOneBackward())
        reason = "is summed in another way";
      else if (!bucket.op.arrivesNarrower(symbols))
        reason = "has gradients that arrive in the type of their sum, or in "
                 "several pieces";
      else if (!scatter || !isOfSeveral(scatter.getAxes()) ||
               !bucket.maySumEarly(scatter.getAxes()))
        reason = "is not scattered over several ranks of one pipeline stage";
      if (reason)
        return op.emitError()
               << "is summed apart, and bucket @" << bucket.op.getSymName()
               << " " << reason
               << "; all buckets of a step are summed alike, so leave "
                  "'accumulate=apart' out";
      bucket.accumulatorType = bucket.gradientType;
      bucket.gradientType =
          bucket.gradientType.withElementType(bucket.op.getArrivalType());
      // Ranks of unequal numbers of backward passes meet at one collective, and
      // then refuse the step. So the gradient of one travels as the sum does.
      if (!bucket.reduceDtype)
        bucket.reduceDtype = bucket.accumulatorType.getElementType();
    }
  }
  return success();
}

LogicalResult StepLowering::readUpdates() {
  for (auto scatter : step.getBody().getOps<ReduceScatterOp>()) {
    auto it = bucketOfValue.find(scatter.getInput());
    if (it == bucketOfValue.end())
      return scatter.emitError() << "operand is not the gradient of a bucket";
    BucketBuffers &bucket = bucketOf(it->second);
    bucket.reducedType = withoutMicro(scatter.getType());
    bucket.reduceDtype = scatter.getReduceDtype().value_or(Type());
  }
  for (auto reduce : step.getBody().getOps<AllReduceOp>()) {
    if (!reduce.getReduceDtype())
      continue;
    auto it = bucketOfValue.find(reduce.getInput());
    if (it == bucketOfValue.end() || bucketOf(it->second).reducedType)
      return reduce.emitError()
             << "only the addends of a bucket that was not "
                "scattered can travel "
                "as another type here; leave 'reduce_dtype' out";
    bucketOf(it->second).reduceDtype = *reduce.getReduceDtype();
  }
  for (auto update : step.getBody().getOps<UpdateBucketOp>()) {
    BucketBuffers &bucket = bucketOf(update.getBucketAttr());
    bucket.optimizer = symbols.lookupNearestSymbolFrom<OptimizerOp>(
        step, update.getOptimizerAttr());
    bucket.storageType = update.getParameterType();
    bucket.ownedType = cast<ValueType>(update.getGradient().getType());
  }
  for (auto assign : step.getBody().getOps<AssignOp>())
    bucketOf(assign.getBucketAttr()).keptType =
        cast<ValueType>(assign.getValue().getType());
  // All buckets share one protocol, whose later arrivals either store or add.
  // If they store, a bucket without a reduction in the loop is accumulated by a
  // call when a backward pass is closed.
  bool anyInLoop = llvm::any_of(buckets, [](auto &entry) {
    return static_cast<bool>(entry.second.scatterAxes);
  });
  for (auto &[name, bucket] : buckets) {
    if (!anyInLoop || bucket.scatterAxes)
      continue;
    if (bucket.reducedType)
      return step.emitError() << "bucket @" << name.getValue()
                              << " is scattered after the loop over backward "
                                 "passes and other buckets in it; lower at "
                                 "stage 1, which scatters all after it";
    bucket.summedInLoop = true;
    bucket.reducedType = bucket.gradientType;
  }
  // Where units are sharded, other buckets are closed at the end of a backward
  // pass.
  bool anySlices = llvm::any_of(buckets, [](auto &entry) {
    return entry.second.keptType && entry.second.keepsSlices();
  });
  for (auto frozen : step->getParentOfType<ModuleOp>().getOps<FrozenBucketOp>())
    anySlices |= frozen.isSharded();
  for (auto &[name, bucket] : buckets)
    bucket.isOpenToTheEnd |=
        anySlices && bucket.keptType && !bucket.keepsSlices();
  for (auto &[name, bucket] : buckets)
    if (!bucket.optimizer || !bucket.keptType)
      return step.emitError()
             << (bucket.optimizer ? "the update of bucket @" : "bucket @")
             << name.getValue()
             << (bucket.optimizer ? " reaches no zero.assign"
                                  : " is never updated");
  return success();
}

llvm::DenseMap<Value, StringAttr> StepLowering::readHyperNames() {
  llvm::DenseMap<Value, StringAttr> names;
  for (auto prepare : step.getBody().getOps<PrepareOp>()) {
    auto optimizer = symbols.lookupNearestSymbolFrom<OptimizerOp>(
        step, prepare.getOptimizerAttr());
    for (auto [value, name] :
         llvm::zip_equal(prepare.getHyper(),
                         optimizer.getHyperNames().getAsRange<StringAttr>()))
      names.try_emplace(value, name);
  }
  for (auto clip : step.getBody().getOps<ClipCoefficientOp>())
    if (Value max = clip.getMax())
      names.try_emplace(max, StringAttr::get(step.getContext(), kMaxNorm));
  return names;
}

void StepLowering::declareBuckets() {
  for (auto &[name, bucket] : buckets) {
    program->setLoc(bucket.op.getLoc());
    declareBucket(*program, bucket);
  }
  for (auto &[value, source] : bucketOfValue) {
    BucketBuffers &bucket = bucketOf(source);
    bufferOfValue[value] =
        bucket.summedInLoop ? bucket.reduced : bucket.gradient;
  }
}

/// Whether |op| writes parameters or state, or needs what such an op writes.
static bool isUpdate(Operation &op) {
  if (auto transfer = dyn_cast<TransferOp>(op))
    return transfer.getInput().getDefiningOp<UpdateBucketOp>() != nullptr;
  return isa<UpdateBucketOp, AllGatherOp, AssignOp>(op);
}

FailureOr<ApplyHandlers> StepLowering::lowerBody() {
  auto begin = [&](StringRef name) {
    program->setLoc(step.getBody().front().getTerminator()->getLoc());
    zrt::HandlerOp handler = program->handler(name);
    calls.emplace(handler);
    return FlatSymbolRefAttr::get(handler);
  };
  ApplyHandlers handlers;
  handlers.measure = begin("measure");
  scalars.emplace(*program, *calls, mesh, Slot{arrivals, 0});
  for (auto [argument, input] :
       llvm::zip_equal(step.getBody().getArguments(),
                       inputs.getAsRange<FlatSymbolRefAttr>()))
    scalars->place(argument, {input, 0});
  setLoc(arrive);
  calls->call<zrt::CountArrivalsOp>(arrivals);

  // Sums and scalars come first, and then the transfers that follow no update.
  SmallVector<TransferOp> transfers;
  SmallVector<Operation *> updates;
  for (Operation &op : step.getBody().front())
    if (isUpdate(op))
      updates.push_back(&op);
    else if (auto transfer = dyn_cast<TransferOp>(op))
      transfers.push_back(transfer);
    else if (failed(lower(&op)))
      return failure();
  for (Operation *op : updates)
    if (auto update = dyn_cast<UpdateBucketOp>(op))
      for (int64_t row : update.getRowOf())
        (void)getRow(update, row);
  scalars->flush();
  bool isOnHost = llvm::any_of(
      buckets, [](auto &entry) { return entry.second.isOffloaded(); });
  if (isOnHost)
    calls->call<zrt::CopyScalarsOp>();
  for (TransferOp op : transfers)
    if (failed(lower(op)))
      return failure();

  handlers.update = begin("update");
  for (Operation *op : updates)
    if (failed(lower(op)))
      return failure();
  handlers.commit = begin("commit");
  calls->call<zrt::CommitOp>(outcome);
  if (scalars->changesCounters()) {
    handlers.undo = begin("undo");
    scalars->restoreCounters(*calls);
  }
  return handlers;
}

LogicalResult StepLowering::run() {
  for (auto op : step.getBody().getOps<MicroBatchesOp>())
    if (failed(readMicroBatches(op)))
      return failure();
  if (buckets.empty())
    return step.emitError() << "has no gradients";
  if (failed(readUpdates()) || failed(readApart()))
    return failure();

  OpBuilder builder(step);
  ArrayAttr none = builder.getArrayAttr({});
  ArrayAttr batches;
  if (step.saysBatches(mesh) && !step.getOneBackward()) {
    auto axes = step.getBatchAxes(mesh);
    batches =
        builder.getArrayAttr(SmallVector<Attribute>(axes.begin(), axes.end()));
  }
  auto programOp = builder.create<zrt::ProgramOp>(
      step.getLoc(), step.getSymName(), step.getMesh(), step.getLossScaleAttr(),
      step.getOneBackward(), none, none, none, batches);
  programOp.getBody().emplaceBlock();
  program.emplace(programOp);
  arrivals = program->slots("arrivals", {0.0, 0.0});
  outcome = program->slots("outcome", {0.0});
  SmallVector<Attribute> inputSlots;
  llvm::DenseMap<Value, StringAttr> hyperNames = readHyperNames();
  for (BlockArgument argument : step.getBody().getArguments())
    inputSlots.push_back(program->input(argument, argument == step.getTokens(),
                                        hyperNames.lookup(argument),
                                        StepOp::isMaxNorm(argument)));
  inputs = builder.getArrayAttr(inputSlots);
  programOp.setInputsAttr(inputs);

  declareBuckets();
  for (auto op : step.getBody().getOps<MicroBatchesOp>())
    arrive = op.getLoc();
  FailureOr<ApplyHandlers> handlers = lowerBody();
  if (failed(handlers))
    return failure();
  for (auto &[name, bucket] : buckets)
    if (!bucket.isAssigned)
      return step.emitError() << "the update of bucket @" << name.getValue()
                              << " reaches no zero.assign";
  program->setLoc(arrive);
  buildProtocol(*program, buckets, *handlers, step.getOneBackward());
  // Handlers come last, so that every symbol they name is defined above them.
  Block &body = programOp.getBody().front();
  Operation *first = &*llvm::find_if(
      body, [](Operation &op) { return isa<zrt::TransitionOp>(op); });
  for (auto symbol : handlers->getAll())
    program->getHandler(symbol)->moveBefore(first);
  step.erase();
  return success();
}
