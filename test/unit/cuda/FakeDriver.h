//===- FakeDriver.h - A CUDA driver without a GPU ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libcuda.so.1 for tests. It keeps what is queued on streams and runs it as
// late as it can, in any order that events allow; memory of its GPU has
// addresses at which a CPU faults. Kernels are functions that a test brings.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_FAKEDRIVER_H
#define ZERO_TEST_UNIT_CUDA_FAKEDRIVER_H

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace zero::test::fake {

/// One call of the driver.
struct Call {
  std::string function; // "cuLaunchKernel"
  int64_t stream = -1;  // 0: the default one; others in the order of creation
  int64_t bytes = 0;
  std::string kernel;          // of a launch
  bool isWait = false;         // of the host, for the GPU
  const void *event = nullptr; // that is recorded, or that a stream waits for
  std::thread::id thread = {};
};

/// Runs a kernel in |blocks| blocks of |threads| threads. Of |arguments|, 8
/// bytes each, addresses are such as a CPU can use.
using Kernel = std::function<void(unsigned blocks, unsigned threads,
                                  const std::vector<uint64_t> &arguments)>;

/// Forgets kernels, calls and failures. |seed| chooses among the orders in
/// which work may run.
void reset(unsigned seed);
/// For the modules that are loaded from now on. Of each argument, whether it is
/// an address; the others are numbers.
void addKernel(const std::string &name, std::vector<bool> areAddresses,
               Kernel kernel);
/// For a kernel that runs: |address|, which it has loaded from memory, as a CPU
/// can use it. |name| is that of the kernel.
void *getNear(uint64_t address, const std::string &name);

/// Puts a mark of the test's among the calls.
void mark(const std::string &text);

/// What was called since `reset` or the last `takeCalls`, in order.
std::vector<Call> takeCalls();

/// The |count|-th call of |function| from now on fails with |error|, which a
/// driver would give.
void failCall(const std::string &function, int error, int count = 1);
/// Nothing happens on |stream| from now on, or only the |last| things do not;
/// -1: on all streams everything does.
void holdStream(int64_t stream, size_t last = SIZE_MAX);
/// What `cuModuleLoadDataEx` writes into the log when it fails.
void setLog(const std::string &text);
/// As which driver and GPU it poses; 0: none.
void setVersion(int version);
void setGpus(int count, int major, int minor);
/// Whether GPUs can use each other's memory, as they can at first.
void setPeers(bool arePeers);
/// That of this thread's context; 0 if it has none.
int getCurrentGpu();
/// The primary context of a GPU, for callers of the driver.
void *contextOf(int gpu);

/// Accesses of memory that was not there, kernels that do not exist and the
/// like; empty where all went well.
std::vector<std::string> takeErrors();
/// Allocations, events, streams, modules and contexts that nobody gave back.
std::string describeLeaks();

} // namespace zero::test::fake

#endif // ZERO_TEST_UNIT_CUDA_FAKEDRIVER_H
