//===- Suggest.h - Suggestions for misspelt symbols -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_SUGGEST_H
#define ZERO_DIALECT_ZERO_SUGGEST_H

#include "mlir/IR/SymbolTable.h"

namespace zero {

/// The number of edits up to which |written| may be meant to be another name:
/// half of a short name, and a third of a long one.
unsigned getMaxEdits(llvm::StringRef written);

/// "; did you mean @w?" with the symbol in the scope of |from| that is nearest
/// to |name|, among the symbols that |isMeant| accepts. "" if no symbol is
/// near.
std::string suggestSymbol(mlir::Operation *from, mlir::FlatSymbolRefAttr name,
                          llvm::function_ref<bool(mlir::Operation *)> isMeant);

/// The same among symbols of these op types.
template <typename... OpTs>
std::string suggest(mlir::Operation *from, mlir::FlatSymbolRefAttr name) {
  return suggestSymbol(
      from, name, [](mlir::Operation *op) { return mlir::isa<OpTs...>(op); });
}

} // namespace zero

#endif // ZERO_DIALECT_ZERO_SUGGEST_H
