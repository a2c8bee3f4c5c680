//===- Given.cpp - A lowered step of a file -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-run/Given.h"

#include "dialect/zero/CountOf.h"
#include "dialect/zrt/ZrtDialect.h"

#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace zero;

/// Its type and all attributes but the name.
static std::string describeParameter(ParameterOp op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op.getValueType();
  for (NamedAttribute named : op->getAttrs())
    if (named.getValue() != op.getSymNameAttr() &&
        named.getName() != op.getTypeAttrName())
      os << ", " << named.getName().getValue() << " = " << named.getValue();
  return text;
}

/// Checks that both have the same parameters, in any order.
static LogicalResult checkParameters(ModuleOp given, StringRef file,
                                     ModuleOp logical, StringRef written,
                                     std::string &message) {
  for (auto expected : logical.getOps<ParameterOp>()) {
    auto got = given.lookupSymbol<ParameterOp>(expected.getSymName());
    if (got && got->getAttrDictionary() == expected->getAttrDictionary())
      continue;
    message = llvm::formatv(
        "parameter @{0} of {1} is {2}, expected {3} as in {4}; lower that "
        "step again",
        expected.getSymName(), file,
        got ? describeParameter(got) : std::string("missing"),
        describeParameter(expected), written);
    return failure();
  }
  for (auto got : given.getOps<ParameterOp>())
    if (!logical.lookupSymbol<ParameterOp>(got.getSymName())) {
      message = llvm::formatv("{0} has parameter @{1}, expected only those of "
                              "{2}; lower that step again",
                              file, got.getSymName(), written);
      return failure();
    }
  return success();
}

/// The number of scalar arguments, and the names of results.
static std::pair<size_t, ArrayAttr> getScalars(ModuleOp module) {
  for (auto program : module.getOps<zrt::ProgramOp>())
    return {program.getInputs().size(), program.getResultNames()};
  StepOp step = *module.getOps<StepOp>().begin();
  auto returned = cast<ReturnOp>(step.getBody().front().getTerminator());
  return {step.getBody().getNumArguments(), returned.getNames()};
}

static std::string describeScalars(ModuleOp module) {
  auto [inputs, results] = getScalars(module);
  std::string text = countOf(inputs, "argument") + " and results ";
  llvm::raw_string_ostream(text) << results;
  return text;
}

LogicalResult zero::checkGiven(ModuleOp given, ModuleOp logical,
                               const RunOptions &options, ExitCode &code,
                               std::string &message) {
  StringRef file = describeInput(options.input), written = options.written;
  code = ExitCode::usage;
  if (isLogical(given)) {
    message = ("step of " + file +
               " is logical, and so is compared with itself; leave out "
               "--against=" +
               written)
                  .str();
    return failure();
  }
  if (failed(options.settings.checkNone(/*hasReference=*/true,
                                        file + " has none", message)))
    return failure();
  if (failed(checkReference(given, file, logical, written, options.settings,
                            code, message)))
    return failure();
  code = ExitCode::failed;
  if (failed(checkParameters(given, file, logical, written, message)))
    return failure();
  if (getScalars(given) != getScalars(logical)) {
    message = ("step of " + file + " has " + describeScalars(given) +
               ", expected " + describeScalars(logical) + " as in " + written +
               "; lower that step again")
                  .str();
    return failure();
  }
  auto programs = given.getOps<zrt::ProgramOp>();
  bool isScheduled = !programs.empty() && (*programs.begin()).isScheduled();
  if (options.orders > 0 && !isScheduled) {
    code = ExitCode::usage;
    message = ("--orders=" + llvm::Twine(options.orders) +
               " needs a scheduled step, and the calls of " + file +
               " have no streams; leave out --orders, or lower the step with "
               "--until=scheduled")
                  .str();
    return failure();
  }
  return success();
}
