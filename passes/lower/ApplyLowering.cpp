//===- ApplyLowering.cpp - What a step does at apply, op by op ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "passes/lower/StepLowering.h"

using namespace mlir;
using namespace zero;

void StepLowering::lowerGradientSum(AllReduceOp op, FlatSymbolRefAttr buffer) {
  Value input = op.getInput();
  FlatSymbolRefAttr symbol = bucketOfValue.lookup(input);
  BucketBuffers &bucket = bucketOf(symbol);
  bool hasReduceDtype = op.getReduceDtype().has_value();
  // After a wrong hint, a sum in place is an addend of the next reduction. A
  // sum must not travel in the reduce dtype, which would round it again.
  if (!hasReduceDtype && !isOfSeveral(op.getAxes())) {
    // The buffer holds the sum already.
  } else if (bucket.maySumEarly(op.getAxes()) && !hasReduceDtype) {
    bucket.sums.push_back({op.getLoc(), op.getAxesAttr()});
  } else {
    FlatSymbolRefAttr addends =
        hasReduceDtype ? prepareAddends(*program, *calls, bucket, buffer)
                       : buffer;
    calls->call<zrt::AllReduceOp>(
        addends, addends == buffer ? FlatSymbolRefAttr() : buffer,
        op.getAxesAttr());
    bucket.isSummedAtApply = true;
  }
  bufferOfValue[op.getOutput()] = buffer;
  bucketOfValue[op.getOutput()] = symbol;
  bufferOfValue.erase(input); // in place: nothing holds the addends now
}

LogicalResult StepLowering::lowerAllReduce(AllReduceOp op) {
  Value input = op.getInput();
  if (auto buffer = bufferOfValue.lookup(input)) {
    lowerGradientSum(op, buffer);
    return success();
  }
  FlatSymbolRefAttr slots = vectors.lookup(input);
  if (!slots) {
    if (!cast<ValueType>(input.getType()).isScalar())
      return op.emitError()
             << "operand is neither a scalar nor the gradient of "
                "a bucket, or was reduced before";
    slots = program->slots("reduced", {0.0});
    scalars->store(input, {slots, 0});
  }
  if (isOfSeveral(op.getAxes())) {
    scalars->flush();
    calls->call<zrt::AllReduceScalarsOp>(slots, op.getAxesAttr());
  }
  vectors[op.getOutput()] = slots;
  if (cast<ValueType>(op.getOutput().getType()).isScalar())
    scalars->place(op.getOutput(), {slots, 0});
  return success();
}

/// Whether |type| is on several pipeline stages.
static bool isTied(ValueType type) {
  return type.getPresent().size() > type.getFirstStage().size();
}

LogicalResult StepLowering::lowerSumSquares(SumSquaresOp op) {
  for (Value input : op.getInputs())
    if (!bufferOfValue.lookup(input) || !bucketOfValue.lookup(input))
      return op.emitError() << "operand is not the gradient of a bucket as it "
                               "was reduced";
  SmallVector<double> zeros(op.getInputs().size(), 0.0);
  FlatSymbolRefAttr sums = program->slots("sums", zeros);
  SmallVector<Slot> partials;
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    auto type = cast<ValueType>(input.getType());
    BucketBuffers &bucket = bucketOf(bucketOfValue.lookup(input));
    FlatSymbolRefAttr buffer = bufferOfValue.lookup(input);
    calls->call<zrt::LaunchOp>(
        program->squaresKernel(program->getElementType(buffer)),
        program->getBuilder().getArrayAttr({buffer}), bucket.whole,
        getOwn(type), sums, program->getBuilder().getI64IntegerAttr(i),
        isTied(type) ? program->getBuilder().getUnitAttr() : UnitAttr());
    partials.push_back({sums, static_cast<int64_t>(i)});
  }
  scalars->defineSum(op.getSum(), partials);
  return success();
}

void StepLowering::lowerCountReplicatedOnce(CountReplicatedOnceOp op) {
  // Only the first pipeline stage writes the scalar slot. The slot is 0 on the
  // others.
  auto type = cast<ValueType>(op.getInput().getType());
  SmallVector<Attribute> axes;
  for (auto axis : op.getAxes().getAsRange<StringAttr>())
    if (type.getCoordinates(axis).empty())
      axes.push_back(axis);
  if (axes.empty())
    scalars->placeLike(op.getOutput(), op.getInput());
  else
    countedOnce[op.getOutput()] = {op.getInput(),
                                   program->getBuilder().getArrayAttr(axes)};
}

