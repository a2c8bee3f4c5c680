//===- Outputs.cpp - Several files, all of them or none -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/zero-compile/Outputs.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

using namespace mlir;
using namespace zero;

Outputs::~Outputs() {
  for (File &file : files)
    llvm::consumeError(file.written.discard());
}

static LogicalResult fail(StringRef path, llvm::Error error,
                          std::string &message) {
  message =
      "cannot write '" + path.str() + "': " + llvm::toString(std::move(error));
  return failure();
}

LogicalResult Outputs::add(StringRef path,
                           llvm::function_ref<LogicalResult(StringRef)> write,
                           std::string &message) {
  // The one reason for which a file could be written and not moved.
  if (llvm::sys::fs::is_directory(path))
    return fail(
        path,
        llvm::errorCodeToError(std::make_error_code(std::errc::is_a_directory)),
        message);
  auto file = llvm::sys::fs::TempFile::create(path + ".%%%%%%");
  if (!file)
    return fail(path, file.takeError(), message);
  files.push_back({std::move(*file), path.str()});
  const std::string &temporary = files.back().written.TmpName;
  if (succeeded(write(temporary)))
    return success();
  // The user asked for |path|.
  for (size_t at; (at = message.find(temporary)) != std::string::npos;)
    message.replace(at, temporary.size(), path.str());
  return failure();
}

namespace {
/// A lock on a folder, which other processes that publish there wait for. It
/// ends with this object, or with the process.
class FolderLock {
public:
  explicit FolderLock(StringRef folder)
      : fd(::open(folder.str().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  ~FolderLock() {
    if (fd >= 0)
      ::close(fd);
  }

  /// Waits up to |timeout|; false where another process has it that long. A
  /// folder that cannot be locked, as on some network file systems, is as if
  /// nobody else used it.
  bool take(std::chrono::milliseconds timeout) {
    auto end = std::chrono::steady_clock::now() + timeout;
    while (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR)
        return true;
      if (std::chrono::steady_clock::now() > end)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

private:
  int fd;
};
} // namespace

LogicalResult Outputs::commit(std::string &message) {
  if (files.empty())
    return success();
  // Renames of two processes must not mix.
  StringRef folder = llvm::sys::path::parent_path(files.front().path);
  FolderLock lock(folder.empty() ? "." : folder);
  if (!lock.take(std::chrono::seconds(10))) {
    message = ("cannot write to '" + folder +
               "': another process has held its lock for 10 s")
                  .str();
    return failure();
  }
  for (File &file : files)
    if (llvm::Error error = file.written.keep(file.path))
      return fail(file.path, std::move(error), message);
  files.clear();
  return success();
}
