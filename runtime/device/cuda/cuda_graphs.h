//===- cuda_graphs.h - Launches that are started together -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Consecutive kernels, copies and memsets on one stream form a CUDA graph, if
// no work of another stream or of the host stands between them. Each apply
// builds the graphs anew, because arguments may differ, and updates the graphs
// of the previous apply, which costs less than new ones. No stream is captured:
// a thread that synchronizes the device would invalidate the capture.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_CUDA_CUDA_GRAPHS_H
#define ZERO_RT_DEVICE_CUDA_CUDA_GRAPHS_H

#include "device/cuda/driver.h"

#include <string>
#include <vector>

namespace zero_rt {

/// The graphs of one step.
class CudaGraphs {
public:
  CudaGraphs(const Driver &driver, CUcontext context)
      : driver(driver), context(context) {}
  ~CudaGraphs() { clear(); }
  CudaGraphs(const CudaGraphs &) = delete;
  CudaGraphs &operator=(const CudaGraphs &) = delete;

  /// Begins with the first graph of a step. It updates the first graph of the
  /// previous step.
  void begin();
  zero_rt_status addKernel(const KernelNode &node);
  zero_rt_status addMemset(const MemsetNode &node);
  zero_rt_status addCopy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
  /// Whether work was added that is not queued.
  bool isOpen() const { return graph != nullptr; }
  /// Queues the work that was added. After a failure, this and `add...` fail
  /// until the next `begin`.
  zero_rt_status flush(CUstream stream);
  /// Destroys all graphs. None may be running.
  void clear();

private:
  zero_rt_status open();
  zero_rt_status launch(CUstream stream);
  /// Takes the result of a call that adds |node|.
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
