//===- Engine.h - Runs a step on N ranks, one way or another ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_ENGINE_H
#define ZERO_TOOLS_ZERO_RUN_ENGINE_H

#include "dialect/interpret/Interpreter.h"
#include "dialect/zero/ZeroDialect.h"
#include "tools/zero-run/Groups.h"

#include "mlir/IR/BuiltinOps.h"
#include "zero_rt/abi.h"
#include "llvm/ADT/StringSet.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

namespace zero {

/// A parameter of the step that is run.
struct ParameterInfo {
  std::string name;
  int64_t elements = 0; // of all ranks together
  mlir::Type storageType;
  mlir::Type arrivalType;
  mlir::Type gatherType; // in which its unit gathers it; null: as it is
  bool optional = false;
  int64_t uses = 1;                // or ZERO_RT_USES_ANY
  std::vector<int64_t> shape = {}; // of what one rank holds
  /// By rank: positions of what it holds in the whole parameter; empty where
  /// every rank holds all of it.
  std::vector<std::vector<int64_t>> held = {};
  /// By rank: the first one that has the same gradient. The others promise to
  /// deliver that one's.
  std::vector<int64_t> giver = {};
  /// By rank: whether it is on a pipeline stage that has the parameter.
  std::vector<bool> holders = {};

  /// The elements that each of its ranks holds.
  int64_t getNumHeld() const {
    return held.empty() ? elements : int64_t(held[getHolder()].size());
  }
  /// The first rank that has it.
  int64_t getHolder() const {
    return std::find(holders.begin(), holders.end(), true) - holders.begin();
  }
  /// What |rank| holds of |whole|.
  std::vector<double> take(std::vector<double> whole, int64_t rank) const {
    if (held.empty())
      return whole;
    std::vector<double> part;
    for (int64_t position : held[rank])
      part.push_back(whole[position]);
    return part;
  }
};

/// The parameters of |module| that are trained, or those that are frozen, in
/// order of declaration, on |mesh|. Gradients are those of the logical step.
std::vector<ParameterInfo> readParameters(mlir::ModuleOp module, MeshOp mesh,
                                          bool areFrozen = false);

/// The frozen parameters that ranks of the |scheduled| module shard.
std::vector<ParameterInfo> readFrozen(mlir::ModuleOp scheduled);

/// The names of the trained parameters that ranks of the |scheduled| module
/// shard and gather. Not all of a unit are: an axis may divide them already.
llvm::StringSet<> findTraveling(mlir::ModuleOp scheduled);

/// Replaces what |rank| |read| of |info| in its unsharded unit by its part of
/// |whole|, the slices of all ranks. Returns what was not rounded once to the
/// type in which the unit travels; empty: nothing.
std::string checkTravel(const ParameterInfo &info, int64_t rank,
                        std::vector<Number> &read,
                        llvm::ArrayRef<Number> whole);

/// The values that zero-run gives a frozen parameter. Each type has these
/// numbers, and they differ from one element to the next and between
/// parameters.
std::vector<double> getFrozenValues(const ParameterInfo &frozen);

/// What |rank| |read| of |frozen| that is not its part of these values; empty:
/// nothing.
std::string checkFrozen(const ParameterInfo &frozen, int64_t rank,
                        llvm::ArrayRef<Number> read);

/// A scalar argument of a step.
struct InputInfo {
  /// By rank: which of the |shares| addends it passes; empty where all ranks
  /// pass the same number.
  std::vector<int64_t> share = {};
  int64_t shares = 1;
  bool isMaxNorm = false; // and so positive
};

std::vector<InputInfo> readInputs(StepOp step, MeshOp mesh);

/// Where a checkpoint was saved: its number, and the backward passes of the
/// next step whose gradients it has.
struct LoadedAt {
  int64_t number = 0;
  int64_t backwards = 0;
};

/// Something that runs steps: compiled code on rank threads, or the
/// interpreter.
class Engine {
public:
  virtual ~Engine() = default;

