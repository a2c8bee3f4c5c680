//===- cuda_graphs.cpp - Launches that are started together ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/cuda_graphs.h"

#include "core/status.h"

#include <utility>

using namespace zero_rt;

CudaGraphs::~CudaGraphs() {
  for (CUgraphExec executable : executables)
    if (executable)
      (void)driver.GraphExecDestroy(executable);
}

zero_rt_status CudaGraphs::capture(CUstream stream) {
  if (captured)
    return ZERO_RT_OK;
  // What other threads do meanwhile is their affair.
  ZERO_RT_CUDA(driver, StreamBeginCapture, stream, captureModeRelaxed);
  captured = stream;
  return ZERO_RT_OK;
}

/// Makes |executable| do what |graph| says.
zero_rt_status CudaGraphs::makeExecutable(CUgraph graph,
                                          CUgraphExec &executable) {
  void *node = nullptr;
  int verdict = 0;
  if (executable && !driver.GraphExecUpdate(executable, graph, &node, &verdict))
    return ZERO_RT_OK;
  // It has other things in it than last time.
  if (executable)
    (void)driver.GraphExecDestroy(std::exchange(executable, nullptr));
  ZERO_RT_CUDA(driver, GraphInstantiate, &executable, graph, nullptr, nullptr,
               0);
  return ZERO_RT_OK;
}

zero_rt_status CudaGraphs::flush() {
  if (captured && !failure) {
    failure = launch();
    reason = failure ? lastMessage() : "";
  }
  return failure ? fail(failure, "%s", reason.c_str())
                 : zero_rt_status(ZERO_RT_OK);
}

zero_rt_status CudaGraphs::launch() {
  CUstream stream = std::exchange(captured, nullptr);
  CUgraph graph = nullptr;
  ZERO_RT_CUDA(driver, StreamEndCapture, stream, &graph);
  if (next == executables.size())
    executables.push_back(nullptr);
  CUgraphExec &executable = executables[next++];
  zero_rt_status status = makeExecutable(graph, executable);
  if (!status)
    status =
        check(driver, driver.GraphLaunch(executable, stream), "cuGraphLaunch");
  (void)driver.GraphDestroy(graph);
  return status;
}
