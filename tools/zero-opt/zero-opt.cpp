//===- zero-opt.cpp - MLIR's opt driver with the zero dialects ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/prove/ProveEachPass.h"
#include "tools/driver/Driver.h"

#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;

static llvm::cl::opt<bool> proveEach(
    "prove-each",
    llvm::cl::desc("Prove after each pass that the step is the one before the "
                   "first pass, where that one can be proved"));

static int fail(const std::string &message) {
  llvm::WithColor::error(llvm::errs(), "zero-opt") << message << "\n";
  return 1;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  zero::registerDriverDialects(registry);
  registerTransformsPasses();
  zero::registerZeroPasses();
  auto [inputFile, outputFile] = registerAndParseCLIOptions(
      argc, argv, "zero-opt: the update of a training step\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects())
    return asMainReturnCode(
        MlirOptMain(argc, argv, inputFile, outputFile, registry));
  // With this option, diagnostics are for MLIR to compare.
  if (!config.shouldVerifyDiagnostics())
    zero::registerPlacelessDiagnostics(registry);

  zero::ProveEachPass::Result result;
  MlirOptMainConfig proving = config;
  proving.setPassPipelineSetupFn([&](PassManager &pm) {
    if (proveEach)
      pm.addInstrumentation(
          std::make_unique<zero::ProveEachPass>(nullptr, result));
    return config.setupPassPipeline(pm);
  });
  std::string message;
  auto input = openInputFile(inputFile, &message);
  if (!input)
    return fail(message);
  auto output = openOutputFile(outputFile, &message);
  if (!output)
    return fail(message);
  if (failed(MlirOptMain(output->os(), std::move(input), registry, proving)) ||
      !result.broken.empty())
    return 1;
  // Keeps the file, which is removed otherwise.
  output->keep();
  return 0;
}
