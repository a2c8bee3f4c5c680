//===- Replay.cpp - Runs the inputs of a folder ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In place of libFuzzer, where a build has none.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Input.h"

#include <algorithm>
#include <sstream>
#include <vector>

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(argv[1], error))
    paths.push_back(entry.path());
  if (paths.empty()) {
    std::fprintf(stderr, "'%s' has no inputs\n", argv[1]);
    return 1;
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path &path : paths) {
    std::printf("%s\n", path.c_str()); // the last one crashed
    std::fflush(stdout);
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    std::string input = text.str();
    // A copy of this size: a sanitizer sees what is read behind it.
    std::vector<uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  return 0;
}
