//===- ProgramOps.cpp - Rules of the runtime's calls ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zero/StorageTypes.h"
#include "dialect/zrt/CallDescription.h"
#include "dialect/zrt/MemoryUses.h"
#include "dialect/zrt/Require.h"

using namespace mlir;
using namespace zrt;

using Uses = SmallVectorImpl<MemoryUse>;

static LogicalResult requireOnDemand(SymbolTableCollection &symbols,
                                     Operation *op, FlatSymbolRefAttr symbol) {
  FailureOr<BufferOp> buffer = require<BufferOp>(symbols, op, symbol);
  if (failed(buffer))
    return failure();
  if (!buffer->getOnDemand())
    return op->emitOpError() << "buffer " << symbol << " is not on demand";
  Stream stream = cast<RuntimeCall>(op).getStream();
  if (!buffer->getSharesAttr() && stream != Stream::compute)
    return op->emitOpError()
           << "buffer " << symbol
           << " has memory of its own, which is allocated and released on "
              "stream 'compute', got '"
           << stringifyStream(stream) << "'";
  return success();
}

static LogicalResult requireOnDevice(Operation *op, BufferOp buffer) {
  if (buffer.getSpace() != Space::device)
    return op->emitOpError() << "buffer @" << buffer.getSymName()
                             << " must be on the device, got "
                             << stringifySpace(buffer.getSpace());
  return success();
}

/// Whether |type| is sharded over one of |axes|.
static bool isShardedOver(zero::ValueType type, ArrayAttr axes) {
  return llvm::any_of(axes.getAsRange<StringAttr>(), [&](StringAttr axis) {
    return type.getPlacement(axis).kind == zero::PlacementKind::Sharded;
  });
}

/// Checks that |symbol| is a buffer on the device that is not sharded over
/// |axes|.
static FailureOr<BufferOp> requireWhole(SymbolTableCollection &symbols,
                                        Operation *op, FlatSymbolRefAttr symbol,
                                        ArrayAttr axes) {
  FailureOr<BufferOp> buffer = require<BufferOp>(symbols, op, symbol);
  if (failed(buffer))
    return failure();
  if (isShardedOver(buffer->getValueType(), axes))
    return op->emitOpError()
           << "buffer " << symbol << " must not be sharded over " << axes
           << ", got " << buffer->getValueType();
  if (failed(requireOnDevice(op, *buffer)))
    return failure();
  return buffer;
}

void AllocateOp::describeCall(CallDescription &call) {
  call.writes(getBufferAttr());
  call.ordersMemory();
}

LogicalResult AllocateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // allocate_c1, allocate_c2
  return requireOnDemand(symbols, *this, getBufferAttr());
}

void ReleaseOp::describeCall(CallDescription &call) {
  call.writes(getBufferAttr());
  call.ordersMemory();
}

LogicalResult ReleaseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return requireOnDemand(symbols, *this, getBufferAttr()); // release_c1
}

void SetRoleOp::describeCall(CallDescription &call) {
  call.becomes(getBufferAttr(), getRole());
}

LogicalResult SetRoleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // set_role_c1
  FailureOr<BufferOp> buffer =
      require<BufferOp>(symbols, *this, getBufferAttr());
  if (failed(buffer))
    return failure();
  if (buffer->getSharesAttr())
    return emitOpError() << "buffer " << getBufferAttr()
                         << " has no memory of its own";
  return success();
}

void PackOp::describeCall(CallDescription &call) {
  call.arrival(CallArgument::Use::writes);
  call.flag(getAccumulate());
}

LogicalResult PackOp::verifySymbolUses(SymbolTableCollection &) {
  return success();
}

void FillMissingOp::describeCall(CallDescription &call) {
  call.fills(getBucketAttr());
}

LogicalResult FillMissingOp::verifySymbolUses(SymbolTableCollection &) {
  return success(); // the program checks all of them at once: fill_missing_c1
}

void RunScalarsOp::describeCall(CallDescription &call) {
  call.program(getProgramAttr());
}

void RunScalarsOp::getMemoryUses(const ProgramSymbols &symbols,
                                 FlatSymbolRefAttr, Uses &uses) {
  auto scalars = symbols.lookup<ScalarsOp>(getProgramAttr());
  for (Operation &inner : scalars.getBody().front())
    if (auto load = dyn_cast<LoadSlotOp>(inner))
      symbols.addUse(load.getSlotsAttr(), /*writes=*/false, uses);
    else if (auto store = dyn_cast<StoreSlotOp>(inner))
      symbols.addUse(store.getSlotsAttr(), /*writes=*/true, uses);
}

LogicalResult RunScalarsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return require<ScalarsOp>(symbols, *this, getProgramAttr()); // run_scalars_c1
}

void CountArrivalsOp::describeCall(CallDescription &call) {
  call.writesSlot(getSlotsAttr(), 0);
  call.writesSlot(getSlotsAttr(), 1);
}

LogicalResult
CountArrivalsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // count_arrivals_c1
  FailureOr<SlotsOp> slots = require<SlotsOp>(symbols, *this, getSlotsAttr());
  if (failed(slots))
    return failure();
  if (slots->size() != 2)
    return emitOpError() << "needs two scalar slots, " << getSlotsAttr()
                         << " has " << slots->size();
  return success();
}

