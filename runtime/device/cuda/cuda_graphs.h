//===- cuda_graphs.h - Launches that are started together -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels, copies and memsets that follow each other on one stream, with
// nothing between them that another stream or the host has to do with, become a
// CUDA graph. It is put together each time, as arguments may differ, and the
// graph of the time before is updated, which is cheaper than a new one. No
// stream is captured: a capture is spoilt by any thread that synchronizes the
// device.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_CUDA_CUDA_GRAPHS_H
#define ZERO_RT_DEVICE_CUDA_CUDA_GRAPHS_H

#include "device/cuda/driver.h"

#include <string>
#include <vector>

namespace zero_rt {

/// Those of one step.
class CudaGraphs {
public:
  CudaGraphs(const Driver &driver, CUcontext context)
      : driver(driver), context(context) {}
  ~CudaGraphs() { clear(); }
  CudaGraphs(const CudaGraphs &) = delete;
  CudaGraphs &operator=(const CudaGraphs &) = delete;

  /// The first graph from now on is updated from the first one last time.
  void begin();
  zero_rt_status addKernel(const KernelNode &node);
  zero_rt_status addMemset(const MemsetNode &node);
  zero_rt_status addCopy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
  /// Whether something was added that is not queued.
  bool isOpen() const { return graph != nullptr; }
  /// Queues what was added. Once that failed, it and `add...` do until the next
  /// `begin`.
  zero_rt_status flush(CUstream stream);
  /// Gives all of them back. None may be running.
  void clear();

private:
  zero_rt_status open();
  zero_rt_status launch(CUstream stream);
  /// What a call that adds |node| gave.
  zero_rt_status added(CUresult result, const char *call, CUgraphNode node);
  const CUgraphNode *dependencies() const { return last ? &last : nullptr; }

  const Driver &driver;
  CUcontext context;
  CUgraph graph = nullptr;
  CUgraphNode last = nullptr;
  std::vector<CUgraphExec> executables; // in the order of a step
  size_t next = 0;
  zero_rt_status failure = ZERO_RT_OK;
  std::string reason;
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_CUDA_CUDA_GRAPHS_H
