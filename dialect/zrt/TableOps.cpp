//===- TableOps.cpp - Rules of what a step owns ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zrt/Require.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace zrt;

LogicalResult SlotsOp::verify() {
  // slots_c1
  if (getInitial().empty())
    return emitOpError() << "needs at least one initial value";
  return success();
}

LogicalResult BufferOp::verify() {
  // buffer_c1
  auto type = dyn_cast<zero::ValueType>(getType());
  int64_t last = type ? int64_t(type.getShape().size()) - 1 : -1;
  bool hasRows = last >= 0;
  for (int64_t dim = 0; dim < last; ++dim)
    hasRows &= type.getAxesOfDim(dim).size() == 1;
  if (!hasRows)
    return emitOpError() << "type must be a !zero.value of one row, or of one "
                            "dimension for each axis that shards rows in front "
                            "of the last, got "
                         << getType();
  // buffer_c3
  if (type.isOnHost())
    return emitOpError() << "space is said by 'in', not by the type " << type;
  return success();
}

LogicalResult BufferOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // buffer_c4
  if (!getSharesAttr())
    return success();
  FailureOr<BufferOp> owner =
      require<BufferOp>(symbols, *this, getSharesAttr());
  if (failed(owner))
    return failure();
  auto refuse = [&](const Twine &why) {
    InFlightDiagnostic diag = emitOpError() << why;
    diag.attachNote(owner->getLoc()) << "the memory is that of this one";
    return diag;
  };
  if (owner->getSharesAttr())
    return refuse("shares memory with a buffer that has none of its own");
  if (owner->getOnDemand())
    return refuse("shares memory that is on demand, and may not be there");
  if (isSharded() || owner->isSharded())
    return refuse("buffers that share memory must not be sharded");
  if (getSpace() != owner->getSpace())
    return refuse("shares memory with a buffer of another space");
  if (getRole() != owner->getRole())
    return refuse("shares memory with a buffer of another role");
  if (getValueType().getPresent() != owner->getValueType().getPresent())
    return refuse("shares memory with a buffer on other pipeline stages");
  if (getNumBytes() > owner->getNumBytes())
    return refuse("takes " + Twine(getNumBytes()) +
                  " bytes and shares a memory of " +
                  Twine(owner->getNumBytes()));
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels and scalar programs
//===----------------------------------------------------------------------===//

static bool isScalarMath(Operation &op) {
  return isa_and_present<arith::ArithDialect, math::MathDialect>(
      op.getDialect());
}

LogicalResult KernelOp::verifyRegions() {
  // kernel_c5
  if (getOperandTypes().size() != getAccesses().size())
    return emitOpError() << "has "
                         << zero::countOf(getOperandTypes().size(),
                                          "operand type")
                         << " and "
                         << zero::countOf(getAccesses().size(), "access", "es");
  // kernel_c4
  if (getPredicated() && getNumScalars() < 1)
    return emitOpError() << "is predicated and has no scalar";
  // kernel_c6
  constexpr int64_t kMostScalars = 4096;
  auto numScalars = static_cast<int64_t>(getNumScalars());
  if (numScalars < 0 || numScalars > kMostScalars)
    return emitOpError() << "takes " << zero::countOf(numScalars, "scalar")
                         << ", expected 0 to " << kMostScalars;
  // kernel_c1
  SmallVector<Type> arguments;
  SmallVector<Type> yields;
  for (unsigned i = 0; i < getNumArrays(); ++i) {
    if (getArrayAccess(i) != Access::write)
      arguments.push_back(getArrayType(i));
    if (getArrayAccess(i) != Access::read)
      yields.push_back(getArrayType(i));
  }
  arguments.append(getNumScalars(), Float64Type::get(getContext()));
  if (getSums())
    yields.push_back(Float64Type::get(getContext()));
  Block &block = getBody().front();
  if (TypeRange(block.getArgumentTypes()) != TypeRange(arguments))
    return emitOpError() << "body must take (" << arguments << "), got ("
                         << block.getArgumentTypes() << ")";
  // kernel_c3
  for (Operation &op : block)
    if (!isScalarMath(op) && !isa<YieldOp>(op))
      return op.emitOpError() << "is not allowed in a kernel, whose body holds "
                                 "arith and math ops only";
  if (block.empty() || !isa<YieldOp>(block.back()))
    return emitOpError() << "body must end with zrt.yield";
  // kernel_c2
  if (TypeRange(block.back().getOperandTypes()) != TypeRange(yields))
    return emitOpError() << "body must yield (" << yields << "), got ("
                         << block.back().getOperandTypes() << ")";
  return success();
}

