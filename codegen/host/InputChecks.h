//===- InputChecks.h - What apply demands of its inputs ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_INPUTCHECKS_H
#define ZERO_CODEGEN_HOST_INPUTCHECKS_H

#include "dialect/zrt/ZrtDialect.h"
#include "zero_rt/library.h"

namespace zero {

/// What apply demands of each input of |program|. An input is finite if a
/// scalar that kernels read or that lives across steps depends on it. Nothing
/// is demanded of an input on which only results depend. The step itself checks
/// the number of tokens.
llvm::SmallVector<zero_rt_input_check> findInputChecks(zrt::ProgramOp program);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_INPUTCHECKS_H
