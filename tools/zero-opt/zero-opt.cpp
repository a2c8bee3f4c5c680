//===- zero-opt.cpp - MLIR's opt driver with the zero dialects ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"
#include "passes/pipeline/Pipelines.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<zero::ZeroDialect, zrt::ZrtDialect, mlir::arith::ArithDialect,
                  mlir::math::MathDialect>();
  mlir::registerTransformsPasses();
  zero::registerZeroPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "zero-opt: the update of a training step\n", registry));
}
