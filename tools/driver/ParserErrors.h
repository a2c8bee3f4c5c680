//===- ParserErrors.h - MLIR's errors of a text, with a remedy --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser says where it stopped, and not what to change. Two mistakes
// that it describes by the next token are described here by their cause. They
// can be made in the text of any op, so no op can describe them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_DRIVER_PARSERERRORS_H
#define ZERO_TOOLS_DRIVER_PARSERERRORS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

namespace zero {

/// Rewrites |diagnostic| if it is about such a mistake in |sources|: a number
/// with an exponent and no decimal point, or a value whose type is not written
/// as elsewhere.
void explainParserError(mlir::Diagnostic &diagnostic, llvm::SourceMgr &sources);

} // namespace zero

#endif // ZERO_TOOLS_DRIVER_PARSERERRORS_H