LogicalResult ScalarsOp::verifyRegions() {
  // scalars_c1
  Block &block = getBody().front();
  for (Operation &op : block)
    if (!isScalarMath(op) && !isa<YieldOp, LoadSlotOp, StoreSlotOp>(op))
      return op.emitOpError() << "is not allowed in a scalar program";
  // scalars_c2
  for (Operation &op : block)
    for (Type type : op.getResultTypes())
      if (isa<FloatType>(type) && !type.isF64())
        return op.emitOpError() << "makes " << type << " in a scalar program, "
                                << "which computes in f64";
  if (block.empty() || !isa<YieldOp>(block.back()) ||
      block.back().getNumOperands() != 0)
    return emitOpError() << "must end with zrt.yield of nothing";
  return success();
}

LogicalResult LoadSlotOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // load_slot_c1
  return requireSlot(symbols, *this, getSlotsAttr(), getIndex());
}

LogicalResult StoreSlotOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // store_slot_c1
  return requireSlot(symbols, *this, getSlotsAttr(), getIndex());
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

LogicalResult SegmentsOp::verify() {
  // segments_c1
  int64_t begin = 0;
  for (int64_t end : getEnds()) {
    if (end <= begin && !(end == 0 && getEnds().size() == 1))
      return emitOpError() << "ends must increase, got " << end << " after "
                           << begin;
    begin = end;
  }
  // segments_c2
  if (getScalars().empty() && getRows().empty())
    return success();
  if (getRows().size() != getEnds().size())
    return emitOpError() << "has "
                         << zero::countOf(getEnds().size(), "interval")
                         << " and " << zero::countOf(getRows().size(), "row");
  for (int64_t row : getRows())
    if (row < 0 || row >= static_cast<int64_t>(getScalars().size()))
      return emitOpError() << "row " << row << " is out of range, got "
                           << zero::countOf(getScalars().size(), "row");
  return success();
}

LogicalResult SegmentsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto symbol : getScalars().getAsRange<FlatSymbolRefAttr>())
    if (failed(require<SlotsOp>(symbols, *this, symbol)))
      return failure();
  return success();
}

LogicalResult zrt::requireLasting(Operation *op, BufferOp buffer) {
  if (!buffer.getOnDemand() && !buffer.getShares())
    return success();
  return op->emitOpError() << "buffer @" << buffer.getSymName()
                           << " lives across steps and must not "
                           << (buffer.getOnDemand() ? "be on demand"
                                                    : "share memory");
}

LogicalResult zrt::requireShape(Operation *op, BufferOp buffer, StringRef name,
                                zero::ValueType rows) {
  if (buffer.getValueType().hasRowsOf(rows))
    return success();
  return op->emitOpError() << "buffer @" << buffer.getSymName()
                           << " has other rows than bucket @" << name << ": "
                           << buffer.getValueType() << " and " << rows;
}

LogicalResult zrt::requireShape(Operation *op, BufferOp buffer,
                                zero::BucketOp bucket) {
  return requireShape(op, buffer, bucket.getSymName(), bucket.getValueType());
}

