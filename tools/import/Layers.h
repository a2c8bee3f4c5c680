//===- Layers.h - The layers of a model, by names ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_LAYERS_H
#define ZERO_TOOLS_IMPORT_LAYERS_H

#include "llvm/ADT/StringRef.h"

#include <optional>

namespace zero {

/// The layer that the name of a parameter has: layer 3 of "model.layers" in
/// "model.layers.3.mlp.experts.0.w1".
struct NamedLayer {
  llvm::StringRef list;
  int64_t number = 0;
  llvm::StringRef path; // of both, "model.layers.3"
};

/// The first number among the modules of |name| is that of its layer. Later
/// ones are numbers of experts and of parts of a layer.
std::optional<NamedLayer> findLayer(llvm::StringRef name);

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_LAYERS_H
