//===- Floats.h - Numbers to and from arrays of an element type -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_FLOATS_H
#define ZERO_TOOLS_ZERO_RUN_FLOATS_H

#include "dialect/interpret/Interpreter.h"
#include "zero_rt/abi.h"

#include "mlir/IR/BuiltinTypes.h"

namespace zero {

using Bytes = std::vector<char>;

/// Bytes of an element.
int64_t getWidth(mlir::Type type);

/// |values| as an array of |type|, rounded to nearest even.
Bytes pack(llvm::ArrayRef<double> values, mlir::Type type);
std::vector<Number> unpack(const void *data, int64_t elements, mlir::Type type);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_FLOATS_H
