//===- WarpBuilder.h - Building code of the threads of a warp ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_WARPBUILDER_H
#define ZERO_CODEGEN_CUDA_WARPBUILDER_H

#include "codegen/kernels/Loops.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace zero {

/// The number of threads of a warp, which is also the number of lanes of a sum.
constexpr int64_t kWarp = 32;
static_assert(kWarp == kSumLanes);

/// Builds the code of the threads of a warp, and their communication.
class WarpBuilder : public LoopBuilder {
public:
  using LoopBuilder::LoopBuilder;

protected:
  template <typename RegisterOp> mlir::Value readRegister() {
    return create<mlir::arith::ExtUIOp>(
        builder.getI64Type(), create<RegisterOp>(builder.getI32Type()));
  }
  mlir::Value i32(int32_t value) {
    return create<mlir::arith::ConstantOp>(builder.getI32IntegerAttr(value));
  }
  mlir::Value add(mlir::Value a, mlir::Value b) {
    return create<mlir::arith::AddIOp>(a, b);
  }
  mlir::Value mul(mlir::Value a, int64_t b) {
    return create<mlir::arith::MulIOp>(a, i64(b));
  }
  mlir::Value both(mlir::Value a, mlir::Value b) {
    return create<mlir::arith::AndIOp>(a, b);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value a,
                      mlir::Value b) {
    return create<mlir::arith::CmpIOp>(predicate, a, b);
  }
  mlir::Value isLess(mlir::Value a, mlir::Value b) {
    return compare(mlir::arith::CmpIPredicate::slt, a, b);
  }
  mlir::Value isEqual(mlir::Value a, mlir::Value b) {
    return compare(mlir::arith::CmpIPredicate::eq, a, b);
  }
  void emitWhere(mlir::Value condition, llvm::function_ref<void()> emitThen);

  /// The 32 bits of |value| in another thread, which |kind| and |which| select.
  mlir::Value shuffle(mlir::Value value, mlir::NVVM::ShflKind kind,
                      int64_t which);
  /// Adds the f64 of lane i + n/2 to that of lane i, and repeats this with half
  /// the lanes until one is left, in the first thread.
  mlir::Value emitFold(mlir::Value lane);

private:
  /// The f64 |value| of the thread whose number differs in bit |distance|.
  mlir::Value exchange(mlir::Value value, int64_t distance);
};

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_WARPBUILDER_H
