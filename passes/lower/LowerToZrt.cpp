//===- LowerToZrt.cpp - Lowers a sharded step to a scheduled program ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Passes.h"
#include "passes/lower/Protocol.h"
#include "passes/lower/ScalarLowering.h"

namespace zero {
#define GEN_PASS_DEF_LOWERTOZRTPASS
#include "passes/lower/Passes.h.inc"
} // namespace zero

using namespace mlir;
using namespace zero;

namespace {
/// Lowers one step. What runs at apply is the body of the step behind the loop
/// over backwards, in its order; the rest is the protocol's.
class Lowering {
public:
  Lowering(StepOp step, SymbolTableCollection &symbols)
      : step(step), symbols(symbols),
        mesh(symbols.lookupNearestSymbolFrom<MeshOp>(step,
                                                     step.getMeshAttr())) {}

  LogicalResult run();

private:
  LogicalResult readMicroBatches(MicroBatchesOp op);
  LogicalResult readUpdates();
  void declareBuckets();
  LogicalResult lower(Operation *op);
  LogicalResult lowerAllReduce(AllReduceOp op);
  void lowerSumSquares(SumSquaresOp op);
  void lowerPrepare(PrepareOp op);
  void lowerUpdate(UpdateBucketOp op);
  LogicalResult lowerTransfer(TransferOp op);
  void lowerReturn(ReturnOp op);
  FlatSymbolRefAttr getRow(ValueRange scalars, Value factor, Value verdict);

  UnitAttr getOwn(bool isSharded) {
    return isSharded ? UnitAttr::get(step.getContext()) : UnitAttr();
  }
  BucketBuffers &bucketOf(FlatSymbolRefAttr symbol) {
    return buckets[symbol.getAttr()];
  }

  StepOp step;
  SymbolTableCollection &symbols;
  MeshOp mesh;
  std::optional<ProgramBuilder> program;
  std::optional<HandlerBuilder> finish;
  std::optional<ScalarLowering> scalars;
  BucketMap buckets;
  /// The bucket whose gradient a value is, and the buffer that holds it.
  DenseMap<Value, FlatSymbolRefAttr> bucketOfValue;
  DenseMap<Value, FlatSymbolRefAttr> bufferOfValue;
  /// Gradients that are a buffer times a scalar.
  DenseMap<Value, ScaleOp> scaled;
  DenseMap<Value, FlatSymbolRefAttr> vectors;
  DenseMap<Attribute, FlatSymbolRefAttr> counters; // by group
  /// Rows of scalars by what they hold.
  SmallVector<std::pair<SmallVector<Value>, FlatSymbolRefAttr>> rows;
  FlatSymbolRefAttr arrivals;
  FlatSymbolRefAttr verdict;
};
} // namespace

/// |type| without the axis of time: what one backward's buffer holds.
static ValueType withoutMicro(Type type) {
  auto micro = StringAttr::get(type.getContext(), kMicroAxis);
  return cast<ValueType>(type).withPlacement({micro});
}

//===----------------------------------------------------------------------===//
// What the step is made of
//===----------------------------------------------------------------------===//

LogicalResult Lowering::readMicroBatches(MicroBatchesOp op) {
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
             << "only gradients of buckets, reduced and scattered "
                "or not, can be lowered yet";
    BucketBuffers &buffers = buckets[source.getAttr()];
    buffers.op = bucket;
    buffers.gradientType = withoutMicro(gradient.getType());
    buffers.reducedInLoop = static_cast<bool>(scatter);
    if (scatter)
      buffers.reducedType = withoutMicro(scatter.getOutput().getType());
    bucketOfValue[sum] = source;
  }
  return success();
}

