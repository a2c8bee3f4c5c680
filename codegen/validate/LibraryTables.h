//===- LibraryTables.h - A compiled library in lines of text ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_LIBRARYTABLES_H
#define ZERO_CODEGEN_VALIDATE_LIBRARYTABLES_H

#include "zero_rt/library.h"

#include <string>
#include <vector>

namespace zero {

/// What |library|, that of one pipeline stage, says and does: a line for each
/// row of its tables and for each call of its handlers, which it runs. See
/// describeProgram.
std::vector<std::string> describeLibrary(const zero_rt_library &library);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_LIBRARYTABLES_H
