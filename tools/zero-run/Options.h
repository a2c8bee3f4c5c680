//===- Options.h - The command line of zero-run -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_RUN_OPTIONS_H
#define ZERO_TOOLS_ZERO_RUN_OPTIONS_H

#include "tools/driver/Driver.h"
#include "tools/driver/Tool.h"
#include "tools/zero-run/Inputs.h"

namespace zero {

enum class EngineKind { compiled, interpreter };
enum class Against { none, logical, typed };

/// More ranks than this are no test on one machine.
constexpr int64_t kMaxRanks = 256;
/// Of all ranks together.
constexpr int64_t kMaxThreads = 4096;

struct RunOptions {
  std::string input;
  std::string step;       // its name, empty: the only one
  LowerOptions lower;     // its mesh is that of --mesh or --ranks
  std::string meshFlag;   // as it was given: "--ranks=4"
  LowerSettings settings; // as they were given, with the mesh of --ranks
  EngineKind engine = EngineKind::compiled;
  Against against = Against::logical;
  /// The file of the logical step, where the input is a lowered one; or empty.
  std::string written;
  /// A safetensors file; empty: made from |seed|.
  std::string gradientFile;
  GradientKind gradients = GradientKind::random;
  uint64_t seed = 1;
  /// Nothing and empty: as many as the file has, else the defaults.
  std::optional<int64_t> steps;
  std::vector<int64_t> backwards;
  /// Empty: 0.01 each, or a share of its own for each rank.
  std::vector<double> inputs;
  int64_t threads = 1;
  std::string trace; // a folder; empty: none
  bool nvtx = false;
  std::string library; // a file; empty: the step is compiled
  /// Folders of checkpoints; empty: none.
  std::string load, save;
  int64_t saveWithin = 0;
  /// Orders of streams that the interpreter runs each step in; 0: none.
  int64_t orders = 0;
  std::vector<int> gpus; // that kernels run on; none: the processor
  GroupKind group = GroupKind::threads;
  Arrivals arrivals = Arrivals::backward;
  Hints hints = Hints::unknown;
  UnitUses unitUses = UnitUses::listed;
  bool measures = false;  // before each apply
  bool leavesOut = false; // gradients of optional parameters, at random
  std::string cpu;
  /// Elements of each parameter that are compared; 0: all; nothing: all of a
  /// small step, kSampledElements of each parameter of a large one.
  std::optional<int64_t> elements;
  bool json = false;

  /// "logical", "typed" or, where nothing is compared, "".
  llvm::StringRef getAgainstName() const;
  llvm::StringRef getReferenceName() const;
};

constexpr int64_t kDefaultSteps = 5;
/// A step of more elements is large: the reference takes seconds for each step.
constexpr int64_t kLargeStep = int64_t(1) << 21;
constexpr int64_t kSampledElements = 1024;

/// Reads the command line of |tool| into |options|; what is wrong is added to
/// the tool's errors. |options|.json is right nevertheless.
mlir::LogicalResult parseOptions(Tool &tool, RunOptions &options);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_RUN_OPTIONS_H
