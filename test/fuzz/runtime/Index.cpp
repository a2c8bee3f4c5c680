//===- Index.cpp - Indexes of checkpoints that nobody wrote ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is an index without its end, which gets the right checksum.
//
//===----------------------------------------------------------------------===//

#include "Input.h"

#include "checkpoint/checksum.h"
#include "checkpoint/index.h"

using namespace zero_rt;
using namespace zero_rt::fuzz;

/// What is read is read again from what it is written as.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const InputFile file("checkpoint.json");
  std::string text(reinterpret_cast<const char *>(data), size);
  file.write(text + "  \"checksum\": \"" + Checksum::of(text) + "\"\n}\n");
  CheckpointIndex index, again;
  std::string checksum;
  zero_rt_status status = readIndex(file.folder, index, checksum);
  requireAnswer(status);
  if (status)
    return 0;
  std::string written = formatIndex(index);
  file.write(written);
  require(!readIndex(file.folder, again, checksum) &&
              formatIndex(again) == written,
          "what was read to be read again");
  return 0;
}
