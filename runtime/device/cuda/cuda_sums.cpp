//===- cuda_sums.cpp - Sums over ranks on a GPU ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/cuda_program.h"

#include "core/numeric.h"
#include "core/status.h"

#include <algorithm>

using namespace zero_rt;

zero_rt_status CudaProgram::sum(const RankSum &sum) {
  if (sum.elements <= 0)
    return ZERO_RT_OK;
  if (sum.ranks > ZERO_RT_CUDA_MOST_RANKS)
    return sumMany(sum);
  if (sum.ranks > 1 || sum.dtype != sum.sumType || sum.accumulate)
    return runSum(sum, sum.accumulate ? ZERO_RT_RANK_SUM_ADD
                                      : ZERO_RT_RANK_SUM_WRITE);
  if (sum.sources[0] == sum.dst)
    return ZERO_RT_OK;
  return device.copy(sum.dst, sum.sources[0],
                     sum.elements * elementSize(sum.dtype));
}

/// A kernel sums at most ZERO_RT_CUDA_MOST_RANKS ranks, and the next kernel
/// continues the sum. The carry is not in |dst|, which other ranks may still
/// read. The sum covers one rank's slice, so the carry is small if there are
/// many ranks.
zero_rt_status CudaProgram::sumMany(const RankSum &sum) {
  int32_t wide = sum.sumType == ZERO_RT_F64 ? ZERO_RT_F64 : ZERO_RT_F32;
  ZERO_RT_TRY(reserve(carry, sum.elements * elementSize(wide), "sums"));
  for (int32_t rank = 0; rank < sum.ranks; rank += ZERO_RT_CUDA_MOST_RANKS) {
    int32_t ranks = std::min(ZERO_RT_CUDA_MOST_RANKS, sum.ranks - rank);
    ZERO_RT_TRY(
        runSum({sum.dtype, wide, sum.sources + rank, ranks, carry.data,
                /*accumulate=*/false, sum.elements},
               rank ? ZERO_RT_RANK_SUM_CONTINUE : ZERO_RT_RANK_SUM_WRITE));
  }
  const void *source = carry.data;
  return this->sum({wide, sum.sumType, &source, /*ranks=*/1, sum.dst,
                    sum.accumulate, sum.elements});
}

/// Counted as one launch.
zero_rt_status CudaProgram::runSum(const RankSum &sum,
                                   zero_rt_rank_sum_kind kind) {
  for (int64_t s = 0; s < code->num_rank_sums; ++s) {
    const zero_rt_cuda_rank_sum &row = code->rank_sums[s];
    if (row.dtype != sum.dtype || row.sum_dtype != sum.sumType ||
        row.ranks != sum.ranks || row.kind != kind)
      continue;
    std::vector<void *> operands;
    for (int32_t r = 0; r < sum.ranks; ++r)
      operands.push_back(const_cast<void *>(sum.sources[r]));
    operands.push_back(sum.dst);
    Pieces pieces;
    ZERO_RT_TRY(getPieces(-1, {0, sum.elements}, pieces));
    return run(rankSums[size_t(s)], operands.data(), int64_t(operands.size()),
               pieces);
  }
  return fail(ZERO_RT_UNSUPPORTED,
              "'%s' has no GPU code that sums %s of %d ranks in %s",
              library.name, dtypeName(sum.dtype), sum.ranks,
              dtypeName(sum.sumType));
}
