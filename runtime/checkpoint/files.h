//===- files.h - The operations on files of a checkpoint --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All system calls of a checkpoint are in files.cpp, so that a test can let
// each of them fail. A failure is invalid_argument, and the message has the
// operation, the path and the reason of the system.
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_RT_CHECKPOINT_FILES_H
#define ZERO_RT_CHECKPOINT_FILES_H

#include "zero_rt/abi.h"

#include <cstddef>
#include <string>
#include <vector>

namespace zero_rt {

/// A descriptor that closes itself.
class OpenFile {
public:
  OpenFile() = default;
  OpenFile(const OpenFile &) = delete;
  OpenFile &operator=(const OpenFile &) = delete;
  ~OpenFile();

  /// Creates a file that does not exist yet.
  zero_rt_status create(const std::string &path);
  zero_rt_status write(const void *data, size_t bytes, int64_t offset);
  /// Waits until the content is on the disk, and closes the file.
  zero_rt_status finish();

  /// Opens a regular file to read it.
  zero_rt_status open(const std::string &path);
  /// Reads exactly |bytes| bytes.
  zero_rt_status read(void *data, size_t bytes, int64_t offset) const;
  int64_t size() const { return bytesInFile; }

private:
  zero_rt_status refuse(const char *operation) const;

  std::string path;
  int descriptor = -1;
  int64_t bytesInFile = 0;
};

/// Creates a folder. |mayExist|: a folder that exists is no error.
zero_rt_status makeFolder(const std::string &path, bool mayExist);
/// Waits until the names in a folder are on the disk.
zero_rt_status syncFolder(const std::string &path);
/// Replaces the file |to| in one instant.
zero_rt_status renameFile(const std::string &from, const std::string &to);
zero_rt_status removeFile(const std::string &path);
zero_rt_status removeFolder(const std::string &path);
/// The names in a folder. A link to a folder is none unless |followsLinks|.
zero_rt_status listFolder(const std::string &path, bool followsLinks,
                          std::vector<std::string> &out);
/// |out| gets whether there is anything at |path|.
zero_rt_status exists(const std::string &path, bool &out);

/// For tests: called before each operation but those that look for names. If it
/// returns an error number, the operation fails with it. Null: nothing fails.
extern int (*fileFault)(const char *operation, const std::string &path);

} // namespace zero_rt

#endif // ZERO_RT_CHECKPOINT_FILES_H
