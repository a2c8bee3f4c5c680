//===- StateOps.cpp - Rules of what a checkpoint saves --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Rules.h"
#include "dialect/zrt/Require.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace zrt;

/// Finds the buffer of |op|, which has the shape of the bucket of |op|:
/// state_c1 and state_c2, accumulator_c1 and accumulator_c2.
template <typename OpT>
static FailureOr<BufferOp> requireOfBucket(OpT op,
                                           SymbolTableCollection &symbols) {
  auto bucket = lookup<zero::BucketOp>(symbols, op, op.getBucketAttr());
  if (!bucket)
    return op.emitOpError() << "refers to " << op.getBucketAttr()
                            << ", which is no zero.bucket of this module";
  FailureOr<BufferOp> buffer =
      require<BufferOp>(symbols, op, op.getBufferAttr());
  if (failed(buffer) || failed(requireShape(op, *buffer, bucket)))
    return failure();
  return buffer;
}

LogicalResult StateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<BufferOp> buffer = requireOfBucket(*this, symbols);
  // state_c3
  return failed(buffer) ? failure() : requireLasting(*this, *buffer);
}

LogicalResult ScalarStateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  // scalar_state_c1
  return requireSlot(symbols, *this, getSlotsAttr(), getIndex());
}

LogicalResult AccumulatorOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<BufferOp> buffer = requireOfBucket(*this, symbols);
  if (failed(buffer))
    return failure();
  // accumulator_c2
  if (buffer->getRole() != Role::gradient &&
      buffer->getRole() != Role::accumulator)
    return emitOpError() << "buffer " << getBufferAttr() << " has role "
                         << stringifyRole(buffer->getRole())
                         << ", expected gradient or accumulator";
  // accumulator_c3
  if (buffer->getShares())
    return emitOpError() << "buffer " << getBufferAttr()
                         << " lives across backward passes and must not share "
                            "memory";
  return success();
}

/// accumulator_c4 and accumulator_c5
static LogicalResult verifyAccumulators(ProgramOp program, zero::MeshOp mesh) {
  llvm::DenseMap<Attribute, AccumulatorOp> known;
  for (auto op : program.getOps<AccumulatorOp>()) {
    auto [first, isNew] = known.try_emplace(op.getBucketAttr(), op);
    if (failed(zero::verifySymbols(op, "arrival", op.getPrescaledAttr(), mesh)))
      return failure();
    if (isNew)
      continue;
    InFlightDiagnostic diag = op.emitOpError() << op.getBucketAttr()
                                               << " has an accumulator already";
    diag.attachNote(first->second.getLoc()) << "the other one is here";
    return diag;
  }
  if (known.empty())
    return success();
  for (auto table : program.getOps<BucketTableOp>())
    if (!known.contains(table.getBucketAttr()))
      return table.emitOpError()
             << table.getBucketAttr()
             << " has no accumulator, and other buckets have; give it one, or "
                "leave out all of them";
  return success();
}

LogicalResult zrt::verifyStates(ProgramOp program, zero::MeshOp mesh) {
  // scalar_state_c2
  llvm::StringMap<ScalarStateOp> scalars;
  for (auto state : program.getOps<ScalarStateOp>()) {
    auto [known, isNew] = scalars.try_emplace(state.getRole(), state);
    if (isNew)
      continue;
    InFlightDiagnostic diag =
        state.emitOpError()
        << "role '" << state.getRole()
        << "' is taken: rename a parameter group, a loss scale, a "
           "schedule or a counter";
    diag.attachNote(known->second.getLoc()) << "the other one is here";
    return diag;
  }
  // state_c4
  llvm::DenseMap<std::pair<Attribute, Attribute>, StateOp> stateOf;
  for (auto state : program.getOps<StateOp>()) {
    auto [known, isNew] = stateOf.try_emplace(
        {state.getBucketAttr(), state.getRoleAttr()}, state);
    if (isNew)
      continue;
    InFlightDiagnostic diag =
        state.emitOpError()
        << "role '" << state.getRole() << "' of " << state.getBucketAttr()
        << " is in " << known->second.getBufferAttr() << " already, got "
        << state.getBufferAttr() << " as well; leave one of them out";
    diag.attachNote(known->second.getLoc()) << "the other one is here";
    return diag;
  }
  return verifyAccumulators(program, mesh);
}
