//===- Lower.h - Kernels as optimized LLVM IR -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_KERNELS_LOWER_H
#define ZERO_CODEGEN_KERNELS_LOWER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>

namespace zero {

/// Registers the dialects and translations that code generation needs.
void registerCodegenDialects(mlir::DialectRegistry &registry);

/// What generates code for |triple|, whose target is initialized, without
/// fusing floating point. Null where LLVM cannot; |message| says why.
std::unique_ptr<llvm::TargetMachine>
createTargetMachine(llvm::StringRef triple, llvm::StringRef cpu,
                    llvm::StringRef features, std::string &message);

/// LLVM IR of a copy of |module|, of func, llvm, nvvm, cf, scf, vector, arith
/// and math ops, for |machine|. Null after an error, which is emitted.
std::unique_ptr<llvm::Module> lowerToLLVMIR(mlir::ModuleOp module,
                                            llvm::TargetMachine &machine,
                                            llvm::LLVMContext &context);

/// Runs LLVM's passes over |module|. Contracts and reorders no floating point.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace zero

#endif // ZERO_CODEGEN_KERNELS_LOWER_H
