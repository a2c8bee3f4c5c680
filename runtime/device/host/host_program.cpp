//===- host_program.cpp - Kernels on the CPU ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/host/host_program.h"

#include "core/numeric.h"
#include "device/host/copy.h"
#include "device/host/reduce.h"

#include <algorithm>

using namespace zero_rt;

/// Divides |local| at multiples of chunkElements. All rows of a table are one
/// run of the pool, even if they are many and small.
void HostProgram::cut(Range local, const double *scalars) {
  for (int64_t begin = local.begin; begin < local.end;) {
    int64_t next = (begin / chunkElements + 1) * chunkElements;
    int64_t end = std::min(local.end, next);
    pieces.push_back({begin, end, scalars});
    begin = end;
  }
}

void HostProgram::setPieces(const Launch &launch) {
  pieces.clear();
  if (launch.table < 0) {
    cut({0, launch.domain.size()}, nullptr);
    return;
  }
  const zero_rt_table_row &table = library.tables[launch.table];
  for (int64_t s = 0; s < table.count; ++s) {
    const zero_rt_segment_row &segment = library.segments[table.first + s];
    cut(localize({segment.begin, segment.end}, launch.domain),
        segment.scalars < 0 ? nullptr : slots + segment.scalars);
  }
}

zero_rt_status HostProgram::runPieces(const Launch &launch, double *sums) {
  zero_rt_kernel_fn kernel = library.kernels[launch.kernel];
  pool.run(int64_t(pieces.size()), [&](int64_t i) {
    const zero_rt_device_piece &piece = pieces[size_t(i)];
    kernel(launch.operands, piece.scalars, piece.begin, piece.end, sums);
  });
  return ZERO_RT_OK;
}

/// The sum of |count| terms, at most blockElements, in the order of kernels:
/// term i goes to lane i mod 32, and lanes are folded in halves.
static double sumBlock(const double *terms, int64_t count) {
  double lanes[sumLanes] = {};
  for (int64_t i = 0; i < count; ++i)
    lanes[i % sumLanes] += terms[i];
  for (int64_t half = sumLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      lanes[i] += lanes[i + half];
  return lanes[0];
}

/// The sum of |partials|. Blocks of partials are summed like terms, and their
/// sums again, until one is left: a tree, which many GPU threads can sum in few
/// rounds. Overwrites |partials|.
static double sumPartials(double *partials, int64_t count) {
  while (count > 1) {
    int64_t blocks = 0;
    for (int64_t i = 0; i < count; i += blockElements)
      partials[blocks++] =
          sumBlock(partials + i, std::min(blockElements, count - i));
    count = blocks;
  }
  return count ? partials[0] : 0;
}

zero_rt_status HostProgram::launch(const Launch &launch) {
  setPieces(launch);
  if (launch.sumSlot < 0)
    return runPieces(launch, nullptr);
  // Partial sums are added in one order, independent of the thread that made
  // them.
  double &sum = slots[launch.sumSlot];
  sum = 0;
  if (pieces.empty())
    return ZERO_RT_OK;
  int64_t first = pieces.front().begin / blockElements;
  int64_t end = (pieces.back().end + blockElements - 1) / blockElements;
  partials.assign(size_t(end), 0.0);
  ZERO_RT_TRY(runPieces(launch, partials.data()));
  sum = sumPartials(partials.data() + first, end - first);
  return ZERO_RT_OK;
}

zero_rt_status HostProgram::runScalars(int32_t program) {
  library.scalar_programs[program](slots);
  return ZERO_RT_OK;
}

zero_rt_status HostProgram::sum(const RankSum &sum) {
  bool isLarge = sum.elements * elementSize(sum.sumType) >= leastLargeBytes;
  pool.forChunks(0, sum.elements, [&](int64_t begin, int64_t end) {
    reduceElements(sum.dtype, sum.sources, sum.ranks, sum.sumType, sum.dst,
                   sum.accumulate, begin, end, isLarge);
  });
  return ZERO_RT_OK;
}
