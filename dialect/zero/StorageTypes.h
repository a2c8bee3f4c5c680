//===- StorageTypes.h - The element types of memory -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_DIALECT_ZERO_STORAGETYPES_H
#define ZERO_DIALECT_ZERO_STORAGETYPES_H

#include "mlir/IR/Types.h"

#include <algorithm>

namespace zero {

/// Whether memory may hold elements of |type|: one of StorageTypes.def.
bool isStorageType(mlir::Type type);

/// Whether |wide| holds every number of |narrow|. Both are storage types.
bool holdsEveryNumber(mlir::Type wide, mlir::Type narrow);

llvm::ArrayRef<llvm::StringRef> getStorageTypeNames();

/// The names with commas between them, and |last| before the last one.
std::string listStorageTypes(llvm::StringRef last = " or ");

/// The storage type that is called |name| here or in PyTorch, by its name here;
/// empty if there is none.
llvm::StringRef findStorageType(llvm::StringRef name);

/// The name of the storage type with significands of |precision| bits.
llvm::StringRef getStorageTypeName(unsigned precision);

/// The bits of its exponents; 0 if no storage type has that precision.
unsigned getExponentBits(unsigned precision);

/// The name of the most precise storage type with exponents of |bits| bits.
llvm::StringRef getStorageTypeOfRange(unsigned bits);

/// What all storage types have at least.
constexpr unsigned kLeastPrecision = std::min({
#define ZERO_STORAGE_TYPE(TYPE, NAME, TORCH, PRECISION, EXPONENT) PRECISION,
#include "dialect/zero/StorageTypes.def"
});
constexpr unsigned kLeastExponentBits = std::min({
#define ZERO_STORAGE_TYPE(TYPE, NAME, TORCH, PRECISION, EXPONENT) EXPONENT,
#include "dialect/zero/StorageTypes.def"
});

} // namespace zero

#endif // ZERO_DIALECT_ZERO_STORAGETYPES_H
