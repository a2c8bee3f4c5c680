//===- Layers.cpp - The layers of a model, by names -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Layers.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace zero;

std::optional<NamedLayer> zero::findLayer(llvm::StringRef name) {
  size_t begin = 0;
  for (size_t end = name.find('.'); end != llvm::StringRef::npos;
       begin = end + 1, end = name.find('.', begin)) {
    llvm::StringRef part = name.slice(begin, end);
    NamedLayer layer{name.take_front(begin), 0, name.take_front(end)};
    if (llvm::all_of(part, llvm::isDigit) &&
        !part.getAsInteger(10, layer.number))
      return layer;
  }
  return std::nullopt;
}
