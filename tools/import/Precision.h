//===- Precision.h - DeepSpeed's names of element types ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The storage types have their names in one place, StorageTypes.def. DeepSpeed
// has a block for each narrow type, fp16 and one with our name of bfloat16.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TOOLS_IMPORT_PRECISION_H
#define ZERO_TOOLS_IMPORT_PRECISION_H

#include "dialect/zero/StorageTypes.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <string>

namespace zero {

inline llvm::StringRef getHalfType() { return findStorageType("float16"); }
inline llvm::StringRef getSingleType() { return findStorageType("float32"); }
inline llvm::StringRef getBrainType() { return findStorageType("bfloat16"); }

/// |key| of the block for bfloat16.
inline std::string getBrainKey(llvm::StringRef key) {
  return (getBrainType() + "." + key).str();
}

/// The storage type that DeepSpeed calls |name|; empty if there is none.
inline llvm::StringRef findConfigType(llvm::StringRef name) {
  if (name == "half")
    return getHalfType();
  if (name == "bfp16")
    return getBrainType();
  if (name.consume_front("fp"))
    return findStorageType(("float" + name).str());
  return findStorageType(name);
}

} // namespace zero

#endif // ZERO_TOOLS_IMPORT_PRECISION_H
