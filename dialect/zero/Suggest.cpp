//===- Suggest.cpp - What a misspelt symbol was meant to be ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/Suggest.h"

using namespace mlir;

unsigned zero::getMaxEdits(StringRef written) {
  return std::max<size_t>(std::min<size_t>(2, written.size() / 2),
                          written.size() / 3);
}

std::string zero::suggestSymbol(Operation *from, FlatSymbolRefAttr name,
                                llvm::function_ref<bool(Operation *)> isMeant) {
  Operation *table = SymbolTable::getNearestSymbolTable(from->getParentOp());
  if (!table)
    return "";
  StringRef written = name.getValue(), nearest;
  unsigned least = getMaxEdits(written) + 1;
  for (Operation &op : table->getRegion(0).front()) {
    auto symbol =
        op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    if (!symbol || !isMeant(&op))
      continue;
    unsigned distance = written.edit_distance(
        symbol.getValue(), /*AllowReplacements=*/true, least);
    if (distance >= least)
      continue;
    least = distance;
    nearest = symbol.getValue();
  }
  return nearest.empty() ? "" : ("; did you mean @" + nearest + "?").str();
}
