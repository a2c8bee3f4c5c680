//===- CudaTables.cpp - CUDA code as constants of a library ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/host/CudaTables.h"

#include "codegen/cuda/EmitKernel.h"
#include "codegen/cuda/EmitScalarKernel.h"
#include "codegen/host/Tables.h"
#include "codegen/kernels/Loops.h"
#include "zero_rt/cuda_code.h"
#include "zero_rt/library.h"

using namespace mlir;
using namespace zero;

static_assert(kCudaThreads == ZERO_RT_CUDA_THREADS &&
                  kMaxGivenSlots == ZERO_RT_CUDA_MOST_GIVEN &&
                  kSumBlock == ZERO_RT_CUDA_SUM_GROUP,
              "what a kernel is compiled for is what it is launched with");

CudaTables::CudaTables(GlobalBuilder &globals, const CudaCode *code)
    : globals(globals), code(code) {
  if (!code)
    return;
  ptx = globals.string("cuda.ptx", code->ptx);
  SmallVector<Constant> fields;
  for (const auto &[arch, data] : code->cubins) {
    fields.push_back(globals.string("cuda.arch." + arch, arch));
    fields.push_back(globals.bytes("cuda.cubin." + arch, data));
    fields.push_back(globals.integer(64, data.size()));
  }
  if (!fields.empty())
    cubins = globals.structure("cuda.cubins", fields);
}

void CudaTables::add(const CudaFunction &function,
                     SmallVectorImpl<Constant> &fields) {
  auto [it, isNew] = names.try_emplace(function.name);
  if (isNew && !function.name.empty())
    it->second = globals.string("cuda.name." + function.name, function.name);
  fields.push_back(it->second);
  fields.push_back(globals.integer(64, function.piecesPerBlock));
}

template <typename OpT>
Constant
CudaTables::emitFunctions(StringRef name, zrt::ProgramOp program,
                          const llvm::StringMap<CudaFunction> &functions) {
  SmallVector<Constant> fields;
  for (auto op : program.getOps<OpT>())
    add(functions.lookup(op.getSymName()), fields);
  return fields.empty() ? Constant() : globals.structure(name, fields);
}

Constant CudaTables::emitRankSums() {
  SmallVector<Constant> fields;
  for (const auto &[sum, function] : code->rankSums) {
    for (int64_t value :
         {int64_t(getDtype(sum.addend)), int64_t(getDtype(sum.sum)), sum.ranks,
          int64_t(sum.kind)})
      fields.push_back(globals.integer(64, value));
    add(function, fields);
  }
  return fields.empty() ? Constant()
                        : globals.structure("cuda.rank_sums", fields);
}

Constant CudaTables::emit(zrt::ProgramOp program) {
  if (!code)
    return {};
  SmallVector<Constant> fields{
      ptx, globals.integer(64, code->cubins.size()), cubins,
      emitFunctions<zrt::KernelOp>("cuda.kernels", program, code->functions),
      emitFunctions<zrt::ScalarsOp>("cuda.scalar_programs", program,
                                    code->functions)};
  add(code->giveSlots, fields);
  fields.push_back(globals.integer(64, code->rankSums.size()));
  fields.push_back(emitRankSums());
  // The fields of zero_rt_cuda_code_2.
  fields.push_back(
      emitFunctions<zrt::KernelOp>("cuda.batches", program, code->batches));
  return globals.structure("executable",
                           {globals.integer(32, sizeof(zero_rt_executable)),
                            globals.integer(32, 0),
                            globals.string("cuda.target", ZERO_RT_CUDA_TARGET),
                            globals.string("cuda.format", ZERO_RT_CUDA_FORMAT),
                            globals.structure("cuda", fields),
                            globals.integer(64, sizeof(zero_rt_cuda_code_2))});
}
