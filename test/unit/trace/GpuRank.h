//===- GpuRank.h - A rank on a fake GPU -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_TRACE_GPURANK_H
#define ZERO_TEST_UNIT_TRACE_GPURANK_H

#include "StepLibrary.h"

#include "EmulatedProgram.h"
#include "FakeDriver.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

namespace zero::test {

/// Quickstart, compiled for a GPU, with its kernels known to the driver.
class GpuTest : public testing::Test {
protected:
  void SetUp() override;
  void TearDown() override;
  void open(const LowerOptions &options);
  /// Runs |body| for each rank on a thread of its own, in a group of threads;
  /// or each with the group of a process, and a GPU of its own.
  using Body = std::function<void(int rank, zero_rt_group *group)>;
  void runThreads(int ranks, const Body &body);
  void runProcesses(int ranks, const Body &body);

  StepLibrary library;
  std::unique_ptr<EmulatedProgram> kernels;
  zero_rt_group *group = nullptr;
};

/// Elements of quickstart's parameters.
extern const std::map<std::string, int64_t> kGpuElements;

/// One rank, by default on a GPU: its runtime and step. Methods fail the test
/// where calls do.
class GpuRank {
public:
  GpuRank(StepLibrary &library, zero_rt_group *group, int rank,
          const std::string &device = "cuda", int64_t timeoutMs = 20000,
          int gpu = 0, bool graphs = false);
  GpuRank(StepLibrary &library, zero_rt_group *group, int rank,
          const zero_rt_options &options);
  ~GpuRank();
  GpuRank(const GpuRank &) = delete;
  GpuRank &operator=(const GpuRank &) = delete;

  /// Makes the step; what it said.
  zero_rt_status create();
  void destroyStep();
  void check(zero_rt_status status);
  int32_t find(const std::string &name);
  /// A tensor of bf16 in the device's memory: |values|, or |elements| times
  /// |value|.
  zero_rt_tensor makeTensor(const std::vector<uint16_t> &values);
  zero_rt_tensor makeTensor(int64_t elements, float value);
  void fill(const zero_rt_tensor &tensor, float value);
  /// Runs |body| while |unit| is unsharded.
  void useUnit(const std::string &unit, const std::function<void()> &body);
  /// Delivers all gradients, each with its own number, and applies. With units
  /// it uses them in a forward pass, and in |order| one after the other.
  void run(const std::vector<std::string> &order,
           zero_rt_hint hint = ZERO_RT_HINT_UNKNOWN);
  zero_rt_results getResults();
  /// What this rank has of a parameter, in bf16.
  std::vector<uint16_t> getParameter(const std::string &name);

  StepLibrary &library;
  zero_rt_runtime *runtime = nullptr;
  zero_rt_step *step = nullptr;
  zero_rt_stream *stream = nullptr; // on which `run` delivers and uses units
  const zero_rt_calls &calls() {
    return **reinterpret_cast<const zero_rt_calls *const *>(step);
  }

private:
  std::vector<void *> memory;
};

/// The bits of |value|, which bf16 has.
uint16_t toBF16(float value);

} // namespace zero::test

#endif // ZERO_TEST_UNIT_TRACE_GPURANK_H
