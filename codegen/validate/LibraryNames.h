//===- LibraryNames.h - Rows of a library's tables by name ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_CODEGEN_VALIDATE_LIBRARYNAMES_H
#define ZERO_CODEGEN_VALIDATE_LIBRARYNAMES_H

#include "codegen/validate/CallText.h"

#include "zero_rt/library.h"

namespace zero {

/// The names of what a compiled library refers to by number. A number that is
/// no row of its table is part of the name.
class LibraryNames {
public:
  explicit LibraryNames(const zero_rt_library &library) : library(library) {}

  std::string text(int64_t offset) const { return library.strings + offset; }
  /// "none" for -1.
  std::string buffer(int64_t row) const;
  std::string bucket(int64_t row) const;
  std::string parameter(int64_t row) const;
  /// The numbers in a set of inputs, with spaces behind them.
  std::string inputs(int64_t set) const;
  std::string axes(int64_t row) const;
  /// The axes of the bits of |set|.
  std::string axesOf(int64_t set, int64_t stages = 0) const;
  std::string event(int64_t row) const;
  /// The events of a list, with spaces behind them.
  std::string events(int64_t first, int64_t count) const;
  /// Consecutive slots of one name are one symbol.
  std::string slot(int64_t row) const;
  /// The segments of a table with their scalars.
  Operands segments(int64_t table) const;
  std::string state(int64_t row) const;

private:
  const zero_rt_library &library;
};

} // namespace zero

#endif // ZERO_CODEGEN_VALIDATE_LIBRARYNAMES_H
