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
  return {level.partials, level.arrivals, level.count,
          level.first,    level.mine,     level.goesOn};
}

SumTree::Level SumTree::read(ValueRange values) {
  return {values[0], values[1], values[2], values[3], values[4], values[5]};
}

Value SumTree::address(Type type, Value base, Value index) {
  return emitAddress(builder, loc, type, base, index);
}

/// Emits a memory fence. Earlier writes of this thread, and of the threads that
/// it has synchronized with, become visible before its later writes; and its
/// later reads see the writes that precede the values it has read.
void SumTree::fence() {
  builder.create<LLVM::CallIntrinsicOp>(
      loc, TypeRange(), builder.getStringAttr("llvm.nvvm.membar.gl"),
      ValueRange(), LLVM::FastmathFlagsAttr());
}

void SumTree::emit(Value first, int64_t perWarp, Value count, Value lane) {
  this->lane = lane;
  Value left = create<arith::SubIOp>(count, first);
  Level start = {memory.partials,
                 memory.arrivals,
                 count,
                 first,
                 create<arith::MinSIOp>(left, i64(perWarp)),
                 isLess(i64(0), left)};
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

/// Sums the group of this warp's members if these members complete the group.
SumTree::Level SumTree::emitLevel(const Level &level) {
  Value group = create<arith::DivUIOp>(level.first, i64(kSumBlock));
  Value begin = mul(group, kSumBlock);
  Value end = create<arith::MinSIOp>(add(begin, i64(kSumBlock)), level.count);
  Value arrivals = address(builder.getI32Type(), level.arrivals, group);
  Value arrived = emitArrival(arrivals, level.mine);
  Value isLast = isEqual(arrived, create<arith::SubIOp>(end, begin));
  Value groups = create<arith::DivUIOp>(add(level.count, i64(kSumBlock - 1)),
                                        i64(kSumBlock));
  Value isWhole = isEqual(groups, i64(1));
  auto emitLast = [&] {
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
                 group, i64(1), goesOn});
  };
  auto emitOther = [&] {
    Level done = level;
    done.goesOn = create<arith::ConstantOp>(builder.getBoolAttr(false));
    return list(done);
  };
  SmallVector<Value> next = emitIf(isLast, emitLast, emitOther);
  return read(next);
}

/// The number of members of a group that are stored, with |mine| of this warp.
Value SumTree::emitArrival(Value arrivals, Value mine) {
  meet();
  Type i32Type = builder.getI32Type();
  Value narrow = create<arith::TruncIOp>(i32Type, mine);
  Value before = emitIf(
      isEqual(lane, i64(0)),
      [&] {
        fence();
        SmallVector<Value> result{
            create<LLVM::AtomicRMWOp>(LLVM::AtomicBinOp::add, arrivals, narrow,
                                      LLVM::AtomicOrdering::monotonic)};
        fence();
        return result;
      },
      [&] { return SmallVector<Value>{i32(0)}; })[0];
  meet();
  before = shuffle(i32(-1), before, NVVM::ShflKind::idx, 0);
  return create<arith::ExtUIOp>(builder.getI64Type(),
                                create<arith::AddIOp>(before, narrow));
}

/// The sum of a group, in the first thread. Each thread has one lane.
Value SumTree::emitSum(Value partials, Value begin, Value end) {
  Type f64Type = builder.getF64Type();
  auto load = [&](Value at) -> Value {
    return create<LLVM::LoadOp>(f64Type, address(f64Type, partials, at));
  };
  Value size = create<arith::SubIOp>(end, begin);
  Value mainEnd = add(begin, both(size, i64(-kRowsLoaded * kWarp)));
  SmallVector<Value> sum{f64(0.0)};
  sum = emitLoop(begin, mainEnd, kRowsLoaded * kWarp, sum,
                 [&](Value index, ValueRange carried) {
                   SmallVector<Value> rows;
                   for (int64_t row = 0; row < kRowsLoaded; ++row)
                     rows.push_back(
                         load(add(add(index, lane), i64(row * kWarp))));
                   Value all = carried[0];
                   for (Value row : rows)
                     all = create<arith::AddFOp>(all, row);
                   return SmallVector<Value>{all};
                 });
  sum = emitLoop(add(mainEnd, lane), end, kWarp, sum,
                 [&](Value index, ValueRange carried) {
                   return SmallVector<Value>{
                       create<arith::AddFOp>(carried[0], load(index))};
                 });
  Value folded = sum[0];
  for (int64_t half = kWarp / 2; half > 0; half /= 2)
    folded = create<arith::AddFOp>(folded, exchange(i32(-1), folded, half));
  return folded;
}
