//===- FakeGraphs.cpp - CUDA graphs without a GPU -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"

#include <algorithm>

using namespace zero::test;
using namespace zero::test::fake;

namespace {

void destroy(Graph *graph) {
  gpu().graphs.remove_if([&](const Graph &other) { return &other == graph; });
}

/// As cuda.h has them.
struct KernelParameters {
  void *function;
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, shared;
  void **parameters, **extra;
};
struct MemsetParameters {
  Address dst;
  size_t pitch;
  unsigned value, size;
  size_t width, rows;
};
struct CopyParameters {
  struct Side {
    size_t x, y, z, level;
    int memoryType;
    const void *host;
    Address device;
    void *array, *reserved;
    size_t pitch, height;
  };
  Side src, dst;
  size_t bytes, height, depth;
};

using Node = Graph::Node;

/// Adds a node to |graph|, behind the last one and nothing else.
CUresult add(Graph &graph, Node *const *dependencies, size_t count,
             const std::string &what, std::function<void()> run, Node **out) {
  Node *last = graph.nodes.empty() ? nullptr : &graph.nodes.back();
  if (count != (last ? 1 : 0) || (last && *dependencies != last)) {
    gpu().complain("a graph is no chain");
    return kInvalidValue;
  }
  *out = &graph.nodes.emplace_back(Node{what, std::move(run)});
  return 0;
}

} // namespace

extern "C" {

CUresult cuGraphCreate(Graph **out, unsigned) {
  Entry entry("cuGraphCreate");
  CHECK(entry);
  *out = &gpu().graphs.emplace_back();
  return 0;
}
CUresult cuGraphAddKernelNode(Node **out, Graph *graph,
                              Node *const *dependencies, size_t count,
                              const KernelParameters *node) {
  Entry entry("cuGraphAddKernelNode");
  CHECK(entry);
  const auto &[function, gridX, gridY, gridZ, blockX, blockY, blockZ, shared,
               parameters, extra] = *node;
  auto &kernel = *static_cast<Gpu::Function *>(function);
  entry.call.kernel = kernel.name;
  if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || shared || extra)
    return kInvalidValue;
  std::function<void()> run = makeLaunch(kernel, gridX, blockX, parameters,
                                         /*user=*/kernel.gpu);
  return run ? add(*graph, dependencies, count, kernel.name, run, out)
             : kInvalidValue;
}
CUresult cuGraphAddMemsetNode(Node **out, Graph *graph,
                              Node *const *dependencies, size_t count,
                              const MemsetParameters *node, void *context) {
  Entry entry("cuGraphAddMemsetNode");
  CHECK(entry);
  const auto &[dst, pitch, value, size, width, rows] = *node;
  if (!width || !rows)
    return kInvalidValue;
  // Of several rows a driver updates nothing.
  std::string what = "memset of " + std::to_string(size) + " bytes";
  if (rows > 1)
    what += ", rows at " + std::to_string(dst) + ": " + std::to_string(value);
  return add(*graph, dependencies, count, what,
             makeSet(dst, pitch, value, size, width, rows, gpuOf(context)),
             out);
}
CUresult cuGraphAddMemcpyNode(Node **out, Graph *graph,
                              Node *const *dependencies, size_t count,
                              const CopyParameters *node, void *) {
  Entry entry("cuGraphAddMemcpyNode");
  CHECK(entry);
  const auto &[src, dst, bytes, height, depth] = *node;
  // In one row, of unified addresses.
  if (src.memoryType != 4 || dst.memoryType != 4 || height != 1 || depth != 1)
    return kInvalidValue;
  return add(
      *graph, dependencies, count, "copy",
      [from = src.device, to = dst.device, bytes = bytes] {
        const void *source = gpu().toNear(from, bytes, "a copy");
        void *target = gpu().toNear(to, bytes, "a copy");
        if (source && target)
          std::memmove(target, source, bytes);
      },
      out);
}
CUresult cuGraphInstantiate_v2(Graph **out, Graph *graph, void **, char *,
                               size_t) {
  Entry entry("cuGraphInstantiate");
  CHECK(entry);
  *out = &gpu().graphs.emplace_back(*graph);
  return 0;
}
CUresult cuGraphExecUpdate(Graph *executable, Graph *graph, void **,
                           int *verdict) {
  Entry entry("cuGraphExecUpdate");
  CHECK(entry);
  auto isSame = [](const Graph::Node &a, const Graph::Node &b) {
    return a.what == b.what;
  };
  *verdict = !std::equal(executable->nodes.begin(), executable->nodes.end(),
                         graph->nodes.begin(), graph->nodes.end(), isSame);
  if (*verdict)
    return kCannotUpdate;
  executable->nodes = graph->nodes;
  return 0;
}
CUresult cuGraphLaunch(Graph *executable, Stream *stream) {
  Entry entry("cuGraphLaunch", stream);
  CHECK(entry);
  for (const Graph::Node &node : executable->nodes)
    gpu().queue(gpu().streamOf(stream), {node.run});
  return 0;
}
CUresult cuGraphExecDestroy(Graph *executable) {
  Entry entry("cuGraphExecDestroy");
  CHECK(entry);
  destroy(executable);
  return 0;
}
CUresult cuGraphDestroy(Graph *graph) {
  Entry entry("cuGraphDestroy");
  CHECK(entry);
  destroy(graph);
  return 0;
}

} // extern "C"