/// bucket_table_c9 and frozen_table_c4, for a table of a bucket of |unit|.
static LogicalResult verifyUnsharded(Operation *table, BufferOp unsharded,
                                     BufferOp parameters,
                                     FlatSymbolRefAttr unit) {
  auto refuse = [&](const Twine &why) {
    return table->emitOpError()
           << "buffer @" << unsharded.getSymName() << " " << why;
  };
  if (!unsharded.getOnDemand() || unsharded.getSpace() != Space::device)
    return refuse("holds parameters while their unit is unsharded; it must be "
                  "on demand, and on the device");
  if (unsharded.isSharded())
    return refuse("is sharded, and the caller reads whole parameters there");
  if (unsharded.getValueType().getElementType() !=
      parameters.getValueType().getElementType())
    return refuse("has another type than the parameters");
  if (!parameters.isSharded())
    return refuse("is for parameters that are sharded, and buffer @" +
                  parameters.getSymName() + " is not");
  auto units = table->getParentOfType<ProgramOp>().getOps<UnitTableOp>();
  if (!unit || llvm::none_of(units, [&](UnitTableOp other) {
        return other.getUnitAttr() == unit;
      }))
    return refuse("is of a bucket whose unit has no zrt.unit_table: nothing "
                  "would gather it");
  if (!unsharded.getShares())
    return refuse(
        "has an address of its own at each allocation, and a unit has "
        "one address; it must share memory of another buffer");
  return success();
}

LogicalResult BucketTableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // bucket_table_c1
  auto bucket = lookup<zero::BucketOp>(symbols, *this, getBucketAttr());
  if (!bucket)
    return emitOpError() << "refers to " << getBucketAttr()
                         << ", which is no zero.bucket of this module";
  FailureOr<BufferOp> gradient =
      require<BufferOp>(symbols, *this, getGradientAttr());
  FailureOr<BufferOp> parameters =
      require<BufferOp>(symbols, *this, getParametersAttr());
  if (failed(gradient) || failed(parameters))
    return failure();
  SmallVector<BufferOp> buffers{*gradient, *parameters};
  if (getMasterAttr()) {
    FailureOr<BufferOp> master =
        require<BufferOp>(symbols, *this, getMasterAttr());
    if (failed(master))
      return failure();
    buffers.push_back(*master);
  }
  if (getStagingAttr()) {
    FailureOr<BufferOp> staging =
        require<BufferOp>(symbols, *this, getStagingAttr());
    if (failed(staging))
      return failure();
    buffers.push_back(*staging);
    // bucket_table_c5
    Type type = parameters->getValueType().getElementType();
    if (staging->getValueType().getElementType() != type)
      return emitOpError() << "staging buffer " << getStagingAttr() << " holds "
                           << staging->getValueType().getElementType()
                           << " and the parameters are " << type;
  }
  // bucket_table_c4
  SmallVector<BufferOp, 2> onDevice{*gradient};
  if (!getUnshardedAttr())
    onDevice.push_back(*parameters);
  for (BufferOp buffer : onDevice)
    if (buffer.getSpace() != Space::device)
      return emitOpError() << "buffer @" << buffer.getSymName()
                           << " must be on the device, got "
                           << stringifySpace(buffer.getSpace());
  // bucket_table_c2
  for (BufferOp buffer : buffers)
    if (failed(requireShape(*this, buffer, bucket)))
      return failure();
  // bucket_table_c6
  if (gradient->isSharded())
    return emitOpError() << "gradients arrive whole, and buffer "
                         << getGradientAttr() << " is sharded";
  if (parameters->isSharded() && !getUnshardedAttr())
    return emitOpError() << "parameters are read whole, and buffer "
                         << getParametersAttr() << " is sharded";
  if (getUnshardedAttr()) {
    FailureOr<BufferOp> unsharded =
        require<BufferOp>(symbols, *this, getUnshardedAttr());
    if (failed(unsharded) || failed(requireShape(*this, *unsharded, bucket)) ||
        failed(verifyUnsharded(*this, *unsharded, *parameters,
                               bucket.getUnitAttr())))
      return failure();
    if (getReadableAttr())
      return emitOpError()
             << "lists 'readable' events, and the caller's stream "
                "waits when the unit is unsharded";
  }
  // bucket_table_c7
  for (BufferOp buffer : ArrayRef(buffers).drop_front())
    if (failed(requireLasting(*this, buffer)))
      return failure();
  // bucket_table_c8
  for (auto [list, isWritable] :
       {std::pair(getWritableAttr(), true), {getReadableAttr(), false}})
    if (list)
      for (auto symbol : list.getAsRange<FlatSymbolRefAttr>()) {
        FailureOr<EventOp> event = require<EventOp>(symbols, *this, symbol);
        if (failed(event))
          return failure();
        if (event->getStream() == Stream::caller)
          return emitOpError() << "lists event " << symbol
                               << " of stream 'caller', for which the caller "
                                  "has not to wait";
        if (isWritable && event->getStream() == Stream::compute)
          return emitOpError() << "gradients are written on stream 'compute', "
                                  "of which event "
                               << symbol << " is";
      }
  // bucket_table_c3
  for (FlatSymbolRefAttr symbol : {getStoreAttr(), getAddAttr()}) {
    FailureOr<KernelOp> kernel = require<KernelOp>(symbols, *this, symbol);
    if (failed(kernel))
      return failure();
    if (kernel->getNumArrays() == 2 &&
        (kernel->getSums() || kernel->getArrayAccess(0) != Access::read ||
         kernel->getArrayAccess(1) == Access::read))
      return emitOpError() << "kernel " << symbol
                           << " must read the gradient and write the buffer, "
                              "and sum nothing";
    if (kernel->getNumArrays() != 2 || kernel->getNumScalars() != 0 ||
        kernel->getArrayType(0) != bucket.getArrivalType() ||
        kernel->getArrayType(1) != gradient->getValueType().getElementType())
      return emitOpError() << "kernel " << symbol << " must take ("
                           << bucket.getArrivalType() << ", "
                           << gradient->getValueType().getElementType()
                           << ") and no scalars";
  }
  return success();
}

