//===- LibraryFile.cpp - Libraries that nobody compiled -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte of the input says whether the rest gets the right end. The
// loader is not tested: a file with the right hash comes from zero-compile.
//
//===----------------------------------------------------------------------===//

#include "Input.h"

#include "zero_rt/library.h"
#include "zero_rt/step.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <dlfcn.h>

using namespace zero_rt;
using namespace zero_rt::fuzz;

// In place of those of the C library.
void *dlopen(const char *, int) noexcept { return nullptr; }
char *dlerror() noexcept {
  static char text[] = "no loader";
  return text;
}

static bool isWhole(const std::string &content) {
  zero_rt_file_end end;
  if (content.size() < sizeof(end))
    return false;
  size_t bytes = content.size() - sizeof(end);
  std::memcpy(&end, content.data() + bytes, sizeof(end));
  return std::memcmp(end.magic, ZERO_RT_FILE_MAGIC, sizeof(end.magic)) == 0 &&
         end.bytes == bytes && end.hash == XXH3_64bits(content.data(), bytes) &&
         end.abi_version >= ZERO_RT_OLDEST_ABI_VERSION &&
         end.abi_version <= ZERO_RT_ABI_VERSION;
}

/// Only a whole file reaches the loader.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const InputFile file("library.so");
  std::string content(reinterpret_cast<const char *>(data), size);
  bool isSealed = !content.empty() && content[0] == 's';
  content.erase(0, 1);
  if (isSealed) {
    zero_rt_file_end end = {};
    std::memcpy(end.magic, ZERO_RT_FILE_MAGIC, sizeof(end.magic));
    end.abi_version = ZERO_RT_ABI_VERSION;
    end.bytes = content.size();
    end.hash = XXH3_64bits(content.data(), content.size());
    content.append(reinterpret_cast<const char *>(&end), sizeof(end));
  }
  file.write(content);
  const zero_rt_library *library = nullptr;
  zero_rt_status status = zero_rt_open(file.path.c_str(), &library);
  requireAnswer(status);
  require(status && !library, "no library");
  bool isLoaded = std::strstr(lastMessage(), "no loader");
  require(isLoaded == isWhole(content), "a whole file, and no other, to be "
                                        "loaded");
  return 0;
}
