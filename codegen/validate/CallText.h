//===- CallText.h - A call of the runtime as a line of text -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A library and the program that it was compiled from are described in the same
// lines. The lines of the library come from its tables and from running its
// handlers. The lines of the program come from the IR. Here is what both write
// alike: numbers have names where the library has names for them.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_CALLTEXT_H
#define ZERO_CODEGEN_VALIDATE_CALLTEXT_H

#include <cstdint>
#include <string>
#include <vector>

namespace zero {

using Operands = std::vector<std::string>;

/// "copy(a, b, stream 2)".
std::string callText(const std::string &call, const Operands &operands);

/// Elements [begin, end) of a segment, and where its scalars are.
std::string segmentText(int64_t begin, int64_t end, const std::string &slot);

inline std::string number(int64_t value) { return std::to_string(value); }

/// Slot |index| of the slots named |name|.
std::string slotText(const std::string &name, int64_t index);

/// A set of axes, in the order of the mesh. |stages| has a bit for each
/// pipeline stage that takes part; 0: all of them.
std::string axesText(const std::vector<std::string> &axes, int64_t stages);

/// "stream 1".
std::string streamText(int64_t stream);

/// A stream event and its stream.
std::string eventText(const std::string &name, int64_t stream);

/// "buffer grad: role 1, space 0": a row of a table.
using Fields = std::vector<std::pair<const char *, std::string>>;
std::string rowText(const std::string &row, const Fields &fields);

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_CALLTEXT_H