void CountDeliveredOp::describeCall(CallDescription &call) {
  call.parameter(getParameterAttr());
  call.writesSlot(getSlotsAttr(), getIndex());
}

LogicalResult
CountDeliveredOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // The program checks all parameters at once: count_delivered_c1.
  return requireSlot(symbols, *this, getSlotsAttr(),
                     getIndex()); // count_delivered_c2
}

/// The type of |buffer| with whole rows.
static zero::ValueType gatherRows(BufferOp buffer) {
  zero::ValueType type = buffer.getValueType();
  for (StringAttr axis : buffer.getOwners())
    type = type.withPlacement({axis, zero::PlacementKind::Replicated});
  return type;
}

void CopyOp::describeCall(CallDescription &call) {
  call.reads(getSourceAttr());
  call.writes(getTargetAttr());
  call.stream(getStream());
}

LogicalResult CopyOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // copy_c1
  FailureOr<BufferOp> source =
      require<BufferOp>(symbols, *this, getSourceAttr());
  FailureOr<BufferOp> target =
      require<BufferOp>(symbols, *this, getTargetAttr());
  if (failed(source) || failed(target))
    return failure();
  zero::ValueType from = source->getValueType();
  zero::ValueType to = target->getValueType();
  if (from.getShape() != to.getShape() ||
      from.getElementType() != to.getElementType())
    return emitOpError() << "needs buffers of one shape and type, got " << from
                         << " and " << to;
  // copy_c2
  if (getSourceAttr() == getTargetAttr())
    return emitOpError() << "copies " << getSourceAttr() << " to itself";
  // copy_c3
  if (source->isSharded() && target->isSharded() &&
      source->getOwners() != target->getOwners())
    return emitOpError() << "copies slices over other axes, from " << from
                         << " to " << to;
  if (gatherRows(*source) != gatherRows(*target))
    return emitOpError() << "changes what a value is, from " << from << " to "
                         << to;
  return success();
}

/// Checks that the type of |to| holds every number of the type of |from|.
static LogicalResult requireHolds(Operation *op, zero::ValueType from,
                                  zero::ValueType to) {
  if (zero::holdsEveryNumber(to.getElementType(), from.getElementType()))
    return success();
  return op->emitOpError() << "sums in " << to.getElementType()
                           << ", which does not hold every number of the "
                           << from.getElementType() << " that travel";
}

void AllReduceOp::describeCall(CallDescription &call) {
  call.reads(getBufferAttr());
  call.writes(getResultBuffer());
  call.axes(getAxes(), /*atPlace=*/true);
  call.stream(getStream());
}

Exchange AllReduceOp::getExchange() {
  return {getBufferAttr(), getResultBuffer(), /*scatters=*/true,
          /*gathers=*/true};
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // all_reduce_c1
  FailureOr<BufferOp> buffer =
      requireWhole(symbols, *this, getBufferAttr(), getAxes());
  if (failed(buffer) || !getTargetAttr())
    return buffer;
  // all_reduce_c2
  FailureOr<BufferOp> target =
      requireWhole(symbols, *this, getTargetAttr(), getAxes());
  if (failed(target))
    return failure();
  if (getTargetAttr() == getBufferAttr())
    return emitOpError() << "target is the buffer itself; leave 'to' out";
  if (target->getMemory() == buffer->getMemory())
    return emitOpError() << "target " << getTargetAttr()
                         << " shares the memory of buffer " << getBufferAttr();
  zero::ValueType from = buffer->getValueType();
  zero::ValueType to = target->getValueType();
  if (from != to.withElementType(from.getElementType()))
    return emitOpError() << "needs a target that is placed as the buffer, got "
                         << from << " and " << to;
  return requireHolds(*this, from, to);
}

void AllGatherOp::describeCall(CallDescription &call) {
  call.writes(getBufferAttr());
  call.axes(getAxes());
  call.stream(getStream());
}

Exchange AllGatherOp::getExchange() {
  return {getBufferAttr(), getBufferAttr(), /*scatters=*/false,
          /*gathers=*/true};
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // all_gather_c1
  FailureOr<BufferOp> buffer =
      requireWhole(symbols, *this, getBufferAttr(), getAxes());
  if (failed(buffer))
    return failure();
  if (buffer->isSharded())
    return emitOpError() << "buffer " << getBufferAttr()
                         << " must not be sharded, got "
                         << buffer->getValueType();
  return success();
}