LogicalResult FrozenTableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // frozen_table_c1
  auto bucket = lookup<zero::FrozenBucketOp>(symbols, *this, getBucketAttr());
  if (!bucket)
    return emitOpError() << "refers to " << getBucketAttr()
                         << ", which is no zero.frozen_bucket of this module";
  if (!bucket.isSharded())
    return emitOpError() << "is of " << getBucketAttr()
                         << ", which is not sharded: the caller keeps its "
                            "parameters";
  for (auto other :
       (*this)->getParentOfType<ProgramOp>().getOps<FrozenTableOp>())
    if (other != *this && other.getBucketAttr() == getBucketAttr()) {
      InFlightDiagnostic diag = emitOpError()
                                << "is a second table of " << getBucketAttr();
      diag.attachNote(other.getLoc()) << "the other one is here";
      return diag;
    }
  FailureOr<BufferOp> parameters =
      require<BufferOp>(symbols, *this, getParametersAttr());
  FailureOr<BufferOp> unsharded =
      require<BufferOp>(symbols, *this, getUnshardedAttr());
  if (failed(parameters) || failed(unsharded))
    return failure();
  // frozen_table_c2
  for (BufferOp buffer : {*parameters, *unsharded}) {
    if (failed(requireShape(*this, buffer, bucket.getSymName(),
                            bucket.getValueType())))
      return failure();
    if (Type type = buffer.getValueType().getElementType();
        type != bucket.getValueType().getElementType())
      return emitOpError() << "buffer @" << buffer.getSymName() << " holds "
                           << type << ", and the parameters are "
                           << bucket.getValueType().getElementType();
  }
  zero::ValueType kept = bucket.getValueType();
  size_t last = kept.getShape().size() - 1;
  if (parameters->getValueType().getAxesOfDim(last) != kept.getAxesOfDim(last))
    return emitOpError() << "buffer " << getParametersAttr() << " is "
                         << parameters->getValueType()
                         << ", sharded over other axes than the bucket, "
                         << kept;
  // frozen_table_c3, frozen_table_c4
  if (failed(requireLasting(*this, *parameters)))
    return failure();
  return verifyUnsharded(*this, *unsharded, *parameters, bucket.getUnitAttr());
}
