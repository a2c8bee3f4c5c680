//===- zero-reduce.cpp - MLIR's test case reducer, with our dialects ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Driver.h"
#include "tools/driver/Tool.h"
#include "tools/zero-reduce/ReduceStep.h"

#include "mlir/Reducer/Passes.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  zero::initProcess("zero-reduce");
  mlir::DialectRegistry registry;
  zero::registerDriverDialects(registry);
  mlir::registerTransformsPasses();
  mlir::registerReducerPasses();
  zero::registerZeroPasses();
  zero::registerReduceStepPass();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context)) ? 1 : 0;
}
