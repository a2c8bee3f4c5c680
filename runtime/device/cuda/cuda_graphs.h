//===- cuda_graphs.h - Launches that are started together -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels, copies and memsets that follow each other on one stream, with
// nothing between them that another stream or the host has to do with, become a
// CUDA graph. They are captured each time, as arguments may differ, and the
// graph of the time before is updated, which is cheaper than a new one.
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
  explicit CudaGraphs(const Driver &driver) : driver(driver) {}
  ~CudaGraphs();
  CudaGraphs(const CudaGraphs &) = delete;
  CudaGraphs &operator=(const CudaGraphs &) = delete;

  /// The first graph from now on is updated from the first one last time.
  void begin() { next = 0; }
  /// What comes to |stream| from now on, until `flush`, is captured.
  zero_rt_status capture(CUstream stream);
  /// Queues what was captured. Once that failed it always does.
  zero_rt_status flush();

private:
  zero_rt_status launch();
  zero_rt_status makeExecutable(CUgraph graph, CUgraphExec &executable);

  const Driver &driver;
  CUstream captured = nullptr; // from which things are; null: from none
  std::vector<CUgraphExec> executables; // in the order of a step
  size_t next = 0;
  zero_rt_status failure = ZERO_RT_OK; // of `flush`, and why
  std::string reason;
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_CUDA_CUDA_GRAPHS_H
