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

/// Creates the target machine for |triple|, without fusing of floating point.
/// The target must be initialized. Returns null on an error; |message| says
/// why.
std::unique_ptr<llvm::TargetMachine>
createTargetMachine(llvm::StringRef triple, llvm::StringRef cpu,
                    llvm::StringRef features, std::string &message);

/// Lowers a copy of |module|, which has func, llvm, nvvm, cf, scf, vector,
/// arith and math ops, to LLVM IR for |machine|. Emits an error and returns
/// null on a failure.
std::unique_ptr<llvm::Module> lowerToLLVMIR(mlir::ModuleOp module,
                                            llvm::TargetMachine &machine,
                                            llvm::LLVMContext &context);

/// Runs the passes of LLVM over |module|. Does not contract or reorder floating
/// point.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace zero

#endif // ZERO_CODEGEN_KERNELS_LOWER_H