void StepLowering::lowerStack(StackOp op) {
  SmallVector<double> zeros(op.getScalars().size(), 0.0);
  FlatSymbolRefAttr slots = program->slots("statistics", zeros);
  SmallVector<std::pair<int64_t, ArrayAttr>> counted;
  for (auto [i, scalar] : llvm::enumerate(op.getScalars())) {
    int64_t index = i;
    Value stored = scalar;
    if (auto it = countedOnce.find(scalar); it != countedOnce.end()) {
      counted.push_back({index, it->second.second});
      stored = it->second.first;
    }
    scalars->store(stored, {slots, index});
  }
  if (!counted.empty())
    scalars->flush();
  for (auto &[index, axes] : counted)
    calls->call<zrt::CountReplicatedOnceOp>(
        slots, program->getBuilder().getI64IntegerAttr(index), axes);
  vectors[op.getVector()] = slots;
}

void StepLowering::lowerDelivered(DeliveredCountOp op) {
  SmallVector<double> zeros(op.getCounts().size(), 0.0);
  FlatSymbolRefAttr slots = program->slots("delivered", zeros);
  for (auto [i, entry] : llvm::enumerate(
           llvm::zip_equal(op.getParameters().getAsRange<FlatSymbolRefAttr>(),
                           op.getCounts()))) {
    auto [parameter, count] = entry;
    auto index = static_cast<int64_t>(i);
    calls->call<zrt::CountDeliveredOp>(
        parameter, slots, program->getBuilder().getI64IntegerAttr(index));
    scalars->place(count, {slots, index});
  }
}

void StepLowering::lowerPrepare(PrepareOp op) {
  auto optimizer =
      symbols.lookupNearestSymbolFrom<OptimizerOp>(step, op.getOptimizerAttr());
  Slot slot;
  if (!optimizer.getCounterInitial().empty())
    slot.slots =
        program->lastingSlots(op.getGroup(), optimizer.getCounterNames(),
                              optimizer.getCounterInitial());
  scalars->lowerPrepare(op, optimizer, slot);
}

FlatSymbolRefAttr StepLowering::getRow(UpdateBucketOp op, int64_t index) {
  setLoc(op.getLoc());
  ScaleOp scale = scaled.lookup(op.getGradient());
  unsigned width = bucketOf(op.getBucketAttr()).optimizer.getNumScalars();
  SmallVector<Value> key{op.getOutcome(index),
                         scale ? scale.getFactor() : Value()};
  llvm::append_range(key, op.getRows().slice(index * width, width));
  for (auto &[known, row] : rows)
    if (known == key)
      return row;
  SmallVector<double> zeros(key.size(), 0.0);
  FlatSymbolRefAttr row = program->slots("row", zeros);
  for (auto [i, value] : llvm::enumerate(key)) {
    Slot slot{row, static_cast<int64_t>(i)};
    if (value)
      scalars->store(value, slot);
    else
      scalars->storeConstant(1.0, slot);
  }
  rows.push_back({std::move(key), row});
  return row;
}

