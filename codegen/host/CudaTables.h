//===- CudaTables.h - CUDA code as constants of a library -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_HOST_CUDATABLES_H
#define ZERO_CODEGEN_HOST_CUDATABLES_H

#include "codegen/cuda/EmitCuda.h"
#include "codegen/host/GlobalBuilder.h"

namespace zero {

/// Emits an executable with a zero_rt_cuda_code for each pipeline stage. All of
/// them share the code.
class CudaTables {
public:
  /// |code| may be null. No stage then has an executable.
  CudaTables(GlobalBuilder &globals, const CudaCode *code);
  Constant emit(zrt::ProgramOp program);

private:
  template <typename OpT>
  Constant emitFunctions(llvm::StringRef name, zrt::ProgramOp program,
                         const llvm::StringMap<CudaFunction> &functions);
  Constant emitRankSums();
  /// The fields of a zero_rt_cuda_function.
  void add(const CudaFunction &function,
           llvm::SmallVectorImpl<Constant> &fields);

  GlobalBuilder &globals;
  const CudaCode *code;
  Constant ptx;
  Constant cubins;
  llvm::StringMap<Constant> names;
};

} // namespace zero

#endif // ZERO_CODEGEN_HOST_CUDATABLES_H
