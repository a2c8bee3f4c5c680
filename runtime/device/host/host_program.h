//===- host_program.h - Kernels on the CPU ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_HOST_HOST_PROGRAM_H
#define ZERO_RT_DEVICE_HOST_HOST_PROGRAM_H

#include "core/thread_pool.h"
#include "device/device.h"

#include <vector>

namespace zero_rt {

class HostProgram final : public Program {
public:
  HostProgram(const zero_rt_library &library, double *slots, ThreadPool &pool)
      : library(library), slots(slots), pool(pool) {}

  zero_rt_status copySlots() override { return ZERO_RT_OK; }
  zero_rt_status launch(const Launch &launch) override;
  zero_rt_status runScalars(int32_t program) override;
  zero_rt_status setSlot(int64_t slot, double value) override {
    slots[slot] = value;
    return ZERO_RT_OK;
  }
  zero_rt_status writeSlots() override { return ZERO_RT_OK; }
  bool hasUnwrittenSlots() const override { return false; }
  zero_rt_status sum(const RankSum &sum) override;
  zero_rt_status beginGraphs() override { return ZERO_RT_OK; }
  zero_rt_status endGraphs() override { return ZERO_RT_OK; }

private:
  /// The part of a launch that one thread runs, relative to the first element
  /// of the launch.
  struct Piece {
    int64_t begin;
    int64_t end;
    const double *scalars;
  };

  void cut(Range local, const double *scalars);
  void setPieces(const Launch &launch);
  void runPieces(const Launch &launch, double *partials);

  const zero_rt_library &library;
  double *slots;
  ThreadPool &pool;
  // Kept between launches, so that a step allocates only in its first run.
  std::vector<Piece> pieces;
  std::vector<double> partials;
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_HOST_HOST_PROGRAM_H
