//===- ProgramOps.cpp - Rules of the runtime's calls ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zrt/Require.h"
#include "dialect/zrt/ZrtDialect.h"

using namespace mlir;
using namespace zrt;

static LogicalResult requireOnDemand(SymbolTableCollection &symbols,
                                     Operation *op, FlatSymbolRefAttr symbol) {
  FailureOr<BufferOp> buffer = require<BufferOp>(symbols, op, symbol);
  if (failed(buffer))
    return failure();
  if (!buffer->getOnDemand())
    return op->emitOpError() << "buffer " << symbol << " is not on demand";
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

LogicalResult AllocateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return requireOnDemand(symbols, *this, getBufferAttr()); // allocate_c1
}

LogicalResult ReleaseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return requireOnDemand(symbols, *this, getBufferAttr()); // release_c1
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

LogicalResult PackOp::verifySymbolUses(SymbolTableCollection &) {
  return success();
}

LogicalResult FillMissingOp::verifySymbolUses(SymbolTableCollection &) {
  return success(); // the program checks all of them at once: fill_missing_c1
}

/// Whether |names| are |axes|, in any order. Null has no names.
static bool isSame(ArrayRef<StringAttr> axes, ArrayAttr names) {
  return names && names.size() == axes.size() &&
         llvm::all_of(axes, [&](StringAttr axis) {
           return llvm::is_contained(names, axis);
         });
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // launch_c1
  FailureOr<KernelOp> kernel =
      require<KernelOp>(symbols, *this, getKernelAttr());
  FailureOr<SegmentsOp> segments =
      require<SegmentsOp>(symbols, *this, getSegmentsAttr());
  if (failed(kernel) || failed(segments))
    return failure();
  // launch_c2
  if (kernel->getNumArrays() != getBuffers().size())
    return emitOpError() << "kernel " << getKernelAttr() << " has "
                         << zero::countOf(kernel->getNumArrays(), "operand")
                         << ", got " << getBuffers().size();
  int64_t elements =
      segments->getEnds().empty() ? 0 : segments->getEnds().back();
  BufferOp first;
  for (auto [i, symbol] :
       llvm::enumerate(getBuffers().getAsRange<FlatSymbolRefAttr>())) {
    FailureOr<BufferOp> buffer = require<BufferOp>(symbols, *this, symbol);
    if (failed(buffer))
      return failure();
    Type type = buffer->getValueType().getElementType();
    if (type != kernel->getArrayType(i))
      return emitOpError() << "operand " << i << " of kernel "
                           << getKernelAttr() << " is "
                           << kernel->getArrayType(i) << ", buffer " << symbol
                           << " holds " << type;
    // launch_c3
    if (buffer->getRowLength() != elements)
      return emitOpError() << "buffer " << symbol << " holds "
                           << zero::countOf(buffer->getRowLength(), "element")
                           << " and the segments end at " << elements;
    if (!first)
      first = *buffer;
    if (!buffer->getValueType().hasRowsOf(first.getValueType()))
      return emitOpError() << "buffers " << symbol << " and @"
                           << first.getSymName()
                           << " have other rows: " << buffer->getValueType()
                           << " and " << first.getValueType();
    // launch_c7
    if (buffer->getSpace() != first.getSpace())
      return emitOpError() << "buffer " << symbol << " is on the "
                           << stringifySpace(buffer->getSpace()) << " and @"
                           << first.getSymName() << " on the "
                           << stringifySpace(first.getSpace());
    // launch_c10
    if (getStream() != Stream::compute &&
        (first.getSpace() == Space::device || getStream() != Stream::host))
      return emitOpError() << "runs a kernel on the "
                           << stringifySpace(first.getSpace())
                           << ", got stream '" << stringifyStream(getStream())
                           << "'";
    // launch_c8
    for (StringAttr axis :
         buffer->getValueType().getAxes(zero::PlacementKind::Sharded))
      if (getOwn() && llvm::is_contained(*getOwn(), axis) &&
          !llvm::is_contained(buffer->getOwners(), axis))
        return emitOpError() << "is 'own' over " << axis << ", and ranks of it "
                             << "have other rows of buffer " << symbol << ", "
                             << buffer->getValueType();
    // launch_c4
    if (buffer->isSharded() && !isSame(buffer->getOwners(), getOwnAttr()))
      return emitOpError() << "buffer " << symbol
                           << " is sharded and the launch is not 'own' over "
                              "its axes, "
                           << buffer->getValueType();
  }
  // launch_c9
  if (getFirstStage()) {
    zero::ValueType type = first ? first.getValueType() : zero::ValueType();
    if (!type || type.getPresent().size() == type.getFirstStage().size())
      return emitOpError() << "is for the first of several stages, and works "
                              "on what is not on several";
    for (unsigned i = 0; i < kernel->getNumArrays(); ++i)
      if (kernel->getArrayAccess(i) != Access::read)
        return emitOpError() << "writes buffer " << getBuffers()[i]
                             << " on the first stage alone";
  }
  // launch_c5
  bool hasSum = static_cast<bool>(getSumAttr());
  if (kernel->getSums() != hasSum ||
      (hasSum && segments->getEnds().size() != 1))
    return emitOpError() << "a scalar slot for the sum is given exactly if the "
                            "kernel sums, over one segment";
  if (getSumAttr()) {
    FailureOr<SlotsOp> slots = require<SlotsOp>(symbols, *this, getSumAttr());
    if (failed(slots))
      return failure();
    if (static_cast<int64_t>(getSumIndex()) < 0 ||
        static_cast<int64_t>(getSumIndex()) >= slots->size())
      return emitOpError() << "sum index " << int64_t(getSumIndex())
                           << " is out of range, " << getSumAttr() << " has "
                           << zero::countOf(slots->size(), "scalar slot");
  }
  // launch_c6
  if (kernel->getNumScalars() > 0 && segments->getScalars().empty())
    return emitOpError() << "kernel " << getKernelAttr() << " takes "
                         << zero::countOf(kernel->getNumScalars(), "scalar")
                         << ", segments have none";
  for (auto symbol : segments->getScalars().getAsRange<FlatSymbolRefAttr>()) {
    auto slots = lookup<SlotsOp>(symbols, *this, symbol);
    if (slots && slots.size() < static_cast<int64_t>(kernel->getNumScalars()))
      return emitOpError() << "kernel " << getKernelAttr() << " takes "
                           << zero::countOf(kernel->getNumScalars(), "scalar")
                           << ", " << symbol << " has " << slots.size();
  }
  return success();
}

