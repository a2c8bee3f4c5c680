//===- open_library.cpp - Opens compiled steps by path --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The content of a file is read once, compared with the hash in its last bytes,
// and loaded from memory. So no code runs that was not checked, and a file that
// changes later is not mapped.
//
//===----------------------------------------------------------------------===//

#include "core/open_library.h"

#include "core/library_versions.h"
#include "core/status.h"
#include "zero_rt/step.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace zero_rt;

namespace {

struct OpenLibrary {
  const zero_rt_library *library;
  uint64_t hash;
};

struct Registry {
  std::mutex mutex;
  std::vector<OpenLibrary> libraries; // never closed: steps run their code
};

Registry &getRegistry() {
  // Never destroyed: a step may outlive the destructors of this library.
  static auto *registry = new Registry;
  return *registry;
}

class File {
public:
  explicit File(int descriptor) : descriptor(descriptor) {}
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  ~File() {
    if (descriptor >= 0)
      close(descriptor);
  }
  int get() const { return descriptor; }

private:
  const int descriptor;
};

} // namespace

static zero_rt_status failWithErrno(const char *what, const char *path) {
  return fail(ZERO_RT_INVALID_ARGUMENT, "cannot %s '%s': %s", what, path,
              std::strerror(errno));
}

static zero_rt_status readFile(const char *path, std::vector<char> &out) {
  File file(open(path, O_RDONLY | O_CLOEXEC));
  struct stat status;
  if (file.get() < 0 || fstat(file.get(), &status))
    return failWithErrno("open", path);
  if (!S_ISREG(status.st_mode))
    return fail(ZERO_RT_INVALID_ARGUMENT, "'%s' is no regular file", path);
  out.resize(size_t(status.st_size));
  size_t done = 0;
  while (done < out.size()) {
    ssize_t count = read(file.get(), out.data() + done, out.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return failWithErrno("read", path);
    if (count == 0)
      break;
    done += size_t(count);
  }
  out.resize(done);
  return ZERO_RT_OK;
}

/// Checks the end of the file. |outHash| gets the hash of what is before it.
static zero_rt_status checkContent(const char *path,
                                   const std::vector<char> &content,
                                   uint64_t *outHash) {
  zero_rt_file_end end = {};
  if (content.size() >= sizeof(end))
    std::memcpy(&end, content.data() + content.size() - sizeof(end),
                sizeof(end));
  if (std::memcmp(end.magic, ZERO_RT_FILE_MAGIC, sizeof(end.magic)) != 0)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'%s' does not end as a library of zero-compile does: it is "
                "truncated, or another file; compile the step again",
                path);
  size_t bytes = content.size() - sizeof(end);
  *outHash = XXH3_64bits(content.data(), bytes);
  if (end.bytes != bytes || end.hash != *outHash)
    return fail(ZERO_RT_INVALID_ARGUMENT,
                "'%s' is damaged: its content has hash %016llx, and %016llx "
                "was written; compile the step again",
                path, (unsigned long long)*outHash,
                (unsigned long long)end.hash);
  return checkVersion(("'" + std::string(path) + "'").c_str(), end.abi_version);
}

/// A path of |descriptor| for each |number|. The loader takes equal paths for
/// equal libraries, and numbers of descriptors are used again.
static std::string pathOf(int descriptor, size_t number) {
  std::string path = "/proc/self/fd/";
  for (; number; number /= 2)
    path += number % 2 ? "./" : "/";
  return path + std::to_string(descriptor);
}

/// Loads |content| from memory. |number| is another one for each library.
static zero_rt_status load(const char *path, const std::vector<char> &content,
                           size_t number, const zero_rt_library **outLibrary) {
  File memory(memfd_create("zero_step", MFD_CLOEXEC));
  if (memory.get() < 0)
    return failWithErrno("make memory for", path);
  size_t done = 0;
  while (done < content.size()) {
    ssize_t count =
        write(memory.get(), content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return fail(ZERO_RT_OUT_OF_MEMORY, "no memory to load '%s'", path);
    done += size_t(count);
  }
  void *handle =
      dlopen(pathOf(memory.get(), number).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return fail(ZERO_RT_INVALID_ARGUMENT, "cannot load '%s': %s", path,
                dlerror());
  auto *library = static_cast<const zero_rt_library *const *>(
      dlsym(handle, ZERO_RT_LIBRARY_SYMBOL));
  if (!library) {
    dlclose(handle);
    return fail(ZERO_RT_INVALID_ARGUMENT, "'%s' exports no '%s'", path,
                ZERO_RT_LIBRARY_SYMBOL);
  }
  // Calls that describe a library trust its version.
  if (zero_rt_status status = checkVersion(**library)) {
    dlclose(handle);
    return status;
  }
  *outLibrary = *library;
  return ZERO_RT_OK;
}

static zero_rt_status openLibrary(const char *path,
                                  const zero_rt_library **outLibrary) {
  std::vector<char> content;
  ZERO_RT_TRY(readFile(path, content));
  uint64_t hash = 0;
  ZERO_RT_TRY(checkContent(path, content, &hash));
  Registry &registry = getRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (const OpenLibrary &open : registry.libraries)
    if (open.hash == hash) {
      *outLibrary = open.library;
      return ZERO_RT_OK;
    }
  registry.libraries.reserve(registry.libraries.size() + 1);
  ZERO_RT_TRY(load(path, content, registry.libraries.size(), outLibrary));
  registry.libraries.push_back({*outLibrary, hash});
  return ZERO_RT_OK;
}

uint64_t zero_rt::contentHashOf(const zero_rt_library *library) {
  Registry &registry = getRegistry();
  std::lock_guard<std::mutex> lock(registry.mutex);
  for (const OpenLibrary &open : registry.libraries)
    if (open.library == library)
      return open.hash;
  return 0;
}

ZERO_RT_EXPORT zero_rt_status
zero_rt_open(const char *path, const zero_rt_library **out_library) {
  if (!path || !out_library)
    return fail(ZERO_RT_INVALID_ARGUMENT, "zero_rt_open: %s is null",
                path ? "out_library" : "path");
  *out_library = nullptr;
  return guarded("zero_rt_open",
                 [&] { return openLibrary(path, out_library); });
}

ZERO_RT_EXPORT zero_rt_status zero_rt_open_plan(
    const char *path, uint64_t plan_hash, const zero_rt_library **out_library) {
  ZERO_RT_TRY(zero_rt_open(path, out_library));
  uint64_t actual = (*out_library)->plan_hash;
  if (actual == plan_hash)
    return ZERO_RT_OK;
  *out_library = nullptr;
  return fail(ZERO_RT_INVALID_ARGUMENT,
              "'%s' has plan %016llx, the header of this program has plan "
              "%016llx; build the program with the header that was written "
              "with the library",
              path, (unsigned long long)actual, (unsigned long long)plan_hash);
}
