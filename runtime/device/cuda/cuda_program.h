//===- cuda_program.h - Kernels on a GPU ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions are looked up once, when the step is created. The pieces of a
// launch are a table in the memory of the GPU, made at the first launch of its
// kind.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_DEVICE_CUDA_CUDA_PROGRAM_H
#define ZERO_RT_DEVICE_CUDA_CUDA_PROGRAM_H

#include "device/cuda/cuda_device.h"
#include "device/cuda/cuda_graphs.h"
#include "device/host/host_program.h"
#include "zero_rt/cuda_code.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace zero_rt {

class CudaProgram final : public Program, HeldLaunches {
public:
  CudaProgram(CudaDevice &device, const zero_rt_library &library, double *slots)
      : device(device), driver(device.driver), library(library), slots(slots) {}
  ~CudaProgram() override;

  /// Loads the code and finds its functions; called once.
  zero_rt_status load();

  zero_rt_status copySlots() override;
  zero_rt_status launch(const Launch &launch) override;
  zero_rt_status runScalars(int32_t program) override;
  zero_rt_status setSlot(int64_t slot, double value) override;
  zero_rt_status writeSlots() override;
  bool hasUnwrittenSlots() const override { return !given.empty(); }
  zero_rt_status sum(const RankSum &sum) override;
  zero_rt_status beginGraphs() override;
  zero_rt_status endGraphs() override;
  zero_rt_status beginBatch() override;
  zero_rt_status flushBatch() override;
  zero_rt_status endBatch() override;

private:
  struct Function {
    CUfunction handle = nullptr;
    int64_t piecesPerBlock = 0;
  };
  /// Rows of zero_rt_cuda_piece in the memory of the GPU.
  struct Pieces {
    void *data = nullptr;
    int64_t count = 0;
  };
  /// A segment table or -1, the domain that it is intersected with, and the
  /// stream that made the pieces. Other streams do not wait for them.
  using PiecesKey = std::tuple<int32_t, int64_t, int64_t, Stream>;
  /// The last arguments of a kernel that sums; see library.h.
  struct Summing {
    void *partials = nullptr;
    void *arrivals = nullptr;
    void *sum = nullptr;
  };
  struct GivenSlot {
    int64_t slot;
    double value;
  };
  /// Memory of the GPU that later launches reuse.
  struct Scratch {
    void *data = nullptr;
    int64_t bytes = 0;
  };
  using BatchRows = std::vector<zero_rt_cuda_batch_piece>;
  zero_rt_status findCode();
  zero_rt_status loadModule(const zero_rt_cuda_code &code);
  zero_rt_status find(const zero_rt_cuda_function &row, Function &out);
  zero_rt_status getPieces(int32_t table, Range domain, Pieces &out);
  zero_rt_status run(const Function &function, void *const *operands,
                     int64_t numOperands, const Pieces &pieces,
                     const Summing *summing = nullptr);
  zero_rt_status runOnHost(const Launch &launch);
  zero_rt_status runScalars(const Function &function);
  bool readsSlots(const Launch &launch) const;
  zero_rt_status runReducing(const Launch &launch, const Pieces &pieces);
  zero_rt_status reserve(Scratch &scratch, int64_t bytes, const char *what);
  /// Whether |launch| is held back in a batch.
  bool canHold(const Launch &launch) const;
  void hold(const Launch &launch);
  zero_rt_status launchHeld() override;
  zero_rt_status launchBatch(size_t kernel, const BatchRows &launches);
  zero_rt_status sumMany(const RankSum &sum);
  zero_rt_status runSum(const RankSum &sum, zero_rt_rank_sum_kind kind);

  int64_t bytesOfSlots() const {
    return library.num_slots * int64_t(sizeof(double));
  }

  CudaDevice &device;
  const Driver &driver;
  const zero_rt_library &library;
  double *slots;
  CUmodule module = nullptr;
  std::vector<Function> kernels;
  std::vector<Function> scalarPrograms;
  std::vector<Function> rankSums;
  std::vector<Function> batches; // as |kernels|; some are null
  std::map<PiecesKey, Pieces> allPieces;
  Function giveSlots;
  const zero_rt_cuda_code *code = nullptr;
  const zero_rt_cuda_code_2 *second = nullptr; // null: the format before
  /// Slots that the host has set, and that are not on the GPU yet.
  std::vector<GivenSlot> given;
  Scratch partials;
  Scratch arrivals;
  Scratch carry; // the carry of sums over many ranks, in f32 or f64
  Scratch batchTable;
  zero_rt_status batchFailure = ZERO_RT_OK; // of a launch that was held back
  std::string batchReason;
  std::map<int32_t, BatchRows> held; // launches that are held back, by kernel
  std::vector<void *> arguments;     // scratch of `run`
  double *hostSlots = nullptr;       // a copy for launches on the host
  std::unique_ptr<HostProgram> hostProgram; // runs launches on the host
  CudaGraphs graphs{driver, device.getContext()};
};

} // namespace zero_rt

#endif // ZERO_RT_DEVICE_CUDA_CUDA_PROGRAM_H
