// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// seal_library FILE... appends what zero_rt_open expects at the end of a file,
// so that it loads a library that zero-compile did not write.

#include "zero_rt/library.h"

#ifndef SEALED_VERSION
#define SEALED_VERSION ZERO_RT_ABI_VERSION
#endif

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  static char content[1 << 20];
  for (int i = 1; i < argc; ++i) {
    FILE *file = fopen(argv[i], "r+b");
    if (!file)
      return 1;
    zero_rt_file_end end = {.abi_version = SEALED_VERSION};
    memcpy(end.magic, ZERO_RT_FILE_MAGIC, sizeof(end.magic));
    end.bytes = fread(content, 1, sizeof(content), file);
    end.hash = XXH3_64bits(content, end.bytes);
    if (end.bytes == sizeof(content) || fseek(file, 0, SEEK_END) ||
        fwrite(&end, sizeof(end), 1, file) != 1 || fclose(file))
      return 1;
  }
  return 0;
}
