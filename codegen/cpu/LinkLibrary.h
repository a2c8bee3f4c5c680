//===- LinkLibrary.h - An object as a shared library ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CPU_LINKLIBRARY_H
#define ZERO_CODEGEN_CPU_LINKLIBRARY_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace zero {

/// Makes the content of a shared library of an object of emitCpuObject. The
/// library exports |exportedSymbols| only, or every global symbol if that list
/// is empty. On an error, such as an undefined symbol, |errorMessage| says why.
mlir::LogicalResult linkLibrary(llvm::StringRef object,
                                llvm::ArrayRef<std::string> exportedSymbols,
                                std::string &library,
                                std::string &errorMessage);

} // namespace zero

#endif // ZERO_CODEGEN_CPU_LINKLIBRARY_H
