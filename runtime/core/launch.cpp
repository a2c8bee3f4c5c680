//===- launch.cpp - Running kernels and scalar programs -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/calls.h"
#include "core/numeric.h"
#include "core/status.h"
#include "core/step.h"

using namespace zero_rt;

namespace {

/// The arguments of one launch.
struct Launch {
  const int32_t *buffers;
  int32_t numBuffers;
  int64_t elements;
  Range domain; // in bucket coordinates; element 0 of the kernel is its begin
  const zero_rt_table_row *table;
};

} // namespace

/// Fills step.operands: for each buffer the address of the first element of
/// the domain, whichever part of the bucket the buffer holds.
static zero_rt_status setOperands(zero_rt_step &step, const Launch &launch) {
  step.operands.clear();
  for (int32_t i = 0; i < launch.numBuffers; ++i) {
    int32_t buffer = launch.buffers[i];
    ZERO_RT_TRY(checkBuffer(step, "launch", buffer));
    const zero_rt_buffer_row &row = step.library->buffers[buffer];
    if (row.elements != launch.elements)
      return fail(ZERO_RT_INTERNAL,
                  "launch: operand '%s' has %lld elements, expected %lld",
                  step.bufferName(buffer), (long long)row.elements,
                  (long long)launch.elements);
    Range held = step.held(buffer);
    if (held.begin > launch.domain.begin || held.end < launch.domain.end)
      return fail(ZERO_RT_INTERNAL,
                  "launch: operand '%s' is sharded and the launch is not",
                  step.bufferName(buffer));
    step.operands.push_back(step.address(buffer, launch.domain.begin));
  }
  return ZERO_RT_OK;
}

/// Fills step.pieces with the table's rows, localized and cut at multiples of
/// chunkElements: one pool run for all rows, also for many small ones.
static void setPieces(zero_rt_step &step, const Launch &launch) {
  step.pieces.clear();
  for (int64_t s = 0; s < launch.table->count; ++s) {
    const zero_rt_segment_row &segment =
        step.library->segments[launch.table->first + s];
    Range local = localize({segment.begin, segment.end}, launch.domain);
    const double *scalars = step.slots() + segment.scalars;
    for (int64_t begin = local.begin; begin < local.end;) {
      int64_t next = (begin / chunkElements + 1) * chunkElements;
      int64_t end = std::min(local.end, next);
      step.pieces.push_back({begin, end, scalars});
      begin = end;
    }
  }
}

static void runPieces(zero_rt_step &step, zero_rt_kernel_fn kernel,
                      double *partials) {
  step.runtime->pool.run(int64_t(step.pieces.size()), [&](int64_t i) {
    const LaunchPiece &piece = step.pieces[size_t(i)];
    kernel(step.operands.data(), piece.scalars, piece.begin, piece.end,
           partials);
  });
  step.runtime->counters.launches += !step.pieces.empty();
}

/// The sum of |count| terms, at most blockElements, as kernels take it: term i
/// to lane i mod 32, lanes folded in halves.
static double sumBlock(const double *terms, int64_t count) {
  double lanes[sumLanes] = {};
  for (int64_t i = 0; i < count; ++i)
    lanes[i % sumLanes] += terms[i];
  for (int64_t half = sumLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i)
      lanes[i] += lanes[i + half];
  return lanes[0];
}

/// The sum of |partials|, which are terms of a sum themselves, and so on: a
/// tree that many threads can sum in few rounds. Overwrites them.
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

/// Runs a reducing kernel. Its partial sums are added in one order, whichever
/// thread made them.
static zero_rt_status runReducing(zero_rt_step &step, const Launch &launch,
                                  zero_rt_kernel_fn kernel, int32_t sumSlot) {
  if (launch.table->count != 1)
    return fail(ZERO_RT_INTERNAL,
                "launch: a reducing kernel needs 1 segment, its table has %lld",
                (long long)launch.table->count);
  double &sum = step.slots()[sumSlot];
  sum = 0;
  if (step.pieces.empty())
    return ZERO_RT_OK;
  int64_t begin = step.pieces.front().begin;
  int64_t end = step.pieces.back().end;
  if (begin % blockElements != 0)
    return fail(ZERO_RT_INTERNAL,
                "launch: a reducing kernel begins at element %lld, which is no "
                "multiple of %lld",
                (long long)begin, (long long)blockElements);
  int64_t blocks = (end + blockElements - 1) / blockElements;
  step.partials.assign(size_t(blocks), 0.0);
  runPieces(step, kernel, step.partials.data());
  int64_t first = begin / blockElements;
  sum = sumPartials(step.partials.data() + first, blocks - first);
  return ZERO_RT_OK;
}

zero_rt_status calls::launch(zero_rt_step *step, int32_t, int32_t kernel,
                             const int32_t *buffers, int32_t num_buffers,
                             int32_t table, int64_t elements, int32_t own,
                             int32_t sum_slot) {
  const zero_rt_library &library = *step->library;
  if (kernel < 0 || kernel >= library.num_kernels)
    return fail(ZERO_RT_INTERNAL, "launch: kernel %d is out of range", kernel);
  if (table < 0 || table >= library.num_tables)
    return fail(ZERO_RT_INTERNAL, "launch: table %d is out of range", table);
  if (num_buffers < 0 || (num_buffers > 0 && !buffers))
    return fail(ZERO_RT_INTERNAL, "launch: bad list of operands");
  if (own != -1)
    ZERO_RT_TRY(checkAxes(*step, "launch", own));
  int32_t owners = own < 0 ? 1 : step->groupSize(own);
  if (elements < 0 || elements % owners != 0)
    return fail(ZERO_RT_INTERNAL,
                "launch: %lld elements are not a multiple of %d ranks",
                (long long)elements, owners);
  if (sum_slot != -1)
    ZERO_RT_TRY(checkSlots(*step, "launch", sum_slot, 1));

  Range domain = {0, elements};
  if (own >= 0)
    domain = step->owned(elements, own);
  Launch launch = {buffers, num_buffers, elements, domain,
                   &library.tables[table]};
  ZERO_RT_TRY(setOperands(*step, launch));
  setPieces(*step, launch);
  if (sum_slot >= 0)
    return runReducing(*step, launch, library.kernels[kernel], sum_slot);
  runPieces(*step, library.kernels[kernel], nullptr);
  return ZERO_RT_OK;
}

zero_rt_status calls::run_scalars(zero_rt_step *step, int32_t,
                                  int32_t program) {
  const zero_rt_library &library = *step->library;
  if (program < 0 || program >= library.num_scalar_programs)
    return fail(ZERO_RT_INTERNAL, "run_scalars: program %d is out of range",
                program);
  library.scalar_programs[program](step->slots());
  return ZERO_RT_OK;
}
