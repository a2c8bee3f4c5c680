//===- RunKernels.h - Kernels of a library on edge inputs -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_RUNKERNELS_H
#define ZERO_CODEGEN_VALIDATE_RUNKERNELS_H

#include "dialect/interpret/ScalarBody.h"
#include "dialect/zrt/ZrtDialect.h"
#include "zero_rt/library.h"

namespace zero {

/// The kernels and scalar programs of a program, each with its body translated
/// for the interpreter.
class Bodies {
public:
  /// A body that the interpreter does not know is not run; see getUnknown.
  explicit Bodies(zrt::ProgramOp program);

  int64_t getNumKernels() const { return kernels.size(); }
  int64_t getNumScalars() const { return scalars.size(); }
  llvm::ArrayRef<std::string> getUnknown() const { return unknown; }

  /// Runs the kernels and scalar programs of |library| on at most |tuples|
  /// inputs each, and compares with the interpreter in the declared types, bit
  /// by bit. The first difference, or nothing.
  std::string run(const zero_rt_library &library, int64_t tuples);

private:
  /// Slots of zeros. If |body| decides the outcome, there is a 1 where a step
  /// without it is refused, such as the number of tokens.
  std::vector<double> getApplied(ScalarBody &body,
                                 llvm::ArrayRef<int64_t> read);

  struct Kernel {
    zrt::KernelOp op;
    int64_t row;
    ScalarBody body;
  };
  struct Scalars {
    zrt::ScalarsOp op;
    int64_t row;
    ScalarBody body;
  };

  std::vector<Kernel> kernels;
  std::vector<Scalars> scalars;
  std::vector<std::string> slotNames; // by slot
  /// A slot that decides whether a kernel updates: 0 where the step is applied.
  int64_t predicate = 0;
  std::vector<std::string> unknown;
};

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_RUNKERNELS_H
