//===- Protocol.cpp - Buffers of a bucket and when they are used ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Protocol.h"

using namespace mlir;
using namespace zero;
using zrt::Event;
using zrt::Role;

void zero::declareBucket(ProgramBuilder &program, BucketBuffers &bucket) {
  StringRef name = bucket.op.getSymName();
  Type master = bucket.optimizer.getMasterType();
  bucket.gradient =
      program.buffer(name + ".gradient", bucket.gradientType, Role::gradient);
  if (bucket.wireType)
    bucket.wire = program.buffer(
        name + ".wire", bucket.gradientType.withElementType(bucket.wireType),
        Role::gradient);
  if (bucket.reducedType)
    bucket.reduced =
        program.buffer(name + ".reduced", bucket.reducedType, Role::gradient);
  ValueType full = bucket.op.getValueType().withElementType(bucket.storageType);
  bucket.parameters =
      program.buffer(name + ".parameters", full, Role::parameter);
  bucket.master = bucket.parameters;
  if (master != bucket.storageType || bucket.isOffloaded())
    bucket.master =
        program.buffer(name + ".master",
                       bucket.ownedType.withElementType(master), Role::state);
  if (master != bucket.storageType && bucket.isOffloaded())
    bucket.staged = program.buffer(
        name + ".staged", bucket.ownedType.withElementType(bucket.storageType),
        Role::parameter);

  OpBuilder &builder = program.getBuilder();
  Location loc = bucket.op.getLoc();
  auto symbol = FlatSymbolRefAttr::get(bucket.op);
  auto addState = [&](StringRef role, FlatSymbolRefAttr buffer) {
    builder.create<zrt::StateOp>(loc, builder.getStringAttr(role), symbol,
                                 buffer);
  };
  addState("parameter", bucket.parameters);
  // A master of the parameters' own type is a copy of them, and no state.
  if (master != bucket.storageType)
    addState("master", bucket.master);
  for (auto [state, type] : llvm::zip_equal(
           bucket.optimizer.getStateNames().getAsRange<StringAttr>(),
           bucket.optimizer.getStateTypes())) {
    FlatSymbolRefAttr buffer =
        program.buffer(name + "." + state.getValue(),
                       bucket.ownedType.withElementType(type), Role::state);
    bucket.states.push_back(buffer);
    addState(state, buffer);
  }
  bucket.whole = program.segments(name + ".whole", {bucket.op.getRowLength()});

  Type arrival = bucket.op.getArrivalType();
  Type kept = bucket.op.getDtype();
  builder.create<zrt::ArrivalsOp>(
      loc, symbol, bucket.gradient, program.storeKernel(arrival, kept),
      program.addKernel(arrival, kept), bucket.parameters,
      bucket.master != bucket.parameters ? bucket.master : FlatSymbolRefAttr(),
      bucket.staged);
}

/// Buckets of one backward that are open at once where each is reduced in the
/// loop: one fills while the one before it waits for its last gradients.
static constexpr int64_t kOpenBuckets = 2;

/// Gives buffers of buckets that are never in use together one memory, as large
/// as the largest of them: gradients of which |kOpenBuckets| are open, or what
/// travels. Each pipeline stage has memory of its own.
static void shareMemory(ProgramBuilder &program, BucketMap &buckets,
                        FlatSymbolRefAttr BucketBuffers::*buffer) {
  struct Ring {
    ArrayRef<AxisCoordinate> stages;
    zrt::BufferOp owners[kOpenBuckets];
    int64_t next = 0;
  };
  SmallVector<Ring> rings;
  auto forEach = [&](auto &&function) {
    for (Ring &ring : rings)
      ring.next = 0;
    for (auto &bucket : llvm::make_second_range(buckets)) {
      if (!(bucket.*buffer))
        continue;
      ArrayRef<AxisCoordinate> stages = bucket.gradientType.getPresent();
      auto *ring = llvm::find_if(
          rings, [&](const Ring &ring) { return ring.stages == stages; });
      if (ring == rings.end()) {
        rings.emplace_back().stages = stages;
        ring = &rings.back();
      }
      function(program.getBuffer(bucket.*buffer),
               ring->owners[ring->next++ % kOpenBuckets]);
    }
  };
  forEach([](zrt::BufferOp buffer, zrt::BufferOp &owner) {
    if (!owner || buffer.getNumBytes() > owner.getNumBytes())
      owner = buffer;
  });
  forEach([](zrt::BufferOp buffer, zrt::BufferOp &owner) {
    if (buffer != owner)
      buffer.setSharesAttr(FlatSymbolRefAttr::get(owner));
  });
}

FlatSymbolRefAttr zero::prepareAddends(ProgramBuilder &program,
                                       HandlerBuilder &calls,
                                       const BucketBuffers &bucket,
                                       FlatSymbolRefAttr addends) {
  if (!bucket.wire)
    return addends;
  calls.call<zrt::LaunchOp>(
      program.storeKernel(bucket.gradientType.getElementType(),
                          bucket.wireType),
      program.getBuilder().getArrayAttr({addends, bucket.wire}), bucket.whole,
      /*own=*/ArrayAttr(), /*sum=*/FlatSymbolRefAttr(),
      /*sum_index=*/IntegerAttr(), /*first_stage=*/UnitAttr());
  return bucket.wire;
}

