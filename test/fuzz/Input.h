//===- Input.h - What all targets share -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ZERO_TEST_FUZZ_INPUT_H
#define ZERO_TEST_FUZZ_INPUT_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

/// What each target defines, and libFuzzer or Replay.cpp calls.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace zero_fuzz {

/// Ends the process unless |holds|, as a crash would. |message| is that of the
/// parser.
inline void require(bool holds, const char *what, const char *message) {
  if (holds)
    return;
  std::fprintf(stderr, "expected: %s\nmessage: %s\n", what, message);
  std::abort();
}

/// A file of the process, in memory where there is such a file system. The
/// parsers read files by path.
class InputFile {
public:
  explicit InputFile(const std::string &name) {
    std::string memory = "/dev/shm";
    std::string pattern =
        (access(memory.c_str(), W_OK) ? "/tmp" : memory) + "/zero-fuzz-XXXXXX";
    require(mkdtemp(pattern.data()), "a folder", pattern.c_str());
    folder = pattern;
    path = folder + "/" + name;
  }
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;
  ~InputFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  void write(std::string_view content) const {
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << content;
    require(bool(file.flush()), "a file that can be written", path.c_str());
  }

  std::string folder, path;
};

} // namespace zero_fuzz

#endif // ZERO_TEST_FUZZ_INPUT_H
