//===- SealedCheckpoint.h - Wrong files with right checksums ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_UNIT_RUNTIME_SEALEDCHECKPOINT_H
#define ZERO_TEST_UNIT_RUNTIME_SEALEDCHECKPOINT_H

#include "Checkpoints.h"

#include <functional>

namespace zero_rt::test {

/// |text| with the first |from| replaced by |to|.
std::string replaced(std::string text, const std::string &from,
                     const std::string &to);

/// A checkpoint of two ranks with the state of seed 1, whose files a test
/// damages.
class SealedCheckpoint {
public:
  SealedCheckpoint();
  /// One that |save| writes to a folder with |library|, on two ranks.
  SealedCheckpoint(LibraryBuilder library,
                   const std::function<void(const zero_rt_library &library,
                                            const std::string &folder)> &save);

  /// Writes |text| as the index, with the right checksum.
  void seal(std::string text) const;
  /// Puts |header| before |data| as the first file, and lets the index say so.
  void putHeader(const std::string &header, const std::string &data) const;
  /// Of the first file.
  std::string header() const;
  std::string data() const;

  TemporaryFolder folder;
  LibraryBuilder library;
  std::string index, first, second; // paths
};

} // namespace zero_rt::test

#endif // ZERO_TEST_UNIT_RUNTIME_SEALEDCHECKPOINT_H
