//===- FakeCalls.h - What calls of the fake driver share --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_CUDA_FAKECALLS_H
#define ZERO_TEST_UNIT_CUDA_FAKECALLS_H

#include "FakeGpu.h"

#include <cstring>
#include <utility>

namespace zero::test::fake {

using CUresult = int;
using Address = unsigned long long;

constexpr CUresult kInvalidValue = 1;
constexpr CUresult kNoDevice = 100;
constexpr CUresult kInvalidContext = 201;
constexpr CUresult kInvalidHandle = 400;
constexpr CUresult kNotFound = 500;
constexpr CUresult kNotReady = 600;
constexpr CUresult kInvalidImage = 200;
constexpr CUresult kCannotUpdate = 910;

/// Of one that asks again and again whether something is done.
constexpr unsigned kPatience = 32;

/// Every driver's call begins with one: the lock, the record, and the failure
/// that a test asked for.
class Entry {
public:
  explicit Entry(const char *function, Stream *stream = nullptr,
                 size_t bytes = 0, bool isWait = false)
      : lock(gpu().mutex) {
    call.function = function;
    call.stream = gpu().streamOf(stream).number;
    call.bytes = int64_t(bytes);
    call.isWait = isWait;
    auto failure = gpu().failures.find(function);
    if (failure != gpu().failures.end() && --failure->second.count == 0) {
      error = failure->second.error;
      gpu().failures.erase(failure);
    }
    gpu().runSome();
  }
  ~Entry() {
    call.thread = std::this_thread::get_id();
    gpu().note(call);
  }

  CUresult error = 0;
  Call call;

private:
  std::lock_guard<std::mutex> lock;
};

/// Contexts that this thread has pushed.
inline thread_local std::vector<void *> contexts;

inline int gpuOf(void *context) {
  return int(reinterpret_cast<intptr_t>(context)) - 1;
}

inline int currentGpu() { return gpuOf(contexts.back()); }

/// Whether what is made for |gpu| can be used on |stream|.
inline bool fits(int gpu, const Stream &stream) {
  return fake::gpu().isDefault(stream) || stream.gpu == gpu;
}

/// The GPU whose kernels run on |stream|, or -1.
inline int userOf(const Stream &stream) {
  return fake::gpu().isDefault(stream) ? -1 : stream.gpu;
}

/// What a launch of |function| does on |user|; empty where no test knows it.
inline std::function<void()> makeLaunch(const Gpu::Function &function,
                                        unsigned blocks, unsigned threads,
                                        void **parameters, int user) {
  if (!function.kernel.kernel || !blocks) {
    gpu().complain("a launch of " + function.name + " in " +
                   std::to_string(blocks) + " blocks, which no test knows");
    return {};
  }
  std::vector<uint64_t> arguments;
  std::vector<bool> areAddresses = function.kernel.areAddresses;
  for (size_t i = 0; i < areAddresses.size(); ++i)
    arguments.push_back(*static_cast<uint64_t *>(parameters[i]));
  return [=, name = function.name, kernel = function.kernel.kernel] {
    std::vector<uint64_t> near = arguments;
    for (size_t i = 0; i < near.size(); ++i)
      if (areAddresses[i] && gpu().isFar(near[i]))
        near[i] = uint64_t(reinterpret_cast<uintptr_t>(
            gpu().toNear(near[i], 0, name.c_str(), user)));
    kernel(blocks, threads, near);
  };
}

/// What sets |rows| rows of |width| elements of |size| bytes, |pitch| bytes
/// from one to the next.
inline std::function<void()> makeSet(Address dst, size_t pitch, unsigned value,
                                     size_t size, size_t width, size_t rows,
                                     int user) {
  return [=] {
    size_t bytes = pitch * (rows - 1) + size * width;
    auto *to = static_cast<char *>(gpu().toNear(dst, bytes, "a memset", user));
    for (size_t row = 0; to && row < rows; ++row)
      for (size_t i = 0; i < width; ++i)
        std::memcpy(to + row * pitch + i * size, &value, size);
  };
}

/// Leaves the call if it is to fail, or if the thread has no context.
#define CHECK(entry)                                                           \
  do {                                                                         \
    if ((entry).error)                                                         \
      return (entry).error;                                                    \
    if (contexts.empty())                                                      \
      return kInvalidContext;                                                  \
  } while (false)

} // namespace zero::test::fake

#endif // ZERO_TEST_UNIT_CUDA_FAKECALLS_H