LogicalResult Lowering::readUpdates() {
  for (auto scatter : step.getBody().getOps<ReduceScatterOp>()) {
    auto it = bucketOfValue.find(scatter.getInput());
    if (it == bucketOfValue.end())
      return scatter.emitError() << "operand is not the gradient of a bucket";
    bucketOf(it->second).reducedType = withoutMicro(scatter.getType());
  }
  for (auto update : step.getBody().getOps<UpdateBucketOp>()) {
    BucketBuffers &bucket = bucketOf(update.getBucketAttr());
    bucket.optimizer = symbols.lookupNearestSymbolFrom<OptimizerOp>(
        step, update.getOptimizerAttr());
    bucket.storageType = update.getParameterType();
    bucket.ownedType = cast<ValueType>(update.getGradient().getType());
  }
  // The protocol is one for all buckets: its later arrivals store or add.
  for (auto &[name, bucket] : buckets)
    if (bucket.reducedInLoop != buckets.front().second.reducedInLoop)
      return step.emitError()
             << "buckets @" << buckets.front().first.getValue() << " and @"
             << name.getValue()
             << " are reduced on different sides of the loop over backwards, "
                "which cannot be lowered yet";
  for (auto &[name, bucket] : buckets)
    if (!bucket.optimizer)
      return step.emitError()
             << "bucket @" << name.getValue() << " is never updated";
  return success();
}

void Lowering::declareBuckets() {
  for (auto &[name, bucket] : buckets)
    declareBucket(*program, bucket);
  for (auto &[value, source] : bucketOfValue) {
    BucketBuffers &bucket = bucketOf(source);
    bufferOfValue[value] =
        bucket.reducedInLoop ? bucket.reduced : bucket.gradient;
  }
}

//===----------------------------------------------------------------------===//
// What runs at apply
//===----------------------------------------------------------------------===//

LogicalResult Lowering::lowerAllReduce(AllReduceOp op) {
  Value input = op.getInput();
  if (auto buffer = bufferOfValue.lookup(input)) {
    finish->call<zrt::AllReduceOp>(buffer);
    bufferOfValue[op.getOutput()] = buffer;
    bucketOfValue[op.getOutput()] = bucketOfValue.lookup(input);
    return success();
  }
  FlatSymbolRefAttr slots = vectors.lookup(input);
  if (!slots) {
    if (!cast<ValueType>(input.getType()).isScalar())
      return op.emitError() << "operand is neither a bucket nor a scalar";
    slots = program->slots("reduced", {0.0});
    scalars->store(input, {slots, 0});
  }
  scalars->flush();
  finish->call<zrt::AllReduceScalarsOp>(slots);
  vectors[op.getOutput()] = slots;
  if (cast<ValueType>(op.getOutput().getType()).isScalar())
    scalars->place(op.getOutput(), {slots, 0});
  return success();
}

void Lowering::lowerSumSquares(SumSquaresOp op) {
  SmallVector<double> zeros(op.getInputs().size(), 0.0);
  FlatSymbolRefAttr sums = program->slots("sums", zeros);
  SmallVector<Slot> partials;
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    auto type = cast<ValueType>(input.getType());
    BucketBuffers &bucket = bucketOf(bucketOfValue.lookup(input));
    finish->call<zrt::LaunchOp>(
        program->squaresKernel(type.getElementType()),
        program->getBuilder().getArrayAttr({bufferOfValue.lookup(input)}),
        bucket.whole, getOwn(type.has(PlacementKind::Sharded)), sums,
        program->getBuilder().getI64IntegerAttr(i));
    partials.push_back({sums, static_cast<int64_t>(i)});
  }
  scalars->defineSum(op.getSum(), partials);
}

void Lowering::lowerPrepare(PrepareOp op) {
  auto optimizer =
      symbols.lookupNearestSymbolFrom<OptimizerOp>(step, op.getOptimizerAttr());
  Slot slot;
  if (!optimizer.getCounterInitial().empty()) {
    slot.slots = program->slots(op.getGroup() + ".counters",
                                optimizer.getCounterInitial());
    OpBuilder &builder = program->getBuilder();
    for (auto [i, name] :
         llvm::enumerate(optimizer.getCounterNames().getAsRange<StringAttr>()))
      builder.create<zrt::ScalarStateOp>(
          op.getLoc(),
          builder.getStringAttr(op.getGroup() + "." + name.getValue()),
          slot.slots, builder.getI64IntegerAttr(i));
  }
  scalars->lowerPrepare(op, optimizer, slot);
}