/// Closes buckets one by one: what did not arrive becomes zero, then |ReduceT|
/// takes the sum over the ranks into the bucket's slice. Where no rank shares
/// in it, |sum| takes the bucket as it is.
template <typename ReduceT>
static FlatSymbolRefAttr
buildSequence(ProgramBuilder &program, BucketMap &buckets, StringRef name,
              FlatSymbolRefAttr (ProgramBuilder::*sum)(Type, Type)) {
  SmallVector<Attribute> symbols;
  SmallVector<Attribute> handlers;
  for (auto &[bucketName, bucket] : buckets) {
    symbols.push_back(FlatSymbolRefAttr::get(bucket.op));
    zrt::HandlerOp handler =
        program.handler(bucketName.getValue() + ".close_" + name);
    handlers.push_back(FlatSymbolRefAttr::get(handler));
    HandlerBuilder calls(handler);
    calls.call<zrt::FillMissingOp>(cast<FlatSymbolRefAttr>(symbols.back()));
    if (bucket.scatterAxes) {
      FlatSymbolRefAttr addends =
          prepareAddends(program, calls, bucket, bucket.gradient);
      calls.call<ReduceT>(addends, bucket.reduced, bucket.scatterAxes);
      continue;
    }
    Type kept = bucket.op.getDtype();
    calls.call<zrt::LaunchOp>(
        (program.*sum)(kept, kept),
        program.getBuilder().getArrayAttr({bucket.gradient, bucket.reduced}),
        bucket.whole, /*own=*/ArrayAttr(), /*sum=*/FlatSymbolRefAttr(),
        /*sum_index=*/IntegerAttr(), /*first_stage=*/UnitAttr());
  }
  return program.sequence(name, symbols, handlers, kOpenBuckets);
}

/// Buckets whose reduction is in the loop store each backward; the others add
/// to what the first one left.
void zero::buildProtocol(ProgramBuilder &program, BucketMap &buckets,
                         FlatSymbolRefAttr finish) {
  bool inLoop = buckets.front().second.summedInLoop;
  OpBuilder &builder = program.getBuilder();
  MLIRContext *context = builder.getContext();

  zrt::HandlerOp store = program.handler("arrive_first");
  HandlerBuilder(store).call<zrt::PackOp>(/*accumulate=*/false);
  zrt::HandlerOp add = program.handler("arrive_next");
  HandlerBuilder(add).call<zrt::PackOp>(/*accumulate=*/!inLoop);

  shareMemory(program, buckets, &BucketBuffers::wire);
  FlatSymbolRefAttr first;
  FlatSymbolRefAttr next;
  SmallVector<zrt::HandlerOp> closeFirst;
  if (inLoop) {
    shareMemory(program, buckets, &BucketBuffers::gradient);
    first = buildSequence<zrt::ReduceScatterOp>(program, buckets, "first",
                                                &ProgramBuilder::storeKernel);
    next = buildSequence<zrt::ReduceScatterAddOp>(program, buckets, "next",
                                                  &ProgramBuilder::addKernel);
  } else {
    // What did not arrive counts as zero. Later on a missing gradient adds
    // nothing.
    closeFirst.push_back(program.handler("close_first"));
    HandlerBuilder calls(closeFirst.front());
    for (auto &[name, bucket] : buckets)
      calls.call<zrt::FillMissingOp>(FlatSymbolRefAttr::get(bucket.op));
  }

  // From the second backward on the buffer outlives the one that wrote it.
  zrt::HandlerOp beginNext = program.handler("begin_next");
  zrt::HandlerOp reset = program.handler("reset");
  HandlerBuilder begin(beginNext);
  HandlerBuilder back(reset);
  for (auto &[name, bucket] : buckets) {
    begin.call<zrt::RetagOp>(bucket.getAccumulator(),
                             zrt::RoleAttr::get(context, Role::accumulator));
    back.call<zrt::RetagOp>(bucket.getAccumulator(),
                            zrt::RoleAttr::get(context, Role::gradient));
  }

  auto transition = [&](StringRef state, Event event, StringRef target,
                        ArrayRef<zrt::HandlerOp> handlers,
                        FlatSymbolRefAttr sequence) {
    auto symbols =
        llvm::map_to_vector(handlers, [](zrt::HandlerOp handler) -> Attribute {
          return FlatSymbolRefAttr::get(handler);
        });
    if (event == Event::apply) {
      symbols.push_back(finish);
      symbols.push_back(FlatSymbolRefAttr::get(reset));
    }
    builder.create<zrt::TransitionOp>(
        reset.getLoc(), builder.getStringAttr(state),
        zrt::EventAttr::get(context, event), builder.getStringAttr(target),
        builder.getArrayAttr(symbols), sequence);
  };
  transition("idle", Event::begin, "first", {}, {});
  transition("first", Event::arrive, "first", {store}, first);
  transition("first", Event::accumulate, "between", closeFirst, first);
  transition("first", Event::apply, "idle", closeFirst, first);
  // Ranks that drop a backward have reduced different parts of it: with the
  // sequence they drop it at the same place.
  transition("first", Event::discard, "idle", {}, first);
  transition("between", Event::begin, "next", {beginNext}, {});
  transition("between", Event::apply, "idle", {}, {});
  transition("between", Event::discard, "idle", {reset}, {});
  transition("next", Event::arrive, "next", {add}, next);
  transition("next", Event::accumulate, "between", {}, next);
  transition("next", Event::apply, "idle", {}, next);
  transition("next", Event::discard, "idle", {reset}, next);
}
