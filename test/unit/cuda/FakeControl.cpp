//===- FakeControl.cpp - What tests tell and ask the fake driver ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeGpu.h"

#include <utility>

using namespace zero::test;
using namespace zero::test::fake;

void fake::reset(unsigned seed) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  gpu().random.seed(seed);
  gpu().kernels.clear();
  gpu().failures.clear();
  gpu().calls.clear();
  gpu().errors.clear();
  gpu().log.clear();
  gpu().version = 12040;
  gpu().gpus = 1;
  gpu().arePeers = true;
  gpu().major = 9;
  gpu().minor = 0;
  gpu().held = -1;
}

void fake::addKernel(const std::string &name, std::vector<bool> areAddresses,
                     Kernel kernel) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  gpu().kernels[name] = {std::move(areAddresses), std::move(kernel)};
}

// Kernels run under the mutex.
void *fake::getNear(uint64_t address, const std::string &name) {
  return gpu().isFar(address) ? gpu().toNear(address, 0, name.c_str())
                              : reinterpret_cast<void *>(uintptr_t(address));
}

void fake::mark(const std::string &text) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  Call call;
  call.function = text;
  call.thread = std::this_thread::get_id();
  gpu().note(std::move(call));
}

std::vector<Call> fake::takeCalls() {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  return std::exchange(gpu().calls, {});
}

void fake::failCall(const std::string &function, int error, int count) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  gpu().failures[function] = {error, count};
}

void fake::holdStream(int64_t stream, size_t last) {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  gpu().held = stream;
  gpu().heldLast = last;
}

void fake::setLog(const std::string &text) { gpu().log = text; }
void fake::setVersion(int version) { gpu().version = version; }
void fake::setGpus(int count, int major, int minor) {
  gpu().gpus = count;
  gpu().major = major;
  gpu().minor = minor;
}
/// Its number, and one.
void *fake::contextOf(int gpu) {
  return reinterpret_cast<void *>(intptr_t(gpu) + 1);
}
void fake::setPeers(bool arePeers) { gpu().arePeers = arePeers; }

std::vector<std::string> fake::takeErrors() {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  return std::exchange(gpu().errors, {});
}

std::string fake::describeLeaks() {
  std::lock_guard<std::mutex> lock(gpu().mutex);
  Gpu &all = gpu();
  std::string text;
  auto count = [&](size_t number, const char *what) {
    if (number)
      text += std::to_string(number) + " " + what + "; ";
  };
  count(all.allocations.size(), "allocations");
  count(all.pinned.size(), "allocations of host memory");
  count(all.countStreams(), "streams");
  count(all.countEvents(), "events");
  count(all.modules.size(), "modules");
  count(size_t(all.contexts), "contexts");
  count(all.pools.size(), "pools");
  count(all.graphs.size(), "graphs");
  return text;
}