FlatSymbolRefAttr Lowering::getRow(ValueRange values, Value factor,
                                   Value verdict) {
  SmallVector<Value> key{verdict, factor};
  llvm::append_range(key, values);
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

void Lowering::lowerUpdate(UpdateBucketOp op) {
  BucketBuffers &bucket = bucketOf(op.getBucketAttr());
  ScaleOp scale = scaled.lookup(op.getGradient());
  Value raw = scale ? scale.getInput() : op.getGradient();
  Value factor = scale ? scale.getFactor() : Value();

  // Neighbours of one group run as one segment.
  unsigned width = bucket.optimizer.getNumScalars();
  SmallVector<int64_t> ends;
  SmallVector<int64_t> segmentRows;
  SmallVector<Attribute> slots;
  llvm::DenseMap<int64_t, int64_t> slotsOfRow;
  for (auto [i, row] : llvm::enumerate(op.getRowOf())) {
    auto [it, isNew] = slotsOfRow.insert({row, slots.size()});
    if (isNew)
      slots.push_back(getRow(op.getRows().slice(row * width, width), factor,
                             op.getVerdict()));
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
  scalars->flush();
  FlatSymbolRefAttr segments = program->segments(
      bucket.op.getSymName() + ".groups", ends, segmentRows, slots);

  SmallVector<Attribute> operands{bufferOfValue.lookup(raw), bucket.master};
  llvm::append_range(operands, bucket.states);
  if (bucket.getUpdated() != bucket.master)
    operands.push_back(bucket.getUpdated());
  Type gradient = cast<ValueType>(raw.getType()).getElementType();
  finish->call<zrt::LaunchOp>(
      program->updateKernel(bucket.optimizer, gradient, bucket.storageType,
                            static_cast<bool>(scale)),
      program->getBuilder().getArrayAttr(operands), segments,
      getOwn(bucket.isSharded()), /*sum=*/FlatSymbolRefAttr(),
      /*sum_index=*/IntegerAttr());
  bufferOfValue[op.getParameters()] = bucket.getUpdated();
  bucketOfValue[op.getParameters()] = op.getBucketAttr();
}

LogicalResult Lowering::lowerTransfer(TransferOp op) {
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
          : program->buffer(bucket.op.getSymName() + ".moved",
                            cast<ValueType>(op.getType()), zrt::Role::gradient);
  finish->call<zrt::CopyOp>(source, target);
  bufferOfValue[op.getOutput()] = target;
  bucketOfValue[op.getOutput()] = symbol;
  return success();
}

void Lowering::lowerReturn(ReturnOp op) {
  SmallVector<Attribute> results;
  for (auto [name, value] : llvm::zip_equal(
           op.getNames().getAsRange<StringAttr>(), op.getValues())) {
    FlatSymbolRefAttr slot = program->slots("result." + name.getValue(), {0.0});
    scalars->store(value, {slot, 0});
    results.push_back(slot);
  }
  for (auto op : step.getBody().getOps<VerdictOp>())
    scalars->store(op.getVerdict(), {verdict, 0});
  scalars->flush();
  finish->call<zrt::SettleOp>(verdict);
  auto programOp = cast<zrt::ProgramOp>(
      program->getBuilder().getInsertionBlock()->getParentOp());
  programOp.setResultsAttr(program->getBuilder().getArrayAttr(results));
  programOp.setResultNamesAttr(op.getNames());
}

LogicalResult Lowering::lower(Operation *op) {
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
    finish->call<zrt::ReduceScatterOp>(bucket.gradient, bucket.reduced);
    bufferOfValue[scatter.getOutput()] = bucket.reduced;
    bucketOfValue[scatter.getOutput()] =
        bucketOfValue.lookup(scatter.getInput());
  } else if (auto gather = dyn_cast<AllGatherOp>(op)) {
    FlatSymbolRefAttr buffer = bufferOfValue.lookup(gather.getInput());
    if (!buffer)
      return gather.emitError() << "operand is not the update of a bucket";
    finish->call<zrt::AllGatherOp>(buffer);
    bufferOfValue[gather.getOutput()] = buffer;
  } else if (auto squares = dyn_cast<SumSquaresOp>(op)) {
    lowerSumSquares(squares);
  } else if (auto scale = dyn_cast<ScaleOp>(op)) {
    scaled[scale.getOutput()] = scale;
  } else if (auto counts = dyn_cast<ArrivalsOp>(op)) {
    scalars->place(counts.getBackwards(), {arrivals, 0});
    scalars->place(counts.getMissing(), {arrivals, 1});
    scalars->defineSquare(counts.getSquared(), {arrivals, 0});
  } else if (auto stack = dyn_cast<StackOp>(op)) {
    SmallVector<double> zeros(stack.getScalars().size(), 0.0);
    FlatSymbolRefAttr slots = program->slots("statistics", zeros);
    for (auto [i, scalar] : llvm::enumerate(stack.getScalars()))
      scalars->store(scalar, {slots, static_cast<int64_t>(i)});
    vectors[stack.getVector()] = slots;
  } else if (auto unstack = dyn_cast<UnstackOp>(op)) {
    for (auto [i, scalar] : llvm::enumerate(unstack.getScalars()))
      scalars->place(scalar, {vectors.lookup(unstack.getVector()),
                              static_cast<int64_t>(i)});
  } else if (auto prepare = dyn_cast<PrepareOp>(op)) {
    lowerPrepare(prepare);
  } else if (auto update = dyn_cast<UpdateBucketOp>(op)) {
    lowerUpdate(update);
  } else if (auto done = dyn_cast<ReturnOp>(op)) {
    lowerReturn(done);
  } else {
    return op->emitError() << "cannot be lowered; run zero-assign-layout and "
                              "zero-insert-collectives first";
  }
  return success();
}

LogicalResult Lowering::run() {
  for (auto op : step.getBody().getOps<MicroBatchesOp>())
    if (failed(readMicroBatches(op)))
      return failure();
  if (failed(readUpdates()))
    return failure();

  OpBuilder builder(step);
  ArrayAttr none = builder.getArrayAttr({});
  auto programOp = builder.create<zrt::ProgramOp>(
      step.getLoc(), step.getSymName(), step.getMesh(), none, none, none);
  programOp.getBody().emplaceBlock();
  program.emplace(programOp);
  arrivals = program->slots("arrivals", {0.0, 0.0});
  verdict = program->slots("verdict", {0.0});
  SmallVector<Attribute> inputs;
  for (unsigned i = 0; i < step.getBody().getNumArguments(); ++i)
    inputs.push_back(program->slots("input." + Twine(i), {0.0}));
  programOp.setInputsAttr(builder.getArrayAttr(inputs));

  declareBuckets();
  zrt::HandlerOp handler = program->handler("finish");
  finish.emplace(handler);
  scalars.emplace(*program, *finish, mesh, Slot{arrivals, 0});
  for (auto [argument, input] :
       llvm::zip_equal(step.getBody().getArguments(), inputs))
    scalars->place(argument, {cast<FlatSymbolRefAttr>(input), 0});

  finish->call<zrt::CountArrivalsOp>(arrivals);
  for (Operation &op : step.getBody().front())
    if (failed(lower(&op)))
      return failure();
  for (auto &[name, bucket] : buckets)
    if (!bucket.isAssigned)
      return step.emitError() << "the update of bucket @" << name.getValue()
                              << " reaches no zero.assign";
  buildProtocol(*program, buckets, FlatSymbolRefAttr::get(handler));
  // Handlers read best behind everything they name.
  Block &body = programOp.getBody().front();
  handler->moveBefore(&*llvm::find_if(
      body, [](Operation &op) { return isa<zrt::TransitionOp>(op); }));
  step.erase();
  return success();
}

namespace {
struct LowerToZrtPass : zero::impl::LowerToZrtPassBase<LowerToZrtPass> {
  void runOnOperation() override {
    SymbolTableCollection symbols;
    for (auto step : llvm::to_vector(getOperation().getOps<StepOp>()))
      if (failed(Lowering(step, symbols).run()))
        return signalPassFailure();
    // Only the program uses the layout now.
    for (auto group : llvm::to_vector(getOperation().getOps<GroupOp>()))
      group.erase();
    for (auto op : llvm::to_vector(getOperation().getOps<OptimizerOp>()))
      op.erase();
  }
};
} // namespace
