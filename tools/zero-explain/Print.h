//===- Print.h - What a step costs, as tables -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_ZERO_EXPLAIN_PRINT_H
#define ZERO_TOOLS_ZERO_EXPLAIN_PRINT_H

#include "tools/zero-explain/Explain.h"
#include "tools/zero-explain/Machine.h"

#include "llvm/Support/raw_ostream.h"

namespace zero {

/// Prints the numbers of |choices| side by side. |maxBytes| is the memory of a
/// device; 0: not known.
void printChoices(llvm::ArrayRef<Choice> choices, int64_t maxBytes,
                  llvm::raw_ostream &os);

/// Prints the collectives of |stage|, the bytes that its kernels read and
/// write, and the times on |machine|. |stage| is a plan, or one pipeline stage
/// of it. |machine| may be null.
void printDetails(const llvm::json::Object &stage, const Machine *machine,
                  llvm::raw_ostream &os);

} // namespace zero

#endif // ZERO_TOOLS_ZERO_EXPLAIN_PRINT_H
