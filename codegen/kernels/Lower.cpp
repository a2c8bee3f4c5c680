//===- Lower.cpp - Kernels as optimized LLVM IR ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/kernels/Lower.h"

// First: some headers of conversions use a complete Pass.
#include "mlir/Pass/Pass.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"

using namespace mlir;

void zero::registerCodegenDialects(DialectRegistry &registry) {
  registry.insert<arith::ArithDialect, cf::ControlFlowDialect,
                  func::FuncDialect, LLVM::LLVMDialect, NVVM::NVVMDialect,
                  math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

std::unique_ptr<llvm::TargetMachine>
zero::createTargetMachine(StringRef triple, StringRef cpu, StringRef features,
                          std::string &message) {
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple.str(), message);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, cpu, features, options, llvm::Reloc::PIC_,
      /*CM=*/std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static LogicalResult lowerToLLVM(ModuleOp module) {
  PassManager passes(module.getContext());
  passes.addPass(createConvertSCFToCFPass());
  passes.addPass(createConvertVectorToLLVMPass());
  // Runs before the lowering of arith, because it makes arith constants. A
  // square root becomes the intrinsic, which is correctly rounded on every
  // target. The lowering of math for a target would call a library, and
  // approximate.
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
  return passes.run(module);
}

namespace {
/// Makes diagnostics of MLIR of LLVM's errors. LLVM would print them and end
/// the process.
struct ErrorsToMLIR : llvm::DiagnosticHandler {
  explicit ErrorsToMLIR(Location location) : location(location) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() == llvm::DS_Error) {
      std::string text;
      llvm::raw_string_ostream os(text);
      llvm::DiagnosticPrinterRawOStream printer(os);
      info.print(printer);
      emitError(location) << "LLVM: " << text;
      HasErrors = true;
    }
    return true;
  }

  Location location;
};
} // namespace

std::unique_ptr<llvm::Module> zero::lowerToLLVMIR(ModuleOp module,
                                                  llvm::TargetMachine &machine,
                                                  llvm::LLVMContext &context) {
  context.setDiagnosticHandler(std::make_unique<ErrorsToMLIR>(module.getLoc()));
  OwningOpRef<ModuleOp> lowered = module.clone();
  if (failed(lowerToLLVM(*lowered)))
    return nullptr;
  // Set before the translation, which uses it for the alignment of loads.
  auto text = [&](const std::string &text) {
    return StringAttr::get(module.getContext(), text);
  };
  (*lowered)->setAttr(
      LLVM::LLVMDialect::getDataLayoutAttrName(),
      text(machine.createDataLayout().getStringRepresentation()));
  (*lowered)->setAttr(LLVM::LLVMDialect::getTargetTripleAttrName(),
                      text(machine.getTargetTriple().str()));
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(*lowered, context);
  if (!code)
    return nullptr;
  // No loop becomes a memset: there is no library to call.
  for (llvm::Function &function : *code)
    if (!function.isDeclaration())
      function.addFnAttr("no-builtins");
  return code;
}

void zero::optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  // Kernels have vectors and are unrolled as measured. The remaining loops run
  // for fewer than 32 elements.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  tuning.LoopUnrolling = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}
