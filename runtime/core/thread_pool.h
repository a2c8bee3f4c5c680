//===- thread_pool.h - The threads a rank spreads a kernel over -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Work is divided into fixed chunks that do not depend on the number of
// threads, and no two chunks write the same memory. Therefore results do not
// depend on the number of threads. Idle threads block.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_THREAD_POOL_H
#define ZERO_RT_CORE_THREAD_POOL_H

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace zero_rt {

/// Elements of one partial sum of a reducing kernel. Part of the kernel ABI.
constexpr int64_t blockElements = 4096;
/// Element i of a block, or partial sum i, is added to lane i mod this.
constexpr int64_t sumLanes = 32;
/// Elements of one task. Large enough to hide the cost of a task, and a
/// multiple of blockElements, so that no partial sum is split.
constexpr int64_t chunkElements = 8 * blockElements;

class ThreadPool {
public:
  /// |threads| counts the caller of `run`. Throws the errors of std::thread.
  explicit ThreadPool(int32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool &) = delete;
  ThreadPool &operator=(const ThreadPool &) = delete;

  /// Calls task(i) for every i in [0, count) on some thread, and returns when
  /// all calls have returned. Only one thread may call `run` at a time. |task|
  /// must not throw.
  template <typename Task> void run(int64_t count, Task &&task) {
    if (workers.empty() || count <= 1) {
      for (int64_t i = 0; i < count; ++i)
        task(i);
      return;
    }
    using Function = std::remove_reference_t<Task>;
    share([](void *context,
             int64_t i) { (*static_cast<Function *>(context))(i); },
          const_cast<std::remove_const_t<Function> *>(&task), count);
  }

  /// Calls task(begin, end) for the pieces of [begin, end) between multiples
  /// of chunkElements. No piece is empty.
  template <typename Task>
  void forChunks(int64_t begin, int64_t end, Task &&task) {
    if (begin >= end)
      return;
    int64_t first = begin / chunkElements;
    int64_t last = (end - 1) / chunkElements;
    run(last - first + 1, [&](int64_t i) {
      int64_t start = (first + i) * chunkElements;
      task(std::max(begin, start), std::min(end, start + chunkElements));
    });
  }

private:
  using Function = void (*)(void *context, int64_t index);

  void share(Function function, void *context, int64_t count);
  void work();
  void drain();
  void stop();

  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable started;
  std::condition_variable finished;
  // The job. Written while every worker is idle, under the mutex.
  Function jobFunction = nullptr;
  void *jobContext = nullptr;
  int64_t jobCount = 0;
  std::atomic<int64_t> next{0};
  uint64_t generation = 0;
  size_t busy = 0;
  bool stopping = false;
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_THREAD_POOL_H