LogicalResult StepLowering::lowerUpdate(UpdateBucketOp op) {
  BucketBuffers &bucket = bucketOf(op.getBucketAttr());
  ScaleOp scale = scaled.lookup(op.getGradient());
  Value raw = scale ? scale.getInput() : op.getGradient();
  if (!bufferOfValue.lookup(raw))
    return op.emitError() << "gradient is not that of a bucket as it was "
                             "reduced, times one scalar at most";
  if (bucketOfValue.lookup(raw) != op.getBucketAttr() ||
      raw.getDefiningOp<UpdateBucketOp>())
    return op.emitError() << "gradient is not that of bucket "
                          << op.getBucketAttr();

  // Adjacent members of one parameter group are one segment.
  SmallVector<int64_t> ends;
  SmallVector<int64_t> segmentRows;
  SmallVector<Attribute> slots;
  llvm::DenseMap<int64_t, int64_t> slotsOfRow;
  for (auto [i, row] : llvm::enumerate(op.getRowOf())) {
    auto [it, isNew] = slotsOfRow.insert({row, slots.size()});
    if (isNew)
      slots.push_back(getRow(op, row));
    int64_t begin = ends.empty() ? 0 : ends.back();
    int64_t end = bucket.op.getOffsets()[i] + bucket.op.getExtents()[i];
    if (end == begin)
      continue; // an empty parameter
    if (!segmentRows.empty() && segmentRows.back() == it->second) {
      ends.back() = end;
      continue;
    }
    ends.push_back(end);
    segmentRows.push_back(it->second);
  }
  FlatSymbolRefAttr segments = program->segments(
      bucket.op.getSymName() + ".groups", ends, segmentRows, slots);

  SmallVector<Attribute> operands{bufferOfValue.lookup(raw), bucket.master};
  llvm::append_range(operands, bucket.states);
  if (bucket.getUpdated() != bucket.master)
    operands.push_back(bucket.getUpdated());
  Type gradient = program->getElementType(bufferOfValue.lookup(raw));
  calls->call<zrt::LaunchOp>(
      program->updateKernel(bucket.optimizer, gradient, bucket.storageType,
                            static_cast<bool>(scale)),
      program->getBuilder().getArrayAttr(operands), segments,
      getOwn(bucket.ownedType), /*sum=*/FlatSymbolRefAttr(),
      /*sum_index=*/IntegerAttr(), /*first_stage=*/UnitAttr());
  bufferOfValue[op.getParameters()] = bucket.getUpdated();
  bucketOfValue[op.getParameters()] = op.getBucketAttr();
  return success();
}

LogicalResult StepLowering::lowerTransfer(TransferOp op) {
  FlatSymbolRefAttr source = bufferOfValue.lookup(op.getInput());
  FlatSymbolRefAttr symbol = bucketOfValue.lookup(op.getInput());
  if (!source || !symbol)
    return op.emitError() << "operand is neither the gradient of a bucket nor "
                             "its update; multiply by scalars after the "
                             "transfer";
  BucketBuffers &bucket = bucketOf(symbol);
  bool isUpdate = op.getInput().getDefiningOp<UpdateBucketOp>() != nullptr;
  FlatSymbolRefAttr target =
      isUpdate
          ? bucket.parameters
          // The type of a buffer that was reduced in place is still that of its
          // addends.
          : program->buffer(bucket.op.getSymName() + ".moved",
                            program->getBuffer(source).getValueType().withSpace(
                                op.getSpace()),
                            zrt::Role::gradient);
  calls->call<zrt::CopyOp>(source, target);
  bufferOfValue[op.getOutput()] = target;
  bucketOfValue[op.getOutput()] = symbol;
  return success();
}

void StepLowering::lowerReturn(ReturnOp op) {
  SmallVector<Attribute> results;
  for (auto [name, value] : llvm::zip_equal(
           op.getNames().getAsRange<StringAttr>(), op.getValues())) {
    FlatSymbolRefAttr slot = program->slots("result." + name.getValue(), {0.0});
    scalars->store(value, {slot, 0});
    results.push_back(slot);
  }
  for (auto op : step.getBody().getOps<OutcomeOp>())
    scalars->store(op.getOutcome(), {outcome, 0});
  auto programOp = cast<zrt::ProgramOp>(
      program->getBuilder().getInsertionBlock()->getParentOp());
  programOp.setResultsAttr(program->getBuilder().getArrayAttr(results));
  programOp.setResultNamesAttr(op.getNames());
}

CounterRule StepLowering::declareCounters(FlatSymbolRefAttr symbol) {
  auto rule = symbols.lookupNearestSymbolFrom<CounterRule>(step, symbol);
  countersOf[symbol.getAttr()].slots =
      program->lastingSlots(symbol.getValue(), rule.getCounterNames(),
                            rule.getCounterInitial(), rule);
  return rule;
}

