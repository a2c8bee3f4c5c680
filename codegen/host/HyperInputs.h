//===- HyperInputs.h - Inputs that updates depend on ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_HYPERINPUTS_H
#define ZERO_CODEGEN_HOST_HYPERINPUTS_H

#include "dialect/zrt/ZrtDialect.h"

namespace zero {

/// For each input of |program|, whether a scalar that kernels read or that
/// lives across steps depends on it. False for an input on which only results
/// depend, and for the number of tokens.
llvm::SmallVector<bool> findHyperInputs(zrt::ProgramOp program);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_HYPERINPUTS_H
