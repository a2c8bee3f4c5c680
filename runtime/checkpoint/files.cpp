//===- files.cpp - The operations on files of a checkpoint ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/files.h"

#include "core/status.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace zero_rt;

int (*zero_rt::fileFault)(const char *operation,
                          const std::string &path) = nullptr;

static zero_rt_status refuseFile(const char *operation,
                                 const std::string &path) {
  return fail(ZERO_RT_INVALID_ARGUMENT, "cannot %s '%s': %s", operation,
              path.c_str(), std::strerror(errno));
}

/// The error with which a test lets |operation| fail, or 0.
static int faultOf(const char *operation, const std::string &path) {
  return fileFault ? fileFault(operation, path) : 0;
}

/// Whether a test lets |operation| fail; errno then says how.
static bool isFaulty(const char *operation, const std::string &path) {
  int fault = faultOf(operation, path);
  if (fault)
    errno = fault;
  return fault != 0;
}

zero_rt_status OpenFile::refuse(const char *operation) const {
  return refuseFile(operation, path);
}

OpenFile::~OpenFile() {
  if (descriptor >= 0)
    close(descriptor);
}

zero_rt_status OpenFile::create(const std::string &name) {
  path = name;
  if (isFaulty("create", path))
    return refuse("create");
  descriptor =
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return descriptor < 0 ? refuse("create") : ZERO_RT_OK;
}

zero_rt_status OpenFile::write(const void *data, size_t bytes, int64_t offset) {
  auto *from = static_cast<const char *>(data);
  size_t done = 0;
  // A disk that becomes full takes a part.
  int fault = faultOf("write", path);
  size_t most = fault ? bytes / 2 : bytes;
  while (done < most) {
    ssize_t count =
        pwrite(descriptor, from + done, most - done, offset + int64_t(done));
    if (count > 0)
      done += size_t(count);
    else if (count == 0)
      return errno = ENOSPC, refuse("write");
    else if (errno != EINTR)
      return refuse("write");
  }
  if (fault)
    return errno = fault, refuse("write");
  return ZERO_RT_OK;
}

zero_rt_status OpenFile::finish() {
  if (isFaulty("sync", path) || fsync(descriptor))
    return refuse("sync");
  int closed = close(descriptor);
  descriptor = -1;
  return isFaulty("close", path) || closed ? refuse("close") : ZERO_RT_OK;
}

zero_rt_status OpenFile::open(const std::string &name) {
  path = name;
  if (isFaulty("open", path))
    return refuse("open");
  // A pipe in place of a file must not block.
  descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status))
    return refuse("open");
  if (!S_ISREG(status.st_mode))
    return fail(ZERO_RT_INVALID_ARGUMENT, "'%s' is no regular file",
                path.c_str());
  bytesInFile = status.st_size;
  return ZERO_RT_OK;
}

zero_rt_status OpenFile::read(void *data, size_t bytes, int64_t offset) const {
  if (isFaulty("read", path))
    return refuse("read");
  auto *to = static_cast<char *>(data);
  size_t done = 0;
  while (done < bytes) {
    ssize_t count =
        pread(descriptor, to + done, bytes - done, offset + int64_t(done));
    if (count > 0)
      done += size_t(count);
    else if (count == 0)
      return fail(ZERO_RT_INVALID_ARGUMENT,
                  "'%s' is truncated: it ends at byte %lld", path.c_str(),
                  (long long)offset + (long long)done);
    else if (errno != EINTR)
      return refuse("read");
  }
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::makeFolder(const std::string &path, bool mayExist) {
  if (isFaulty("create folder", path))
    return refuseFile("create folder", path);
  if (mkdir(path.c_str(), 0777) == 0)
    return ZERO_RT_OK;
  struct stat status;
  if (mayExist && errno == EEXIST && stat(path.c_str(), &status) == 0 &&
      S_ISDIR(status.st_mode))
    return ZERO_RT_OK;
  errno = EEXIST == errno && mayExist ? ENOTDIR : errno;
  return refuseFile("create folder", path);
}

zero_rt_status zero_rt::syncFolder(const std::string &path) {
  if (isFaulty("sync folder", path))
    return refuseFile("sync folder", path);
  int folder = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int synced = folder < 0 ? -1 : fsync(folder);
  int error = errno;
  if (folder >= 0)
    close(folder);
  errno = error;
  // Some file systems cannot sync a folder, and need not.
  if (synced == 0 || (folder >= 0 && error == EINVAL))
    return ZERO_RT_OK;
  return refuseFile("sync folder", path);
}

zero_rt_status zero_rt::renameFile(const std::string &from,
                                   const std::string &to) {
  if (isFaulty("rename", from) || rename(from.c_str(), to.c_str()))
    return refuseFile("rename", from);
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::removeFile(const std::string &path) {
  if (isFaulty("remove", path) || unlink(path.c_str()))
    return refuseFile("remove", path);
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::removeFolder(const std::string &path) {
  if (isFaulty("remove folder", path) || rmdir(path.c_str()))
    return refuseFile("remove folder", path);
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::listFolder(const std::string &path, bool followsLinks,
                                   std::vector<std::string> &out) {
  int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  int descriptor =
      ::open(path.c_str(), followsLinks ? flags : flags | O_NOFOLLOW);
  DIR *folder = descriptor < 0 ? nullptr : fdopendir(descriptor);
  if (!folder) {
    int error = errno;
    if (descriptor >= 0)
      close(descriptor);
    return errno = error, refuseFile("list", path);
  }
  errno = 0;
  while (const dirent *entry = readdir(folder))
    out.emplace_back(entry->d_name);
  int error = errno;
  closedir(folder);
  if (error)
    return errno = error, refuseFile("list", path);
  std::sort(out.begin(), out.end());
  return ZERO_RT_OK;
}

zero_rt_status zero_rt::exists(const std::string &path, bool &out) {
  struct stat status;
  out = lstat(path.c_str(), &status) == 0;
  return out || errno == ENOENT ? ZERO_RT_OK : refuseFile("find", path);
}
