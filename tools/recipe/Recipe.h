//===- Recipe.h - A step from a list of parameters --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Most steps differ in their parameters and in a few choices: the optimizer,
// clipping, and what a gradient is divided by. A list of parameters is JSON,
// and the choices are a short text, the recipe. The result is a logical step,
// as a person would write it.
//
// Every rank has a batch of its own, or shares one with the other ranks of a
// tensor axis or a pipeline axis, and each parameter of its pipeline stage
// whole, or its part along the tensor axis and the axis of experts.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_RECIPE_RECIPE_H
#define ZERO_TOOLS_RECIPE_RECIPE_H

#include "tools/driver/Driver.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/MemoryBuffer.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zero {

struct ListedParameter {
  std::string name;
  std::vector<int64_t> shape;
  std::string dtype = "f32";
  std::string gradient; // the dtype of an arriving gradient; that of dtype
  std::string group = "all";
  std::string unit; // of ZeRO stage 3; empty: each rank keeps all of it
  bool isOptional = false;
  bool isSkippedIfAbsent = false;
  bool isFrozen = false;
  /// The dimension that the ranks of Recipe.tensorAxis divide; none: all of
  /// them have the parameter whole, and the same gradient.
  std::optional<int64_t> shardedDim;
  /// Whether each rank of Recipe.tensorAxis has a part of its gradient, such as
  /// that of its heads. The parts add up, and all ranks have the parameter
  /// whole.
  bool isPartial = false;
  /// Whether the ranks of Recipe.expertAxis divide its first dimension.
  bool isExpert = false;
  /// The pipeline stages along Recipe.pipelineAxis that have the parameter,
  /// from the first one on. Several: it is tied.
  std::vector<int64_t> stages;
  int64_t uses = 1; // the pieces that a backward pass delivers
  bool usesAny = false;
};

/// All elements of |parameter|, over all ranks.
inline uint64_t countElements(const ListedParameter &parameter) {
  uint64_t count = 1;
  for (int64_t extent : parameter.shape)
    count *= extent;
  return count;
}

/// The value of a hyperparameter: a number, an input of `apply`, or a schedule.
struct HyperValue {
  double number = 0;
  std::string input;    // its name; empty for a number
  std::string schedule; // its name in Recipe.schedules; empty for none
};
using HyperValues = std::map<std::string, HyperValue>;

struct ParameterList {
  std::vector<ListedParameter> parameters;
  /// What the list says of hyperparameters, by parameter group.
  std::map<std::string, HyperValues> groups;
  // Where the source says them.
  std::optional<int64_t> hiddenSize;
  std::optional<int64_t> numHeads;    // of queries
  std::optional<int64_t> numKeyHeads; // of keys and values
};

enum class Normalization { mean, sum, tokens };

/// A hyperparameter of an optimizer, and its default if it has one.
struct OptimizerHyper {
  std::string name;
  std::optional<double> number;
};

/// An optimizer that a recipe names, or that its user has written.
struct RecipeOptimizer {
  std::string name;   // for messages, and of the symbol if it is free
  std::string symbol; // what the text defines
  std::string text;   // a zero.optimizer
  std::vector<OptimizerHyper> hyper; // in the order of the optimizer
};

struct Recipe {
  RecipeOptimizer optimizer;
  std::optional<HyperValue> maxNorm; // clips gradients to this norm
  Normalization normalization = Normalization::mean;
  /// A mean over backward passes of sums over ranks.
  bool isSumOfRanks = false;
  /// Whether the caller divides the loss by the number of backward passes.
  bool isLossDivided = false;
  bool oneBackward = false; // else any number of backward passes
  std::string accumulator = "f32";
  std::string reduceDtype; // of addends; empty: that of the accumulator
  std::string gatherDtype; // of parameters of units; empty: their own
  std::string nonfinite = "skip";
  HyperValues hyper; // of all groups that do not say otherwise
  /// The axis of the mesh that divides parameters and not batches; empty for
  /// none.
  std::string tensorAxis;
  /// The axis of the mesh along which parameters are on some pipeline stages
  /// only; empty for none.
  std::string pipelineAxis;
  /// The data-parallel axis whose ranks have different experts; empty for none.
  std::string expertAxis;
  /// A zero.loss_scale @loss_scale as text; empty for none.
  std::string lossScale;
  /// Texts of a zero.schedule @NAME, by name.
  std::map<std::string, std::string> schedules;
};

