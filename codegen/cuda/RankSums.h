//===- RankSums.h - Kernels that sum over ranks -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where ranks see each other's memory, a reduction is a kernel that reads all
// of them in order, so that it gives the bits of the CPU's.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_CUDA_RANKSUMS_H
#define ZERO_CODEGEN_CUDA_RANKSUMS_H

#include "dialect/zrt/ZrtDialect.h"
#include "zero_rt/library.h"

#include "mlir/IR/OwningOpRef.h"

namespace zero {

/// What a kernel sums: an array of |addend| of each of |ranks|, in f64 for f64
/// and in f32 for all else. Of more than ZERO_RT_CUDA_MOST_RANKS one kernel
/// sums the first, others go on from there, and the last rounds what came of
/// it.
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

/// Those that |program| needs, each once, in the order of its calls. A sum over
/// one rank is there where it changes the type.
std::vector<RankSum> collectRankSums(zrt::ProgramOp program);

/// A kernel for |sum|: its operands are the arrays of the ranks, and then that
/// of the sums.
mlir::OwningOpRef<zrt::KernelOp> makeRankSum(const RankSum &sum,
                                             mlir::Location loc);

/// "bf16_f32_4", with "_add" or "_more" where it begins with what is there.
std::string getName(const RankSum &sum);

} // namespace zero

#endif // ZERO_CODEGEN_CUDA_RANKSUMS_H
