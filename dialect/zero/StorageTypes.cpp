//===- StorageTypes.cpp - The element types of memory ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialect/zero/StorageTypes.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace zero;

namespace {
struct StorageType {
  StringRef torch;
  unsigned precision;
  unsigned exponentBits;
};
} // namespace

static constexpr StringRef kNames[] = {
#define ZERO_STORAGE_TYPE(TYPE, NAME, TORCH, PRECISION, EXPONENT) NAME,
#include "dialect/zero/StorageTypes.def"
};

static constexpr StorageType kTypes[] = {
#define ZERO_STORAGE_TYPE(TYPE, NAME, TORCH, PRECISION, EXPONENT)              \
  {TORCH, PRECISION, EXPONENT},
#include "dialect/zero/StorageTypes.def"
};

bool zero::isStorageType(Type type) {
#define ZERO_STORAGE_TYPE(TYPE, NAME, TORCH, PRECISION, EXPONENT)              \
  if (isa<TYPE>(type))                                                         \
    return true;
#include "dialect/zero/StorageTypes.def"
  return false;
}

bool zero::holdsEveryNumber(Type wide, Type narrow) {
  return isStorageType(wide) && isStorageType(narrow) &&
         (wide == narrow ||
          wide.getIntOrFloatBitWidth() > narrow.getIntOrFloatBitWidth());
}

ArrayRef<StringRef> zero::getStorageTypeNames() { return kNames; }

std::string zero::listStorageTypes(StringRef last) {
  ArrayRef<StringRef> names = kNames;
  return llvm::join(names.drop_back(), ", ") + last.str() + names.back().str();
}

StringRef zero::findStorageType(StringRef name) {
  for (auto [ours, type] : llvm::zip_equal(kNames, kTypes))
    if (name == ours || name == type.torch)
      return ours;
  return "";
}

StringRef zero::getStorageTypeName(unsigned precision) {
  for (auto [name, type] : llvm::zip_equal(kNames, kTypes))
    if (type.precision == precision)
      return name;
  return "";
}

unsigned zero::getExponentBits(unsigned precision) {
  for (const StorageType &type : kTypes)
    if (type.precision == precision)
      return type.exponentBits;
  return 0;
}

StringRef zero::getStorageTypeOfRange(unsigned bits) {
  StringRef name;
  unsigned precision = 0;
  for (auto [other, type] : llvm::zip_equal(kNames, kTypes))
    if (type.exponentBits == bits && type.precision > precision)
      std::tie(name, precision) = std::make_tuple(other, type.precision);
  return name;
}