/// Reads a list of parameters, which is JSON:
///
///   {"parameters": [{"name": "fc.weight", "shape": [64, 48], "dtype": "bf16",
///                    "gradient": "bf16", "group": "decay",
///                    "unit": "layer0", "uses": 1, "optional": false,
///                    "frozen": false, "pipeline_stage": 0}, ...],
///    "groups": {"decay": {"wd": 0.1, "lr": "lr"}, ...}}
///
/// Only name and shape are required. A shape without extents is that of one
/// element. Parameters that name the same unit are gathered together at stage
/// 3. The pipeline stage is a number or, of a tied parameter, a list of them;
/// it counts on a mesh with an axis kPipelineAxis. A string as the value of a
/// hyperparameter is the name of an input. |file| is for messages.
llvm::LogicalResult readParameterList(llvm::StringRef text,
                                      llvm::StringRef file, ParameterList &list,
                                      std::string &message);

/// Opens a file that a recipe names. Null, with a message, if it cannot.
using OpenFile = llvm::function_ref<std::unique_ptr<llvm::MemoryBuffer>(
    llvm::StringRef path, std::string &message)>;

/// Reads a recipe: "adamw,max_norm=1,mean,wd=0.1,lr=@lr". The same as JSON:
///
///   {"optimizer": "adamw", "max_norm": 1, "normalization": "mean",
///    "loss_divided": false, "one_backward": false, "wd": 0.1, "lr": "lr"}
///
/// As in the list of parameters, a string is the name of an input. In place of
/// the name of an optimizer there may be a file of IR, which |open| reads, or
/// in JSON the IR itself. |open| may be null: then no file is read.
llvm::LogicalResult readRecipe(llvm::StringRef text, OpenFile open,
                               Recipe &recipe, ExitCode &code,
                               std::string &message);
/// What readRecipe accepts, for --help.
llvm::StringRef describeRecipes();

/// The shortest decimal that is |number|, with the point that MLIR wants.
std::string formatReal(double number);

/// The axis of pipeline stages.
inline constexpr llvm::StringLiteral kPipelineAxis = "pp";

/// Writes the step called |name| on a mesh of the axes |mesh|, all of which
/// but the tensor axis and the pipeline axis of |recipe| are data-parallel.
llvm::LogicalResult writeStep(const Recipe &recipe, const ParameterList &list,
                              const MeshAxes &mesh, llvm::StringRef name,
                              std::string &text, std::string &message);

/// Whether a user may name |mesh| for a list of parameters, if |others| are
/// axes that are not data-parallel.
llvm::LogicalResult checkListedMesh(const MeshAxes &mesh,
                                    llvm::ArrayRef<llvm::StringRef> others,
                                    std::string &message);

/// The same as writeStep for a mesh that a user names.
llvm::LogicalResult writeListedStep(const Recipe &recipe,
                                    const ParameterList &list,
                                    const MeshAxes &mesh, llvm::StringRef name,
                                    std::string &text, ExitCode &code,
                                    std::string &message);

/// The same of |parameters|, the text of a list that was read from
/// |file|. Null, with |code| and |message|, on an error.
std::unique_ptr<llvm::MemoryBuffer>
writeListedStep(const Recipe &recipe, llvm::StringRef parameters,
                llvm::StringRef file, const MeshAxes &mesh,
                llvm::StringRef name, ExitCode &code, std::string &message);

/// The optimizer called |name|, which the tools contain.
std::optional<RecipeOptimizer> findOptimizer(llvm::StringRef name);
/// Their names, for messages: "adam, adamw, adamw_torch, lion or sgd".
std::string listOptimizers();
/// Reads the optimizer of |text|, which is a zero.optimizer and nothing else.
/// |file| is for messages.
llvm::LogicalResult readOptimizer(llvm::StringRef text, llvm::StringRef file,
                                  RecipeOptimizer &optimizer,
                                  std::string &message);

/// The text of a loss scale: "torch" or "deepspeed" for the rule of that
/// library, or a positive number. Empty if |choice| is nothing of these.
std::string getLossScaleText(llvm::StringRef choice);

} // namespace zero

#endif // ZERO_TOOLS_RECIPE_RECIPE_H
