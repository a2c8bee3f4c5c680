//===- Units.cpp - Units of parameters that ranks shard -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/lower/Units.h"

#include <functional>
#include <map>

using namespace mlir;
using namespace zero;
using zrt::Event;
using zrt::Role;

/// The number of units that can be unsharded at once: one that is in use, and
/// the next one, which is gathered meanwhile. Consecutive units have different
/// memory, forward and backward.
static constexpr size_t kUnshardedUnits = 2;

FlatSymbolRefAttr zero::declareUnsharded(ProgramBuilder &program,
                                         const BucketBuffers &bucket) {
  BucketOp op = bucket.op;
  // Where ranks are at different units, the message has this name.
  FlatSymbolRefAttr symbol = program.buffer(
      *op.getUnit() + ".unsharded",
      op.getValueType().withElementType(bucket.storageType), Role::parameter);
  program.getBuffer(symbol).setOnDemand(true);
  return symbol;
}

/// The buckets of a unit that keep slices.
using UnitBuckets = SmallVector<BucketBuffers *, 1>;

/// Gives the j-th largest bucket of the i-th unit that is not kept the memory j
/// of slot i modulo the number of slots. A memory is as large as the largest
/// bucket in it. A unit that is kept has a slot of its own.
static void shareUnsharded(ProgramBuilder &program, ArrayRef<UnitOp> ops,
                           ArrayRef<UnitBuckets> units) {
  std::map<std::pair<size_t, size_t>, SmallVector<zrt::BufferOp>> rings;
  size_t shared = 0, kept = 0;
  for (auto [op, unit] : llvm::zip_equal(ops, units)) {
    size_t slot = UnitOp(op).getKept() ? kUnshardedUnits + kept++
                                       : shared++ % kUnshardedUnits;
    // Buckets of one size keep their order.
    std::multimap<int64_t, zrt::BufferOp, std::greater<int64_t>> bySize;
    for (BucketBuffers *bucket : unit) {
      zrt::BufferOp buffer = program.getBuffer(bucket->unsharded);
      bySize.emplace(buffer.getNumBytes(), buffer);
    }
    for (auto [j, buffer] : llvm::enumerate(llvm::make_second_range(bySize)))
      rings[{slot, j}].push_back(buffer);
  }
  for (auto &[place, sharers] : rings) {
    zrt::BufferOp largest = *std::max_element(
        sharers.begin(), sharers.end(), [](zrt::BufferOp a, zrt::BufferOp b) {
          return a.getNumBytes() < b.getNumBytes();
        });
    FlatSymbolRefAttr memory = program.buffer(
        "unsharded." + Twine(place.first) + "." + Twine(place.second),
        largest.getValueType(), Role::parameter);
    for (zrt::BufferOp buffer : sharers)
      buffer.setSharesAttr(memory);
  }
}

static FlatSymbolRefAttr
buildHandler(ProgramBuilder &program, const Twine &name,
             ArrayRef<BucketBuffers *> buckets,
             llvm::function_ref<void(HandlerBuilder &, BucketBuffers &)> each) {
  zrt::HandlerOp handler = program.handler(name);
  HandlerBuilder calls(handler);
  for (BucketBuffers *bucket : buckets) {
    calls.setLoc(bucket->op.getLoc());
    each(calls, *bucket);
  }
  return FlatSymbolRefAttr::get(handler);
}

/// The axes over which a rank keeps a slice of |bucket|.
static ArrayAttr getGatherAxes(OpBuilder &builder,
                               const BucketBuffers &bucket) {
  SmallVector<Attribute> axes;
  llvm::append_range(axes, bucket.keptType.getAxesOfDim(
                               bucket.keptType.getShape().size() - 1));
  return builder.getArrayAttr(axes);
}

bool zero::buildUnits(ProgramBuilder &program, BucketMap &buckets) {
  BucketOp any = buckets.front().second.op;
  SmallVector<UnitOp> ops;
  SmallVector<UnitBuckets> units;
  for (auto unit : any->getParentOfType<ModuleOp>().getOps<UnitOp>()) {
    UnitBuckets own;
    for (auto &bucket : llvm::make_second_range(buckets))
      if (bucket.unsharded && bucket.op.getUnit() == unit.getSymName())
        own.push_back(&bucket);
    if (own.empty())
      continue;
    ops.push_back(unit);
    units.push_back(std::move(own));
  }
  if (units.empty())
    return false;
  shareUnsharded(program, ops, units);
  OpBuilder &builder = program.getBuilder();
  for (auto [op, unit] : llvm::zip_equal(ops, units)) {
    program.setLoc(op.getLoc());
    FlatSymbolRefAttr unshard = buildHandler(
        program, op.getSymName() + ".unshard", unit,
        [&](HandlerBuilder &calls, BucketBuffers &bucket) {
          calls.call<zrt::AllocateOp>(bucket.unsharded);
          calls.call<zrt::CopyOp>(bucket.parameters, bucket.unsharded);
          calls.call<zrt::AllGatherOp>(bucket.unsharded,
                                       getGatherAxes(builder, bucket));
        });
    FlatSymbolRefAttr reshard =
        buildHandler(program, op.getSymName() + ".reshard", unit,
                     [](HandlerBuilder &calls, BucketBuffers &bucket) {
                       calls.call<zrt::ReleaseOp>(bucket.unsharded);
                     });
    builder.create<zrt::UnitTableOp>(op.getLoc(), FlatSymbolRefAttr::get(op),
                                     unshard, reshard);
  }
  return true;
}

void zero::addUnitTransitions(ProgramBuilder &program) {
  OpBuilder &builder = program.getBuilder();
  auto op = cast<zrt::ProgramOp>(builder.getBlock()->getParentOp());
  llvm::MapVector<StringAttr, FlatSymbolRefAttr> sequences; // by state
  llvm::SmallDenseSet<StringAttr> measured;
  for (auto transition : op.getOps<zrt::TransitionOp>()) {
    FlatSymbolRefAttr &sequence = sequences[transition.getStateAttr()];
    if (transition.getSequenceAttr())
      sequence = transition.getSequenceAttr();
    if (transition.getEvent() == Event::measure)
      measured.insert(transition.getNextAttr());
  }
  for (auto [state, sequence] : sequences)
    if (!measured.contains(state))
      for (Event event : {Event::unshard, Event::reshard})
        builder.create<zrt::TransitionOp>(
            program.getLoc(), state,
            zrt::EventAttr::get(builder.getContext(), event), state,
            builder.getArrayAttr({}), sequence);
}
