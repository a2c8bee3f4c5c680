//===- EmitPtx.cpp - PTX for a module -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cuda/EmitPtx.h"

#include "codegen/kernels/Lower.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir;

static constexpr llvm::StringLiteral kTriple = "nvptx64-nvidia-cuda";
// sm_80 is the oldest GPU with max and min that propagate NaNs, and PTX 7.0 is
// its first version. For a chip that LLVM does not know, LLVM writes a PTX
// version that ptxas refuses.
static constexpr llvm::StringLiteral kChip = "sm_80";
static constexpr llvm::StringLiteral kFeatures = "+ptx70";

StringRef zero::getPtxArch() { return kChip; }

static void initialize() {
  static const bool initialized = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)initialized;
}

FailureOr<std::string> zero::emitPtx(ModuleOp module) {
  std::string errorMessage;
  initialize();
  std::unique_ptr<llvm::TargetMachine> machine =
      createTargetMachine(kTriple, kChip, kFeatures, errorMessage);
  if (!machine)
    return module.emitError()
           << "cannot generate code for " << kTriple << ": " << errorMessage;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = lowerToLLVMIR(module, *machine, context);
  if (!code)
    return failure();
  optimize(*code, *machine);

  SmallVector<char> text;
  llvm::raw_svector_ostream os(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, os, /*DwoOut=*/nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    return module.emitError() << "cannot generate code for " << kTriple;
  passes.run(*code);
  if (context.getDiagHandlerPtr()->HasErrors)
    return failure();
  return std::string(text.begin(), text.end());
}