LogicalResult StepLowering::lower(Operation *op) {
  setLoc(op->getLoc());
  if (auto outcome = dyn_cast<OutcomeOp>(op);
      outcome && static_cast<int64_t>(outcome.getRanks()) != mesh.getNumRanks())
    return op->emitError() << "outcome is for "
                           << countOf(outcome.getRanks(), "rank")
                           << ", the mesh has " << mesh.getNumRanks();
  if (isa<MicroBatchesOp>(op) || scalars->lower(op))
    return success();
  if (auto assign = dyn_cast<AssignOp>(op)) {
    // The update has written into the bucket's own buffer.
    BucketBuffers &bucket = bucketOf(assign.getBucketAttr());
    if (!bucket.op ||
        bufferOfValue.lookup(assign.getValue()) != bucket.parameters)
      return assign.emitError()
             << "value is not the update of bucket " << assign.getBucketAttr();
    bucket.isAssigned = true;
    return success();
  }
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return lowerAllReduce(reduce);
  if (auto transfer = dyn_cast<TransferOp>(op))
    return lowerTransfer(transfer);
  if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
    BucketBuffers &bucket = bucketOf(bucketOfValue.lookup(scatter.getInput()));
    if (bucket.maySumEarly(scatter.getAxes())) {
      bucket.sums.push_back(
          {scatter.getLoc(), scatter.getAxesAttr(), /*scatters=*/true});
    } else {
      calls->call<zrt::ReduceScatterOp>(
          prepareAddends(*program, *calls, bucket, bucket.gradient),
          bucket.reduced, scatter.getAxesAttr());
      bucket.isSummedAtApply = true;
    }
    bufferOfValue[scatter.getOutput()] = bucket.reduced;
    bucketOfValue[scatter.getOutput()] =
        bucketOfValue.lookup(scatter.getInput());
  } else if (auto gather = dyn_cast<AllGatherOp>(op)) {
    FlatSymbolRefAttr buffer = bufferOfValue.lookup(gather.getInput());
    if (!buffer)
      return gather.emitError() << "operand is not the update of a bucket";
    calls->call<zrt::AllGatherOp>(buffer, gather.getAxesAttr());
    bufferOfValue[gather.getOutput()] = buffer;
  } else if (auto squares = dyn_cast<SumSquaresOp>(op)) {
    return lowerSumSquares(squares);
  } else if (auto scale = dyn_cast<ScaleOp>(op)) {
    scaled[scale.getOutput()] = scale;
  } else if (auto counts = dyn_cast<ArrivalCountOp>(op)) {
    scalars->place(counts.getBackwards(), {arrivals, 0});
    scalars->place(counts.getMissing(), {arrivals, 1});
    scalars->defineSquare(counts.getSquared(), {arrivals, 0});
  } else if (auto delivered = dyn_cast<DeliveredCountOp>(op)) {
    lowerDelivered(delivered);
  } else if (auto once = dyn_cast<CountReplicatedOnceOp>(op)) {
    lowerCountReplicatedOnce(once);
  } else if (auto stack = dyn_cast<StackOp>(op)) {
    lowerStack(stack);
  } else if (auto unstack = dyn_cast<UnstackOp>(op)) {
    for (auto [i, scalar] : llvm::enumerate(unstack.getScalars()))
      scalars->place(scalar, {vectors.lookup(unstack.getVector()),
                              static_cast<int64_t>(i)});
  } else if (auto read = dyn_cast<ReadScaleOp>(op)) {
    declareCounters(read.getLossScaleAttr());
    scalars->defineCopy(read.getValue(),
                        countersOf[read.getLossScaleAttr().getAttr()]);
  } else if (auto read = dyn_cast<ReadScheduleOp>(op)) {
    auto schedule = cast<ScheduleOp>(declareCounters(read.getScheduleAttr()));
    scalars->lowerReadSchedule(read.getValue(), schedule,
                               countersOf[read.getScheduleAttr().getAttr()]);
  } else if (auto advance = dyn_cast<AdvanceOp>(op)) {
    FlatSymbolRefAttr symbol = advance.getRuleSymbol();
    auto rule = symbols.lookupNearestSymbolFrom<CounterRule>(step, symbol);
    scalars->lowerAdvance(advance.getOutcome(), rule,
                          countersOf[symbol.getAttr()]);
  } else if (auto prepare = dyn_cast<PrepareOp>(op)) {
    lowerPrepare(prepare);
  } else if (auto update = dyn_cast<UpdateBucketOp>(op)) {
    return lowerUpdate(update);
  } else if (auto done = dyn_cast<ReturnOp>(op)) {
    lowerReturn(done);
  } else {
    return op->emitError() << "cannot be lowered; run zero-assign-layout and "
                              "zero-insert-collectives first";
  }
  return success();
}
