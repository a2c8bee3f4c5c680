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

/// The number of pieces, but for one of each launch: enough for a GPU, and
/// little beside the elements of a large batch.
static constexpr int64_t mostPieces = 4096;

/// The driver takes a copy of this size without waiting for the stream.
static constexpr int64_t taken = int64_t(1) << 16;

zero_rt_status CudaProgram::beginBatch() {
  batchFailure = ZERO_RT_OK;
  device.setHeld(this);
  return ZERO_RT_OK;
}

zero_rt_status CudaProgram::flushBatch() {
  (void)launchHeld();
  return batchFailure ? fail(batchFailure, "%s", batchReason.c_str())
                      : ZERO_RT_OK;
}

zero_rt_status CudaProgram::endBatch() {
  device.setHeld(nullptr);
  return flushBatch();
}

bool CudaProgram::canHold(const Launch &launch) const {
  return device.isHeldBy(this) && !batches.empty() &&
         batches[size_t(launch.kernel)].handle && launch.table < 0 &&
         device.getStream() == Stream::Compute;
}

void CudaProgram::hold(const Launch &launch) {
  if (!launch.domain.empty())
    held[launch.kernel].push_back({/*begin=*/0,
                                   launch.domain.size(),
                                   {launch.operands[0], launch.operands[1]}});
}

zero_rt_status CudaProgram::launchHeld() {
  if (held.empty())
    return ZERO_RT_OK;
  // What is queued below finds nothing held back.
  std::map<int32_t, BatchRows> queued;
  queued.swap(held);
  Stream selected = device.getStream();
  device.select(Stream::Compute);
  zero_rt_status status = guarded("a batch", [&] {
    for (const auto &[kernel, launches] : queued)
      ZERO_RT_TRY(launchBatch(size_t(kernel), launches));
    return zero_rt_status(ZERO_RT_OK);
  });
  device.select(selected);
  if (status && !batchFailure) { // some callers of the device ignore errors
    batchFailure = status;
    batchReason = lastMessage();
  }
  return status;
}

/// Cuts |launches| into pieces.
static std::vector<zero_rt_cuda_batch_piece>
cut(const std::vector<zero_rt_cuda_batch_piece> &launches) {
  int64_t elements = 0;
  for (const zero_rt_cuda_batch_piece &launch : launches)
    elements += launch.end;
  int64_t blocks = elements / (mostPieces * blockElements) + 1;
  int64_t size = blocks * blockElements;
  std::vector<zero_rt_cuda_batch_piece> pieces;
  for (zero_rt_cuda_batch_piece piece : launches)
    for (int64_t end = piece.end; piece.begin < end; piece.begin += size) {
      piece.end = std::min(piece.begin + size, end);
      pieces.push_back(piece);
    }
  return pieces;
}

zero_rt_status CudaProgram::launchBatch(size_t kernel,
                                        const BatchRows &launches) {
  if (launches.size() == 1) {
    const zero_rt_cuda_batch_piece &launch = launches.front();
    Pieces pieces;
    ZERO_RT_TRY(getPieces(/*table=*/-1, {0, launch.end}, pieces));
    return run(kernels[kernel], launch.operands, 2, pieces);
  }
  std::vector<zero_rt_cuda_batch_piece> pieces = cut(launches);
  auto count = int64_t(pieces.size());
  int64_t bytes = count * int64_t(sizeof(zero_rt_cuda_batch_piece));
  ZERO_RT_TRY(reserve(batchTable, bytes, "a batch of launches"));
  auto *to = static_cast<char *>(batchTable.data);
  auto *from = reinterpret_cast<const char *>(pieces.data());
  for (int64_t begin = 0; begin < bytes; begin += taken)
    ZERO_RT_TRY(device.copyNow(to + begin, from + begin,
                               std::min(taken, bytes - begin)));
  void *arguments[] = {&batchTable.data, &count};
  return device.launch(batches[kernel].handle, unsigned(count),
                       ZERO_RT_CUDA_THREADS, arguments);
}
