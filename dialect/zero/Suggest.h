//===- Suggest.h - What a misspelt symbol was meant to be -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_SUGGEST_H
#define ZERO_DIALECT_ZERO_SUGGEST_H

#include "mlir/IR/SymbolTable.h"

namespace zero {

/// "; did you mean @w?", of the symbol next to |from| that is nearest to |name|
/// among those that |isMeant| accepts; "" where none is near.
std::string suggestSymbol(mlir::Operation *from, mlir::FlatSymbolRefAttr name,
                          llvm::function_ref<bool(mlir::Operation *)> isMeant);

/// The same among ops of these types.
template <typename... OpTs>
std::string suggest(mlir::Operation *from, mlir::FlatSymbolRefAttr name) {
  return suggestSymbol(
      from, name, [](mlir::Operation *op) { return mlir::isa<OpTs...>(op); });
}

} // namespace zero

#endif // ZERO_DIALECT_ZERO_SUGGEST_H
