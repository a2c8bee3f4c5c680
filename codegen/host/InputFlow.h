//===- InputFlow.h - Which inputs scalars depend on -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_INPUTFLOW_H
#define ZERO_CODEGEN_HOST_INPUTFLOW_H

#include "dialect/zrt/ZrtDialect.h"
#include "zero_rt/library.h"

#include "llvm/ADT/BitVector.h"

namespace zero {

/// What a program does with the inputs of apply. All of it is read from the
/// flow of data through scalar programs, which the proof has compared with the
/// written step.
struct InputFlow {
  /// What apply demands of each input. An input is finite if a scalar that
  /// kernels read or that lives across steps depends on it. Nothing is demanded
  /// of an input on which only results depend. The step itself checks the
  /// number of tokens.
  llvm::SmallVector<zero_rt_input_check> checks;
  /// Different sets of inputs, and for each parameter of a bucket the one of
  /// those on which the scalars of its update depend.
  std::vector<llvm::BitVector> sets;
  llvm::DenseMap<mlir::StringAttr, int64_t> setOf;
};

InputFlow findInputFlow(zrt::ProgramOp program);

} // namespace zero

#endif // ZERO_CODEGEN_HOST_INPUTFLOW_H
