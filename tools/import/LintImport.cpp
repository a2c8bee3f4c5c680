//===- LintImport.cpp - What an import refuses ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/import/Lint.h"

using namespace mlir;
using namespace zero;

void zero::lintImport(LintContext &context, Errors &errors) {
  readConfig(context.request, context.reader);
  for (const ConfigError &error : context.errors)
    context.addError(error);
  if (context.reader.hasErrors())
    return;
  const ImportRequest &request = context.request;
  ExitCode code;
  std::string message;
  if (request.model.empty()) {
    if (request.mesh &&
        failed(checkListedMesh(
            *request.mesh, {kTensorAxis, kExpertAxis, kPipelineAxis}, message)))
      errors.add(ExitCode::usage, message);
    return;
  }
  if (succeeded(writeImportedStep(request, context.step, code, message)))
    return;
  if (code == ExitCode::failed)
    context.addError({"", message});
  else
    errors.add(code, message);
}