LogicalResult RunScalarsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return require<ScalarsOp>(symbols, *this, getProgramAttr()); // run_scalars_c1
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

/// The type of |buffer| with whole rows.
static zero::ValueType gatherRows(BufferOp buffer) {
  zero::ValueType type = buffer.getValueType();
  for (StringAttr axis : buffer.getOwners())
    type = type.withPlacement({axis, zero::PlacementKind::Replicated});
  return type;
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

LogicalResult
ReduceScatterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScatter(symbols, *this, getSourceAttr(), getTargetAttr(),
                       getAxes());
}

LogicalResult
ReduceScatterAddOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyScatter(symbols, *this, getSourceAttr(), getTargetAttr(),
                       getAxes());
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

LogicalResult
CountReplicatedOnceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // count_replicated_once_c1
  FailureOr<SlotsOp> slots = require<SlotsOp>(symbols, *this, getSlotsAttr());
  if (failed(slots))
    return failure();
  if (static_cast<int64_t>(getIndex()) >= slots->size() ||
      static_cast<int64_t>(getIndex()) < 0)
    return emitOpError() << "index " << int64_t(getIndex())
                         << " is out of range, " << getSlotsAttr() << " has "
                         << zero::countOf(slots->size(), "scalar slot");
  return success();
}

LogicalResult
AllReduceScalarsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // all_reduce_scalars_c1
  return require<SlotsOp>(symbols, *this, getSlotsAttr());
}

LogicalResult CommitOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // commit_c1
  return require<SlotsOp>(symbols, *this, getOutcomeAttr());
}

LogicalResult RecordOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // record_c1
  return require<EventOp>(symbols, *this, getEventAttr());
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

LogicalResult WaitWritableOp::verifySymbolUses(SymbolTableCollection &) {
  return success();
}

LogicalResult CopyScalarsOp::verifySymbolUses(SymbolTableCollection &) {
  return success();
}
