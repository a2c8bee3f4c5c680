//===- LaunchOp.cpp - Rules of a launch -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/CountOf.h"
#include "dialect/zero/Rules.h"
#include "dialect/zrt/CallDescription.h"
#include "dialect/zrt/MemoryUses.h"
#include "dialect/zrt/Require.h"

using namespace mlir;
using namespace zrt;

void LaunchOp::describeCall(CallDescription &call) {
  call.runs(getKernelAttr(), getBuffers());
  call.segments(getSegmentsAttr());
  call.axes(getOwnAttr());
  call.writesSlot(getSumAttr(), getSumIndex());
  call.stream(getStream());
  if (getFirstStage())
    call.firstStage();
}

void LaunchOp::getMemoryUses(const ProgramSymbols &symbols, FlatSymbolRefAttr,
                             SmallVectorImpl<MemoryUse> &uses) {
  addArgumentUses(*this, symbols, {}, uses);
  bool readsScalars =
      symbols.lookup<KernelOp>(getKernelAttr()).getNumScalars() > 0;
  bool isOnHost =
      !getBuffers().empty() &&
      symbols.lookup<BufferOp>(cast<FlatSymbolRefAttr>(getBuffers()[0]))
              .getSpace() == Space::host;
  // On the host, scalars and sums are in the copy of the host.
  if (isOnHost && (readsScalars || getSumAttr()))
    uses.push_back({symbols.getHostScalars(), static_cast<bool>(getSumAttr())});
  if (!isOnHost && readsScalars)
    for (auto slots : symbols.lookup<SegmentsOp>(getSegmentsAttr())
                          .getScalars()
                          .getAsRange<FlatSymbolRefAttr>())
      symbols.addUse(slots, /*writes=*/false, uses);
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