  /// Sets the initial value of a parameter on all ranks.
  virtual mlir::LogicalResult bind(const ParameterInfo &parameter,
                                   llvm::ArrayRef<double> values) = 0;
  /// One step; |ranks|[r] is what rank r delivers.
  virtual mlir::FailureOr<StepResult>
  apply(llvm::ArrayRef<RankInputs> ranks) = 0;
  /// The parameter as rank |rank| holds it.
  virtual mlir::FailureOr<std::vector<Number>>
  getParameter(int64_t rank, const ParameterInfo &parameter) = 0;
  /// What |rank|'s runtime counted; nothing where nothing is counted. Bytes
  /// that binding parameters copied to another space are left out: no step does
  /// that.
  virtual std::optional<zero_rt_counters> getCounters(int64_t rank) {
    return std::nullopt;
  }
  /// What gradients of the next step are to be multiplied by; 0 where ranks
  /// disagree.
  virtual double getLossScale() = 0;
  /// State of |role| joined over its owners; empty if there is none.
  virtual mlir::FailureOr<std::vector<Number>>
  getState(llvm::StringRef role, const ParameterInfo &parameter) = 0;
  /// Writes a checkpoint. Only compiled steps have some.
  virtual mlir::LogicalResult save(llvm::StringRef folder, int64_t number) {
    return mlir::failure();
  }
  /// Runs backward passes without apply, writes a checkpoint, and discards
  /// them.
  virtual mlir::LogicalResult saveWithin(llvm::ArrayRef<RankInputs> ranks,
                                         llvm::StringRef folder,
                                         int64_t number) {
    return mlir::failure();
  }
  /// Reads a checkpoint. The next apply leaves out the backward passes that the
  /// checkpoint has.
  virtual mlir::FailureOr<LoadedAt> load(llvm::StringRef folder) {
    return mlir::failure();
  }
};

/// Interprets |module|, at whatever phase it is.
std::unique_ptr<Engine> createInterpreterEngine(mlir::ModuleOp module,
                                                Arithmetic arithmetic);

/// Interprets the |scheduled| module in program order and in |orders| legal
/// orders of streams. Each must give the same bits.
std::unique_ptr<Engine>
createOrdersEngine(mlir::ModuleOp scheduled, int64_t ranks, int64_t orders,
                   llvm::ArrayRef<ParameterInfo> parameters);

/// In which order a compiled step gets its gradients: the last parameter first;
/// in a separate order for each rank and backward pass; or also those of
/// different backward passes in one another.
enum class Arrivals { backward, shuffled, interleaved };

/// How a compiled step uses units in any order: as the step lists them, the
/// other way round, in an order of its own in each pass, or each one twice in a
/// forward pass.
enum class UnitUses { listed, reversed, random, repeated };

class LibraryCache;

struct CompiledOptions {
  std::string cpu = "x86-64-v3";
  int threads = 1;
  /// Which GPUs kernels run on, taken by ranks in turn; on the processor if
  /// there are none.
  std::vector<int> gpus = {};
  /// Whether apply is started as graphs on a GPU.
  bool graphs = false;
  GroupKind group = GroupKind::threads;
  /// Instead of |group|: by rank, the ends of a group, which the engine
  /// destroys; or null.
  std::function<std::vector<zero_rt_group *>(int64_t ranks)> connect = nullptr;
  /// Instead of both: the processes that are the ranks; or null.
  const Processes *processes = nullptr;
  /// Whether the runtime checks preconditions and looks for what is not finite,
  /// for which it waits for a GPU at every call.
  bool checks = true;
  Arrivals arrivals = Arrivals::backward;
  UnitUses unitUses = UnitUses::listed;
  std::string trace = {}; // a folder for what each rank does; empty: none
  bool nvtx = false;
  int64_t timeoutMs = 60000;
  /// What engines of equal steps share, which are compiled once; or null.
  LibraryCache *libraries = nullptr;
  /// The library that zero-compile made of the step; empty: compile it.
  std::string library = {};
};

/// Compiles |scheduled| and runs it on its ranks. On an error
/// |message| says why and the result is null.
std::unique_ptr<Engine> createCompiledEngine(mlir::ModuleOp scheduled,
                                             int64_t ranks,
                                             llvm::ArrayRef<ParameterInfo> all,
                                             const CompiledOptions &options,
                                             std::string &message);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_ENGINE_H
