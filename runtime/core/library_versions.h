//===- library_versions.h - Libraries of earlier versions -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CORE_LIBRARY_VERSIONS_H
#define ZERO_RT_CORE_LIBRARY_VERSIONS_H

#include "zero_rt/library.h"

#include <vector>

namespace zero_rt {

/// Checks the ABI version of |what|, a library or its file.
zero_rt_status checkVersion(const char *what, uint32_t version);

/// Checks the ABI version and the size of |library|. Without this check, only
/// these two may be read.
zero_rt_status checkVersion(const zero_rt_library &library);

/// A library and the libraries of its pipeline stages as structs of this
/// version. Fields that their version lacks are 0. A call that reads a field
/// that is not in the oldest version reads it here.
class KnownLibrary {
public:
  KnownLibrary() = default;
  KnownLibrary(const KnownLibrary &) = delete;
  KnownLibrary &operator=(const KnownLibrary &) = delete;

  /// Reads |library|, whose version and stages were checked.
  zero_rt_status read(const zero_rt_library &library);
  const zero_rt_library &get() const { return whole; }

private:
  zero_rt_library whole = {};
  std::vector<zero_rt_library> others; // without the first stage, |whole|
  std::vector<const zero_rt_library *> stages;
};

} // namespace zero_rt

#endif // ZERO_RT_CORE_LIBRARY_VERSIONS_H
