//===- thread_pool.cpp - The threads a rank spreads a kernel over ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/thread_pool.h"

#include "core/floating_point.h"

using namespace zero_rt;

ThreadPool::ThreadPool(int32_t threads) {
  workers.reserve(size_t(std::max(0, threads - 1)));
  try {
    for (int32_t i = 1; i < threads; ++i)
      workers.emplace_back([this] { work(); });
  } catch (...) {
    // The destructor does not run for a half-made pool.
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    stopping = true;
  }
  started.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void ThreadPool::share(Function function, void *context, int64_t count) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    jobFunction = function;
    jobContext = context;
    jobCount = count;
    next.store(0, std::memory_order_relaxed);
    busy = workers.size();
    ++generation;
  }
  started.notify_all();
  drain();
  // Every worker must have left the job before the next one overwrites it.
  std::unique_lock<std::mutex> lock(mutex);
  finished.wait(lock, [this] { return busy == 0; });
}

void ThreadPool::drain() {
  for (;;) {
    int64_t i = next.fetch_add(1, std::memory_order_relaxed);
    if (i >= jobCount)
      return;
    jobFunction(jobContext, i);
  }
}

void ThreadPool::work() {
  FloatingPointMode mode; // a thread begins with that of its creator
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex);
      started.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping)
        return;
      seen = generation;
    }
    drain();
    std::lock_guard<std::mutex> lock(mutex);
    if (--busy == 0)
      finished.notify_one();
  }
}
