//===- Driver.h - What the tools share --------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_DRIVER_DRIVER_H
#define ZERO_TOOLS_DRIVER_DRIVER_H

#include "passes/pipeline/Pipelines.h"
#include "passes/prove/Prove.h"
#include "tools/driver/Errors.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/CommandLine.h"

namespace zero {

/// Axes of a mesh with their sizes: {"dp", 4}.
using MeshAxes = std::vector<std::pair<std::string, int64_t>>;

/// An option as text, which a flag or a client gives.
struct OptionText {
  llvm::StringRef name; // "shard-over"
  std::string text;     // the default, unless it is given
  bool isGiven = false;
};

/// The flag --NAME of an option.
class TextFlag : public llvm::cl::opt<std::string, /*ExternalStorage=*/true> {
public:
  TextFlag(OptionText &option, llvm::cl::OptionCategory &category,
           llvm::StringRef value, llvm::StringRef description);
};

/// The axes that |mesh| names: "dp=4:tp=2".
mlir::FailureOr<MeshAxes> readMesh(const OptionText &mesh,
                                   std::string &message);

/// |mesh| as passes take it. Users separate axes by ':' or ','.
std::string separateByColons(llvm::StringRef mesh);

/// The options of the way from the logical to the scheduled phase.
struct LowerSettings {
  /// Checks the options and puts them into |options|.
  mlir::LogicalResult get(LowerOptions &options, std::string &message) const;
  /// The axes of --mesh, and dp=1 without it.
  mlir::FailureOr<MeshAxes> getMesh(std::string &message) const;
  /// Checks that the mesh of |module|, which was read from |file|, has the axes
  /// that |flag|, such as "--mesh=dp=4", gives sizes to.
  static mlir::LogicalResult
  checkAxes(mlir::ModuleOp module, llvm::StringRef file, llvm::StringRef mesh,
            llvm::StringRef flag, std::string &message);
  /// The same for --mesh.
  mlir::LogicalResult checkMesh(mlir::ModuleOp module, llvm::StringRef file,
                                std::string &message) const;
  /// Checks that none was given, since |reason|: "a.mlir has none". --mesh
  /// applies to the step of --against, too, where it |hasReference|.
  mlir::LogicalResult checkNone(bool hasReference, const llvm::Twine &reason,
                                std::string &message) const;

  OptionText mesh{"mesh", ""};
  OptionText stage{"stage", "1"};
  OptionText shardOver{"shard-over", ""};
  OptionText keepAfterForward{"keep-after-forward", "none"};
  OptionText unitOrder{"unit-order", "calls"};
  OptionText prefetchUnits{"prefetch-units", ""};
  OptionText reduce{"reduce", "backward"};
  OptionText accumulate{"accumulate", "in-place"};
  OptionText offload{"offload", "none"};
  OptionText bucketBytes{"bucket-bytes", "25MiB"};
  OptionText until{"until", "scheduled"};
};

inline constexpr OptionText LowerSettings::*kLowerOptions[] = {
    &LowerSettings::mesh,      &LowerSettings::stage,
    &LowerSettings::shardOver, &LowerSettings::keepAfterForward,
    &LowerSettings::unitOrder, &LowerSettings::prefetchUnits,
    &LowerSettings::reduce,    &LowerSettings::accumulate,
    &LowerSettings::offload,   &LowerSettings::bucketBytes,
    &LowerSettings::until};

/// The flags of these options.
class LowerFlags {
public:
  LowerFlags(LowerSettings &settings, llvm::cl::OptionCategory &category);

private:
  TextFlag mesh, stage, shardOver, keepAfterForward, unitOrder, prefetchUnits,
      reduce, accumulate, offload, bucketBytes, until;
};

/// "25MiB", "64KiB" or a number, in bytes.
std::optional<int64_t> parseBytes(llvm::StringRef text);

void registerDriverDialects(mlir::DialectRegistry &registry);

/// Has diagnostics of contexts made from |registry| printed as Errors prints
/// them, and not as MLIR does: without dumps of the IR, and with lines of
/// |sources|. Diagnostics about other files are left to MLIR.
void registerDiagnostics(mlir::DialectRegistry &registry,
                         std::shared_ptr<llvm::SourceMgr> sources);

/// What messages call the input |path|: "-" is stdin.
llvm::StringRef describeInput(llvm::StringRef path);

/// Opens |path|, "-" for stdin. A person at a terminal is told that |tool|
/// waits.
std::unique_ptr<llvm::MemoryBuffer>
openInput(llvm::StringRef tool, llvm::StringRef path, std::string &message);

/// The option that chooses a step.
class StepFlag : public llvm::cl::opt<std::string> {
public:
  explicit StepFlag(llvm::cl::OptionCategory &category);
};

/// A step read from a file. Diagnostics about it go to errors, which quote the
/// text, and leave out dumps of the IR, as long as this object lives.
class LoadedStep {
public:
  /// Reads |path| ("-": stdin) and keeps the step called |name|, or the only
  /// one if that is empty. On an error, which goes to |errors|, the module is
  /// null. Messages say that the step is to be |verb|: "compiled".
  LoadedStep(mlir::MLIRContext &context, llvm::StringRef path,
             llvm::StringRef name, llvm::StringRef verb, Errors &errors);
  /// The same of |text|, which its identifier names.
  LoadedStep(mlir::MLIRContext &context,
             std::unique_ptr<llvm::MemoryBuffer> text, llvm::StringRef name,
             llvm::StringRef verb, Errors &errors);

