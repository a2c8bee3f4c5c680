//===- cuda_batch.cpp - Launches that become one --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ten thousand small gradients would be ten thousand launches. In a batch,
// launches are held back. Those of one kernel become one launch over a table of
// pieces with operands of their own. The table is written in the order of the
// compute stream, so one block of memory serves all batches.
//
//===----------------------------------------------------------------------===//

#include "device/cuda/cuda_program.h"

#include "core/status.h"
#include "core/thread_pool.h"

#include <algorithm>

using namespace zero_rt;

/// Elements of a piece. There are enough pieces for a GPU if a batch is large,
/// and the table is small beside the elements.
static constexpr int64_t pieceElements = 8 * blockElements;

/// The driver takes a copy of this size without waiting for the stream.
static constexpr int64_t taken = int64_t(1) << 16;

zero_rt_status CudaProgram::beginBatch() {
  isBatch = true;
  device.setHeld(this);
  return ZERO_RT_OK;
}

zero_rt_status CudaProgram::endBatch() {
  zero_rt_status status = launchHeld();
  isBatch = false;
  device.setHeld(nullptr);
  return status;
}

bool CudaProgram::canHold(const Launch &launch) const {
  return isBatch && !batches.empty() && batches[size_t(launch.kernel)].handle &&
         launch.table < 0 && device.getStream() == Stream::Compute;
}

zero_rt_status CudaProgram::hold(const Launch &launch) {
  int64_t size = launch.domain.size();
  BatchRows &rows = held[launch.kernel];
  for (int64_t begin = 0; begin < size; begin += pieceElements)
    rows.push_back({begin,
                    std::min(begin + pieceElements, size),
                    {launch.operands[0], launch.operands[1]}});
  return ZERO_RT_OK;
}

zero_rt_status CudaProgram::launchHeld() {
  if (held.empty())
    return ZERO_RT_OK;
  // What is queued below finds nothing held back.
  std::map<int32_t, BatchRows> queued;
  queued.swap(held);
  Stream selected = device.getStream();
  device.select(Stream::Compute);
  zero_rt_status status = ZERO_RT_OK;
  for (const auto &[kernel, rows] : queued)
    if (!status && !rows.empty())
      status = launchBatch(size_t(kernel), rows);
  device.select(selected);
  return status;
}

zero_rt_status CudaProgram::launchBatch(size_t kernel, const BatchRows &rows) {
  void *const *operands = rows.front().operands;
  auto isOfTheFirst = [&](const zero_rt_cuda_batch_piece &row) {
    return std::equal(operands, operands + 2, row.operands);
  };
  if (std::all_of(rows.begin(), rows.end(), isOfTheFirst)) {
    Pieces ofOne;
    ZERO_RT_TRY(getPieces(/*table=*/-1, {0, rows.back().end}, ofOne));
    return run(kernels[kernel], operands, 2, ofOne);
  }
  auto count = int64_t(rows.size());
  int64_t bytes = count * int64_t(sizeof(zero_rt_cuda_batch_piece));
  ZERO_RT_TRY(reserve(batchTable, bytes));
  auto *to = static_cast<char *>(batchTable.data);
  auto *from = reinterpret_cast<const char *>(rows.data());
  for (int64_t begin = 0; begin < bytes; begin += taken)
    ZERO_RT_TRY(device.copyNow(to + begin, from + begin,
                               std::min(taken, bytes - begin)));
  void *arguments[] = {&batchTable.data, &count};
  return device.launch(batches[kernel].handle, unsigned(count),
                       ZERO_RT_CUDA_THREADS, arguments);
}
