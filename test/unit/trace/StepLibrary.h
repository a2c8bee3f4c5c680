//===- StepLibrary.h - A compiled step, opened ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_TRACE_STEPLIBRARY_H
#define ZERO_TEST_UNIT_TRACE_STEPLIBRARY_H

#include "codegen/library/Compile.h"
#include "passes/pipeline/Pipelines.h"
#include "zero_rt/library.h"

#include "mlir/IR/OwningOpRef.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>
#include <string>
#include <tuple>

namespace zero::test {

/// Whether this machine runs what StepLibrary compiles.
bool canRun();

/// examples/quickstart.mlir on two ranks, @fc1.weight in two pieces: lowered,
/// compiled and opened.
class StepLibrary {
public:
  /// |edit| may change the scheduled step before it is compiled. Empty on
  /// success.
  std::string open(
      const LowerOptions &options,
      llvm::function_ref<void(mlir::ModuleOp)> edit = [](mlir::ModuleOp) {});

  mlir::ModuleOp getModule() { return *module; }
  const zero_rt_library &getLibrary() { return *library; }

  /// Whether parameters and gradients are f32 instead of bf16.
  bool isF32 = false;
  /// Whether there is another axis, "tp", over which all is the same.
  bool isReplicated = false;
  /// Activations, ?x6xf32, each with the ranks from and to which it goes.
  std::vector<std::tuple<std::string, int, int>> activations;
  /// Whether the parameters of each layer are a unit.
  bool hasUnits = false;
  /// Inputs of apply beside the learning rate, which are results as well.
  int numEchoes = 0;
  /// The type in which gradients travel, such as "bf16"; or that of their sum.
  std::string wire;
  /// Whether kernels are compiled for GPUs as well.
  bool isForCuda = false;

private:
  /// Writes the compiled module to |path|; what was compiled before is written
  /// again. Empty on success.
  std::string writeOnce(llvm::StringRef path);

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  const zero_rt_library *library = nullptr;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_STEPLIBRARY_H
