//===- BucketBuffers.cpp - Buffers of a bucket ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/BucketBuffers.h"

#include "passes/lower/Units.h"

using namespace mlir;
using namespace zero;
using zrt::Role;

bool BucketBuffers::maySumEarly(ArrayAttr axes) const {
  // A pipeline stage may close a backward pass that another stage has not
  // begun. So pipeline stages do not wait for each other until all backward
  // passes are closed.
  bool crossesStages =
      llvm::any_of(gradientType.getStageAxes(), [&](StringAttr axis) {
        return llvm::is_contained(axes, axis);
      });
  return !summedInLoop && !isSummedAtApply && !crossesStages;
}

void zero::declareBucket(ProgramBuilder &program, BucketBuffers &bucket) {
  StringRef name = bucket.op.getSymName();
  Type master = bucket.optimizer.getMasterType();
  bucket.gradient =
      program.buffer(name + ".gradient", bucket.gradientType, Role::gradient);
  if (bucket.accumulatorType) {
    bucket.accumulator = program.buffer(
        name + ".accumulator", bucket.accumulatorType, Role::accumulator);
    program.getBuffer(bucket.accumulator).setOnDemand(true);
  }
  if (bucket.reduceDtype)
    bucket.reduceBuffer = program.buffer(
        name + ".wire", bucket.gradientType.withElementType(bucket.reduceDtype),
        Role::gradient);
  if (bucket.reducedType)
    bucket.reduced =
        program.buffer(name + ".reduced", bucket.reducedType, Role::gradient);
  bucket.parameters =
      program.buffer(name + ".parameters", bucket.keptType, Role::parameter);
  if (bucket.keepsSlices())
    bucket.unsharded = declareUnsharded(program, bucket);
  bucket.master = bucket.parameters;
  bool copiesBack = bucket.isOffloaded() && !bucket.keptType.isOnHost();
  if (master != bucket.storageType || copiesBack)
    bucket.master =
        program.buffer(name + ".master",
                       bucket.ownedType.withElementType(master), Role::state);
  if (master != bucket.storageType && copiesBack)
    bucket.staging = program.buffer(
        name + ".staging", bucket.ownedType.withElementType(bucket.storageType),
        Role::parameter);

  OpBuilder &builder = program.getBuilder();
  Location loc = bucket.op.getLoc();
  auto symbol = FlatSymbolRefAttr::get(bucket.op);
  auto addState = [&](StringRef role, FlatSymbolRefAttr buffer) {
    builder.create<zrt::StateOp>(loc, builder.getStringAttr(role), symbol,
                                 buffer);
  };
  addState("parameter", bucket.parameters);
  // If master weights have the type of the parameters, they are a copy of the
  // parameters on the host and no state.
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
  Type kept = bucket.gradientType.getElementType();
  builder.create<zrt::BucketTableOp>(
      loc, symbol, bucket.gradient, program.storeKernel(arrival, kept),
      program.addKernel(arrival, kept), bucket.parameters,
      bucket.master != bucket.parameters ? bucket.master : FlatSymbolRefAttr(),
      bucket.staging, bucket.unsharded, /*writable=*/ArrayAttr(),
      /*readable=*/ArrayAttr());
}

/// The number of buckets that are open at once if each bucket is reduced in the
/// loop: one bucket is filled while the previous one waits for its last
/// gradients.
static constexpr int64_t kOpenBuckets = 2;

void zero::shareBucketMemory(ProgramBuilder &program, BucketMap &buckets,
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
      bool isGradient = buffer == &BucketBuffers::gradient;
      if (!(bucket.*buffer) || (isGradient && bucket.isOpenToTheEnd))
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
  if (!bucket.reduceBuffer)
    return addends;
  calls.call<zrt::LaunchOp>(
      program.storeKernel(program.getElementType(addends), bucket.reduceDtype),
      program.getBuilder().getArrayAttr({addends, bucket.reduceBuffer}),
      bucket.whole, /*own=*/ArrayAttr(), /*sum=*/FlatSymbolRefAttr(),
      /*sum_index=*/IntegerAttr(), /*first_stage=*/UnitAttr());
  return bucket.reduceBuffer;
}
