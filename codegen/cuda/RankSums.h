//===- RankSums.h - Kernels that sum over ranks -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If ranks can access each other's memory, a reduction is a kernel that reads
// the buffers of all ranks, in order. Therefore the results have the bits of
// the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_RANKSUMS_H
#define ZERO_CODEGEN_CUDA_RANKSUMS_H

#include "dialect/zrt/ZrtDialect.h"
#include "zero_rt/cuda_code.h"

#include "mlir/IR/OwningOpRef.h"

namespace zero {

/// A kernel that sums an array of |addend| of each of |ranks| ranks, in f64 for
/// f64 and in f32 for all other types. For more than ZERO_RT_CUDA_MOST_RANKS
/// ranks, one kernel sums the first ranks, others continue its sum, and the
/// last one rounds the result.
struct RankSum {
  mlir::Type addend;
  mlir::Type sum;
  int64_t ranks;
  zero_rt_rank_sum_kind kind;

  auto key() const {
    return std::make_tuple(addend.getAsOpaquePointer(),
                           sum.getAsOpaquePointer(), ranks, kind);
  }
  bool operator==(const RankSum &other) const { return key() == other.key(); }
};

/// The sums that |program| needs, each once, in the order of its calls. A sum
/// over one rank is needed if it changes the type.
std::vector<RankSum> collectRankSums(zrt::ProgramOp program);

/// A kernel for |sum|. Its operands are the arrays of the ranks, followed by
/// the array of the sums.
mlir::OwningOpRef<zrt::KernelOp> makeRankSum(const RankSum &sum,
                                             mlir::Location loc);

/// The name of |sum|, such as "bf16_f32_4"; with "_add" or "_more" if the
/// kernel adds to its destination or continues a sum.
std::string getName(const RankSum &sum);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_RANKSUMS_H
