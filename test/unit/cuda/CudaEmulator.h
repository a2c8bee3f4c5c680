//===- CudaEmulator.h - CUDA kernels on a CPU -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs the code of CUDA kernels before it becomes PTX: the same MLIR, compiled
// for this machine, with calls in place of the few ops that a CPU does not
// have. So what a grid computes is tested where there is no GPU; what LLVM and
// ptxas make of it is not.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_CUDAEMULATOR_H
#define ZERO_TEST_UNIT_CUDA_CUDAEMULATOR_H

#include "KernelLibrary.h"
#include "codegen/cuda/EmitCuda.h"
#include "codegen/cuda/EmitKernel.h"

namespace zero::test {

/// One launch of a kernel.
struct CudaLaunch {
  std::vector<void *> arrays;
  const double *slots;
  std::vector<zero_rt_cuda_piece> pieces;
  // Of a kernel that sums.
  double *partials = nullptr;
  int32_t *arrivals = nullptr;
  double *sum = nullptr;
};

class CudaEmulator {
public:
  explicit CudaEmulator(const std::string &symbols);
  /// Of a whole program.
  CudaEmulator(
      zrt::ProgramOp program,
      llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot);

  /// The names of all kernels, as in PTX.
  const CudaCode &getCode() const { return code; }
  /// Runs the kernel |name| of PTX with |arguments|, 8 bytes each, in a grid of
  /// |blocks| blocks of |threads| threads.
  void run(const std::string &name, int64_t blocks, int threads,
           const std::vector<uint64_t> &arguments) const;

  /// Runs the kernel of the symbol |name|.
  void launch(const std::string &name, const CudaLaunch &launch) const;
  /// Runs a scalar program, or none if |name| is empty, behind what is |given|:
  /// slots and their values.
  void
  runScalars(const std::string &name, double *slots,
             const std::vector<std::pair<int64_t, double>> &given = {}) const;

private:
  void
  compile(zrt::ProgramOp program,
          llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)> getFirstSlot);
  void *find(const std::string &name) const;

  Directory directory;
  CudaCode code;
  void *handle = nullptr;
};

} // namespace zero::test

#endif // ZERO_TEST_UNIT_CUDA_CUDAEMULATOR_H
