//===- Driver.cpp - What zero-compile and zero-run share ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/driver/Driver.h"

#include "dialect/zero/ZeroDialect.h"
#include "dialect/zrt/ZrtDialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"

using namespace mlir;
using namespace zero;
namespace cl = llvm::cl;

LowerFlags::LowerFlags(cl::OptionCategory &category)
    : mesh(
          "mesh", cl::cat(category), cl::value_desc("dp=4"),
          cl::desc("Sizes of mesh axes, such as edp=2:tp=4; default: as in the "
                   "IR")),
      stage("stage", cl::init(1), cl::cat(category), cl::value_desc("0|1|2"),
            cl::desc("ZeRO stage (default 1)")),
      shardOver(
          "shard-over", cl::cat(category), cl::value_desc("edp,ep"),
          cl::desc("Axes that divide master copy and optimizer state; over "
                   "others\nthere are replicas (default: all that a "
                   "gradient is summed over)")),
      offload("offload", cl::init("none"), cl::cat(category),
              cl::value_desc("none|optimizer"),
              cl::desc("What lives in the host's memory: none (default), or "
                       "optimizer: master copy and state, updated there")),
      bucketBytes(
          "bucket-bytes", cl::init("25MiB"), cl::cat(category),
          cl::desc("Size from which on a bucket is closed (default 25MiB)")),
      until("until", cl::init("scheduled"), cl::cat(category),
            cl::desc("logical, sharded, placed or scheduled (default)")) {}

std::optional<int64_t> zero::parseBytes(StringRef text) {
  int64_t unit = 1;
  if (text.consume_back("GiB"))
    unit = int64_t(1) << 30;
  else if (text.consume_back("MiB"))
    unit = int64_t(1) << 20;
  else if (text.consume_back("KiB"))
    unit = int64_t(1) << 10;
  int64_t count;
  if (text.getAsInteger(10, count) || count < 1 ||
      count > std::numeric_limits<int64_t>::max() / unit)
    return std::nullopt;
  return count * unit;
}

StringRef LowerFlags::findGiven() const {
  for (const llvm::cl::Option *flag :
       std::initializer_list<const llvm::cl::Option *>{
           &mesh, &stage, &shardOver, &offload, &bucketBytes, &until})
    if (flag->getNumOccurrences() > 0)
      return flag->ArgStr;
  return "";
}

LogicalResult LowerFlags::get(LowerOptions &options,
                              std::string &message) const {
  if (stage < 0 || stage > 2) {
    message = "--stage must be 0, 1 or 2, got " + std::to_string(stage);
    return failure();
  }
  if (offload != "none" && offload != "optimizer") {
    message = "--offload must be none or optimizer, got '" + offload + "'";
    return failure();
  }
  std::optional<int64_t> bytes = parseBytes(bucketBytes);
  if (!bytes) {
    message = "--bucket-bytes must be a size such as 25MiB, got '" +
              bucketBytes + "'";
    return failure();
  }
  if (until != "logical" && until != "sharded" && until != "placed" &&
      until != "scheduled") {
    message = "--until must be logical, sharded, placed or scheduled, got '" +
              until + "'";
    return failure();
  }
  options.mesh = mesh.getValue();
  options.stage = stage.getValue();
  options.shardOver = shardOver.getValue();
  options.offload = offload.getValue();
  options.bucketBytes = *bytes;
  options.until = until.getValue();
  return success();
}

void zero::registerDriverDialects(DialectRegistry &registry) {
  registry.insert<ZeroDialect, zrt::ZrtDialect, arith::ArithDialect,
                  math::MathDialect>();
}

/// Where a diagnostic is about, or null: MLIR's parser puts a module, and with
/// it what passes say of options, at line 0 of its file.
static FileLineColLoc findPlace(Location location) {
  auto place = location->findInstanceOf<FileLineColLoc>();
  return place && place.getLine() > 0 ? place : FileLineColLoc();
}

Place::Place(Location location) {
  if (auto place = location->findInstanceOf<FileLineColLoc>())
    file = place.getFilename().str();
  if (auto place = findPlace(location)) {
    line = place.getLine();
    column = place.getColumn();
  }
}

static llvm::SourceMgr::DiagKind getKind(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return llvm::SourceMgr::DK_Note;
  case DiagnosticSeverity::Warning:
    return llvm::SourceMgr::DK_Warning;
  case DiagnosticSeverity::Error:
    return llvm::SourceMgr::DK_Error;
  case DiagnosticSeverity::Remark:
    return llvm::SourceMgr::DK_Remark;
  }
  llvm_unreachable("unknown severity");
}

static void print(Diagnostic &diagnostic) {
  Place place(diagnostic.getLocation());
  std::string where = place.file;
  if (place.line > 0)
    where +=
        ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  llvm::SMDiagnostic(where, getKind(diagnostic.getSeverity()), diagnostic.str())
      .print(/*ProgName=*/nullptr, llvm::errs());
}

/// Prints |diagnostic| unless it has a place, which another handler can quote.
static LogicalResult printPlaceless(Diagnostic &diagnostic) {
  if (findPlace(diagnostic.getLocation()))
    return failure();
  print(diagnostic);
  for (Diagnostic &note : diagnostic.getNotes())
    print(note);
  return success();
}

void zero::registerPlacelessDiagnostics(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ZeroDialect *) {
    context->getDiagEngine().registerHandler(printPlaceless);
  });
}

LoadedStep::LoadedStep(MLIRContext &context, StringRef path, Collector collect)
    : sources(std::make_shared<llvm::SourceMgr>()), handler(*sources, &context),
      first(&context, [collect = std::move(collect)](Diagnostic &diagnostic) {
        if (!collect)
          return printPlaceless(diagnostic);
        collect(diagnostic);
        return success();
      }) {
  // Two lines of error message, not seven thousand of IR.
  context.printOpOnDiagnostic(false);
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(path, &message);
  if (!file) {
    emitError(UnknownLoc::get(&context)) << message;
    return;
  }
  sources->AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  module = parseSourceFile<ModuleOp>(sources, &context);
}

LogicalResult zero::lower(ModuleOp module, const LowerOptions &options) {
  PassManager pm(module.getContext());
  buildLowerPipeline(pm, options);
  return pm.run(module);
}

FailureOr<Shown> zero::lowerAndProve(ModuleOp module,
                                     const LowerOptions &options) {
  // Ranks are part of what is proved.
  LowerOptions onMesh;
  onMesh.mesh = options.mesh.getValue();
  onMesh.until = std::string("logical");
  if (failed(lower(module, onMesh)))
    return failure();
  ProvedStep step(module);
  if (!step.isProved() || failed(lower(module, options)))
    return failure();
  if (!step.isSameAs(module))
    return module.emitError()
           << "the lowered step is not the step that was written: this is a "
              "mistake of a pass; zero-prove tells which one";
  return step.getShown();
}