  mlir::ModuleOp getModule() { return module.get(); }

private:
  LoadedStep(mlir::MLIRContext &context, Errors &errors);
  void load(mlir::MLIRContext &context,
            std::unique_ptr<llvm::MemoryBuffer> text, llvm::StringRef file,
            llvm::StringRef name, llvm::StringRef verb, Errors &errors);

  std::shared_ptr<llvm::SourceMgr> sources;
  mlir::ScopedDiagnosticHandler handler;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Erases all steps of |module| but the one called |name|, with the groups and
/// parameters that only they use. An empty name stands for the only step.
/// |file| is where they were read from.
mlir::LogicalResult chooseStep(mlir::ModuleOp module, llvm::StringRef name,
                               llvm::StringRef verb, llvm::StringRef file,
                               std::string &message);

/// Whether the step of |module| is at the logical phase.
bool isLogical(mlir::ModuleOp module);

/// Checks that it is; |file| is where it was read from, and it is to be |verb|.
mlir::LogicalResult checkLogical(mlir::ModuleOp module, llvm::StringRef verb,
                                 llvm::StringRef file, std::string &message);

/// The name of the only step of |module|, at any phase.
llvm::StringRef getStepName(mlir::ModuleOp module);

/// The option that names the step as it was written.
class AgainstFlag : public llvm::cl::opt<std::string> {
public:
  explicit AgainstFlag(llvm::cl::OptionCategory &category);
};

/// Gives the mesh of |reference|, which was read from |referenceFile|, the
/// sizes of --mesh. Checks that it holds a logical step with the name of the
/// step of |module|, and has the mesh of |module| where that is lowered. Where
/// |message| is empty on failure, there is a diagnostic.
mlir::LogicalResult checkReference(mlir::ModuleOp module, llvm::StringRef file,
                                   mlir::ModuleOp reference,
                                   llvm::StringRef referenceFile,
                                   const LowerSettings &settings,
                                   ExitCode &code, std::string &message);

/// Lowers |module|, a step at any phase, to |options|.until. Only a logical
/// step takes other options.
mlir::LogicalResult lower(mlir::ModuleOp module, const LowerOptions &options);

/// Lowers |module|. Proves before that |reference|, or |module| as it was where
/// that is null, does what it declares, and that |module| does the same. The
/// result is null on an error.
std::unique_ptr<ProvedStep> lowerProved(mlir::ModuleOp module,
                                        const LowerOptions &options,
                                        mlir::ModuleOp reference = {});

/// Proves that |lowered|, which lowerProved made, does the same as |step|.
mlir::LogicalResult proveLowered(ProvedStep &step, mlir::ModuleOp lowered);

} // namespace zero

#endif // ZERO_TOOLS_DRIVER_DRIVER_H
