//===- EmitObject.cpp - Machine code for a module -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/EmitObject.h"

#include "codegen/kernels/Lower.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"

using namespace mlir;

static constexpr llvm::StringLiteral kTriple = "x86_64-unknown-linux-gnu";

static void initialize() {
  static const bool initialized = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  (void)initialized;
}

LogicalResult zero::emitCpuObject(ModuleOp module,
                                  const CpuTargetOptions &options,
                                  llvm::raw_pwrite_stream &os) {
  std::string errorMessage;
  if (failed(checkCpuName(options.cpu, errorMessage)))
    return module.emitError() << errorMessage;
  initialize();
  std::unique_ptr<llvm::TargetMachine> machine = createTargetMachine(
      kTriple, resolveCpuName(options.cpu), /*features=*/"", errorMessage);
  if (!machine)
    return module.emitError()
           << "cannot generate code for " << kTriple << ": " << errorMessage;

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = lowerToLLVMIR(module, *machine, context);
  if (!code)
    return failure();
  for (llvm::Function &function : *code) {
    if (function.isDeclaration())
      continue;
    if (options.cpu == "native")
      function.addFnAttr("tune-cpu", llvm::sys::getHostCPUName());
  }
  if (options.optimize)
    optimize(*code, *machine);
  else
    machine->setOptLevel(llvm::CodeGenOptLevel::None);

  if (options.output == CpuOutput::llvmIR) {
    code->print(os, /*AAW=*/nullptr);
    return success();
  }
  llvm::legacy::PassManager passes;
  auto fileType = options.output == CpuOutput::assembly
                      ? llvm::CodeGenFileType::AssemblyFile
                      : llvm::CodeGenFileType::ObjectFile;
  if (machine->addPassesToEmitFile(passes, os, /*DwoOut=*/nullptr, fileType))
    return module.emitError() << "cannot generate code for " << kTriple;
  passes.run(*code);
  return failure(context.getDiagHandlerPtr()->HasErrors);
}
