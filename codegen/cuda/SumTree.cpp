//===- SumTree.cpp - Sums of partial sums, in the same launch -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/SumTree.h"

#include "codegen/kernels/Elements.h"

using namespace mlir;
using namespace zero;

/// Rows of partial sums that are loaded together, because few warps are left to
/// hide the latency.
static constexpr int64_t kRowsLoaded = 16;

SmallVector<Value> SumTree::list(const Level &level) {
  return {level.partials, level.arrivals, level.count, level.member,
          level.goesOn};
}

SumTree::Level SumTree::read(ValueRange values) {
  return {values[0], values[1], values[2], values[3], values[4]};
}

Value SumTree::address(Type type, Value base, Value index) {
  return emitAddress(builder, loc, type, base, index);
}

/// Emits a memory fence. Earlier writes of this thread become visible before
/// its later writes; and its later reads, and those of the threads that
/// synchronize with it afterwards, see the writes that precede the values it
/// has read.
void SumTree::fence() {
  builder.create<LLVM::CallIntrinsicOp>(
      loc, TypeRange(), builder.getStringAttr("llvm.nvvm.membar.gl"),
      ValueRange(), LLVM::FastmathFlagsAttr());
}

void SumTree::emit(Value member, Value count, Value lane) {
  this->lane = lane;
  Level start = {memory.partials, memory.arrivals, count, member,
                 isLess(member, count)};
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Value> values = list(start);
  builder.create<scf::WhileOp>(
      loc, ValueRange(values).getTypes(), values,
      [&](OpBuilder &nested, Location, ValueRange now) {
        nested.create<scf::ConditionOp>(loc, read(now).goesOn, now);
      },
      [&](OpBuilder &nested, Location, ValueRange now) {
        builder.setInsertionPointToEnd(nested.getInsertionBlock());
        Level next = emitLevel(read(now));
        builder.create<scf::YieldOp>(loc, list(next));
      });
}

/// Sums the group of this warp's member if this member completes the group.
SumTree::Level SumTree::emitLevel(const Level &level) {
  Value group = create<arith::DivUIOp>(level.member, i64(kSumBlock));
  Value begin = mul(group, kSumBlock);
  Value end = create<arith::MinSIOp>(add(begin, i64(kSumBlock)), level.count);
  Value arrivals = address(builder.getI32Type(), level.arrivals, group);
  Value arrived = emitArrival(arrivals);
  Value isLast = isEqual(arrived, create<arith::SubIOp>(end, begin));
  Value groups = create<arith::DivUIOp>(add(level.count, i64(kSumBlock - 1)),
                                        i64(kSumBlock));
  Value isWhole = isEqual(groups, i64(1));
  auto emitLast = [&] {
    // The first thread has read the counter.
    emitWhere(isEqual(lane, i64(0)), [&] { fence(); });
    builder.create<NVVM::SyncWarpOp>(loc, i32(-1));
    Value sum = emitSum(level.partials, begin, end);
    emitWhere(isEqual(lane, i64(0)), [&] {
      // The next launch needs the counter to be 0.
      builder.create<LLVM::StoreOp>(loc, i32(0), arrivals);
      Value next = address(builder.getF64Type(), level.partials,
                           add(level.count, group));
      builder.create<LLVM::StoreOp>(
          loc, sum, create<arith::SelectOp>(isWhole, memory.sum, next));
    });
    Value goesOn = create<arith::XOrIOp>(
        isWhole, create<arith::ConstantOp>(builder.getBoolAttr(true)));
    return list({address(builder.getF64Type(), level.partials, level.count),
                 address(builder.getI32Type(), level.arrivals, groups), groups,
                 group, goesOn});
  };
  auto emitOther = [&] {
    Level done = level;
    done.goesOn = create<arith::ConstantOp>(builder.getBoolAttr(false));
    return list(done);
  };
  SmallVector<Value> next = emitIf(isLast, emitLast, emitOther);
  return read(next);
}

/// The number of members of a group that are stored, with that of this warp.
Value SumTree::emitArrival(Value arrivals) {
  Value before = emitIf(
      isEqual(lane, i64(0)),
      [&] {
        fence();
        return SmallVector<Value>{
            create<LLVM::AtomicRMWOp>(LLVM::AtomicBinOp::add, arrivals, i32(1),
                                      LLVM::AtomicOrdering::monotonic)};
      },
      [&] { return SmallVector<Value>{i32(0)}; })[0];
  before = shuffle(before, NVVM::ShflKind::idx, 0);
  return create<arith::ExtUIOp>(builder.getI64Type(),
                                create<arith::AddIOp>(before, i32(1)));
}

/// The sum of a group, in the first thread. Each thread has one lane. All loads
/// of a batch of rows are issued together: behind the last member a thread
/// loads the last member, and adds 0.
Value SumTree::emitSum(Value partials, Value begin, Value end) {
  Type f64Type = builder.getF64Type();
  Value last = create<arith::SubIOp>(end, i64(1));
  Value sum = emitLoop(
      begin, end, kRowsLoaded * kWarp, f64(0.0),
      [&](Value index, ValueRange carried) {
        SmallVector<std::pair<Value, Value>> rows;
        for (int64_t row = 0; row < kRowsLoaded; ++row) {
          Value at = add(add(index, lane), i64(row * kWarp));
          rows.push_back(
              {isLess(at, end),
               create<LLVM::LoadOp>(
                   f64Type, address(f64Type, partials,
                                    create<arith::MinSIOp>(at, last)))});
        }
        Value all = carried[0];
        for (auto [isInside, value] : rows)
          all = create<arith::AddFOp>(
              all, create<arith::SelectOp>(isInside, value, f64(0.0)));
        return SmallVector<Value>{all};
      })[0];
  return emitFold(sum);
}
