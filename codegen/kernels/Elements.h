//===- Elements.h - The body of a kernel for some elements ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The code of one or several elements, from which all targets build their
// loops. Values that depend on per-step scalars and constants only are computed
// once, before the loops.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_KERNELS_ELEMENTS_H
#define ZERO_CODEGEN_KERNELS_ELEMENTS_H

#include "dialect/zrt/ZrtDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace zero {

/// Options of the loads and stores of arrays.
struct ElementOptions {
  /// Elements of one vector op.
  int64_t width;
  /// Whether the address of a vector is a multiple of the size of the vector,
  /// and not only of the size of an element.
  bool alignedVectors = false;
};

/// Emits code at the insertion point of a builder.
class Elements {
public:
  Elements(mlir::OpBuilder &builder, zrt::KernelOp kernel,
           const ElementOptions &options);

  /// Loads the |scalars| and computes the values that are the same for all
  /// elements of the |arrays|. Call this function first.
  void emitUniforms(mlir::ArrayRef<mlir::Value> arrays, mlir::Value scalars);

  /// The loaded values of |width| elements. |width| is that of the options, or
  /// 1.
  struct Loaded {
    int64_t width;
    mlir::IRMapping mapping;
    mlir::SmallVector<std::pair<unsigned, mlir::Value>> written;
  };
  Loaded emitLoads(mlir::Value index, int64_t width);
  /// Emits the body and the stores. Returns the addend of the sum, or null. All
  /// loads of an element come before its stores, so that one array may be two
  /// operands.
  mlir::Value emitBody(Loaded &loaded);
  mlir::Value emit(mlir::Value index, int64_t width) {
    Loaded loaded = emitLoads(index, width);
    return emitBody(loaded);
  }

private:
  mlir::OpBuilder &builder;
  zrt::KernelOp kernel;
  ElementOptions options;
  mlir::Block &body;
  mlir::SmallVector<mlir::Value> arrays;
  /// The ops of the body whose results differ from element to element.
  mlir::SmallVector<mlir::Operation *> varyingOps;
  /// Values of the body that are the same for all elements, as scalars and as
  /// vectors.
  mlir::IRMapping uniforms;
  mlir::IRMapping broadcasts;
};

/// Emits an error if |kernel| has no code. |place| is as for checkBody.
mlir::LogicalResult checkKernel(zrt::KernelOp kernel, llvm::StringRef place);

/// The address of element |index| of |base|.
mlir::Value emitAddress(mlir::OpBuilder &builder, mlir::Location loc,
                        mlir::Type element, mlir::Value base,
                        mlir::Value index);

} // namespace zero

#endif // ZERO_CODEGEN_KERNELS_ELEMENTS_H