/// reduce_scatter_c1 to _c3, and so reduce_scatter_add_c1
static LogicalResult verifyScatter(SymbolTableCollection &symbols,
                                   Operation *op, FlatSymbolRefAttr sourceName,
                                   FlatSymbolRefAttr targetName,
                                   ArrayAttr axes) {
  FailureOr<BufferOp> source = require<BufferOp>(symbols, op, sourceName);
  FailureOr<BufferOp> target = require<BufferOp>(symbols, op, targetName);
  if (failed(source) || failed(target))
    return failure();
  zero::ValueType from = source->getValueType();
  zero::ValueType to = target->getValueType();
  if (source->isSharded() || isShardedOver(from, axes) ||
      !isSame(target->getOwners(), axes) || !from.hasRowsOf(to))
    return op->emitOpError()
           << "needs a full source and a target sharded over " << axes
           << " with the same rows, got " << from << " and " << to;
  // reduce_scatter_c3
  if (failed(requireHolds(op, from, to)))
    return failure();
  // reduce_scatter_c2
  return failure(failed(requireOnDevice(op, *source)) ||
                 failed(requireOnDevice(op, *target)));
}

void ReduceScatterOp::describeCall(CallDescription &call) {
  call.reads(getSourceAttr());
  call.writes(getTargetAttr());
  call.axes(getAxes());
  call.stream(getStream());
}

Exchange ReduceScatterOp::getExchange() {
  return {getSourceAttr(), getTargetAttr(), /*scatters=*/true};
}

LogicalResult
ReduceScatterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScatter(symbols, *this, getSourceAttr(), getTargetAttr(),
                       getAxes());
}

void ReduceScatterAddOp::describeCall(CallDescription &call) {
  call.reads(getSourceAttr());
  call.writes(getTargetAttr());
  call.axes(getAxes());
  call.stream(getStream());
}

Exchange ReduceScatterAddOp::getExchange() {
  return {getSourceAttr(), getTargetAttr(), /*scatters=*/true,
          /*gathers=*/false, /*accumulates=*/true};
}

LogicalResult
ReduceScatterAddOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScatter(symbols, *this, getSourceAttr(), getTargetAttr(),
                       getAxes());
}

void KeepOnRootOp::describeCall(CallDescription &call) {
  call.writes(getBufferAttr());
  call.axes(getAxes());
}

LogicalResult KeepOnRootOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // keep_on_root_c1
  FailureOr<BufferOp> buffer =
      requireWhole(symbols, *this, getBufferAttr(), getAxes());
  if (failed(buffer))
    return failure();
  // keep_on_root_c2
  zero::ValueType type = buffer->getValueType();
  for (auto axis : getAxes().getAsRange<StringAttr>())
    if (type.getPlacement(axis).kind != zero::PlacementKind::Partial)
      return emitOpError() << "makes addends over " << axis << ", and buffer "
                           << getBufferAttr() << " is no sum over it, " << type;
  return success();
}

void CountReplicatedOnceOp::describeCall(CallDescription &call) {
  call.writesSlot(getSlotsAttr(), getIndex());
  call.axes(getAxes());
}

LogicalResult
CountReplicatedOnceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return requireSlot(symbols, *this, getSlotsAttr(),
                     getIndex()); // count_replicated_once_c1
}

void AllReduceScalarsOp::describeCall(CallDescription &call) {
  call.writesSlots(getSlotsAttr());
  call.axes(getAxes());
  call.stream(getStream());
}

Exchange AllReduceScalarsOp::getExchange() {
  return {getSlotsAttr(), getSlotsAttr(), /*scatters=*/true, /*gathers=*/true};
}

LogicalResult
AllReduceScalarsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // all_reduce_scalars_c1
  return require<SlotsOp>(symbols, *this, getSlotsAttr());
}

void CommitOp::describeCall(CallDescription &call) {
  call.readsSlot(getOutcomeAttr(), 0);
}

void CommitOp::getMemoryUses(const ProgramSymbols &symbols, FlatSymbolRefAttr,
                             Uses &uses) {
  // All slots are copied, for `results`.
  symbols.addAllSlots(uses);
}

LogicalResult CommitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // commit_c1
  return require<SlotsOp>(symbols, *this, getOutcomeAttr());
}

void RecordOp::describeCall(CallDescription &call) {
  call.event(getEventAttr());
}

LogicalResult RecordOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // record_c1
  return require<EventOp>(symbols, *this, getEventAttr());
}

void WaitOp::describeCall(CallDescription &call) {
  call.event(getEventAttr());
  call.stream(getStream());
}

LogicalResult WaitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // wait_c1
  FailureOr<EventOp> event = require<EventOp>(symbols, *this, getEventAttr());
  if (failed(event))
    return failure();
  if (event->getStream() == getStream())
    return emitOpError() << "event " << getEventAttr() << " is of stream '"
                         << stringifyStream(getStream())
                         << "' itself, which runs in order";
  return success();
}

void WaitWritableOp::describeCall(CallDescription &call) {
  call.arrival(CallArgument::Use::none);
}

LogicalResult WaitWritableOp::verifySymbolUses(SymbolTableCollection &) {
  return success();
}

void CopyScalarsOp::describeCall(CallDescription &) {}

void CopyScalarsOp::getMemoryUses(const ProgramSymbols &symbols,
                                  FlatSymbolRefAttr, Uses &uses) {
  symbols.addAllSlots(uses);
  uses.push_back({symbols.getHostScalars(), /*writes=*/true});
}

LogicalResult CopyScalarsOp::verifySymbolUses(SymbolTableCollection &) {
  return success();
}
