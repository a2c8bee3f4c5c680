//===- WriteStep.h - The files of a compiled step ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_COMPILE_WRITESTEP_H
#define ZERO_TOOLS_ZERO_COMPILE_WRITESTEP_H

#include "codegen/library/Compile.h"
#include "tools/compiler/CompileText.h"
#include "tools/driver/Errors.h"

namespace zero {

/// The files that were written.
struct WrittenStep {
  std::vector<std::string> files;
  std::string plan; // the text of the plan
};

/// Writes a library (or else an object), header and plan of |step| to |folder|:
/// all of them, or on an error none. A library is first compared with the
/// programs that it was compiled from, as far as this machine can run it. The
/// plan says what was compared, and what |finishProof| returns. |code| and
/// |message| describe an error, other than one of the proof.
mlir::FailureOr<WrittenStep>
writeStep(const CompiledStep &step, llvm::StringRef folder, bool isLibrary,
          llvm::function_ref<mlir::FailureOr<ProofNote>()> finishProof,
          ExitCode &code, std::string &message);

/// The same of a library that is linked and compared.
mlir::FailureOr<WrittenStep> writeOutput(const CompileOutput &output,
                                         llvm::StringRef folder,
                                         std::string &message);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_COMPILE_WRITESTEP_H
