//===- cuda_graphs.cpp - Launches that are started together ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "device/cuda/cuda_graphs.h"

#include "core/status.h"

#include <utility>

using namespace zero_rt;

void CudaGraphs::clear() {
  if (graph)
    (void)driver.GraphDestroy(std::exchange(graph, nullptr));
  for (CUgraphExec executable : executables)
    if (executable)
      (void)driver.GraphExecDestroy(executable);
  executables.clear();
}

void CudaGraphs::begin() {
  next = 0;
  failure = ZERO_RT_OK;
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

zero_rt_status CudaGraphs::open() {
  if (failure)
    return fail(failure, "%s", reason.c_str());
  if (graph)
    return ZERO_RT_OK;
  if (next == executables.size())
    executables.push_back(nullptr);
  last = nullptr;
  ZERO_RT_CUDA(driver, GraphCreate, &graph, 0);
  return ZERO_RT_OK;
}

zero_rt_status CudaGraphs::added(CUresult result, const char *call,
                                 CUgraphNode node) {
  ZERO_RT_TRY(check(driver, result, call));
  last = node;
  return ZERO_RT_OK;
}

zero_rt_status CudaGraphs::addKernel(const KernelNode &node) {
  ZERO_RT_TRY(open());
  CUgraphNode mine = nullptr;
  CUresult result = driver.GraphAddKernelNode(&mine, graph, dependencies(),
                                              last ? 1 : 0, &node);
  return added(result, "cuGraphAddKernelNode", mine);
}

zero_rt_status CudaGraphs::addMemset(const MemsetNode &node) {
  ZERO_RT_TRY(open());
  CUgraphNode mine = nullptr;
  CUresult result = driver.GraphAddMemsetNode(&mine, graph, dependencies(),
                                              last ? 1 : 0, &node, context);
  return added(result, "cuGraphAddMemsetNode", mine);
}

zero_rt_status CudaGraphs::addCopy(CUdeviceptr dst, CUdeviceptr src,
                                   size_t bytes) {
  ZERO_RT_TRY(open());
  CopyNode copy = {};
  copy.src.memoryType = copy.dst.memoryType = memoryTypeUnified;
  copy.src.device = src;
  copy.dst.device = dst;
  copy.widthInBytes = bytes;
  copy.height = copy.depth = 1;
  CUgraphNode mine = nullptr;
  CUresult result = driver.GraphAddMemcpyNode(&mine, graph, dependencies(),
                                              last ? 1 : 0, &copy, context);
  return added(result, "cuGraphAddMemcpyNode", mine);
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

zero_rt_status CudaGraphs::launch(CUstream stream) {
  CUgraphExec &executable = executables[next++];
  CUgraphNode node = nullptr;
  int verdict = 0;
  if (!executable ||
      driver.GraphExecUpdate(executable, graph, &node, &verdict)) {
    // There is no previous graph, or it has other nodes.
    if (executable)
      (void)driver.GraphExecDestroy(std::exchange(executable, nullptr));
    ZERO_RT_CUDA(driver, GraphInstantiate, &executable, graph, nullptr, nullptr,
                 0);
  }
  ZERO_RT_CUDA(driver, GraphLaunch, executable, stream);
  return ZERO_RT_OK;
}

zero_rt_status CudaGraphs::flush(CUstream stream) {
  if (graph && !failure) {
    failure = launch(stream);
    reason = failure ? lastMessage() : "";
  }
  if (graph)
    (void)driver.GraphDestroy(std::exchange(graph, nullptr));
  return failure ? fail(failure, "%s", reason.c_str())
                 : zero_rt_status(ZERO_RT_OK);
}
