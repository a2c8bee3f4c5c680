//===- WarpBuilder.cpp - Building code of the threads of a warp -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/WarpBuilder.h"

using namespace mlir;
using namespace zero;

void WarpBuilder::emitWhere(Value condition,
                            llvm::function_ref<void()> emitThen) {
  auto none = [] { return SmallVector<Value>(); };
  emitIf(
      condition,
      [&] {
        emitThen();
        return none();
      },
      none);
}

Value WarpBuilder::shuffle(Value value, NVVM::ShflKind kind, int64_t which) {
  return create<NVVM::ShflOp>(builder.getI32Type(), i32(-1), value,
                              i32(int32_t(which)), i32(kWarp - 1), kind,
                              UnitAttr());
}

Value WarpBuilder::emitFold(Value lane) {
  for (int64_t half = kWarp / 2; half > 0; half /= 2)
    lane = create<arith::AddFOp>(lane, exchange(lane, half));
  return lane;
}

Value WarpBuilder::exchange(Value value, int64_t distance) {
  Type i32Type = builder.getI32Type();
  Type i64Type = builder.getI64Type();
  auto swap = [&](Value word) {
    return shuffle(word, NVVM::ShflKind::bfly, distance);
  };
  Value bits = create<arith::BitcastOp>(i64Type, value);
  Value low = swap(create<arith::TruncIOp>(i32Type, bits));
  Value high = swap(
      create<arith::TruncIOp>(i32Type, create<arith::ShRUIOp>(bits, i64(32))));
  Value joined = create<arith::OrIOp>(
      create<arith::ExtUIOp>(i64Type, low),
      create<arith::ShLIOp>(create<arith::ExtUIOp>(i64Type, high), i64(32)));
  return create<arith::BitcastOp>(builder.getF64Type(), joined);
}
