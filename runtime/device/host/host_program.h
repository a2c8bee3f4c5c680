//===- host_program.h - Kernels on the CPU ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_HOST_HOST_PROGRAM_H
#define ZERO_RT_DEVICE_HOST_HOST_PROGRAM_H

#include "core/thread_pool.h"
#include "device/device.h"
#include "zero_rt/device.h"

#include <vector>

namespace zero_rt {

class HostProgram : public Program {
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

protected:
  /// Runs |pieces|. A reducing kernel writes to |partials|; else null.
  virtual zero_rt_status runPieces(const Launch &launch, double *partials);

  const zero_rt_library &library;
  double *slots;
  /// The parts of a launch that one thread runs, relative to the first element
  /// of the launch. Kept between launches, so that a step allocates only in its
  /// first run.
  std::vector<zero_rt_device_piece> pieces;

private:
  void cut(Range local, const double *scalars);
  void setPieces(const Launch &launch);

  ThreadPool &pool;
  std::vector<double> partials; // kept between launches, too
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_HOST_HOST_PROGRAM_H
