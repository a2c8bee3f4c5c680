//===- Import.h - A step from a configuration and a model -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_IMPORT_H
#define ZERO_TOOLS_IMPORT_IMPORT_H

#include "tools/import/Config.h"

#include "llvm/Support/MemoryBuffer.h"

namespace zero {

/// What the command line says of an import.
struct ImportRequest {
  llvm::StringRef tool; // for the hint about stdin
  std::string config, model;
  std::vector<std::string> changes;         // KEY=VALUE
  std::vector<std::string> noDecay, frozen; // patterns of names
  std::vector<std::string> shards;          // PATTERN=DIMENSION|none|partial
  std::vector<std::string> experts;         // PATTERN=FORM
  std::vector<std::string> pipelineStages;  // PATTERN=STAGE
  std::string pipelineLayers; // of each pipeline stage; empty: as many each
  /// Data-parallel axes, of which kExpertAxis may be one, and perhaps
  /// kTensorAxis and kPipelineAxis.
  std::optional<MeshAxes> mesh;
  std::string name; // of the step
};

/// A step, and the settings that become options of zero-compile.
struct ImportedStep {
  std::unique_ptr<llvm::MemoryBuffer> text;
  ImportedConfig config;
  MeshAxes mesh;
  size_t numParameters = 0;
  uint64_t numElements = 0;

  /// The options as flags: {{"stage", "2"}, ...}.
  std::vector<std::pair<std::string, std::string>> getOptions() const;
};

/// Reads and writes; errors go to |errors|.
mlir::LogicalResult importStep(const ImportRequest &request, ImportedStep &step,
                               Errors &errors);

/// The axis of tensor parallelism.
inline constexpr llvm::StringLiteral kTensorAxis = "tp";
/// The data-parallel axis whose ranks have different experts.
inline constexpr llvm::StringLiteral kExpertAxis = "ep";

/// Reads all keys for the mesh of |request|.
void readConfig(const ImportRequest &request, ConfigReader &reader);

/// Reads the model of |request| and writes the step of |step|.config.
mlir::LogicalResult writeImportedStep(const ImportRequest &request,
                                      ImportedStep &step, ExitCode &code,
                                      std::string &message);

/// The configuration of |path| with |changes|, an object. Nothing, and an
/// error, if it cannot be read.
std::optional<llvm::json::Value>
readConfigFile(llvm::StringRef tool, llvm::StringRef path,
               llvm::ArrayRef<std::string> changes, Errors &errors);

/// Freezes parameters and takes them out of weight decay by |request|'s
/// patterns, and gives all of them the type of |config|.
mlir::LogicalResult adaptParameters(const ImportRequest &request,
                                    const ImportedConfig &config,
                                    ParameterList &list, std::string &message);

/// Calls |function| for each parameter of |list| whose name matches |pattern|
/// of the flag --|option|. A pattern that matches none is an error.
mlir::LogicalResult forEachMatch(
    llvm::StringRef option, llvm::StringRef pattern, ParameterList &list,
    llvm::function_ref<void(ListedParameter &)> function, std::string &message);

/// Divides parameters over |numTensorRanks| as Megatron does, by their names
/// and as |request| says.
mlir::LogicalResult divideParameters(const ImportRequest &request,
                                     int64_t numTensorRanks,
                                     ParameterList &list, std::string &message);

/// Divides the parameters of experts over |numRanks|, by their names and as
/// |request| says. A parameter that is one of many ranks stays under the name
/// that each rank has. Of one rank there is nothing to say, and flags that say
/// something are refused.
mlir::LogicalResult assignExperts(const ImportRequest &request,
                                  int64_t numRanks, ImportedConfig &config,
                                  ParameterList &list, std::string &message);

/// Puts the layers of the model on |numStages| pipeline stages, in order, by
/// the names of parameters and as |request| says, unless the list says it. Adds
/// what each stage has to the decisions of |config|. Of one stage there is
/// nothing to say, and flags that say something are refused.
mlir::LogicalResult assignStages(const ImportRequest &request,
                                 int64_t numStages, ImportedConfig &config,
                                 ParameterList &list, std::string &message);

/// Makes each layer of the model a unit of stage 3, by the names of parameters,
/// unless the list has units. Layers are then in the order of their numbers.
/// Small parameters are of no unit, as |config| says for a part on one of
/// |numTensorRanks| and one of |numExpertRanks|.
mlir::LogicalResult assignUnits(const ImportedConfig &config,
                                int64_t numTensorRanks, int64_t numExpertRanks,
                                ParameterList &list, std::string &message);

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_IMPORT_H
