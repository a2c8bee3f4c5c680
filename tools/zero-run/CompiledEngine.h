//===- CompiledEngine.h - Runs compiled code on ranks -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_COMPILEDENGINE_H
#define ZERO_TOOLS_ZERO_RUN_COMPILEDENGINE_H

#include "tools/zero-run/Arrivals.h"
#include "tools/zero-run/Units.h"

#include <random>

namespace zero {

/// Runs compiled code on one thread per rank, or, where ranks are processes,
/// the rank of this process.
class CompiledEngine : public Engine {
public:
  ~CompiledEngine() override;

  mlir::LogicalResult open(mlir::ModuleOp scheduled, int64_t numRanks,
                           llvm::ArrayRef<ParameterInfo> all,
                           const CompiledOptions &options,
                           std::string &message);
  mlir::LogicalResult bind(const ParameterInfo &parameter,
                           llvm::ArrayRef<double> values) override;
  mlir::FailureOr<StepResult> apply(llvm::ArrayRef<RankInputs> inputs) override;
  double getLossScale() override;
  mlir::FailureOr<std::vector<Number>>
  getParameter(int64_t rank, const ParameterInfo &parameter) override;
  mlir::FailureOr<std::vector<Number>>
  getState(llvm::StringRef role, const ParameterInfo &parameter) override;
  std::optional<zero_rt_counters> getCounters(int64_t rank) override;
  mlir::LogicalResult save(llvm::StringRef folder, int64_t number) override;
  mlir::LogicalResult saveWithin(llvm::ArrayRef<RankInputs> inputs,
                                 llvm::StringRef folder,
                                 int64_t number) override;
  mlir::FailureOr<LoadedAt> load(llvm::StringRef folder) override;

private:
  /// One rank: its runtime, its step, and the message of its last failure.
  struct Rank {
    zero_rt_runtime *runtime = nullptr;
    zero_rt_step *step = nullptr;
    std::string message;
    int64_t copiedByBinding = 0;  // bytes between spaces
    int64_t gathersToRead = 0;    // of units, to compare parameters
    int64_t sentToRead = 0;       // bytes of these
    int64_t copiedToRead = 0;     // between spaces
    std::mt19937_64 random;       // of the order of arrivals
    std::vector<void *> lent;     // gradients in the memory of a GPU
    std::vector<double> measured; // results of measure, and the outcome
    Units units;
    int32_t readUnit = -1; // unsharded to read its parameters
  };

  /// A number of a state, and where it is in the whole parameter.
  struct Held {
    int64_t position;
    Number number;
  };

  /// Whether |rank| is one that this process runs.
  bool isHere(int64_t rank) const {
    return !processes || processes->getRank() == rank;
  }
  int64_t getFirstHere() const { return processes ? processes->getRank() : 0; }
  /// Gives all processes |values| of |rank|.
  template <typename T> void share(int64_t rank, std::vector<T> &values) const {
    if (processes)
      processes->broadcast(rank, values);
  }
  /// Runs |work| on a thread per rank; false results leave a message, in all
  /// processes.
  bool onEveryRank(llvm::function_ref<bool(int64_t, Rank &)> work);
  /// Unshards |unit| on all ranks of its pipeline stage, and reshards the unit
  /// that they read before. If |unit| is -1, all ranks reshard theirs. Counters
  /// of a step leave out what this sends.
  bool openToRead(int32_t unit);
  /// Checks that ranks read the values of frozen parameters in their units.
  mlir::LogicalResult checkAllFrozen();
  /// What the runtime of |rank|, which is here, counted.
  std::optional<zero_rt_counters> readCounters(Rank &rank);
  /// What |rank|, which is here, holds of a state.
  bool readState(int64_t rank, llvm::StringRef role,
                 const ParameterInfo &parameter, std::vector<Held> &held);
  bool readParameter(Rank &rank, int32_t id, mlir::Type type,
                     std::vector<Number> &read);
  /// Whether |status| is ok; keeps the message if not.
  bool check(Rank &rank, zero_rt_status status);
  bool deliver(Rank &rank, const RankInputs &inputs,
               std::vector<Arrival> &order);
  bool finish(Rank &rank, const RankInputs &inputs);
  zero_rt_status deliverEach(Rank &rank, llvm::ArrayRef<Arrival *> list);
  zero_rt_status deliverInBatches(Rank &rank, llvm::ArrayRef<Arrival *> list);
  bool upload(Rank &rank, std::vector<Arrival> &arrivals);
  void releaseLent(Rank &rank);
  bool readMeasured(Rank &rank);
  bool isAsMeasured(Rank &rank, const zero_rt_results &results);
  bool deliverInOrder(Rank &rank, const RankInputs &inputs,
                      std::vector<Arrival> &order);
  bool deliverInterleaved(Rank &rank, const RankInputs &inputs,
                          std::vector<Arrival> &order);
  std::string joinMessages();

  mlir::MLIRContext *context = nullptr; // for diagnostics
  const Processes *processes = nullptr;
  std::vector<zero_rt_group *> groups; // one, or that of each rank
  std::vector<Rank> ranks;
  std::vector<ParameterInfo> parameters;
  std::vector<ParameterInfo> frozen; // of units that are sharded
  llvm::StringSet<> traveling;       // trained parameters of such units
  Arrivals arrivals = Arrivals::backward;
  bool isOnGpu = false;
  /// Backward passes of the next step that a checkpoint has.
  int64_t loadedBackwards = 0;
};

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_COMPILEDENGINE_H
