//===- zero-opt.cpp - MLIR's opt driver with the zero dialects ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Driver.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  zero::registerDriverDialects(registry);
  mlir::registerTransformsPasses();
  zero::registerZeroPasses();
  // With this option, diagnostics are for MLIR to compare.
  bool verifies =
      llvm::any_of(llvm::ArrayRef(argv, argc), [](llvm::StringRef argument) {
        return argument.ltrim('-').starts_with("verify-diagnostics");
      });
  if (!verifies)
    zero::registerPlacelessDiagnostics(registry);
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "zero-opt: the update of a training step\n", registry));
}
