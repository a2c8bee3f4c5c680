//===- Bench.cpp - How rows are measured ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-bench/Bench.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <chrono>
#include <sys/mman.h>

using namespace zero::bench;

double zero::bench::measure(llvm::function_ref<void()> work) {
  auto begin = std::chrono::steady_clock::now();
  work();
  std::chrono::duration<double, std::milli> time =
      std::chrono::steady_clock::now() - begin;
  return time.count();
}

double zero::bench::median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Pair zero::bench::interleave(int rounds, llvm::function_ref<void()> prepare,
                             llvm::function_ref<void(int round)> work,
                             llvm::function_ref<void()> reference) {
  std::vector<double> times, references, ratios;
  // The first round only touches memory.
  for (int round = 0; round <= rounds; ++round) {
    prepare();
    double time = measure([&] { work(round); });
    prepare();
    double other = measure(reference);
    if (round == 0)
      continue;
    times.push_back(time);
    references.push_back(other);
    ratios.push_back(time / other);
  }
  return {median(times), median(references), median(ratios)};
}

template <typename T> Pages<T>::Pages(int64_t count) : count(count) {
  size_t bytes = std::max<size_t>(count * sizeof(T), 1);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    llvm::report_fatal_error("out of memory; pass fewer --elements",
                             /*gen_crash_diag=*/false);
  madvise(memory, bytes, MADV_HUGEPAGE);
  elements = static_cast<T *>(memory);
}

template <typename T> Pages<T>::~Pages() {
  munmap(elements, std::max<size_t>(count * sizeof(T), 1));
}

namespace zero::bench {
template class Pages<float>;
template class Pages<double>;
template class Pages<uint16_t>;
} // namespace zero::bench
