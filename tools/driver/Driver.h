//===- Driver.h - What zero-compile and zero-run share ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_DRIVER_DRIVER_H
#define ZERO_TOOLS_DRIVER_DRIVER_H

#include "passes/pipeline/Pipelines.h"
#include "passes/prove/Prove.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

namespace zero {

/// The command line options of the way from the logical to the scheduled phase.
class LowerFlags {
public:
  explicit LowerFlags(llvm::cl::OptionCategory &category);

  /// Checks the options and puts them into |options|.
  mlir::LogicalResult get(LowerOptions &options, std::string &message) const;
  /// The first of them that was given, "" where none was.
  llvm::StringRef findGiven() const;

  llvm::cl::opt<std::string> mesh;
  llvm::cl::opt<int> stage;
  llvm::cl::opt<std::string> shardOver;
  llvm::cl::opt<std::string> offload;
  llvm::cl::opt<std::string> bucketBytes;
  llvm::cl::opt<std::string> until;
};

/// "25MiB", "64KiB" or a number, in bytes.
std::optional<int64_t> parseBytes(llvm::StringRef text);

void registerDriverDialects(mlir::DialectRegistry &registry);

/// The file, line and column that a location names; line 0 where it is about
/// the whole file, and no file where it is about none.
struct Place {
  explicit Place(mlir::Location location);

  std::string file;
  int64_t line = 0;
  int64_t column = 0;
};

/// Prints diagnostics about a whole file as "FILE: error: ..." and not as
/// "FILE:0:0: error: ...", in contexts made from |registry|.
void registerPlacelessDiagnostics(mlir::DialectRegistry &registry);

/// A step read from a file. Diagnostics about it quote the text, and leave out
/// dumps of the IR, as long as this object lives.
class LoadedStep {
public:
  using Collector = std::function<void(mlir::Diagnostic &)>;

  /// Reads |path| ("-": stdin). On an error the module is null. Diagnostics are
  /// printed, or given to |collect|.
  LoadedStep(mlir::MLIRContext &context, llvm::StringRef path,
             Collector collect = {});

  mlir::ModuleOp getModule() { return module.get(); }

private:
  std::shared_ptr<llvm::SourceMgr> sources;
  mlir::SourceMgrDiagnosticHandler handler;
  mlir::ScopedDiagnosticHandler first; // asked before |handler|
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// Lowers |module| to |options|.until.
mlir::LogicalResult lower(mlir::ModuleOp module, const LowerOptions &options);

/// Lowers |module|, a logical step, and proves that it does what it declares
/// and that what was made of it does the same.
mlir::FailureOr<Shown> lowerAndProve(mlir::ModuleOp module,
                                     const LowerOptions &options);

} // namespace zero

#endif // ZERO_TOOLS_DRIVER_DRIVER_H
