//===- EmulatedProgram.h - Kernels for the fake driver ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_EMULATEDPROGRAM_H
#define ZERO_TEST_UNIT_CUDA_EMULATEDPROGRAM_H

#include "CudaEmulator.h"

namespace zero::test {

/// The kernels of a scheduled step, known to the fake driver from now on.
class EmulatedProgram {
public:
  explicit EmulatedProgram(mlir::ModuleOp scheduled);

private:
  void add(const std::string &name, std::vector<bool> areAddresses);
  /// A kernel whose table has addresses.
  void addBatch(const std::string &name);

  std::shared_ptr<CudaEmulator> emulator;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_CUDA_EMULATEDPROGRAM_H
