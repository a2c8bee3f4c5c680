//===- Symbols.cpp - The symbols of a step that is written ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/recipe/Symbols.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace zero;

std::string Symbols::symbol(StringRef name) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  FlatSymbolRefAttr::get(&context, name).print(stream);
  return text;
}

std::string zero::writeUnits(const ParameterList &list, StringRef gatherDtype,
                             Symbols &symbols) {
  llvm::MapVector<StringRef, std::vector<StringRef>> members;
  for (const ListedParameter &parameter : list.parameters)
    if (!parameter.unit.empty())
      members[parameter.unit].push_back(parameter.name);
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const auto &[unit, names] : members) {
    os << "zero.unit " << symbols.unique(unit.str(), ".unit") << " [";
    llvm::interleaveComma(names, os,
                          [&](StringRef name) { os << symbols.symbol(name); });
    os << "]";
    if (!gatherDtype.empty())
      os << " gather_dtype " << gatherDtype;
    os << "\n";
  }
  return text;
}
